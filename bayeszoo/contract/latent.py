"""The identities of models with latent variables: EM, variational Bayes and enumeration against PyMC and each other.

Each function takes a `Case` and returns a `Check` whose figure is the largest violation, as in `identities`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from bayeszoo.compile.density import Density
from bayeszoo.contract.case import Case, case_of
from bayeszoo.contract.identities import lowest_ks, relative
from bayeszoo.contract.sampler import label_free_checks
from bayeszoo.data.inputs import Series, starts
from bayeszoo.data.inputs.sequences.series import SEQUENCE
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.gate import Check, at_least, at_most
from bayeszoo.foundation.named import Arrays, Params
from bayeszoo.foundation.numerics.constants import TINY
from bayeszoo.foundation.numerics.optimize import MAX_DISTANCE, Gradient, curvature, describe
from bayeszoo.inference.engine.ascent import AscentError
from bayeszoo.inference.labels.align import permute
from bayeszoo.inference.methods import em, vb
from bayeszoo.inference.methods.enumeration import Enumeration, most_rows
from bayeszoo.inference.starts import SIMPLEXES
from bayeszoo.model import fields
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import EM, Conditional, Variational, rows_have_parameters
from bayeszoo.model.density import log_density
from bayeszoo.model.many_files.rows import restricted, together

FEW = 5  # rows of excerpts whose assignments are all enumerated
FEW_WORDS = 12  # words of these excerpts, if each has a latent variable
SIMULATIONS = 100
EDGE = 1e-9  # probabilities and positive numbers below it count as 0


def _value(case: Case, params: Params) -> float:
    if not isinstance(case.model, EM):
        return case.declared.constrained_joint(case.declared.unconstrain(params))[0]
    return float(case.model.e_step(params, case.data).value + case.model.log_prior(params, case.data))


def em_objective(case: Case) -> Check:
    """L6: PyMC's log joint is the E-step's log likelihood plus the log prior, at every point."""
    density, points = case.climbed, case.latent_points
    if isinstance(case.model, Conditional):
        points = [{name: point[name] for name in case.model.outer} for point in points]
    flat = [density.unconstrain(point) for point in points]
    declared = [density.constrained_joint(x)[0] - case.model.log_coefficient(case.data) for x in flat]
    seen = density.constrain(np.array(flat))  # the points, as rounded on the way to PyMC
    objectives = [_value(case, {name: seen[name][i] for name in points[0]}) for i in range(len(points))]
    return at_most("EM's objective is PyMC's log joint", relative(objectives, declared), 1e-10)


def compiled_density(case: Case) -> Check:
    """L1a: the density on the compiled likelihood equals the textbook declaration's, with Jacobian and without."""
    return _same_density("compiled equals declared", case, case.compiled)


def _same_density(name: str, case: Case, compiled: Density) -> Check:
    """Compare densities with the Jacobian as compiled by numba, and without it as called by other linkers."""
    coefficient = case.model.log_coefficient(case.data)
    flat = [case.declared.unconstrain(point) for point in case.latent_points]
    interpreted = Density(compiled.model, mode="FAST_COMPILE")
    densities = [[density(x)[0] for x in flat] for density in (compiled.joint, interpreted.constrained_joint)]
    declared = case.declared.joint, case.declared.constrained_joint
    expected = [[density(x)[0] - coefficient for x in flat] for density in declared]
    return at_most(name, relative(np.array(densities), np.array(expected)), 1e-10)


def statistics_density(case: Case) -> Check:
    """L1a: the density from sufficient statistics equals the textbook declaration's, with Jacobian and without."""
    return _same_density("statistics equal declared", case, case.compressed)


def statistics_gradient(case: Case) -> Check:
    """L1e: the gradient of the density from statistics equals PyTensor's gradient of the declaration."""
    return _same_gradient("gradient from statistics", case, case.compressed)


def compiled_gradient(case: Case) -> Check:
    """L1e: the gradient of the compiled density equals PyTensor's gradient of the textbook declaration."""
    return _same_gradient("compiled gradient", case, case.compiled)


