"""One file a method of fitting: a function from a problem to an outcome."""
