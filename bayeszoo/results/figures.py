"""Log likelihood, evidence and ELBO of a fit, and the joint covariance of its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.foundation.named import Document
from bayeszoo.model.capabilities import ClosedForm, is_integrated
from bayeszoo.model.outer.integration import integrate
from bayeszoo.results.caveats import failures_of
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import FIGURES, components_withheld, elements, summaries_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

MOST_ENTRIES = 2000
"""Most entries of all parameters for which a covariance matrix is computed."""
_ERRORS = {"log_evidence": "log_evidence_mcse", "elbo": "elbo_se"}


def facts(tree: xr.DataTree) -> Document:
    """Return the log likelihood, the evidence and the ELBO of a fit under one set of names, whatever its method.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned.

    Returns
    -------
    dict
        ``log_likelihood`` and ``log_joint`` at a point estimate, ``log_evidence`` and ``elbo``, in nats; and their
        Monte Carlo errors, ``log_likelihood_error`` and so on, 0 without randomness. A figure that the method does not
        give or that is withheld is None, and ``withheld`` gives the reason by name.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> figures = bz.facts(bz.fit(bz.find("beta_bernoulli")(a=1, b=1), [1, 0, 1], "exact", seed=1))
    >>> round(figures["log_evidence"], 4), figures["log_evidence_error"], figures["withheld"]["elbo"]
    (-2.4849, 0.0, 'exact does not give it')
    """
    fit = Fit(tree)
    why = "" if fit.is_shown else "; ".join(failures_of(fit))
    figures: dict[str, Any] = {}
    withheld = {}
    for name in FIGURES:
        value = None if why else fit.fact(name)
        error = fit.fact(_ERRORS[name]) if _ERRORS.get(name) in fit.facts else 0.0
        figures |= {name: value, f"{name}_error": None if value is None or error is None else error}
        if value is None:
            undefined = fit.facts.get("evidence_withheld") if name in _ERRORS else None
            withheld[name] = str(why or undefined or f"{fit.method} does not give it")
    return {**figures, "withheld": withheld}


def joint_covariance(tree: xr.DataTree) -> pd.DataFrame:
    """Return the covariance matrix of all parameters, exact for an exact fit, else that of its draws.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned.

    Returns
    -------
    pandas.DataFrame
        One row and one column for each scalar, named as in a summary: ``mu``, ``w[Temp]``. An infinite variance is inf,
        and its covariances are NaN. A variance that the summary withholds is NaN, also by quadrature.

    Raises
    ------
    InputError
        For a point estimate, which has no covariance, and for more than `MOST_ENTRIES` scalars.
    NumericalError
        When the posterior is exact and its covariance has no closed form.
    Untrustworthy
        When the fit's estimates are withheld.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> bz.joint_covariance(bz.fit(bz.find("dirichlet_multinomial")(alpha=1), ["a", "b"], "exact", seed=1)).round(3)
          p[a]  p[b]
    p[a]  0.05 -0.05
    p[b] -0.05  0.05
    """
    import pandas as pd

    fit = Fit(tree)
    if fit.kind == "point estimate":
        raise InputError("a point estimate has no covariance", "no_draws", hint="fit by another method")
    if why := "; ".join(failures_of(fit)) if not fit.is_shown else components_withheld(fit):
        raise Untrustworthy(f"the covariance is withheld: {why}", "withheld")
    posterior = tree["posterior"].to_dataset()
    names = [label for variable in posterior.data_vars.values() for _, label in elements(variable)]
    if len(names) > MOST_ENTRIES:
        raise InputError(
            f"the covariance of {len(names)} scalars is not computed: the most is {MOST_ENTRIES}", "too_large"
        )
    return pd.DataFrame(_matrix(fit), index=names, columns=names)


def _matrix(fit: Fit) -> np.ndarray:
    """Return the covariance in closed form, or that of the draws; NaN for quantities without a variance."""
    try:
        if fit.kind == "exact" and isinstance(fit.model, ClosedForm):
            return np.asarray(fit.model.posterior(fit.stats).covariance())
        if fit.kind == "exact" and is_integrated(type(fit.model)):
            return integrate(fit.model, fit.data).posterior.covariance()
    except NumericalError as error:
        hint = "the draws of a fit by nuts have one, and the summary has the exact sd of each parameter"
        raise NumericalError(f"{error}: {hint}", error.code) from None
    columns = np.column_stack([values.reshape(len(values), -1) for values in fit.pooled().values()])
    matrix = np.atleast_2d(np.cov(columns, rowvar=False))
    has_no_sd = np.isnan(np.concatenate([np.ravel(summary["sd"]) for summary in summaries_of(fit).values()]))
    matrix[has_no_sd] = matrix[:, has_no_sd] = np.nan
    return matrix
