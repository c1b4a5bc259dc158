"""Modes for models with structure: outer parameters alone, fields of a prior, and log-concave densities."""
