"""The identities that a model's declaration and its closed forms must satisfy (VERIFICATION 2.1).

Each function takes a `Case` and returns a `Check` whose figure is the largest violation. The two sides of an identity
come from independent code: PyMC's log density on one, SciPy's distributions and the model's formulas on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import scipy

from bayeszoo.contract.case import POINTS, Case
from bayeszoo.data.inputs.features.levels import products
from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.foundation.numerics.optimize import MAX_DISTANCE, describe, maximize
from bayeszoo.model import fields
from bayeszoo.model.base import chosen_by_data
from bayeszoo.model.capabilities import ClosedForm, Conjugate, PointMasses
from bayeszoo.model.density import log_density, log_likelihood
from bayeszoo.model.outer.integration import exact_evidence

MAX_ERROR = 0.039
"""Kolmogorov-Smirnov distance of 4000 uniform numbers that is exceeded with probability 1e-5."""


def relative(values: Iterable[float] | np.ndarray | float, reference: Iterable[float] | np.ndarray | float) -> float:
    """Largest absolute difference over max(1, |reference|)."""
    values, reference = np.asarray(values, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    return float(np.max(np.abs(values - reference) / np.maximum(1.0, np.abs(reference))))


def joint_ks(family: Any, drawn: list[dict[str, Any]], rng: np.random.Generator) -> float:
    """Compare draws with exact ones in the density of their copula, as ranks of marginals show no dependence."""
    exact = family.rvs(len(drawn), rng)
    sampled = {name: np.array([point[name] for point in drawn]) for name in exact}
    return float(scipy.stats.ks_2samp(*(_log_copula(family, draws) for draws in (sampled, exact))).pvalue)


def _log_copula(family: Any, draws: dict[str, np.ndarray]) -> np.ndarray:
    """Joint log density less the marginal ones, rounded so that it is 0 if the parameters are independent."""
    marginals = (law.logpdf(draws[name]).reshape(len(draws[name]), -1).sum(axis=1) for name, law in family.items())
    return np.nan_to_num(np.round(family.logpdf(draws) - sum(marginals), 6))


def rank(marginal: Any, values: Any, rng: np.random.Generator) -> np.ndarray:
    """Return the cdf at values; at the atoms of a distribution, uniform within the jump."""
    cdf = marginal.cdf(values)
    below = marginal.below(values) if hasattr(marginal, "below") else cdf
    return np.asarray(cdf if below is cdf else cdf - rng.random(np.shape(cdf)) * (cdf - below))


def lowest_ks(ranks: np.ndarray) -> float:
    """Return the lowest Kolmogorov-Smirnov p-value of the columns of ranks against the uniform distribution."""
    return float(min(scipy.stats.kstest(column, "uniform").pvalue for column in ranks.T))


def independent_density(case: Case) -> Check:
    """L1a: PyMC's log joint equals SciPy's prior plus SciPy's likelihood."""
    outcome = case.model.inputs.outcome(case.data)
    reference = [
        case.prior.logpdf(p) + math.fsum(np.ravel(log_density(case.model.likelihood(p, case.data), outcome)))
        for p in case.points
    ]
    return at_most("density equals SciPy's", relative(case.log_joint + case.stats.log_coefficient, reference), 1e-9)


def candidate_identity(case: Case) -> Check:
    """L1b: log joint less log posterior is the log evidence at every point (Besag 1989)."""
    posterior = case.posterior
    seen = case.declared.constrain(np.array(case.flat_points))  # the points, as rounded on the way to PyMC
    candidates = case.log_joint - posterior.logpdf({k: seen[k][: 2 * POINTS] for k in posterior})
    violations = [relative(candidates, case.log_evidence)]
    counts = case.model.log_evidence_counts(case.stats)
    violations.append(relative(counts - case.stats.log_coefficient, case.log_evidence))
    return at_most("candidate identity", float(np.max(violations)), 1e-9)


def compressed_density(case: Case) -> Check:
    """L1a: the density on sufficient statistics equals the textbook declaration's, also of unconstrained points."""
    heights = [case.compressed.heights(x) for x in case.flat_points]
    compressed = [height.constrained for height in heights] - case.left_open
    declared = [case.declared.heights(x).joint - case.stats.log_coefficient for x in case.flat_points]
    violations = [relative(compressed, case.log_joint), relative([height.joint for height in heights], declared)]
    return at_most("compressed equals declared", float(np.max(violations)), 1e-10)


