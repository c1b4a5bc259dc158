"""Several models of the same data in one table: evidence, penalized likelihood, and leave-one-out prediction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo import score
from bayeszoo.compare import model_label, require_same_data
from bayeszoo.data import Data, read
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.model import Exact, Model, Observable, PointEstimates, Predictive, Sufficient
from bayeszoo.score import NoScore, Score
from bayeszoo.tree import data_of, fact, model_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

COLUMNS = (
    "model",
    "log_evidence",
    "evidence_se",
    "evidence_from",
    "log_bayes_factor",
    "log_bayes_factor_se",
    "probability",
    "log_likelihood",
    "likelihood_from",
    "parameters",
    "observations",
    "aic",
    "bic",
    "loo",
    "loo_se",
    "loo_mcse",
    "loo_from",
    "k_hat",
    "loo_difference",
    "loo_difference_se",
    "status",
)


def select(
    candidates: Mapping[str, Model | xr.DataTree] | Iterable[Model | xr.DataTree], data: Any = None
) -> pd.DataFrame:
    """Put several models of the same data side by side, to choose among them or to weigh them.

    Nothing is fitted: a model gives what it has in closed form, a fit what its method gives.

    Parameters
    ----------
    candidates : mapping of str to Model or DataTree, or iterable of them
        Models with their priors, and fits of others. Without names they are called by model, fields and method.
    data : Data or anything that `read` takes, optional
        Of the models; by default their own first real data set. Fits bring their own.

    Returns
    -------
    pandas.DataFrame
        One row a candidate, by falling log evidence, then by falling ``loo``; those without come last. What is
        withheld is NaN, and the column that ends in ``_from`` gives the reason. All is of the ordered observations,
        in nats.

        ``model``
            The candidate's name.
        ``log_evidence``, ``evidence_se``, ``evidence_from``
            Log marginal likelihood, its Monte Carlo error (0 when exact), and ``"exact"``, ``"smc"`` or
            ``"withheld: ..."``. Laplace approximations and ELBOs are not evidences here.
        ``log_bayes_factor``, ``log_bayes_factor_se``
            Log evidence less the highest, and its Monte Carlo error.
        ``probability``
            Of the candidate given the data, all being equally likely before; NaN unless all have an evidence.
        ``log_likelihood``, ``likelihood_from``
            The maximum of the log likelihood, and ``"closed form"`` or ``"withheld: ..."``.
        ``parameters``, ``observations``
            k, how many numbers the likelihood is maximized over; and n, the single observations (trials, not rows
            of a table of counts).
        ``aic``, ``bic``
            2 k - 2 log L (Akaike 1974) and k log n - 2 log L (Schwarz 1978): less is better.
        ``loo``, ``loo_se``, ``loo_mcse``, ``loo_from``
            Sum over observations of the leave-one-out log predictive density, its standard error over observations,
            its Monte Carlo error, and ``"exact"``, ``"PSIS"`` (Vehtari et al. 2017) or ``"withheld: ..."``.
        ``k_hat``
            Largest Pareto shape of PSIS; above `k_hat_limit` the score is withheld.
        ``loo_difference``, ``loo_difference_se``
            ``loo`` less the highest, and its standard error, paired over observations.
        ``status``
            Of the fit; ``"ok"`` for a model. Of a fit that is not ok everything is withheld.

    Raises
    ------
    InputError
        When the candidates are not of the same data. A model of counts and one of real numbers never are: a
        probability has no unit and a density has one, so that their ratio depends on the unit of measurement.

    Notes
    -----
    An evidence judges the prior together with the likelihood, and keeps doing so however many the data. A prior
    scaled to the data (`Model.weak`) has seen them: two models with such priors are compared as much by what `weak`
    chose for each as by their fit, and what it took from the data is not among the k parameters that AIC and BIC
    count. Give priors that you believe. Under a flat prior there is no evidence; it is withheld for `pymc.Flat` and
    `pymc.HalfFlat`, and other improper priors are not seen.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("beta_bernoulli")
    >>> table = bz.select({"fair": M(a=1000, b=1000), "unknown": M(a=1, b=1)}, [1, 0, 0, 1, 1, 0])
    >>> table[["model", "probability"]].round(2).values.tolist()
    [['fair', 0.69], ['unknown', 0.31]]
    """
    import pandas as pd

    found = _candidates(candidates, data)
    _require_comparable(found)
    scores = [_loo(one) for one in found]
    rows = [_row(one, loo) for one, loo in zip(found, scores, strict=True)]
    _bayes_factors(rows)
    _loo_differences(rows, scores)
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.sort_values(["log_evidence", "loo"], ascending=False, kind="stable", ignore_index=True)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model with its prior and its data, and the fit where that was given."""

    name: str
    model: Model
    data: Data
    tree: xr.DataTree | None = None

    @property
    def method(self) -> str:
        """How the fit was made; a model stands for its closed forms."""
        return "exact" if self.tree is None else str(self.tree.attrs["method"])

    @property
    def kind(self) -> str:
        """What kind of fit it is, as `fit.METHODS` says."""
        return "exact" if self.tree is None else str(self.tree.attrs["kind"])

    @property
    def status(self) -> str:
        """The status of the fit."""
        return "ok" if self.tree is None else str(self.tree.attrs["status"])

    @cached_property
    def stats(self) -> Any:
        """Sufficient statistics of the data."""
        return cast(Any, self.model).statistics(self.data)

    @cached_property
    def observations(self) -> tuple[Mapping[str, np.ndarray], np.ndarray]:
        """The distinct single observations, and how many times each occurs."""
        return self.model.inputs.observations(self.data)


