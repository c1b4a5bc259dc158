"""Compilation of a declared PyMC model to one log density with its gradient, `Density`."""
