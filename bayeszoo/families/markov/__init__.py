"""Markov chains of observed symbols: stationary distributions, n-grams and PageRank."""
