"""An approximation measured against the posterior: the posterior's numbers, the checks, and what they say."""

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
"""What the means of rows are called where they are too far off, and how many rows are looked at."""

KEPT_DRAWS = 500
"""Reference draws of each chain that are kept, where a quantity is off: they know an sd to two hundredths."""

MAX_LIVE_GAP = 0.1
"""Error of the probability of a number of components up to which it is shown."""

Entries = Iterable[tuple[tuple[int, ...], str]]
Labels = Callable[[str], Entries]


class Measured(NamedTuple):
    """Facts, checks and reference numbers of an approximation."""

    statistics: Mapping[str, np.ndarray]
    """The posterior's mean, sd and quantiles of each quantity that has no closed form, along the first axis."""
    checks: list[Check]
    facts: Mapping[str, Any]
    draws: Mapping[str, np.ndarray] = {}
    """Some draws of the posterior, where a quantity is off: by these answers are judged by themselves."""


class _Scalar(NamedTuple):
    """One printed quantity and its gaps."""

    label: str
    mean: float
    sd: float
    quantile: float
    is_shown: bool
    is_listed: bool
    """Whether it stands in the table of estimates."""


def measure(
    problem: Problem,
    draws: Mapping[str, Mapping[str, np.ndarray]],
    exact: Mapping[str, np.ndarray],
    labels: Labels,
    facts: Mapping[str, object],
) -> Measured:
    """Measure the printed numbers of an approximation, by the closed form or by reference draws.

    Parameters
    ----------
    draws : mapping of str to mapping of str to array
        Draws (chain, draw, ...) of the groups ``posterior``, ``derived`` and ``invariants``: the last are printed in
        place of parameters of single components, where the posterior does not tell the components apart.
    exact : mapping of str to array
        The `STATISTICS` of the quantities that have a closed form.
    labels : callable
        Names the entries of a quantity.
    facts : mapping
        Facts about the fit, such as ``k_hat``.

    Returns
    -------
    Measured
        Its facts ``withheld`` and ``parameters_withheld`` name the quantities that are too far off to be shown.
    """
    from bayeszoo.inference.reference import reference  # loads PyTensor, for which exact answers do not wait

    known = reference(problem)
    if not known.draws:
        return Measured({}, unmeasured_checks(facts, known.source), {})
    posterior, withheld = _numbered(problem, known.draws, draws["posterior"])
    parameters = {**draws["invariants" if withheld else "posterior"], **_fitted(problem, draws["posterior"])}
    printed = {**parameters, **draws["derived"]}
    posterior |= _fitted(problem, known.draws)
    without = problem.model.without_moments
    drawn = {name: statistics_of(posterior[name], name not in without) for name in printed if name in posterior}
    true = drawn | {name: _whole(exact[name], drawn.get(name)) for name in printed if name in exact}
    statistics = {name: true[name] for name in drawn if name not in exact or np.isnan(exact[name]).any()}
    entries = {
        name: _names_of_rows(problem, v.shape[2:]) if name == FITTED else labels(name) for name, v in printed.items()
    }
    listed = {*draws["derived"], *(draws["posterior"].keys() & parameters.keys())}
    scalars = [each for name in true for each in _scalars(printed[name], true[name], entries[name], name in listed)]
    statistics.pop(FITTED, None)
    checks, worst = _judged(scalars)
    about: dict[str, Any] = {"measured_against": known.source, **worst}
    about |= {"components_withheld": withheld} if withheld else {}
    about |= _live(problem.model, draws["posterior"], known)
    far = {"withheld": [each.label for each in scalars if not each.is_shown]}
    far["parameters_withheld"] = [label for label in far["withheld"] if label.partition("[")[0] in parameters]
    facts_of_far = {name: labels for name, labels in far.items() if labels}
    kept = {} if all(check.passed for check in checks) else _thinned(known.draws)
    return Measured(statistics, checks, about | facts_of_far, kept)


def _live(model: Model, draws: Mapping[str, np.ndarray], known: Reference) -> dict[str, Any]:
    """Return how many components are in use and the probability of that, if reference draws agree; else why not."""
    counts = model.live(draws) if isinstance(model, Variational) else None
    others = model.live(known.draws) if isinstance(model, Variational) else None
    if counts is None or others is None:
        return {}
    number = _commonest(counts)
    own, true = (float(np.mean(each == number)) for each in (counts, others))
    if abs(own - true) <= MAX_LIVE_GAP:
        return {"live": number, "live_probability": true}
    return {"live_withheld": f"the probability of {number} is {own:.2g}, and {true:.2g} by {known.source}"}


