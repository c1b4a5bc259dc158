"""What a fit is asked: predictions, responsibilities, states, topics, factors, residuals and predictive checks."""
