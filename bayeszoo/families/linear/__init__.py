"""Linear regressions: least squares, posteriors, evidence and densities."""