def live_of_draws(model: Model, draws: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return how many components are in use by a sampler's draws, the probability of that and its Monte Carlo error.

    Where all draws agree the error is that of one that does not, by how far the draws depend on each other.
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
    values, often = np.unique(counts, return_counts=True)
    return int(values[np.argmax(often)])


def _thinned(draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return at most `KEPT_DRAWS` draws of each chain, evenly spread."""
    return {name: values[:, :: max(1, values.shape[1] // KEPT_DRAWS)][:, :KEPT_DRAWS] for name, values in draws.items()}


def _whole(exact: np.ndarray, drawn: np.ndarray | None) -> np.ndarray:
    """Return exact statistics, with the quantiles of draws where the mean and sd alone are exact."""
    if drawn is None:
        return exact
    return np.concatenate([exact[:2], np.where(np.isnan(exact[2:]), drawn[2:], exact[2:])])


def _numbered(
    problem: Problem, posterior: Mapping[str, np.ndarray], draws: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], str]:
    """Return reference draws with derived quantities, components numbered as in ``draws``.

    Where the components of reference draws are withheld, say why, and return what does not depend on labels instead.
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
    """Return the mean of some rows at each draw, by which predictions are judged; nothing where it is not known.

    It depends on the parameters together: of an approximation that takes them for independent it may be wrong though
    each parameter is right.
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
    """Yield the index and the name of the mean of each of some rows, by the numbers of the rows."""
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
    """One kind of gap: the fact that reports the worst, the check that it must pass, and how to say one."""

    fact: str
    gap: Callable[[_Scalar], float]
    check: Callable[[float], Check]
    said: str
    worst_first: Callable[[float], float]


_CRITERIA = [
    _Criterion(
        "mean_gap",
        lambda each: abs(each.mean),
        lambda gap: at_most("mean_gap", gap, MAX_MEAN_GAP),
        "{label} {mean:+.2g} sd",
        lambda gap: -gap,
    ),
    _Criterion(
        "sd_ratio_least",
        lambda each: each.sd,
        lambda ratio: at_least("sd_ratio_least", ratio, 1 - MAX_SD_GAP),
        "{label} {sd:.2g}",
        lambda ratio: ratio,
    ),
    _Criterion(
        "sd_ratio_most",
        lambda each: each.sd,
        lambda ratio: at_most("sd_ratio_most", ratio, 1 + MAX_SD_GAP),
        "{label} {sd:.2g}",
        lambda ratio: -ratio,
    ),
    _Criterion(
        "quantile_gap",
        lambda each: each.quantile,
        lambda gap: at_most("quantile_gap", gap, MAX_QUANTILE_GAP),
        "{label} {quantile:.2g} sd",
        lambda gap: -gap,
    ),
]


def _judged(scalars: list[_Scalar]) -> tuple[list[Check], dict[str, float]]:
    """Check every quantity; a miss is a caveat that names the worst, as long as an estimate is shown.

    Return also the worst gap of each kind, NaN where one is not known.
    """
    checks, worst = list[Check](), dict[str, float]()
    any_shown = any(each.is_shown and each.is_listed for each in scalars)
    for criterion in _CRITERIA if scalars else ():
        missed = [each for each in scalars if not criterion.check(criterion.gap(each)).passed]
        missed.sort(key=lambda each: np.nan_to_num(criterion.worst_first(criterion.gap(each)), nan=-np.inf))
        furthest = min(scalars, key=lambda each: np.nan_to_num(criterion.worst_first(criterion.gap(each)), nan=-np.inf))
        worst[criterion.fact] = criterion.gap(furthest)
        named = [criterion.said.format(**each._asdict()) + " (withheld)" * (not each.is_shown) for each in missed]
        more = [f"and {len(named) - MOST_NAMED} more"] * (len(named) > MOST_NAMED)
        caveat = ", ".join([*named[:MOST_NAMED], *more]) if any_shown else ""
        checks.append(criterion.check(worst[criterion.fact]).or_caveat(caveat))
    return checks, worst
