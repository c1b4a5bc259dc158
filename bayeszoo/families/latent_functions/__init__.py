"""Binary outcomes whose log odds are a Gaussian process: a function of features, or of the nodes of a graph."""
