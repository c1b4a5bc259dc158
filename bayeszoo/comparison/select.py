"""Several models of the same data in one table: evidence, penalized likelihood, description length, prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bayeszoo.answers.averages import averaging
from bayeszoo.answers.checks import leave_out as score
from bayeszoo.answers.checks.leave_out import NoScore, Score
from bayeszoo.comparison.candidates import (
    Candidate,
    SelectOptions,
    differing_priors,
    gather,
    number_of_components,
    require_comparable,
)
from bayeszoo.comparison.criteria import Criteria, fit_with_draws, plug_in
from bayeszoo.comparison.evidence.of_candidates import log_evidence
from bayeszoo.distributions.conjugate.law import Block
from bayeszoo.errors import NumericalError
from bayeszoo.foundation.named import Document
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import (
    Observable,
    PointEstimates,
    PointMasses,
    Predictive,
    Sufficient,
    predicts_by_points,
)
from bayeszoo.model.capabilities.closed import BlockModel
from bayeszoo.model.capabilities.linear_predictor import LinearPredictor
from bayeszoo.model.density import log_likelihood
from bayeszoo.results.caveats import WORDS
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_EVIDENCE = ("log_evidence", "evidence_se", "evidence_from", "log_bayes_factor", "log_bayes_factor_se")
_PROBABILITY = ("probability", "probability_se", "probability_among")
_LIKELIHOOD = ("log_likelihood", "likelihood_from", "parameters", "observations", "aic", "bic", "ric")
_LENGTH = ("mdl", "mdl_from", "nml", "nml_from")
_KFOLD = ("kfold", "kfold_se", "kfold_from", "kfold_difference", "kfold_difference_se")
_LOO = ("loo", "loo_se", "loo_mcse", "loo_from", "k_hat", "loo_difference", "loo_difference_se")
COLUMNS = (
    "model",
    "components",
    *_EVIDENCE,
    *_PROBABILITY,
    "elbo",
    "elbo_from",
    *_LIKELIHOOD,
    *_LENGTH,
    *_KFOLD,
    *_LOO,
    "status",
)


def select(
    candidates: Mapping[str, Model | xr.DataTree] | Iterable[Model | xr.DataTree],
    data: object = None,
    *,
    folds: int = 10,
    seed: int = 0,
    keep_probability: float = 0.5,
    loo: bool = True,
    exact_loo: bool = False,
    reporter: Reporter | None = None,
) -> pd.DataFrame:
    """Compare several models of the same data in one table, to choose among them or to weight them.

    Nothing is fitted: a model gives its closed forms, and a fit the results of its method. The criteria of a model
    with latent variables are computed by EM, variational Bayes and importance sampling, even if a fit is given.

    Parameters
    ----------
    candidates : mapping of str to Model or DataTree, or iterable of them
        Models with their priors, and fits. By default they are named by model, fields and method. `polynomials` and
        `subsets` make candidates from one linear model, `components` from one mixture.
    data : Data or anything that `read` takes, optional
        Data of the models; by default their first real data set. Fits have their own data.
    folds : int
        Number of folds of K-fold cross-validation, >= 2.
    seed : int
        Seed of the folds, which are the same for all candidates, and of all randomness for models with latent
        variables.
    keep_probability : float
        The prior probability pi that a term is in a linear model, for the description length; 0 < pi <= 1.
    loo : bool
        Whether to predict each observation from all others, which takes by far the longest.
    exact_loo : bool
        Whether to fit a sampled model again without each observation that importance weights cannot leave out, at most
        50 times.
    reporter : Reporter, optional
        Takes progress.

    Returns
    -------
    pandas.DataFrame
        One row for each candidate, by decreasing log evidence, then by decreasing ``loo``; candidates without either
        come later, and last come fits with status caution, which are shown but not ranked. A withheld criterion is NaN,
        and the column that ends in ``_from`` gives the reason. All criteria are of the ordered observations, in nats.

        ``model``, ``components``
            The candidate's name; and its K or q, NaN if it has neither.
        ``log_evidence``, ``evidence_se``, ``evidence_from``
            Log marginal likelihood, its Monte Carlo error (0 when exact), and ``"exact"``, ``"smc"``,
            ``"enumeration"`` of few rows, ``"importance sampling"`` (of mixtures and hidden Markov models, see
            `comparison.criteria`), ``"bridge sampling"`` of a fit by NUTS, or ``"withheld: ..."``. Laplace
            approximations and ELBOs are not evidences here.
        ``log_bayes_factor``, ``log_bayes_factor_se``
            Log evidence minus the highest, and its Monte Carlo error. NaN if only one of several has an evidence.
        ``probability``, ``probability_se``, ``probability_among``
            Posterior probability of the candidate among those with an evidence, under equal prior probabilities; its
            Monte Carlo error; and the number of these. NaN if only one of several has an evidence.
        ``elbo``, ``elbo_from``
            Lower bound of the log evidence by variational Bayes, and how many climbs reached it. Its q covers only one
            order of the component labels, which lowers the bound by up to log K!.
        ``log_likelihood``, ``likelihood_from``
            The maximum of the log likelihood, and ``"closed form"``, ``"Newton's method"``, how many climbs of EM
            reached it, or ``"withheld: ..."``. For a mixture, the highest maximum that is not degenerate: see `fit`.
        ``parameters``, ``observations``
            k, the number of parameters that the likelihood is maximized over; and n, the number of single
            observations (trials, not rows of a table of counts).
        ``aic``, ``bic``
            2 k - 2 log L (Akaike 1974) and k log n - 2 log L (Schwarz 1978): lower is better.
        ``ric``
            Risk inflation criterion of linear models of a Gaussian outcome, 2 t log p - 2 log L, where t is the number
            of terms of the candidate and p that of the largest one (Foster and George 1994): lower is better. NaN for
            other models.
        ``mdl``, ``mdl_from``
            Description length of a linear model of a Gaussian outcome in nats, ``(n / 2) log(Err / n)`` and for each
            term ``log(n) / 2 - log(pi)``, and ``"least squares"`` or ``"withheld: ..."``: lower is better. Err is the
            squared error of least squares; prior and noise of the model do not matter.
        ``nml``, ``nml_from``
            Code length of the ordered observations by normalized maximum likelihood, in nats, for one table of shares
            or one probability: -log L plus the log of the sum of the largest likelihoods of all data sets (Shtarkov
            1987; Rissanen 1996); lower is better. It needs no prior; no code has a smaller worst-case regret.
        ``kfold``, ``kfold_se``, ``kfold_from``
            Sum over observations of the log predictive density given the other folds, its standard error over
            observations, and ``"exact"``, ``"plug-in of the MLE"`` or ``"withheld: ..."``; higher is better. The
            plug-in, for models with hidden factors, is at the maximum of the likelihood of the other folds and does not
            average over parameters.
        ``kfold_difference``, ``kfold_difference_se``
            ``kfold`` minus the highest, and its standard error, paired over observations; NaN if only one of several
            has it.
        ``loo``, ``loo_se``, ``loo_mcse``, ``loo_from``
            Sum over observations of the leave-one-out log predictive density, its standard error over observations,
            its Monte Carlo error, and ``"exact"``, ``"quadrature"`` over a few parameters (the error is then the change
            when its grid is halved), ``"PSIS"`` (Vehtari et al. 2017) or ``"withheld: ..."``; for an approximation it
            says whether the draws are weighted to the posterior.
        ``k_hat``
            Largest Pareto shape of PSIS; above `k_hat_limit` the score is withheld, or the model fitted again.
        ``loo_difference``, ``loo_difference_se``
            ``loo`` minus the highest, and its standard error, paired over observations; NaN if only one of several has
            it.
        ``status``
            Status of the fit; ``"ok"`` for a model. Every criterion of a failed or interrupted fit is withheld.

    Raises
    ------
    InputError
        When the candidates do not have the same data. A model of counts and a model of real numbers never do: a
        probability has no unit and a density has one, so that their ratio depends on the unit of measurement. When
        `folds` or `keep_probability` is out of range.

    Notes
    -----
    An evidence judges the prior together with the likelihood, however many data there are. A prior scaled to the data
    (`Model.weak`) has used them: two models with such priors are compared by the choices of `weak` as much as by their
    fit. The numbers that `weak` takes from the data are not among the k parameters that AIC and BIC count, and they
    still depend on the observations that K-fold and leave-one-out hold out. Give priors that you believe. Under a flat
    prior there is no evidence; it is withheld for `pymc.Flat` and `pymc.HalfFlat`, but other improper priors are not
    detected. Evidences for several K can be compared only under one prior of the components, which `components` gives
    them.

    The description length is the two-part code of Rissanen (1978) with weights coded to a precision of one over the
    root of n, as in the ML blog's "Minimum Description Length" (2019) with the signs put right: there log(pi) stands
    for -log(pi). The intercept is a term like any other. A term left out costs nothing, as there. Constants
    that are the same for all models are left out: only differences mean something. For models with unknown noise the
    differences are half those of BIC, plus -log(pi) for each further term. With known noise BIC uses its value, and
    this does not.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> M = bz.find("beta_bernoulli")
    >>> table = bz.select({"fair": M(a=1000, b=1000), "unknown": M(a=1, b=1)}, [1, 0, 0, 1, 1, 0])
    >>> table[["model", "probability"]].round(2).values.tolist()
    [['fair', 0.69], ['unknown', 0.31]]
    """
    import pandas as pd

    options = SelectOptions(folds, seed, keep_probability, loo, exact_loo)
    gathered = gather(candidates, data)
    require_comparable(gathered)
    reporter = reporter or Reporter()
    for line in differing_priors(gathered):
        reporter.say(line)
    rows = []
    with one_thread():
        for i, candidate in enumerate(gathered):
            reporter.progress("candidates", i, len(gathered))
            rows.append(_row(candidate, options))
    _bayes_factors(rows)
    _risk_inflation(rows)
    for name in ("kfold", "loo"):
        _differences(name, rows)
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame = frame.sort_values(["log_evidence", "loo", "kfold"], ascending=False, kind="stable")
    return frame.sort_values("status", key=lambda status: status == "caution", kind="stable", ignore_index=True)


def _row(candidate: Candidate, options: SelectOptions) -> Document:
    latent = Criteria(candidate, options.seed)
    number = number_of_components(type(candidate.model))
    row = {
        "model": candidate.name,
        "components": math.nan if number is None else getattr(candidate.model, number),
        "observations": int(candidate.observations[1].sum()),
        "status": candidate.status,
    }
    row |= _or_withheld("evidence", candidate, lambda: _evidence(latent))
    row |= _or_withheld("elbo", candidate, latent.elbo)
    row |= _or_withheld("likelihood", candidate, lambda: _likelihood(latent))
    row |= _or_withheld("mdl", candidate, lambda: _description(candidate, options.keep_probability))
    row |= _or_withheld("nml", candidate, lambda: _normalized(candidate))
    row |= _or_withheld("kfold", candidate, lambda: _k_fold(candidate, options))
    return row | _or_withheld("loo", candidate, lambda: _leave_one_out(candidate, options))


def _or_withheld(name: str, candidate: Candidate, compute: Callable[[], dict[str, Any]]) -> Document:
    """Return the computed columns, or the reason that they are withheld in the column ``{name}_from``."""
    if candidate.status not in ("ok", "caution"):
        return {f"{name}_from": f"withheld: {WORDS[candidate.status]}"}
    try:
        return compute()
    except (NumericalError, NoScore) as error:
        k_hat = {"k_hat": error.k_hat} if isinstance(error, NoScore) else {}
        return {f"{name}_from": f"withheld: {error}", **k_hat}


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise NumericalError(f"it is not finite ({value})", "not_finite")
    return value


# Evidence


def _evidence(latent: Criteria) -> Document:
    is_given = latent.candidate.method == "smc"
    value, se, source = log_evidence(latent.candidate) if is_given or not latent.has_evidence else latent.evidence()
    return {"log_evidence": _finite(value), "evidence_se": se, "evidence_from": source}


def _bayes_factors(rows: list[dict[str, Any]]) -> None:
    with_evidence = [row for row in rows if "log_evidence" in row and row["status"] == "ok"]
    if not _are_compared(with_evidence, rows):
        return
    best = max(with_evidence, key=lambda row: row["log_evidence"])
    p = scipy.special.softmax([row["log_evidence"] for row in with_evidence])
    squares = np.square(p * [row["evidence_se"] for row in with_evidence])
    errors = np.sqrt(np.square(1 - p) * squares + np.square(p) * (squares.sum() - squares))
    for i, row in enumerate(with_evidence):
        row["log_bayes_factor"] = row["log_evidence"] - best["log_evidence"]
        row["log_bayes_factor_se"] = 0.0 if row is best else math.hypot(row["evidence_se"], best["evidence_se"])
        row |= dict(zip(_PROBABILITY, (float(p[i]), float(errors[i]), len(with_evidence)), strict=True))


def _are_compared(scored: Sequence[object], rows: Sequence[object]) -> bool:
    """Say whether candidates can be compared: not where only one of several has a value."""
    return len(scored) > 1 or len(scored) == len(rows)


# Likelihood and description length


def _likelihood(latent: Criteria) -> Document:
    candidate = latent.candidate
    is_climbed = latent.has_latents or latent.is_concave
    value, source = latent.log_likelihood() if is_climbed else (_max_log_likelihood(candidate), "closed form")
    k = latent.free_parameters()
    return {
        "log_likelihood": value,
        "likelihood_from": source,
        "parameters": k,
        "aic": 2 * k - 2 * value,
        "bic": k * math.log(candidate.observations[1].sum()) - 2 * value,
    }


def _max_log_likelihood(candidate: Candidate) -> float:
    """Return the maximum of the log likelihood; raise `NumericalError` with the reason if there is none."""
    model = candidate.model
    if not (isinstance(model, PointEstimates) and isinstance(model, Observable)):
        raise NumericalError("no closed form", "no_closed_form")
    value = log_likelihood(model, model.mle(candidate.stats), candidate.data)
    return _finite(math.nan if value is None else value)


def _description(candidate: Candidate, keep: float) -> Document:
    """Return the description length of a linear model."""
    if not (isinstance(candidate.model, LinearPredictor) and isinstance(candidate.model, Sufficient)):
        raise NumericalError("it is not a linear model of a Gaussian outcome", "not_linear")
    if isinstance(candidate.model, PointMasses):
        raise NumericalError("it averages over subsets of the weights and chooses none", "averages_over_subsets")
    weights, squared_error = candidate.model.least_squares(candidate.stats)
    if not squared_error:
        raise NumericalError("the least-squares residuals are all zero", "exact_fit")
    n = float(candidate.observations[1].sum())
    length = n / 2 * math.log(squared_error / n) + len(weights) * (math.log(n) / 2 - math.log(keep))
    return {"mdl": length, "mdl_from": "least squares", "terms": len(weights)}


def _risk_inflation(rows: list[dict[str, Any]]) -> None:
    """Add the risk inflation criterion to linear models with a maximum of the likelihood."""
    linear_rows = [row for row in rows if "terms" in row and "log_likelihood" in row]
    most_terms = max((row["terms"] for row in rows if "terms" in row), default=0)
    for row in linear_rows:
        row["ric"] = 2 * row["terms"] * math.log(most_terms) - 2 * row["log_likelihood"]


def _normalized(candidate: Candidate) -> Document:
    """Return the code length by normalized maximum likelihood."""
    block = candidate.model.block(candidate.stats) if isinstance(candidate.model, BlockModel) else None
    length = block.normalized_length(candidate.stats) if isinstance(block, Block) else None
    if length is None:
        raise NumericalError(
            "the model is not one table of shares: the sum over all data sets has no closed form", "not_known"
        )
    return {"nml": _finite(length), "nml_from": "closed form"}


# Prediction


def _k_fold(candidate: Candidate, options: SelectOptions) -> Document:
    if candidate.kind != "exact" and isinstance(candidate.model, Predictive):
        raise NoScore(f"{candidate.method} would have to run for each fold: give the model itself")
    by_mle = plug_in(candidate.model)
    scored = score.k_fold(candidate.model, candidate.data, options.folds, options.seed, by_mle)
    return _prediction("kfold", scored, "plug-in of the MLE" if by_mle else "exact")


def _leave_one_out(candidate: Candidate, options: SelectOptions) -> Document:
    if not options.loo:
        raise NoScore("not asked for")
    if candidate.fit is not None and candidate.has_draws:
        loo = _scored(candidate.fit, options)
        basis = averaging(candidate.fit)[0].basis
        source = "quadrature" if math.isnan(loo.k_hat) else basis.removeprefix("leave-one-out, ")
        source += f", {loo.refitted} rows refitted" * bool(loo.refitted)
    elif candidate.kind == "exact" and isinstance(candidate.model, Predictive):
        loo, source = score.closed_form(candidate.model, candidate.data), "exact"
    elif candidate.kind == "exact" and predicts_by_points(type(candidate.model)):
        loo, source = score.by_quadrature(candidate.model, candidate.data), "quadrature"
    else:
        reason = "no closed form" if candidate.fit is None else f"{candidate.method} has no draws of the posterior"
        raise NoScore(f"{reason}: {fit_with_draws(candidate.model)} gives a score")
    return _prediction("loo", loo, source) | {"loo_mcse": loo.total * loo.mcse, "k_hat": loo.k_hat}


def _scored(fit: Fit, options: SelectOptions) -> Score:
    try:
        return score.of_fit(fit, refit=options.exact_loo)
    except NoScore as error:
        if error.code == "pareto_shape" and fit.kind == "sampled":
            again = f"{error}: --exact-loo (exact_loo=True) fits again without these rows"
            raise NoScore(again, error.code, error.k_hat) from error
        raise


def _prediction(name: str, scored: Score, source: str) -> Document:
    """Return the columns of a score, and the score, with which other candidates are compared."""
    mean = _finite(scored.mean)
    columns = {name: scored.total * mean, f"{name}_se": scored.total * scored.se, f"{name}_from": source}
    return {**columns, f"{name}_score": scored}


def _differences(name: str, rows: list[dict[str, Any]]) -> None:
    with_score = [(row, row[f"{name}_score"]) for row in rows if f"{name}_score" in row and row["status"] == "ok"]
    if not _are_compared(with_score, rows):
        return
    _, best = max(with_score, key=lambda pair: pair[1].mean)
    for row, scored in with_score:
        gap = score.difference(scored, best)
        row |= {f"{name}_difference": gap.total * gap.mean, f"{name}_difference_se": gap.total * gap.se}
