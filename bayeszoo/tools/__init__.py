"""Tools without a fit: resampled rows, decompositions of a change, pseudo-posteriors, baselines, n-grams, PageRank."""
