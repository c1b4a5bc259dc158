"""Methods that fit a model, the engines that they share, and the labels of components."""
