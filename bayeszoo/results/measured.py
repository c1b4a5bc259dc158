"""An approximation measured against the posterior: the posterior's numbers, the checks and their facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.errors import NumericalError
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.gate import (
    MAX_MEAN_GAP,
    MAX_QUANTILE_GAP,
    MAX_SD_GAP,
    Check,
    at_least,
    at_most,
    unmeasured_checks,
)
from bayeszoo.inference.labels.symmetry import is_symmetric, labelled, numbered_as, pattern_of
from bayeszoo.inference.problem import Problem
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import Observable, Variational, rows_have_parameters
from bayeszoo.results.caveats import MOST_NAMED
from bayeszoo.results.gaps import gaps, statistics_of

if TYPE_CHECKING:
    from bayeszoo.inference.reference import Reference

FITTED, FEW_ROWS = "fitted", 20
"""The name of the means of rows in messages, and the number of rows checked."""

KEPT_DRAWS = 500
"""Most reference draws of each chain that are kept where a quantity is off; they give an sd to about 2%."""

MAX_LIVE_GAP = 0.1
"""Largest error of the probability of a number of components that is shown."""

Entries = Iterable[tuple[tuple[int, ...], str]]
Labels = Callable[[str], Entries]


class Measured(NamedTuple):
    """Facts, checks and reference numbers of an approximation."""

    statistics: Mapping[str, np.ndarray]
    """Posterior mean, sd and quantiles of each quantity without a closed form, along the first axis."""
    checks: list[Check]
    facts: Mapping[str, Any]
    draws: Mapping[str, np.ndarray] = {}
    """Some posterior draws, where a quantity is off: single answers are judged by these."""


class _Scalar(NamedTuple):
    """One printed quantity and its gaps."""

    label: str
    mean: float
    sd: float
    quantile: float
    is_shown: bool
    is_listed: bool
    """Whether it is in the table of estimates."""


def measure(
    problem: Problem,
    draws: Mapping[str, Mapping[str, np.ndarray]],
    exact: Mapping[str, np.ndarray],
    labels: Labels,
    facts: Mapping[str, object],
) -> Measured:
    """Measure the printed numbers of an approximation against the closed form or reference draws.

    Parameters
    ----------
    draws : mapping of str to mapping of str to array
        Draws (chain, draw, ...) of the groups ``posterior``, ``derived`` and ``invariants``; the last are printed in
        place of parameters of single components, if the posterior does not separate the components.
    exact : mapping of str to array
        The `STATISTICS` of quantities with a closed form.
    labels : callable
        Returns the indices and names of the entries of a quantity.
    facts : mapping
        Facts about the fit, such as ``k_hat``.

    Returns
    -------
    Measured
        The facts ``withheld`` and ``parameters_withheld`` name the quantities that are too far off to be shown.
    """
    from bayeszoo.inference.reference import reference  # loads PyTensor, which exact answers do not need

    reference_run = reference(problem)
    if not reference_run.draws:
        return Measured({}, unmeasured_checks(facts, reference_run.source), {})
    posterior, withheld = _numbered(problem, reference_run.draws, draws["posterior"])
    parameters = {**draws["invariants" if withheld else "posterior"], **_fitted(problem, draws["posterior"])}
    printed = {**parameters, **draws["derived"]}
    posterior |= _fitted(problem, reference_run.draws)
    without = problem.model.without_moments
    drawn = {name: statistics_of(posterior[name], name not in without) for name in printed if name in posterior}
    true = drawn | {name: _completed(exact[name], drawn.get(name)) for name in printed if name in exact}
    statistics = {name: true[name] for name in drawn if name not in exact or np.isnan(exact[name]).any()}
    entries = {
        name: _names_of_rows(problem, v.shape[2:]) if name == FITTED else labels(name) for name, v in printed.items()
    }
    listed = {*draws["derived"], *(draws["posterior"].keys() & parameters.keys())}
    scalars = [scalar for name in true for scalar in _scalars(printed[name], true[name], entries[name], name in listed)]
    statistics.pop(FITTED, None)
    checks, worst = _judged(scalars)
    new_facts: dict[str, Any] = {"measured_against": reference_run.source, **worst}
    new_facts |= {"components_withheld": withheld} if withheld else {}
    new_facts |= _live(problem.model, draws["posterior"], reference_run)
    far = {"withheld": [scalar.label for scalar in scalars if not scalar.is_shown]}
    far["parameters_withheld"] = [label for label in far["withheld"] if label.partition("[")[0] in parameters]
    new_facts |= {name: labels for name, labels in far.items() if labels}
    kept_draws = {} if all(check.passed for check in checks) else _thinned(reference_run.draws)
    return Measured(statistics, checks, new_facts, kept_draws)


def _live(model: Model, draws: Mapping[str, np.ndarray], reference: Reference) -> dict[str, Any]:
    """Return the number of components in use and its probability, if reference draws agree; else why not."""
    counts = model.live(draws) if isinstance(model, Variational) else None
    true_counts = model.live(reference.draws) if isinstance(model, Variational) else None
    if counts is None or true_counts is None:
        return {}
    number = _commonest(counts)
    approximate, true = float(np.mean(counts == number)), float(np.mean(true_counts == number))
    if abs(approximate - true) <= MAX_LIVE_GAP:
        return {"live": number, "live_probability": true}
    return {"live_withheld": f"the probability of {number} is {approximate:.2g}, and {true:.2g} by {reference.source}"}


def live_of_draws(model: Model, draws: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the number of components in use by a sampler's draws, its probability and the Monte Carlo error.

    If all draws agree, the error is as if one effective draw did not.
    """
    counts = model.live(draws) if isinstance(model, Variational) else None
    if counts is None:
        return {}
    number = _commonest(counts)
    agrees = (counts == number).astype(np.float64)
    p, error = float(agrees.mean()), float(diagnostics.mcse(agrees))
    if np.ptp(agrees) == 0:
        error = 1 / (diagnostics.relative_efficiency(draws.values()) * counts.size)
    if error <= MAX_LIVE_GAP / 2:
        return {"live": number, "live_probability": p, "live_mcse": error}
    return {"live_withheld": f"the Monte Carlo error of the probability of {number} is {error:.2g}", "live_mcse": error}


