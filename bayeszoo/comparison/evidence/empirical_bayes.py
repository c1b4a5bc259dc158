"""Empirical Bayes: the hyperparameters that maximize the evidence of the data.

Also called evidence maximization, or maximum likelihood of type II (Good 1965; MacKay 1992; Bishop, PRML, section 3.5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayeszoo.comparison.evidence.by_draws import by_draws
from bayeszoo.comparison.evidence.by_laplace import by_laplace
from bayeszoo.comparison.evidence.by_lengths import by_lengths
from bayeszoo.comparison.evidence.record import EmpiricalBayes
from bayeszoo.data.read import Data, read
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.documents.topic_model import LARGEST, SMALLEST
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.inference.engine.ascent import Ascent, Effort, climb, search
from bayeszoo.inference.engine.maxima import Search
from bayeszoo.inference.methods.modes.fields import highest
from bayeszoo.inference.methods.modes.surface import boundary_check, without_maximum
from bayeszoo.model.base import Model, require_instance
from bayeszoo.model.capabilities import ClosedForm, Observable, Variational, is_log_concave
from bayeszoo.model.capabilities.function import HasLengths
from bayeszoo.model.capabilities.steps import Expectation
from bayeszoo.model.outer.over import compare_values, over_flat
from bayeszoo.model.outer.over_fields import require_fields

ONLY_A_BOUND = "the log evidence itself is withheld: the fields maximize its lower bound, by variational Bayes"
MOST_STEPS = 2000
"""Most steps of a climb: if a field goes to an edge, the ELBO rises ever more slowly and no climb converges."""
NEAR = 1e-3
"""Relative distance to an edge of the search within which a field counts as at the edge."""


def empirical_bayes(
    model: Model,
    data: object = None,
    over: str | Sequence[str] | None = None,
    *,
    starts: int = 8,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> EmpiricalBayes:
    """Choose fields of a model that maximize the evidence of the data.

    The data can choose a field that governs many quantities: the prior of many weights or of many groups' rates, the
    spread of many rows. They cannot choose the prior of a single parameter: the evidence of one coin's tosses is
    largest for a prior concentrated on the observed share of successes, at the boundary.

    Where the evidence has no closed form for these data, fields that only the prior depends on are chosen from draws
    of NUTS, with Monte Carlo errors: see `by_draws`. Some models without a closed form maximize the lower bound of the
    evidence by variational Bayes: see `by_vb`. For a `LogConcave` model the evidence is approximated by Laplace's
    method, and importance sampling measures the gap: see `by_laplace`. For a Gaussian process the lengths of the
    features are chosen as its field ``scale``, together with its parameters: see `by_lengths`.

    Parameters
    ----------
    model : Model
        A `ClosedForm` or `LogConcave` model, or one with fields that variational Bayes chooses. A vector field with
        dozens of entries takes long.
    data : Data or anything that `read` takes, optional
        The model's first example by default.
    over : str or sequence of str
        The fields to choose. A single number that stands for a whole vector stays one number; each entry of a vector
        is chosen separately.
    starts : int
        Number of climbs, at least two: from the model's fields, and from places around these and around
        ``model.weak(data)``. By draws there are two.
    seed : int
        Seed of the places, or of the draws.
    reporter : Reporter, optional
        Takes the progress of NUTS; silent by default.

    Returns
    -------
    EmpiricalBayes
        Its status is not ``"ok"`` when the evidence has no maximum, or the search is not certain of it.

    Raises
    ------
    InputError
        When the model has no such fields or no evidence to maximize, the sufficient statistics depend on a field, or
        the data do not suit the model.
    NumericalError
        When the evidence at the model's fields is not finite.
    Untrustworthy
        When a run of NUTS does not pass its gate.

    Notes
    -----
    L-BFGS-B climbs in the logarithms of positive fields, and in real fields in units that change the evidence by about
    a nat, up to a factor of 1e6 beyond the model's fields and the weak ones; Newton steps follow. A maximum is accepted
    only if its curvature is that of a maximum, and if the evidence falls when any field moves 1e3 further out to either
    side, with the others maximized: an evidence that levels off towards a supremum has no maximum.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> speeds = bz.find("gaussian_mean")(m0=850, s0=50, sigma=100)
    >>> chosen = bz.empirical_bayes(speeds, [850, 740, 900, 1070, 930, 850, 950, 980], over="sigma")
    >>> round(float(chosen.model.sigma), 2), chosen.status
    (98.89, 'ok')
    """
    names = _chosen(model, over)
    if isinstance(starts, bool) or not isinstance(starts, int) or starts < 2:
        raise InputError(
            f"starts must be a whole number >= 2, got {starts!r}", "wrong_type", hint="one climb cannot be checked"
        )
    data = read(model, data)
    if isinstance(model, HasLengths):
        return by_lengths(model, data, starts=starts, seed=seed)
    if is_log_concave(model):
        return by_laplace(model, data, names, starts=starts, seed=seed)
    if not isinstance(model, ClosedForm):
        assert isinstance(model, Variational)  # else it was refused
        return by_vb(model, data, names, starts=starts, seed=seed, reporter=reporter)
    if why := no_closed_form(model, data):
        return by_draws(model, data, names, seed=seed, why=why, reporter=reporter)
    outer = over_flat(model, names)
    if not math.isfinite(before := float(model.log_evidence(outer.statistics(data)))):
        raise NumericalError(f"the log evidence of {model} is not finite", "not_finite")
    mode = highest(outer, data, True, starts, np.random.default_rng(seed))
    result = outer.at(mode.outer), model, names, mode.boundary, mode.reached, starts, mode.checks
    return EmpiricalBayes(*result, mode.height, before, mode.limits)


def _chosen(model: Model, over: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the fields to choose, or refuse them."""
    require_instance(model)
    by_vb = isinstance(model, Variational) and model.chosen_by_vb
    if isinstance(model, HasLengths):
        if over not in ("scale", ["scale"], ("scale",)):
            problem = f"{model.name} can choose only the field scale, the length of each feature"
            raise InputError(problem, "unknown_field", hint="amplitude, length and sigma are parameters: fit by mle")
    elif not (isinstance(model, ClosedForm) or by_vb or is_log_concave(model)):
        problem = f"{model.name} has no closed-form evidence to maximize"
        raise InputError(problem, "no_closed_form", hint=compare_values(model, over))
    names = (over,) if isinstance(over, str) else tuple(over or ())
    require_fields(model, names)
    return names


