"""Finite mixtures: components, their priors, and scale mixtures."""