def _same_gradient(name: str, case: Case, compiled: Density) -> Check:
    flat = [case.declared.unconstrain(point) for point in case.latent_points[::5]]
    pairs = [(compiled.joint(x)[1], case.declared.joint(x)[1]) for x in flat]
    error = max(float(np.max(np.abs(slope - expected)) / (1 + np.max(np.abs(expected)))) for slope, expected in pairs)
    return at_most(name, error, 1e-8)


def em_map_is_stationary(case: Case) -> Check:
    """L6: the fixed point of EM is a maximum of PyMC's log joint, without Jacobian; no climb ever decreased."""
    return _stationary(case, "EM's MAP is stationary", False)


def em_mle_is_stationary(case: Case) -> Check:
    """L6: under a flat prior the fixed point is a maximum of PyMC's log likelihood."""
    return _stationary(case, "EM's MLE is stationary", True)


def _stationary(case: Case, name: str, flat: bool) -> Check:
    model = case.model
    if not flat and model.unbounded(case.data):
        return at_most(name, 0.0, MAX_DISTANCE)
    try:
        best = em.climbs(model, case.sample, case.rng, flat).best
    except AscentError:
        raise
    except NumericalError:  # with few rows all fixed points may be degenerate
        return at_most(name, 0.0 if flat else None, MAX_DISTANCE)
    state, declared = best.state, case.climbed
    if flat and model.undetermined(state, case.sample, best.expectation.stats, flat):
        return at_most(name, 0.0, MAX_DISTANCE)
    target, transforms = declared.likelihood if flat else declared.constrained_joint, declared.model.rvs_to_transforms
    names = {v.name: getattr(transforms[v], "name", "") for v in declared.model.free_RVs}
    ends_at_0 = {name for name, transform in names.items() if transform in {*SIMPLEXES, "log"}}
    inside = {key: np.maximum(values, EDGE) if key in ends_at_0 else values for key, values in state.items()}
    if all(np.array_equal(inside[key], state[key]) for key in state):
        return at_most(name, describe(target, declared.unconstrain(state)).distance, MAX_DISTANCE)
    return at_most(name, _distance_along_the_edge(target, declared.unconstrain(inside)), MAX_DISTANCE)


def parts_add_up(case: Case) -> Check:
    """L6: E-steps of parts of the rows, pooled, have the value and the M-step of one E-step of all rows."""
    model, (data, parts) = case.model, _parts(case)
    errors = list[float]()
    for step, m_step, points in _steps(case):
        for point in points:
            expected = step(point, data)
            pooled = together(model, [step(restricted(model, point, rows), part) for rows, part in parts])
            errors.append(relative(pooled.value, expected.value))
            with suppress(NumericalError):  # of a component without rows
                reached = m_step(expected.stats)
                errors += [relative(values, reached[name]) for name, values in m_step(pooled.stats).items()]
    return at_most("parts of the rows add up", float(np.max(errors)), 1e-10)


def _steps(case: Case) -> Iterator[tuple[Any, Any, list[Any]]]:
    """Yield each kind of E-step, its M-step, and the points to compare them at."""
    model = case.model
    yield model.e_step, partial(model.m_step, flat=bool(model.unbounded(case.data))), case.latent_points
    if isinstance(model, Variational):
        q = model.vb_start(case.data, case.rng)
        climbed = accumulate(range(5), lambda q, _: model.vb_m_step(model.vb_e_step(q, case.data).stats), initial=q)
        yield model.vb_e_step, partial(_means, model), list(climbed)


def _means(model: Variational, stats: object) -> dict[str, np.ndarray]:
    return {name: marginal.mean() for name, marginal in model.vb_posterior(model.vb_m_step(stats)).items()}


