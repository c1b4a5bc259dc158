"""PyTensor operations with analytic gradients, on the compiled loops."""
