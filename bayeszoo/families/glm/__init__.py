"""Regressions with a link: the log density of a row is concave in the linear predictor."""
