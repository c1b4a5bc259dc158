"""The identities of models without a closed form: their declaration, their likelihood and their simulator agree.

Each function takes a `Case` and returns a `Check`, as in `identities`. Simulated data are compared with the
distribution of each row by `likelihood`; without `likelihood`, with PyMC's draws from the declaration. If PyMC cannot
draw, as from a potential, the mean score over data given the parameters is compared with 0.
"""

from __future__ import annotations

import math

import numpy as np
import pytensor
import scipy
from pytensor.graph import clone_replace

from bayeszoo.compile.density import Density, improper
from bayeszoo.contract.case import Case
from bayeszoo.contract.identities import lowest_ks, relative
from bayeszoo.distributions.discrete import Categorical
from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.model.capabilities import Observable
from bayeszoo.model.density import log_density, log_likelihood

ROWS = 200  # rows of a simulated data set
SIMULATIONS = 16  # simulated data sets, each compiled anew
REPLICATES = 99  # PyMC's draws for each simulated row
PRIOR_DRAWS = 2000


def declared_likelihood(case: Case) -> Check:
    """L1a: PyMC's log likelihood is the sum of `likelihood` over the rows, and of ordered rows less the coefficient."""
    model, density = case.model, case.declared
    outcome, by_declaration, expected = model.inputs.outcome(case.data), list[float](), list[float]()
    for flat in case.flat_points:
        point = {name: values[0] for name, values in density.constrain(flat[None]).items()}  # as rounded on the way
        rows = math.fsum(np.ravel(log_density(model.likelihood(point, case.data), outcome)))
        by_declaration += [rows, log_likelihood(model, point, case.data) or 0.0]
        declared = density.heights(flat).likelihood
        expected += [declared, declared - case.log_coefficient]
    with np.errstate(invalid="ignore"):
        gaps = np.subtract(by_declaration, expected)
    gaps[np.equal(by_declaration, expected)] = 0.0  # both may be -inf
    constant = np.ptp(gaps) < 1e-6 * abs(gaps[0])
    by = f", but for {gaps[0]:.6g} nats at every point" if constant else ""
    largest = np.max(np.abs(gaps) / np.maximum(1.0, np.abs(np.nan_to_num(expected))))
    return at_most(f"likelihood equals declared{by}", float(largest), 1e-9)


def likelihood_sums_to_one(case: Case) -> Check:
    """L1d: the densities of all possible data sets of a few observations sum to one, given the parameters."""
    model, sums, sets = case.model, [], case.model.inputs.possible
    # the points with the smallest mean outcome, since counts are summed up to 5000 only
    for point in sorted(case.points, key=lambda p: float(np.max(model.likelihood(p, case.data).mean())))[:5]:
        heights = ((log_likelihood(model, point, d) or 0.0) + model.log_coefficient(d) for d in sets(case.data))
        sums.append(math.fsum(map(math.exp, heights)))
    return at_most("likelihood sums to one", relative(sums, 1.0), 1e-8)


def simulated_prior(case: Case) -> Check:
    """L1k: parameters drawn by `simulate` and by PyMC from the declared prior have one distribution.

    Not compared: variables with a flat prior, or with a transform that restricts their prior, as to an order; and
    entries of a vector that some simulated vectors lack.
    """
    import pymc as pm

    density, rng = case.declared, case.rng
    flat = improper(density.model)
    variables = [v for v in density.model.free_RVs if v.name not in flat and v.size.eval()]
    drawn = pm.draw(variables, draws=PRIOR_DRAWS, random_seed=rng, mode="FAST_COMPILE") if variables else []
    simulated = [case.model.simulate(rng, case.size)[0] for _ in range(PRIOR_DRAWS)]
    lowest, left_out = 1.0, list(flat)
    for variable, values in zip(variables, drawn, strict=True):
        if getattr(density.model.rvs_to_transforms[variable], "name", "") == "ordered":
            left_out.append(variable.name)
            continue
        by_hand = [np.ravel(params[variable.name]) for params in simulated]
        vectors = [*by_hand, *np.reshape(values, (PRIOR_DRAWS, -1))]
        length = min(map(len, vectors))  # which may depend on simulated data
        halves = np.split(np.stack([vector[:length] for vector in vectors]), 2)
        tables = [np.column_stack([half, half.mean(axis=1), half.std(axis=1)]) for half in halves]
        tests = [scipy.stats.ks_2samp(*pair).pvalue for pair in zip(tables[0].T, tables[1].T, strict=True)]
        lowest = min(lowest, *tests)
    unseen = f", but for {', '.join(left_out)}" if left_out else ""
    return at_least(f"simulated against declared prior{unseen} (KS p)", lowest, 1e-5)


