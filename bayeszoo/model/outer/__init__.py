"""Parameters that all others depend on: quadrature over a few of them, and fields of a model among them."""
