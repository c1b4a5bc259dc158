"""Experts: mixtures of linear regressions."""