def simulated_rows(case: Case) -> Check:
    """L1k: the ranks of simulated rows in their distribution given the parameters are uniform."""
    name = "simulated rows against {} (KS p)"
    if isinstance(case.model, Observable):
        ranks = _probabilities(case)
        if ranks is not None:
            return at_least(name.format("likelihood"), lowest_ks(ranks), 1e-5)
    if case.declared.model.potentials:
        return at_most("mean score of simulated rows, in its error", _largest_score(case), 4.5)
    rng = case.rng
    of_data_sets = [_among_replicates(case, rng) for _ in range(SIMULATIONS)]
    lowest = min(lowest_ks(np.concatenate(ranks)[:, None]) for ranks in zip(*of_data_sets, strict=True))
    return at_least(name.format("the declaration"), lowest, 1e-5)


def _probabilities(case: Case) -> np.ndarray | None:
    """Return P(row <= simulated row), (rows, 1), uniform within the jumps of a discrete distribution.

    None without a cdf, as for rows of several numbers and for categories, which have no order.
    """
    rng, probabilities = case.rng, []
    for _ in range(SIMULATIONS):
        params, data = case.model.simulate(rng, ROWS)
        outcome, likelihood = case.model.inputs.outcome(data), case.model.likelihood(params, data)
        if outcome.ndim > 1 or isinstance(likelihood, Categorical) or not hasattr(likelihood, "cdf"):
            return None
        cdf = likelihood.cdf(outcome)
        if hasattr(likelihood, "logpmf"):
            cdf = cdf - rng.random(outcome.shape) * np.exp(likelihood.logpmf(outcome))
        probabilities.append(np.ravel(cdf))
    return np.concatenate(probabilities)[:, None]


def _among_replicates(case: Case, rng: np.random.Generator) -> list[np.ndarray]:
    """Return ranks of simulated values, and of their log densities, among PyMC's draws given the parameters."""
    import pymc as pm

    params, data = case.model.simulate(rng, ROWS)
    declared = case.model.declare(data)
    fixed = {v: v.type.filter_variable(np.asarray(params[v.name], dtype=v.dtype)) for v in declared.free_RVs}
    ranks = []
    for observed_variable in declared.observed_RVs:
        variable = clone_replace(observed_variable, fixed)
        replicates = pm.draw(variable, draws=REPLICATES, random_seed=rng, mode="FAST_COMPILE")
        observed = declared.rvs_to_values[observed_variable].eval()
        values, value = np.concatenate([observed[None], replicates]), variable.type()
        log_density_of = pytensor.function([value], pm.logp(variable, value), mode="FAST_COMPILE")
        heights = np.array([log_density_of(y.astype(value.dtype)) for y in values])
        ranks += [_ranks(numbers, rng) for numbers in (heights, values) if numbers.shape == heights.shape]
    return ranks


def _ranks(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return for each entry the share of values[1:] that are below values[0], ties broken at random."""
    flat = values.reshape(len(values), -1)
    below, equal = (flat[1:] < flat[0]).sum(axis=0), (flat[1:] == flat[0]).sum(axis=0)
    return np.asarray((below + rng.random(flat.shape[1]) * (equal + 1)) / len(values))


def _largest_score(case: Case) -> float:
    """Return the largest mean, in its standard error, of the score g and of g u, with u the unconstrained parameters.

    E[g | u] = 0; the mean of g alone is 0 too if data are independent of u, as by a wrong simulator.
    """
    rng, scores = case.rng, []
    for _ in range(4 * SIMULATIONS):
        params, data = case.model.simulate(rng, ROWS)
        density = Density(case.model.declare(data), mode="FAST_COMPILE")
        u = density.unconstrain(params)
        g = density.likelihood(u)[1]
        scores.append(np.concatenate([g, g * u]))
    table = np.array(scores)
    moving = np.ptp(table, axis=0) > 0
    error = table.std(axis=0, ddof=1)[moving] / np.sqrt(len(table))
    return float(np.max(np.abs(table.mean(axis=0)[moving]) / error, initial=0.0))


def assignments(case: Case) -> Check:
    """Probabilities of the components have the axes of draws, then of rows, and sum to one."""
    assigned = np.asarray(case.model.component_probabilities(case.draws, case.data))
    wrong = np.shape(assigned)[:3] != (2, 3, case.size)
    sums = assigned.sum(axis=-1) if assigned.ndim > 3 else np.ones(1)
    return at_most("assignments sum to one", math.inf if wrong else relative(sums, 1.0), 1e-10)