def _commonest(counts: np.ndarray) -> int:
    values, frequencies = np.unique(counts, return_counts=True)
    return int(values[np.argmax(frequencies)])


def _thinned(draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return at most `KEPT_DRAWS` draws of each chain, evenly spread."""
    return {name: values[:, :: max(1, values.shape[1] // KEPT_DRAWS)][:, :KEPT_DRAWS] for name, values in draws.items()}


def _completed(exact: np.ndarray, drawn: np.ndarray | None) -> np.ndarray:
    """Return exact statistics, with quantiles of draws where only mean and sd are exact."""
    if drawn is None:
        return exact
    return np.concatenate([exact[:2], np.where(np.isnan(exact[2:]), drawn[2:], exact[2:])])


def _numbered(
    problem: Problem, posterior: Mapping[str, np.ndarray], draws: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], str]:
    """Return reference draws with derived quantities, and components numbered as in ``draws``.

    If components of reference draws are withheld, return quantities that do not depend on labels, and the reason.
    """
    model, withheld, numbered = problem.model, "", dict(posterior)
    if is_symmetric(model) and (aligned := labelled(model, posterior, problem.observed, "sampled")) is not None:
        numbered, withheld = dict(aligned.draws), aligned.withheld
        pattern = pattern_of(model, draws, problem.observed)
        if pattern is not None:
            numbered = numbered_as(model, numbered, pattern, problem.observed)[0]
    try:
        derived = dict(model.derived(numbered))
    except NumericalError:  # it need not exist at every point
        derived = {}
    if is_symmetric(model) and withheld:
        return {**model.invariants(posterior, problem.observed), **derived}, withheld
    return {**numbered, **derived}, ""


def _fitted(problem: Problem, params: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the means of some rows at each draw, by which predictions are judged; empty where they are unknown.

    These means depend on the parameters jointly: if an approximation takes parameters for independent, means may be
    wrong although each parameter is right.
    """
    model = problem.model
    if not (isinstance(model, Observable) and problem.has_rows) or rows_have_parameters(model):
        return {}
    rows = model.inputs.reordered(problem.data, _some_rows(problem))
    with np.errstate(all="ignore"):
        means = np.asarray(model.law(params, problem.data, rows).mean())
    return {FITTED: means} if np.isfinite(means).all() else {}


def _some_rows(problem: Problem) -> np.ndarray:
    """Return the places of at most `FEW_ROWS` rows, evenly spread."""
    size = problem.model.inputs.size(problem.data)
    return np.unique(np.linspace(0, size - 1, min(FEW_ROWS, size)).round().astype(np.int64))


def _names_of_rows(problem: Problem, shape: tuple[int, ...]) -> Entries:
    """Yield the index and the name of the mean of each checked row, by the row's number in the table."""
    rows = _some_rows(problem)
    numbers = rows + 1 if problem.data.row_numbers is None else problem.data.row_numbers[rows]
    for index in np.ndindex(shape):
        inner = "".join(f", {i + 1}" for i in index[1:])
        yield index, f"{FITTED}[row {numbers[index[0]]}{inner}]"


def _scalars(draws: np.ndarray, posterior: np.ndarray, entries: Entries, is_listed: bool) -> Iterable[_Scalar]:
    measured = gaps(draws, posterior)
    for index, label in entries:
        mean, sd, quantile = (float(gap[index]) for gap in (measured.mean, measured.sd, measured.quantile))
        yield _Scalar(label, mean, sd, quantile, bool(measured.are_shown[index]), is_listed)


class _Criterion(NamedTuple):
    """One kind of gap: the fact for the worst, the check, and the text of a single gap."""

    fact: str
    gap: Callable[[_Scalar], float]
    check: Callable[[float], Check]
    text: str
    worst_first: Callable[[float], float]

    def rank(self, scalar: _Scalar) -> float:
        """Return the place of a scalar in the order from the worst gap; unknown gaps come first."""
        return float(np.nan_to_num(self.worst_first(self.gap(scalar)), nan=-np.inf))


_CRITERIA = [
    _Criterion(
        "mean_gap",
        lambda scalar: abs(scalar.mean),
        lambda gap: at_most("mean_gap", gap, MAX_MEAN_GAP),
        "{label} {mean:+.2g} sd",
        lambda gap: -gap,
    ),
    _Criterion(
        "sd_ratio_least",
        lambda scalar: scalar.sd,
        lambda ratio: at_least("sd_ratio_least", ratio, 1 - MAX_SD_GAP),
        "{label} {sd:.2g}",
        lambda ratio: ratio,
    ),
    _Criterion(
        "sd_ratio_most",
        lambda scalar: scalar.sd,
        lambda ratio: at_most("sd_ratio_most", ratio, 1 + MAX_SD_GAP),
        "{label} {sd:.2g}",
        lambda ratio: -ratio,
    ),
    _Criterion(
        "quantile_gap",
        lambda scalar: scalar.quantile,
        lambda gap: at_most("quantile_gap", gap, MAX_QUANTILE_GAP),
        "{label} {quantile:.2g} sd",
        lambda gap: -gap,
    ),
]


def _judged(scalars: list[_Scalar]) -> tuple[list[Check], dict[str, float]]:
    """Check every quantity, and return the checks and the worst gap of each kind, NaN where one is unknown.

    A failed check becomes a caveat that names the worst quantities, as long as an estimate is shown.
    """
    checks, worst = list[Check](), dict[str, float]()
    any_shown = any(scalar.is_shown and scalar.is_listed for scalar in scalars)
    for criterion in _CRITERIA if scalars else ():
        missed = [scalar for scalar in scalars if not criterion.check(criterion.gap(scalar)).passed]
        missed.sort(key=criterion.rank)
        worst[criterion.fact] = criterion.gap(min(scalars, key=criterion.rank))
        named = [criterion.text.format(**scalar._asdict()) + " (withheld)" * (not scalar.is_shown) for scalar in missed]
        more = [f"and {len(named) - MOST_NAMED} more"] * (len(named) > MOST_NAMED)
        caveat = ", ".join([*named[:MOST_NAMED], *more]) if any_shown else ""
        checks.append(criterion.check(worst[criterion.fact]).or_caveat(caveat))
    return checks, worst
