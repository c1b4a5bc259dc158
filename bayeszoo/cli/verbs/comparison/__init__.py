"""Verbs that compare models and priors on the same data."""
