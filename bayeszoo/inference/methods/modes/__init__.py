"""Modes by the structure of a model: of outer parameters alone, of concave densities, and of those given a number."""
