"""Modes by the structure of a model: of outer parameters alone, and of concave densities."""
