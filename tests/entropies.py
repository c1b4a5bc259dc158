"""Mutual information of tables of probabilities by SciPy."""

from scipy import stats


def plain_information(p):
    """Return the mutual information of tables by their entropies, which SciPy computes."""
    flat = p.reshape(len(p), -1)
    return stats.entropy(p.sum(2), axis=1) + stats.entropy(p.sum(1), axis=1) - stats.entropy(flat, axis=1)
