"""Lines of groups, whose intercepts and slopes are drawn from one Gaussian."""
