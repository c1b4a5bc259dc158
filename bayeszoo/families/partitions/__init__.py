"""Regression trees: features cut into boxes, and sums over all trees of cuts."""
