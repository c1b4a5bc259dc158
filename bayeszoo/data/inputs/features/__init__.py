"""Columns of features: levels of text, products, formulas, and cells that are empty."""
