"""Distributions that are averages of others: over draws, the points of a grid, components or models."""
