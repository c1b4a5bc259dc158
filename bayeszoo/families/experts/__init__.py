"""Experts: linear regressions each of which answers for some of the rows."""
