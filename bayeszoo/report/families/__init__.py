"""The answer of each family of models: pictures, rows and lines."""
