"""Empirical Bayes: the hyperparameters under which the evidence of the data is largest.

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
from bayeszoo.foundation.progress import Reporter
from bayeszoo.inference.engine.ascent import Effort, climb, search
from bayeszoo.inference.engine.maxima import Search
from bayeszoo.inference.methods.modes.fields import highest
from bayeszoo.inference.methods.modes.surface import boundary_check, without_maximum
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm, Observable, Variational, is_log_concave
from bayeszoo.model.function import HasLengths
from bayeszoo.model.over import over_flat
from bayeszoo.model.over_fields import require_fields
from bayeszoo.model.steps import Expectation

ONLY_A_BOUND = "the log evidence itself is withheld: the fields make its lower bound largest, by variational Bayes"
MOST_STEPS = 2000
"""Steps of a climb: if a field goes to an edge, the ELBO rises ever more slowly and no climb converges."""
NEAR = 1e-3
"""Relative distance to an edge of the search at which a field is at it."""


def empirical_bayes(
    model: Model,
    data: object = None,
    over: str | Sequence[str] | None = None,
    *,
    starts: int = 8,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> EmpiricalBayes:
    """Choose fields of a model so that the evidence of the data is largest.

    The data can choose a field that governs many quantities: the prior of many weights or of many groups' rates, the
    spread of many rows. They cannot choose the prior of a single parameter: the evidence of one coin's tosses is
    largest for a prior concentrated on the observed share of successes, at the boundary.

    Where the evidence has no closed form for these data, fields that the prior alone depends on are chosen from draws
    of NUTS, with Monte Carlo errors: see `by_draws`. A model without closed form may choose them by variational Bayes,
    so that the lower bound of the evidence is largest: see `by_vb`. Of one that is `LogConcave` the evidence is by
    Laplace's method, which is approximate, with its gap by importance sampling: see `by_laplace`. Of a Gaussian
    process the lengths of the features are chosen as its field ``scale``, together with its parameters: `by_lengths`.

    Parameters
    ----------
    model : Model
        Is `ClosedForm`, or `LogConcave`, or has fields that variational Bayes chooses. A field that is a vector of
        dozens of entries takes long.
    data : Data or anything that `read` takes, optional
        The model's first example by default.
    over : str or sequence of str
        The fields to choose. One number that stands for a whole vector stays one number; of a vector every entry is
        chosen by itself.
    starts : int
        Climbs, at least two: from the model's own fields, and from places around these and around ``model.weak(data)``.
        By draws there are two.
    seed : int
        Of the places, or of the draws.
    reporter : Reporter, optional
        Takes the progress of NUTS; silent by default.

    Returns
    -------
    EmpiricalBayes
        Its status is not ``"ok"`` when the evidence has no maximum, or none was found for certain.

    Raises
    ------
    InputError
        When the model has no such fields or no evidence to choose them by, reads the data through one of them, or the
        data do not suit it.
    NumericalError
        When the evidence of the model as given is not finite.
    Untrustworthy
        When a run of NUTS does not pass its gate.

    Notes
    -----
    L-BFGS-B in the logarithms of positive fields, and in real fields in units that change the evidence by about a nat,
    up to a factor of 1e6 beyond the model's fields and the weak ones; then Newton steps. A maximum is accepted only
    where the curvature is that of one, and when no field can be moved 1e3 further out to either side, the others
    following, with the evidence as high as before: where it levels off towards a supremum there is no maximum.

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
    chosen = outer.at(mode.outer), model, names, mode.boundary, mode.reached, starts, mode.checks
    return EmpiricalBayes(*chosen, mode.height, before, mode.limits)


