"""Gaussian processes: kernels, and the density of rows given amplitude, length and noise."""
