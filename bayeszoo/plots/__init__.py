"""Pictures of fits, factors, states, topics and selections: thin functions over `arviz_plots` and Matplotlib."""

from bayeszoo.plots.fits import energy, ess, forest, khat, overlay, pair, posterior, rank, shrinkage, trace

__all__ = ["energy", "ess", "forest", "khat", "overlay", "pair", "posterior", "rank", "shrinkage", "trace"]