def _candidates(given: Mapping[str, Any] | Iterable[Any], data: Any) -> list[Candidate]:
    items = given.items() if isinstance(given, Mapping) else [("", one) for one in given]
    found = [_candidate(str(name), one, data) for name, one in items]
    if not found:
        raise InputError("there is nothing to select from", hint="give models or fits")
    return [replace(one, name=name) for one, name in zip(found, _unique(one.name for one in found), strict=True)]


def _unique(names: Iterable[str]) -> list[str]:
    made: list[str] = []
    for name in names:
        numbered = (f"{name} ({i})" for i in count(2))
        made.append(name if name not in made else next(one for one in numbered if one not in made))
    return made


def _candidate(name: str, one: Any, data: Any) -> Candidate:
    if isinstance(one, Model):
        return Candidate(name or str(one), one, read(one, data))
    if "data_digest" in getattr(one, "attrs", {}):
        return Candidate(name or f"{one.attrs['method']} {model_label(one)}", model_of(one), data_of(one), one)
    wrong = f"the class {one.__name__}" if isinstance(one, type) else type(one).__name__
    raise InputError(f"a candidate is a model instance or a fit, got {wrong}", hint="write bz.find(name)()")


def _require_comparable(found: list[Candidate]) -> None:
    first = found[0]
    for one in found[1:]:
        types = [each.model.inputs.outcome(each.data).dtype for each in (first, one)]
        if (types[0].kind == "f") != (types[1].kind == "f"):
            raise InputError(
                f"{first.name} and {one.name} take the data as {types[0]} and {types[1]}: a probability of counts and "
                "a density of real numbers are not comparable"
            )
    require_same_data([(one.data.digest, one.data.source) for one in found], "candidates")
    for one in found[1:]:
        if not _same_observations(first, one):
            raise InputError(f"what is one observation to {first.name} is not to {one.name}")


def _same_observations(first: Candidate, second: Candidate) -> bool:
    (rows, weights), (others, other_weights) = first.observations, second.observations
    same = rows.keys() == others.keys() and all(np.array_equal(rows[name], others[name]) for name in rows)
    return same and np.array_equal(weights, other_weights)


def _row(one: Candidate, loo: Score | NoScore) -> dict[str, Any]:
    row = {"model": one.name, **_evidence(one), **_likelihood(one), **_prediction(one, loo)}
    return row | {"observations": int(one.observations[1].sum()), "status": one.status}


# Evidence


def _evidence(one: Candidate) -> dict[str, Any]:
    reason = _no_evidence(one)
    if reason is None:
        value, se = _log_evidence(one)
        if math.isfinite(value):
            return {"log_evidence": value, "evidence_se": se, "evidence_from": one.method}
        reason = f"it is not finite ({value})"
    return {"evidence_from": f"withheld: {reason}"}


def _log_evidence(one: Candidate) -> tuple[float, float]:
    """Return the log evidence and its Monte Carlo error."""
    if one.tree is None or one.method == "exact":
        return float(cast(Exact, one.model).log_evidence(one.stats)), 0.0
    value, error = fact(one.tree, "log_evidence"), fact(one.tree, "log_evidence_mcse")
    return (math.nan if value is None else value), (math.nan if error is None else error)