def chain_rule(case: Case) -> Check:
    """L1c: the log evidence is the sum of one-step-ahead log predictive densities."""
    inputs, terms = case.model.inputs, []
    rows = min(case.size, 50)
    head, _ = inputs.split(case.data, rows)
    for i in range(rows):
        past, row = inputs.split(head, i)[0], inputs.reordered(head, np.array([i]))
        predictive = case.model.predictive(case.model.statistics(past), row)
        terms.append(log_density(predictive, inputs.outcome(row)).item())
    stats = case.model.statistics(head)
    expected = case.model.log_evidence(stats) + stats.log_coefficient
    return at_most("chain rule", relative(math.fsum(terms), expected), 1e-9)


def normalization(case: Case) -> Check:
    """L1d: the evidence of all possible data sets of a few observations sums to one."""
    model, sets = case.model, case.model.possible(case.data)
    evidence = (exact_evidence(model, data) + model.log_coefficient(data) for data in sets)
    return at_most("evidence sums to one", abs(math.fsum(math.exp(value) for value in evidence) - 1), 1e-10)


def gradient(case: Case) -> Check:
    """L1e: the gradient equals central differences of the log density, of two points nearby or of four farther away.

    Differences of near points fail by rounding for densities that invert a matrix, those of farther points at corners.
    A wrong gradient differs from both.
    """
    # differences of a log density of size L have a rounding error of eps * L / h, which is large for many rows
    limit = 1e-5 + 4e-11 * float(np.max(np.abs(case.log_joint)))
    errors, heights = [], case.declared.heights
    every = max(1, len(case.flat_points) * len(case.flat_points[0]) // 200)
    for x in case.flat_points[::every]:
        height, slope = case.declared.joint(x)
        errors.append(relative(height, heights(x).joint))
        for i, derivative in enumerate(slope):
            error = math.inf
            for difference in _differences(lambda point: heights(point).joint, x, i):
                error = min(error, abs(derivative - difference) / (1 + abs(difference)))
                if error <= limit:
                    break
            errors.append(error)
    return at_most("gradient", float(np.max(errors)), limit)


def _differences(height: Callable[[np.ndarray], Any], x: np.ndarray, i: int) -> Iterator[float]:
    """Yield the slope along a coordinate by two points nearby, then by four points farther away."""
    size = max(1.0, abs(float(x[i])))
    unit = size * (np.arange(len(x)) == i)

    def apart(step: float) -> float:
        return float(height(x + step * unit) - height(x - step * unit)) / (2 * step * size)

    yield apart(6e-6)
    yield (4 * apart(3e-4) - apart(6e-4)) / 3


def _cholesky_jacobian(sigma: np.ndarray) -> float:
    """Log |d Sigma / d u|, u the factor L with the log of its diagonal: log of 2^D prod L_ii^(D - i + 2), i = 1..D."""
    diagonal = np.diagonal(np.linalg.cholesky(sigma), axis1=-2, axis2=-1)
    powers = np.arange(diagonal.shape[-1] + 1, 1, -1)
    return float(diagonal.size * np.log(2) + np.sum(powers * np.log(diagonal)))


_JACOBIANS: dict[str, Callable[[np.ndarray, Any, Any], float]] = {
    "log": lambda theta, point, transform: float(np.sum(np.log(theta))),
    "logodds": lambda theta, point, transform: float(np.sum(np.log(theta) + np.log1p(-theta))),
    "simplex": lambda p, point, transform: float(np.sum(np.log(p.shape[-1]) + np.sum(np.log(p), axis=-1))),
    "simplexes": lambda p, point, transform: float(np.sum(transform.log_sizes + np.sum(np.log(p), axis=-1))),
    "cholesky": lambda sigma, point, transform: _cholesky_jacobian(sigma),
    "whitened": lambda w, point, transform: float(np.linalg.slogdet(transform.matrix)[1]),
    "noncentred": lambda w, point, transform: float(np.sum(np.log(point["tau2"]))) / 2,
}
"""Hand-written log |d theta / d u| by the name of the transform; of a simplex, for all entries but the last."""


def jacobian(case: Case) -> Check:
    """L1f: log density with Jacobian less log density without equals the hand-written log Jacobian."""
    density = case.declared
    values = np.array([heights.joint - heights.constrained for heights in map(density.heights, case.flat_points)])
    transforms = {v.name: density.model.rvs_to_transforms[v] for v in density.model.free_RVs}
    transforms = {name: transform for name, transform in transforms.items() if transform is not None}
    if not {transform.name for transform in transforms.values()} <= set(_JACOBIANS):
        return at_most("jacobian", None, 1e-10)
    items = transforms.items()
    expected = [sum(_JACOBIANS[t.name](np.asarray(p[name]), p, t) for name, t in items) for p in case.points]
    rounding = 1e-15 * float(np.max(np.abs(case.log_joint)))
    return at_most("jacobian", relative(values, expected), 1e-10 + rounding)


def row_order(case: Case) -> Check:
    """L1g: reversing and shuffling the rows does not change the evidence."""
    size, rng = case.size, case.rng
    orders = [np.arange(size)[::-1], *(rng.permutation(size) for _ in range(5))]
    evidence = [exact_evidence(case.model, case.model.inputs.reordered(case.data, order)) for order in orders]
    limit = 1e-12 if isinstance(case.model, ClosedForm) else 1e-9  # a grid is placed around a numerical mode
    return at_most("row order", relative(evidence, case.log_evidence), limit)


def label_order(case: Case) -> Check:
    """L1g: reordering the labels, of the data and the prior together, does not change the evidence."""
    inputs, errors = case.model.inputs, []
    for axis in inputs.coords:
        for order in (np.arange(len(case.data[axis]))[::-1], case.rng.permutation(len(case.data[axis]))):
            model = case.model.relabelled(axis, order)
            errors.append(model.log_evidence(model.statistics(inputs.relabelled(case.data, axis, order))))
    return at_most("label order", relative(errors, case.log_evidence), 1e-12)


def units(case: Case) -> Check:
    """L1h: in other units of data and prior, the log density changes by -log(factor) for each observed number."""
    errors, inputs = [], case.model.inputs
    for factor, shift in ((1e3, 0.0), (1.0, -700.0), (0.01, 30.0)):
        shift *= case.model.has_origin
        model = fields.in_units(case.model, factor, shift)
        evidence = exact_evidence(model, inputs.in_units(case.data, factor, shift))
        errors.append(evidence + np.sum(~np.isnan(inputs.outcome(case.data))) * math.log(factor))
    return at_most("units", relative(errors, case.log_evidence), 1e-9)


def feature_units(case: Case) -> Check:
    """L1h: other units of the features, in data and prior, do not change the evidence."""
    inputs, size = case.model.inputs, len(case.data[case.model.inputs.axis])
    factors = 10.0 ** np.linspace(-12, 12, size)
    for j, parts in products(case.data[inputs.axis]).items():
        factors[j] = np.prod(factors[parts])
    shifts = case.rng.normal(size=size) * factors
    centre, scale = (case.model.entries(name, size) for name in ("center", "scale"))
    moved = {"center": fields.plain(centre * factors + shifts), "scale": fields.plain(scale * factors)}
    model = replace(case.model, **moved)
    evidence = model.log_evidence(model.statistics(inputs.rescaled(case.data, factors, shifts)))
    return at_most("units of features", relative(evidence, case.log_evidence), 1e-9)


def weak_units(case: Case) -> Check:
    """Weakly informative fields of converted data equal the converted fields of the data."""
    family, inputs, errors = type(case.model), case.model.inputs, [0.0]
    of_data = chosen_by_data(family.weak(case.data), ())  # else they are the textbook's
    for factor, shift in ((1e3, 0.0), (0.01, 30.0 * case.model.has_origin)) if of_data else ():
        converted = fields.in_units(family.weak(case.data), factor, shift)
        of_converted = family.weak(inputs.in_units(case.data, factor, shift))
        names = fields.hyperparameters(family)
        errors += [relative(getattr(of_converted, name), getattr(converted, name)) for name in names]
    return at_most("weak defaults in other units", float(np.max(errors)), 1e-9)


def weak_defaults(case: Case) -> Check:
    """Weakly informative fields are valid for one row and for equal rows, which have no scale."""
    inputs, models = case.model.inputs, []
    for rows in (np.array([0]), np.zeros(case.size, dtype=int)):
        models.append(type(case.model).weak(inputs.reordered(case.data, rows)))
    return at_most("invalid weak defaults", sum(type(model) is not type(case.model) for model in models), 0)


def names_of_axes(case: Case) -> Check:
    """Axes and labels of each parameter in the declaration are those of the model's ``dims`` and ``coords``."""
    declared, labels = case.declared, case.model.coords(case.data)
    wrong = sum(declared.dims.get(name, ()) != case.model.dims.get(name, ()) for name in case.points[0])
    used = {axis for name, axes in case.model.dims.items() if name in case.points[0] for axis in axes}
    wrong += sum(list(declared.coords.get(axis, ())) != list(labels[axis]) for axis in used)
    return at_most("parameters with other axes than declared", wrong, 0)


def free_parameters(case: Case) -> Check:
    """Count free parameters: as many as PyMC has unconstrained coordinates."""
    return at_most("free parameters off by", abs(case.model.free_parameters(case.stats) - case.declared.size), 0)


def predictive_shape(case: Case) -> Check:
    """Predictive distributions have one entry per row: a number, or a vector for outcomes of several numbers."""
    predictive = case.model.predictive(case.stats, case.data)
    density = log_density(predictive, case.model.inputs.outcome(case.data))
    wrong = np.shape(predictive.mean())[:1] != (case.size,) or np.shape(density) != (case.size,)
    return at_most("predictive shape", float(wrong), 0)


def likelihood_shape(case: Case) -> Check:
    """Leading axes of the parameters are draws: they come before the rows."""
    draws = case.draws
    likelihood = case.model.likelihood(draws, case.data)
    density = log_density(likelihood, case.model.inputs.outcome(case.data))
    wrong = np.shape(likelihood.mean())[:3] != (2, 3, case.size) or np.shape(density) != (2, 3, case.size)
    return at_most("likelihood shape", float(wrong), 0)


def derived_quantities(case: Case) -> Check:
    """Compare derived quantities of all draws at once, and their axes, with those of one draw."""
    draws = case.draws
    together, violations, labels = case.model.derived(draws), [0.0], case.model.coords(case.data)
    for name, values in together.items():
        alone = case.model.derived({key: value[1, 2] for key, value in draws.items()})[name]
        shape = tuple(len(labels[axis]) for axis in case.model.dims.get(name, ()))
        same = np.shape(values) == (2, 3, *shape)
        violations.append(relative(values[1, 2], alone) if same else math.inf)
    if isinstance(case.model, ClosedForm):
        violations.append(_errors_of_marginals(case) / MAX_ERROR * 1e-12)
    return at_most("derived quantities", float(np.max(violations)), 1e-12)


def _errors_of_marginals(case: Case) -> float:
    """Return the largest Kolmogorov-Smirnov distance from uniform of ranks of 4000 derived draws."""
    if not case.is_closed:
        return 0.0
    marginals, rng = case.model.derived_marginals(case.stats), np.random.default_rng(case.seed + 1)
    derived = case.model.derived(case.posterior.rvs(4000, case.rng))
    ranks = (np.ravel(rank(marginals[name], derived[name], rng)) for name in marginals)
    return max((float(scipy.stats.kstest(rank, "uniform").statistic) for rank in ranks), default=0.0)


def batches(case: Case) -> Check:
    """L1i: two batches give the same posterior as all rows at once; statistics can be added, subtracted, discounted."""
    violations = [_two_batches(case, size) for size in {0, 1, case.size // 3, case.size}]
    twice = (case.model.posterior(stats) for stats in (case.stats + case.stats, case.stats.discounted(2.0)))
    at_once, expected = ([posterior.logpdf(point) for point in case.points] for posterior in twice)
    return at_most("batches", float(np.max([*violations, relative(at_once, expected)])), 1e-10)


def _two_batches(case: Case, size: int) -> float:
    """Return the largest error of posterior, evidence and constants by two batches, the first of ``size`` rows."""
    model = case.model
    first, second = (model.statistics(part) for part in case.model.inputs.split(case.data, size))
    pooled = first + second
    at_once = [model.posterior(case.stats).logpdf(p) for p in case.points]
    posteriors, evidence = [model.posterior(pooled), model.posterior(pooled - first + first)], case.log_evidence
    if issubclass(type(model), Conjugate):
        later = model.updated(first)
        posteriors = [later.posterior(second), *posteriors]
        evidence = model.log_evidence(first) + later.log_evidence(second)
    constants = [evidence, pooled.log_coefficient, (pooled - first).log_coefficient]
    errors = [relative([posterior.logpdf(p) for p in case.points], at_once) for posterior in posteriors]
    errors.append(relative(constants, [case.log_evidence, case.stats.log_coefficient, second.log_coefficient]))
    return float(np.max(errors))  # unlike Python's max, it propagates NaN


def no_data(case: Case) -> Check:
    """L1j: without data the log evidence is 0 and the posterior is PyMC's prior."""
    densities = case.left_open + [case.prior.logpdf(p) for p in case.points]
    evidence = case.model.log_evidence(case.model.statistics(case.model.inputs.split(case.data, 0)[0]))
    error = relative(densities, [case.declared.heights(x).prior for x in case.flat_points])
    return at_most("no data gives the prior", error + abs(evidence), 1e-9)


def simulator(case: Case) -> Check:
    """L1k: the ranks of parameters drawn by ``simulate`` in the prior, and in the posterior of their data, are uniform.

    Ranks in the prior detect a wrong prior, whose effect on posteriors is hidden by data; ranks in posteriors detect
    data that do not follow from the parameters.
    """
    ranks, drawn, rng = [], [], case.rng
    for _ in range(2000):
        params, data = case.model.simulate(rng, 20)
        drawn.append(params)
        families = [case.prior, *([case.model.posterior(case.model.statistics(data))] if case.is_closed else [])]
        pairs = [(f[name], value) for f in families for name, value in params.items()]
        ranks.append(np.concatenate([np.ravel(rank(marginal, value, rng)) for marginal, value in pairs]))
    return at_least("simulator (KS p)", min(lowest_ks(np.array(ranks)), joint_ks(case.prior, drawn, case.rng)), 1e-5)


def prior_sampler(case: Case) -> Check:
    """L1k: PyMC's draws from the declared prior follow the closed-form prior."""
    import pymc as pm

    family, declared, rng = case.prior, case.declared.model, case.rng
    variables = [declared[name] for name in family] if isinstance(case.model, PointMasses) else declared.free_RVs
    draws = pm.draw(variables, draws=2000, random_seed=case.rng, mode="FAST_COMPILE")
    pairs = zip(variables, draws, strict=True)
    ranks = [rank(family[v.name], values, rng).reshape(2000, -1) for v, values in pairs]
    points = [{v.name: values[i] for v, values in zip(variables, draws, strict=True)} for i in range(2000)]
    p_value = min(lowest_ks(np.concatenate(ranks, axis=1)), joint_ks(case.prior, points, case.rng))
    return at_least("prior sampler (KS p)", p_value, 1e-5)


def map_is_the_maximum(case: Case) -> Check:
    """L6: an optimizer finds no higher log joint density than the closed-form MAP, and no other point as high."""
    params = case.model.map(case.stats)
    height = _log_likelihood(case, params) + case.prior.logpdf(params)
    if certificate := case.model.certificate(case.stats, params):
        return _certified_mode(case, params, height, certificate)
    return _closed_form_mode("MAP is the maximum", case, params, height, case.compressed.constrained_joint)


def _certified_mode(case: Case, params: Any, height: float, certificate: list[Check]) -> Check:
    """Check a mode with corners, where Newton steps do not apply: by its certificate, and against an optimizer."""
    optimum = maximize(case.compressed.constrained_joint, case.compressed.unconstrain(params))
    higher = max(optimum.value - height, 0.0) / max(1.0, abs(height)) / 1e-9
    broken = sum(not check.passed for check in certificate)
    return at_most("MAP is the maximum (in tolerances)", higher if not broken else math.inf, 1.0)


def mle_is_the_maximum(case: Case) -> Check:
    """L6: an optimizer finds no higher log likelihood than the closed-form MLE, and no other point as high."""
    params = case.model.mle(case.stats)
    height = _log_likelihood(case, params)
    return _closed_form_mode("MLE is the maximum", case, params, height, case.compressed.likelihood)


def _log_likelihood(case: Case, params: Any) -> float:
    """SciPy's log likelihood of the ordered data: finite on the edge too, where PyMC's coordinates are infinite."""
    return cast(float, log_likelihood(case.model, params, case.data))


def _closed_form_mode(name: str, case: Case, params: Any, height: float, target: Any) -> Check:
    """Compare heights, and check that a Newton step would not move the estimate, if it is not on the edge."""
    with np.errstate(divide="ignore", invalid="ignore"):  # the edge is at infinity
        x = case.compressed.unconstrain(params)
    optimum = maximize(target, case.compressed.start)
    distance = describe(target, x).distance / MAX_DISTANCE if np.isfinite(x).all() else 0.0
    figures = relative(height, optimum.value) / 1e-9, distance
    return at_most(f"{name} (in tolerances)", float(np.max(figures)), 1.0)
