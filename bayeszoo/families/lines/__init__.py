"""Lines of groups, with intercepts and slopes from one bivariate Gaussian."""