def _no_evidence(one: Candidate) -> str | None:
    """Say why a candidate has no evidence; None when it has one."""
    if one.status != "ok":
        return f"the fit is {one.status}"
    if isinstance(one.model, Exact):
        return None if one.method in ("exact", "smc") else f"{one.method} gives none: give the model itself"
    if undefined := _undefined(one):
        return undefined
    if one.method != "smc":
        what = "no closed form" if one.tree is None else f"{one.method} gives none"
        return f"{what}: give a fit by smc"
    return "it is of the table of counts, not of the ordered observations" if _of_counts(one) else None


def _undefined(one: Candidate) -> str | None:
    """Say which of the priors is flat; only models without closed forms have any, so that the others stay light."""
    from bayeszoo.density import no_evidence

    return no_evidence(one.model.declare(one.data))


def _of_counts(one: Candidate) -> bool:
    """Say whether a density of the rows is one of counts: of each row's trials in whatever order."""
    return not isinstance(one.model, Sufficient) and one.observations[0].keys() != one.data.keys()


def _bayes_factors(rows: list[dict[str, Any]]) -> None:
    known = [row for row in rows if "log_evidence" in row]
    if not known:
        return
    best = max(known, key=lambda row: row["log_evidence"])
    total = np.logaddexp.reduce([row["log_evidence"] for row in known])
    for row in known:
        row["log_bayes_factor"] = row["log_evidence"] - best["log_evidence"]
        row["log_bayes_factor_se"] = 0.0 if row is best else math.hypot(row["evidence_se"], best["evidence_se"])
        if len(known) == len(rows):
            row["probability"] = math.exp(row["log_evidence"] - total)


# Likelihood


def _likelihood(one: Candidate) -> dict[str, Any]:
    try:
        value = _max_log_likelihood(one)
    except NumericalError as error:
        return {"likelihood_from": f"withheld: {error}"}
    k, n = cast(PointEstimates, one.model).free_parameters(one.stats), float(one.observations[1].sum())
    return {
        "log_likelihood": value,
        "likelihood_from": "closed form",
        "parameters": k,
        "aic": 2 * k - 2 * value,
        "bic": k * math.log(n) - 2 * value,
    }


def _max_log_likelihood(one: Candidate) -> float:
    """Return the maximum of the log likelihood, or raise `NumericalError` with the reason why there is none."""
    model = one.model
    if one.status != "ok":
        raise NumericalError(f"the fit is {one.status}")
    if not (isinstance(model, PointEstimates) and isinstance(model, Observable) and isinstance(model, Sufficient)):
        raise NumericalError("no closed form")
    value = cast(float, score.log_likelihood(cast(Model, model), model.mle(one.stats), one.data))
    if not math.isfinite(value):
        raise NumericalError(f"it is not finite ({value})")
    return value


# Prediction


def _loo(one: Candidate) -> Score | NoScore:
    """Return the leave-one-out score, or the reason why there is none."""
    try:
        found = _leave_one_out(one)
        return found if math.isfinite(found.mean) else NoScore(f"it is not finite ({found.mean})")
    except NoScore as reason:
        return reason


def _leave_one_out(one: Candidate) -> Score:
    if one.status != "ok":
        raise NoScore(f"the fit is {one.status}")
    if one.tree is not None and one.kind == "sampled":
        return score.psis(one.model, one.data, one.tree["posterior"].to_dataset())
    if one.kind == "exact" and isinstance(one.model, Predictive):
        return score.closed_form(one.model, one.data)
    what = "no closed form" if one.tree is None else f"{one.method} has no draws of the posterior"
    raise NoScore(f"{what}: give a fit by nuts")


def _prediction(one: Candidate, loo: Score | NoScore) -> dict[str, Any]:
    if isinstance(loo, NoScore):
        return {"loo_from": f"withheld: {loo}", "k_hat": loo.k_hat}
    return {
        "loo": loo.total * loo.mean,
        "loo_se": loo.total * loo.se,
        "loo_mcse": loo.total * loo.mcse,
        "loo_from": "PSIS" if one.kind == "sampled" else "exact",
        "k_hat": loo.k_hat,
    }


def _loo_differences(rows: list[dict[str, Any]], scores: list[Score | NoScore]) -> None:
    known = [(row, loo) for row, loo in zip(rows, scores, strict=True) if isinstance(loo, Score)]
    if not known:
        return
    _, best = max(known, key=lambda pair: pair[1].mean)
    for row, loo in known:
        less = score.difference(loo, best)
        row |= {"loo_difference": less.total * less.mean, "loo_difference_se": less.total * less.se}
