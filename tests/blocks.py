"""A block of each kind with rows, of any axes, and the measures by which its identities are held."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from bayeszoo.distributions.conjugate.bernoulli import Bernoulli
from bayeszoo.distributions.conjugate.categorical import Categorical, Categoricals
from bayeszoo.distributions.conjugate.multivariate import MultivariateNormal
from bayeszoo.distributions.conjugate.negative_binomial import NegativeBinomial
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.conjugate.regressions import Regressions
from bayeszoo.distributions.conjugate.tables import Tables
from bayeszoo.distributions.structures import Matrices, Scalar, Structure

AXES = [(), (3,), (2, 3)]
N = 12


def numbers(rng, axes, low=0.7, high=3.0):
    return rng.uniform(low, high, axes)


def codes(rng, axes):
    return Categorical(("p",), "x", numbers(rng, (*axes, 4))), {"x": rng.integers(0, 4, N)}


def counts(rng, axes):
    return Categorical(("p",), "x", numbers(rng, (*axes, 3))), {"x": rng.integers(0, 5, (N, 3))}


def counts_of_several(rng, axes):
    return Categoricals(("p",), "x", numbers(rng, (*axes, 2, 3))), {"x": rng.integers(0, 3, (N, 2, 3))}


def tables(rng, axes):
    """Two features, whose levels do not lie next to each other."""
    places = (0, 3), (1, 2, 4)
    rows = np.column_stack([rng.choice(own, N) for own in places])
    return Tables(("p",), "x", numbers(rng, (*axes, 5)), places), {"x": rows}


def yes_no(rng, axes):
    return Bernoulli(("chance",), "x", numbers(rng, axes), numbers(rng, axes)), {"x": rng.integers(0, 2, N)}


def trials(rng, axes):
    total = rng.integers(1, 9, N)
    block = Bernoulli(("chance",), "x", numbers(rng, axes), numbers(rng, axes), "trials")
    return block, {"x": rng.binomial(total, 0.4), "trials": total}


def events(rng, axes):
    block = Poisson(("rate",), "x", numbers(rng, axes), numbers(rng, axes), "exposure")
    return block, {"x": rng.poisson(2.0, N), "exposure": rng.uniform(0.5, 2.0, N)}


def failures(rng, axes):
    block = NegativeBinomial(("chance",), "x", numbers(rng, axes), numbers(rng, axes), size=1.5, exposure="exposure")
    return block, {"x": rng.poisson(2.0, N), "exposure": rng.uniform(0.5, 2.0, N)}


def both(rng, axes):
    values = rng.normal(size=axes), *(numbers(rng, axes) for _ in range(3))
    return Normal(("mean", "variance"), "x", *values), {"x": rng.normal(1.0, 2.0, N)}


def mean_and_precision(rng, axes):
    block, rows = both(rng, axes)
    return replace(block, names=("mean", "precision"), precision=True), rows


def mean_known(rng, axes):
    block, rows = both(rng, axes)
    return replace(block, names=("variance",), kappa=np.full(axes, np.inf)), rows


def variance_known(rng, axes):
    block, rows = both(rng, axes)
    return replace(block, names=("mean",), variance=numbers(rng, axes)), rows


def vectors(structure, tied=False):
    def make(rng, axes):
        shape, of_all = structure.shape, axes[:-1] if tied else axes
        root = rng.normal(size=(*of_all, 2, 2))
        psi = structure.reduced(root @ root.mT + np.eye(2))
        m, kappa, nu = rng.normal(size=(*axes, 2)), numbers(rng, axes), numbers(rng, of_all, 3.0, 6.0)
        assert psi.shape == (*of_all, *shape)
        return MultivariateNormal(("mean", "covariance"), "x", m, kappa, nu, psi, structure), {
            "x": rng.normal(size=(N, 2))
        }

    return make


def regressions(rng, axes):
    values = rng.normal(size=(*axes, 3)), np.eye(3) + np.triu(rng.uniform(-0.4, 0.4, (*axes, 3, 3)))
    rows = {"x": rng.normal(size=N), "terms": np.column_stack([np.ones(N), rng.normal(size=(N, 2))])}
    names, variances = ("w", "sigma2"), (numbers(rng, axes), numbers(rng, axes))
    return Regressions(names, "x", *values, *variances, lambda rows: rows["terms"]), rows


MADE = {
    **{
        "codes": codes,
        "counts": counts,
        "several": counts_of_several,
        "tables": tables,
        "yes or no": yes_no,
        "trials": trials,
        "events": events,
        "failures": failures,
    },
    **{"mean and variance": both, "mean and precision": mean_and_precision},
    **{"mean known": mean_known, "variance known": variance_known},
    **{"full": vectors(Matrices(2)), "diagonal": vectors(Structure(2)), "spherical": vectors(Scalar(2))},
    "tied": vectors(Matrices(2), tied=True),
    "regressions": regressions,
}
CASES = [(kind, axes) for kind in MADE for axes in AXES if kind != "tied" or axes]
each_case = pytest.mark.parametrize(("kind", "axes"), CASES, ids=lambda value: str(value))


def case(kind, axes):
    rng = np.random.default_rng([len(kind), *axes, 7])
    block, rows = MADE[kind](rng, axes)
    return block, rows, rng


def some(rows, index):
    return {name: values[index] for name, values in rows.items()}


def ones(rows, axes):
    return np.ones((len(rows["x"]), *axes))


def total(values, axes):
    return np.sum(values, axis=tuple(range(-len(axes), 0)))


def candidate_gap(block, rows, rng):
    """Log evidence less log prior and likelihood, plus the posterior's log density, at draws."""
    sums = block.statistics(rows, ones(rows, block.axes))
    later = block.updated(sums)
    params = later.rvs((5,), rng)
    likelihood = total(block.log_density(params, rows).sum(axis=-1 - len(block.axes)), block.axes)
    evidence = total(block.log_evidence(sums), block.axes)
    return np.max(np.abs(evidence - (block.logpdf(params) + likelihood - later.logpdf(params))))


