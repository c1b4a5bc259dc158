"""Conjugate blocks: a prior, the law of a row given its parameters, and all that is in closed form of the two."""
