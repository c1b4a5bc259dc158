"""Classes of rows: decisions by their probabilities, and how well these foretold known outcomes."""
