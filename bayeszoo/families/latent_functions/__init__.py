"""Yes/no outcomes about a function that is a Gaussian process: of features, or of the nodes of a graph."""
