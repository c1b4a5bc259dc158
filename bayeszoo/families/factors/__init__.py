"""Probabilistic PCA and its relatives: factors, loadings and their relevance precisions."""
