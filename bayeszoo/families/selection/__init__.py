"""Linear regressions of which it is not known what terms are in."""
