"""The best of several groups: each group against the highest of all others; a contrast of two is the special case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lazy_loader

from bayeszoo.comparison.by import contrasts
from bayeszoo.comparison.contrast_columns import BEST, LOWEST
from bayeszoo.errors import Untrustworthy
from bayeszoo.results.stored import Fit, fits_of, is_by_group

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd = lazy_loader.load("pandas")


def best_of_groups(tree: xr.DataTree, *, rope: float | None = None, lowest: bool = False) -> pd.DataFrame:
    """Compare each group with the best of all others, if higher is better; if lower is better, use ``lowest``.

    Parameters
    ----------
    tree : xarray.DataTree
        As for `contrasts`: fits by group, a fit with parameters of each group, or a regression with levels.
    rope : float, optional
        The smallest difference that matters, as for `contrasts`.
    lowest : bool
        Whether the lowest group is the best, as of costs or waiting times. Differences are then how far a group is
        below the lowest of the others, which ``against`` names, and there are no ratios.

    Returns
    -------
    pandas.DataFrame
        The columns of `contrasts`, one row for each group and scalar quantity, the most probably best group of a
        quantity first; ``against`` is "best of the others", the highest of them, whichever that is. ``p_greater`` is
        the probability that the group is the best of all, ``difference`` its distance from the best of the others, and
        ``loss_group`` the expected loss of choosing it: the mean of max(best of the others - group, 0). With ``rope``,
        ``p_above`` is the probability that it is the best by more than ``rope``. Exact independent posteriors of up to
        10 groups are integrated over, without Monte Carlo error; all others are compared by draws, with the errors in
        columns that end in ``_mcse``. Where groups tie, as at 0 by point masses, none is the best. Of two groups the
        rows are the two contrasts of `contrasts`.

    Raises
    ------
    InputError
        When there are no groups.
    Untrustworthy
        As for `contrasts`.

    Examples
    --------
    >>> import bayeszoo as bz
    >>> table = {"page": ["A", "B", "C"], "buyers": [31, 47, 44], "visitors": [412, 398, 405]}
    >>> M = bz.find("beta_bernoulli")
    >>> how = {"successes": "buyers", "trials": "visitors"}
    >>> tree = bz.fit_by(M(a=1, b=1), table, by="page", method="exact", seed=1, reading=how)
    >>> bz.best_of_groups(tree)[["group", "p_greater", "loss_group"]].round(4).values.tolist()
    [['B', 0.6592, 0.005], ['C', 0.3337, 0.0144], ['A', 0.0072, 0.0479]]
    """
    frame = contrasts(tree, LOWEST if lowest else BEST, rope=rope)
    if not len(frame):
        return frame
    ranked = frame.sort_values("p_greater", ascending=False, kind="stable")
    places = {name: i for i, name in enumerate(frame["quantity"].unique())}
    ranked = ranked.sort_values("quantity", key=lambda names: names.map(places), kind="stable", ignore_index=True)
    ranked.attrs = frame.attrs
    return ranked


def best_of_many(tree: xr.DataTree, rope: float | None = None, *, lowest: bool = False) -> pd.DataFrame:
    """Return `best_of_groups` of quantities of three and more groups; no rows of point estimates.

    Where no number agrees with the posterior, there are no rows either, and ``attrs["withheld"]`` says so.
    """
    first = next(iter(fits_of(tree).values())) if is_by_group(tree) else Fit(tree)
    nothing = pd.DataFrame()
    if first.kind == "point estimate":
        return nothing
    try:
        frame = best_of_groups(tree, rope=rope, lowest=lowest)
    except Untrustworthy as error:
        nothing.attrs["withheld"] = [f"{LOWEST if lowest else BEST}: {error}"]
        return nothing
    if not len(frame):
        return frame
    many = frame[frame.groupby("quantity")["group"].transform("nunique") > 2].reset_index(drop=True)
    many.attrs = frame.attrs
    return many
