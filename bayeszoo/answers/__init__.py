"""Answers of a fit: predictions, responsibilities, states, topics, factors, residuals and predictive checks."""