def _chosen(model: Model, over: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the fields to choose, or refuse them."""
    by_vb = isinstance(model, Variational) and model.chosen_by_vb
    if isinstance(model, HasLengths):
        if over not in ("scale", ["scale"], ("scale",)):
            problem = f"of {model.name} the field scale is chosen, the length of each feature"
            raise InputError(problem, "unknown_field", hint="amplitude, length and sigma are parameters: fit by mle")
    elif not (isinstance(model, ClosedForm) or by_vb or is_log_concave(model)):
        raise InputError(
            f"{model.name} has no closed-form evidence to maximize", "no_closed_form", hint="see `bayeszoo list`"
        )
    names = (over,) if isinstance(over, str) else tuple(over or ())
    require_fields(model, names)
    return names


def no_closed_form(model: Model, data: Data) -> str:
    """Say why the evidence of these data has no closed form, where draws may take its place; else nothing."""
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
        The largest ELBO found over the fields and q, and at the fields given over q alone.
    trace : ndarray of shape (steps,)
        The ELBO of the best climb; its steps are of q and of the fields in turn.
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
    starts: int = 8,
    seed: int = 0,
    reporter: Reporter | None = None,
) -> EmpiricalBayesByVB:
    """Choose fields so that the ELBO is largest, by climbs from the fields given, each with a q at random.

    Variational EM (Blei, Ng and Jordan 2003, section 5.3; Bishop, PRML, section 10.2): from an optimum of q at the
    fields given, steps of q alternate with steps of the fields; each climbs the ELBO. The result is the
    maximum of a bound, and not of the evidence.

    Its status is not ``"ok"`` where a field went to the edge of the search, 1e-6 or 1e6, or the best climb did not
    converge or was reached once only. Raises `InputError` where the model cannot choose such a field, `NumericalError`
    where no climb converged, as where a field has no best value.
    """
    for name in over:
        if name not in model.chosen_by_vb:
            raise InputError(f"--over {name}: {model.name} cannot choose it by variational Bayes", "unknown_method")
    climbed, before = _search(model, data, tuple(over), starts, np.random.default_rng(seed), reporter or Reporter())
    after = climbed.best.state[0]
    edges = _edges(after, over)
    checks = [*climbed.checks, boundary_check([*edges.values()])]
    chosen = after, model, tuple(over), edges, climbed.reached, len(climbed.climbs), checks
    return EmpiricalBayesByVB(*chosen, elbo=climbed.best.objective, elbo_before=before, trace=climbed.best.trace)


def _search(
    model: Variational, data: Data, over: tuple[str, ...], starts: int, rng: np.random.Generator, reporter: Reporter
) -> tuple[Search, float]:
    """Climb the ELBO over q and the fields, from optima of q at the fields given, and return the best of these.

    A state is a model and its q. From a q at random the fields often settle on what that is like; a quarter begins
    there none the less, for no start is best for all data.
    """
    effort, before = Effort.of(model, data), [-math.inf]
    effort = replace(effort, steps=min(effort.steps, MOST_STEPS))

    def evaluate(state: tuple[Any, Any]) -> tuple[float, Expectation]:
        own, q = state
        expected = own.vb_e_step(q, data)
        return expected.value - float(own.divergence(q)), Expectation((own, expected.stats), expected.value)

    def held(stats: tuple[Any, Any]) -> tuple[Any, Any]:
        return stats[0], stats[0].vb_m_step(stats[1])

    def chosen(stats: tuple[Any, Any]) -> tuple[Any, Any]:
        own, q = held(stats)
        return own.vb_choose(q, over)

    def begin(rng: np.random.Generator) -> tuple[Any, Any]:
        at_random, start = bool(before[0] > -math.inf and rng.random() < 0.25), (model, model.vb_start(data, rng))
        if at_random:
            return start
        climbed = climb(start, evaluate, held, effort)
        before[0] = max(before[0], climbed.objective)
        return climbed.state

    return search(begin, evaluate, chosen, rng, reporter, restarts=starts, effort=effort), before[0]


def _edges(model: Variational, over: Sequence[str]) -> dict[str, str]:
    """Say which fields ended at an edge of the search, where the ELBO has no maximum."""
    edges = {}
    for name in over:
        values = np.asarray(getattr(model, name))
        for limit, end in ((SMALLEST, 0.0), (LARGEST, math.inf)):
            if np.any(np.abs(np.log(values / limit)) < NEAR):
                edges[name] = without_maximum("ELBO", name, end)
    return edges