def same(block, other, rtol=1e-9):
    for f in fields(block):
        values = getattr(block, f.name)
        if isinstance(values, np.ndarray | np.floating):
            np.testing.assert_allclose(values, getattr(other, f.name), rtol=rtol, atol=1e-12)


def divergence_error(block, rows, rng):
    """Monte Carlo errors between the divergence from the prior and the mean log ratio of draws."""
    later = block.updated(block.statistics(some(rows, slice(4)), ones(some(rows, slice(4)), block.axes)))
    params = later.rvs((4000,), rng)
    ratio = later.logpdf(params) - block.logpdf(params)
    return abs(later.divergence(block) - ratio.mean()) / (ratio.std() / math.sqrt(4000))


def expectation_error(block, rows, rng):
    params = block.rvs((4000,), rng)
    densities = block.log_density(params, rows)
    gap = np.abs(densities.mean(axis=0) - block.expected_log_density(rows))
    return np.max(gap / (densities.std(axis=0) / math.sqrt(4000) + 1e-12))


def stationary_gap(block, params, log_density):
    """Return how much higher the density is a small step away, in the parameters themselves."""
    height, gain = log_density(params), -np.inf
    rng = np.random.default_rng(3)
    for _ in range(60):
        for step in (1e-2, 1e-4):
            moved = {}
            for name, values in params.items():
                values = np.asarray(values)
                if name == "p":
                    other = values * np.exp(step * rng.normal(size=values.shape))
                    for own in getattr(block, "tables", (range(values.shape[-1]),)):
                        other[..., list(own)] /= other[..., list(own)].sum(axis=-1, keepdims=True)
                    moved[name] = other
                elif name == "covariance" and len(block.structure.shape) == 2:
                    turn = np.eye(2) + step * rng.normal(size=values.shape)
                    moved[name] = turn @ values @ turn.mT
                elif name == "mean":
                    moved[name] = values + step * rng.normal(size=values.shape)
                else:
                    moved[name] = values * np.exp(step * rng.normal(size=values.shape))
            gain = max(gain, float(log_density(moved) - height))
    return gain


def bug(block, **steps):
    kind = type("Bug", (type(block),), steps)
    return kind(**{f.name: getattr(block, f.name) for f in fields(block)})
