"""Linear models with Laplace weights: coordinate descent and exact posteriors."""
