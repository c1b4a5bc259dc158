"""Rows of features of mixed kinds: levels, counts and reals."""
