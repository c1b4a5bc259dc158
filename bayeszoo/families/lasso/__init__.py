"""Linear models with Laplace weights: modes by scikit-learn, and exact posteriors."""