def _parts(case: Case) -> tuple[Arrays, list[tuple[slice, Arrays]]]:
    """Return the data, and up to three parts, the first of a single row; sequences are cut at the parts' ends."""
    inputs, data = case.model.inputs, dict(case.data)
    edges = np.unique([0, 1, case.size // 2, case.size])
    if isinstance(inputs, Series):
        begins = np.isin(np.arange(case.size), [*edges, *starts(data[SEQUENCE])])
        data[SEQUENCE] = np.cumsum(begins) - 1
    pieces = [np.arange(start, end) for start, end in pairwise(edges)]
    return data, [(slice(rows[0], rows[-1] + 1), inputs.reordered(data, rows)) for rows in pieces]


def _distance_along_the_edge(target: Gradient, x: np.ndarray) -> float:
    """Return the distance to a maximum, in sd, in the directions of nonzero curvature.

    A probability, or an sd, of 0 is at infinity in unconstrained coordinates: in its direction the density is flat.
    """
    slope, (curvatures, directions) = target(x)[1], np.linalg.eigh(curvature(target, x))
    curved = np.abs(curvatures) > 1e-6 * np.max(curvatures, initial=0.0)
    if not np.all(curvatures[curved] > 0):
        return math.inf
    return float(np.linalg.norm((directions.T @ slope)[curved] / np.sqrt(curvatures[curved])))


def excerpt(case: Case) -> Case:
    """Return the case with the first few of its rows, or of their words, so that all assignments can be enumerated."""
    K = case.model.K
    rows = FEW if case.model.sums_partitions() else max(FEW, K)
    size = rows if case.model.latent_unit == "row" else min(FEW_WORDS, most_rows(max(2, K)))
    return Case(case.model, case.model.shortened(case.data, size), case.seed)


def bound(case: Case) -> Check:
    """L5: the ELBO is at most the log evidence by enumeration."""
    head = excerpt(case)
    elbo = vb.climbs(case.model, head.data, case.rng).best.objective
    evidence = Enumeration.of(case.model, head.data).log_evidence
    return at_most("ELBO above the exact log evidence", elbo - evidence, 1e-9 * max(1.0, abs(evidence)))


def one_component(case: Case) -> Check:
    """L1j: with one component nothing is latent, so the ELBO equals the log evidence by enumeration."""
    model = case.model.one_component()
    elbo = vb.climbs(model, case.data, case.rng, restarts=2).best.objective
    evidence = Enumeration.of(model, case.data).log_evidence
    return at_most("one component: ELBO is the evidence", relative(elbo, evidence), 1e-9)


def enumerated_candidate(case: Case) -> Check:
    """L1b: for any assignment z and at any point, log joint less log posterior given z is log p(y, z)."""
    head = excerpt(case)
    points = (head if rows_have_parameters(case.model) else case).latent_points[::5]
    assignments = case.rng.integers(0, case.model.K, (len(points), case.model.latents(head.data)))
    expected = case.model.log_joint(assignments, head.data)
    evidences: list[float] = []
    for z, point in zip(assignments, points, strict=True):
        complete = _log_complete(head, point, z)
        posterior = case.model.posterior_given(z, head.data).logpdf(point)
        evidences.append(complete - posterior if np.isfinite(complete) else expected[len(evidences)])
    return at_most("enumerated candidate identity", relative(evidences, expected), 1e-9)


def _log_complete(case: Case, point: Mapping[str, object], z: np.ndarray) -> float:
    """Return log p(y, z, theta); -inf for an impossible assignment."""
    model = case.model
    if (complete := model.log_complete(point, z[None], case.data)) is not None:
        return float(complete[0] + model.log_prior(point, case.data))
    r = model.component_probabilities(point, case.data)[np.arange(case.size), z]
    with np.errstate(divide="ignore"):  # a probability that is nearly 0 has lost its digits, and counts as 0
        return _value(case, point) + float(np.log(np.where(r < TINY, 0.0, r)).sum())


def enumerated_row_order(case: Case) -> Check:
    """L1g: rows in another order have the same evidence by enumeration."""
    head = excerpt(case)
    orders = [np.arange(head.size), np.arange(head.size)[::-1], case.rng.permutation(head.size)]
    rows = (case.model.inputs.reordered(head.data, order) for order in orders)
    expected, *evidences = (Enumeration.of(case.model, reordered).log_evidence for reordered in rows)
    return at_most("enumerated row order", relative(evidences, expected), 1e-12)


def enumerated_units(case: Case) -> Check:
    """L1h: in other units of data and prior, the evidence changes by -log(factor) for each observed number."""
    head, errors, inputs = excerpt(case), [], case.model.inputs
    for factor, shift in ((1e3, 0.0), (1.0, -700.0), (0.01, 30.0)):
        model = fields.in_units(case.model, factor, shift)
        evidence = Enumeration.of(model, inputs.in_units(head.data, factor, shift)).log_evidence
        errors.append(evidence + inputs.outcome(head.data).size * math.log(factor))
    return at_most("enumerated units", relative(errors, Enumeration.of(case.model, head.data).log_evidence), 1e-9)


def labels_mean_nothing(case: Case) -> Check:
    """L1g: components in another order have the same log joint and the same label-free quantities."""
    draws, axis = _stacked(case.latent_points), case.model.exchangeable_axis()
    order = np.roll(np.arange(case.model.K if axis is None else len(case.model.coords(case.data)[axis])), 1)
    moved = permute(case.model, draws, np.broadcast_to(order, (len(case.latent_points), len(order))))
    moved |= {name: moved[name] * np.resize([-1.0, 1.0], len(order)) for name in case.model.signed}
    points = range(len(case.latent_points))
    heights = [[_value(case, {k: v[i] for k, v in params.items()}) for i in points] for params in (moved, draws)]
    relabelled, original = (case.model.invariants(params, case.data) for params in (moved, draws))
    if case.model.prior_orders_labels:
        heights = [[0.0], [0.0]]
    violations = [relative(*heights), *(relative(relabelled[name], original[name]) for name in relabelled)]
    return at_most("labels mean nothing", float(np.max(violations)), 1e-9)


def _stacked(points: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    return {name: np.stack([point[name] for point in points]) for name in points[0]}


def likelihood_of_rows(case: Case) -> Check:
    """L1a: the log densities of the rows sum to the E-step's log likelihood; leading axes are draws."""
    draws = _stacked(case.latent_points)
    distribution = case.model.likelihood(draws, case.data)
    heights = log_density(distribution, case.model.inputs.outcome(case.data))
    points = [{name: values[i] for name, values in draws.items()} for i in range(len(heights))]
    expected = [case.model.e_step(point, case.data).value for point in points]
    shape = (len(points), case.size)
    wrong = np.shape(distribution.mean())[:2] != shape or np.shape(heights) != shape
    return at_most("likelihood of the rows", math.inf if wrong else relative(heights.sum(axis=1), expected), 1e-9)


def simulation_based(case: Case) -> Check:
    """L3: the ranks of simulated parameters among exact draws given their data are uniform (Talts et al. 2018)."""
    rng, ranks = case.rng, []
    for _ in range(SIMULATIONS):
        params, data = case.model.simulate(rng, FEW)
        exact = Enumeration.of(case.model, data).draw((99,), rng)
        draws = {name: np.concatenate([np.asarray(params[name])[None], exact[name]]) for name in exact}
        invariants = case.model.invariants(draws, data)
        values = np.concatenate([np.reshape(entry, (100, -1)) for entry in invariants.values()], axis=1)
        below = (values[1:] < values[0]).sum(axis=0) + rng.integers(0, (values[1:] == values[0]).sum(axis=0) + 1)
        ranks.append((below + rng.random(below.shape)) / 100)
    return at_least("simulated against enumerated (KS p)", lowest_ks(np.array(ranks)), 1e-5)


def sampler_checks(model: Model | type[Model], data: object, seed: int) -> list[Check]:
    """Compare NUTS, and Gibbs sampling, with enumeration of a few rows, in quantities that do not depend on labels."""
    head = excerpt(case_of(model, data, seed))
    exact = Enumeration.of(head.model, head.data)
    return label_free_checks(head, exact.draw((4, 5000), head.rng), "enumeration", seed)
