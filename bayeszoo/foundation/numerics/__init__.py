"""Maximization, integration over a few numbers, and quantiles, of any density."""
