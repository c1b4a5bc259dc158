"""Several fits, models or data sets side by side: comparison, selection, held-out scores."""