def no_closed_form(model: Model, data: Data) -> str:
    """Say why the evidence of these data has no closed form, if draws can replace it; else return an empty string."""
    if not (isinstance(model, ClosedForm) and isinstance(model, Observable)):
        return ""
    if type(model).log_prior is ClosedForm.log_prior:
        return ""
    try:
        model.log_evidence(model.statistics(data))
    except NumericalError as error:
        return str(error).removeprefix("no closed form: ")
    return ""


@dataclass(frozen=True, repr=False, eq=False)
class EmpiricalBayesByVB(EmpiricalBayes):
    """A model whose fields maximize the ELBO; ``log_evidence`` is withheld (NaN).

    Attributes
    ----------
    elbo, elbo_before : float
        The largest ELBO over the fields and q, and over q alone at the fields of the model.
    trace : ndarray of shape (steps,)
        The ELBO of the best climb, whose steps change q and the fields in turn.
    """

    elbo: float = math.nan
    elbo_before: float = math.nan
    trace: np.ndarray | None = None

    def about_evidence(self, shown: bool = True, decimals: int = 2) -> list[str]:
        """Return lines about the ELBO."""
        after = f"{self.elbo:.{decimals}f}" if shown else "withheld"
        return [f"ELBO {self.elbo_before:.{decimals}f} -> {after}", ONLY_A_BOUND]


def by_vb(
    model: Variational,
    data: Data,
    over: Sequence[str],
    *,
    starts: int,
    seed: int,
    reporter: Reporter | None,
) -> EmpiricalBayesByVB:
    """Choose fields that maximize the ELBO, by climbs from the model's fields, each with a random q.

    Variational EM (Blei, Ng and Jordan 2003, section 5.3; Bishop, PRML, section 10.2): from an optimum of q at the
    model's fields, steps of q alternate with steps of the fields; each raises the ELBO. The result is the maximum of a
    bound, and not of the evidence.

    The status is not ``"ok"`` where a field went to the edge of the search, 1e-6 or 1e6, or the best climb did not
    converge or was reached only once. Raises `InputError` where the model cannot choose the field, `NumericalError`
    where no climb converged, for example because a field has no best value.
    """
    for name in over:
        if name not in model.chosen_by_vb:
            problem = f"--over {name}: {model.name} cannot choose it by variational Bayes"
            raise InputError(problem, "unknown_method", hint=f"it can choose {', '.join(model.chosen_by_vb)}")
    climbed, before = _search(model, data, tuple(over), starts, np.random.default_rng(seed), reporter or Reporter())
    after = climbed.best.state[0]
    edges = _edges(after, over)
    checks = [*climbed.checks, boundary_check([*edges.values()])]
    result = after, model, tuple(over), edges, climbed.reached, len(climbed.climbs), checks
    return EmpiricalBayesByVB(*result, elbo=climbed.best.objective, elbo_before=before, trace=climbed.best.trace)


def _search(
    model: Variational, data: Data, over: tuple[str, ...], starts: int, rng: np.random.Generator, reporter: Reporter
) -> tuple[Search, float]:
    """Maximize the ELBO over q and the fields, and return the climbs and the best ELBO at the model's fields.

    A state is a model and its q. Most climbs begin at an optimum of q at the model's fields: from a random q the fields
    often fit that q. A quarter begins at a random q nonetheless, because no start is best for all data.
    """
    effort, before = Effort.of(model, data), [-math.inf]
    effort = replace(effort, steps=min(effort.steps, MOST_STEPS))

    def evaluate(state: tuple[Any, Any]) -> tuple[float, Expectation]:
        current, q = state
        expected = current.vb_e_step(q, data)
        return expected.value - float(current.divergence(q)), Expectation((current, expected.stats), expected.value)

    def with_fields_held(stats: tuple[Any, Any]) -> tuple[Any, Any]:
        return stats[0], stats[0].vb_m_step(stats[1])

    def with_fields_chosen(stats: tuple[Any, Any]) -> tuple[Any, Any]:
        current, q = with_fields_held(stats)
        return current.vb_choose(q, over)

    def begin(rng: np.random.Generator) -> tuple[Any, Any]:
        at_random, start = bool(before[0] > -math.inf and rng.random() < 0.25), (model, model.vb_start(data, rng))
        if at_random:
            return start
        climbed = climb(start, evaluate, with_fields_held, effort)
        before[0] = max(before[0], climbed.objective)
        return climbed.state

    return search(Ascent(begin, (evaluate, with_fields_chosen)), rng, reporter, starts, effort), before[0]


def _edges(model: Variational, over: Sequence[str]) -> dict[str, str]:
    """Return the fields that ended at an edge of the search, each with the message that the ELBO has no maximum."""
    edges = {}
    for name in over:
        values = np.asarray(getattr(model, name))
        for limit, end in ((SMALLEST, 0.0), (LARGEST, math.inf)):
            if np.any(np.abs(np.log(values / limit)) < NEAR):
                edges[name] = without_maximum("ELBO", name, end)
    return edges
