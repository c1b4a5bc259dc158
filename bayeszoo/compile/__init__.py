"""A declared PyMC model as one compiled log density with its gradient, `Density`."""
