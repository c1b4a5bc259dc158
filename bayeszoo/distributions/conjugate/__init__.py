"""Conjugate blocks: a prior, the law of a row given its parameters, and the closed forms of both."""
