"""Distributions in closed form, on NumPy and SciPy alone."""
