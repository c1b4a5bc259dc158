"""Compiled log densities, with analytic gradients, as PyTensor operations; and the E-steps of the same loops."""
