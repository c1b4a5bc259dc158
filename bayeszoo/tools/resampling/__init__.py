"""Answers from reweighted and resampled rows: the Bayesian bootstrap, the classical one, and BayesBag."""
