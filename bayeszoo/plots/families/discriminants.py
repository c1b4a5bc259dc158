"""Classes with Gaussian features: rows in the plane that separates the class means best, with class boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from bayeszoo.data.inputs.mixed.rows import Mixed
from bayeszoo.errors import InputError
from bayeszoo.families.classes.discriminants import discriminants
from bayeszoo.model.base import fields_of
from bayeszoo.model.capabilities import Classifies
from bayeszoo.model.views import View
from bayeszoo.plots.style import COLOURS, panels, short
from bayeszoo.results.caveats import require_shown
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DRAWS, _GRID = 50, 120
_SHARE = 0.95
"""Probability inside the ellipse of a class."""


def can_be_drawn(fit: Fit) -> bool:
    """Say whether `plot_discriminants` draws a fit: at least two Gaussian features and two classes."""
    return View.DISCRIMINANTS in fit.model.views() and min(len(fit.data["real"]), len(fit.data["class"])) > 1


def plot_discriminants(tree: xr.DataTree) -> Figure:
    """Draw rows, class means with ellipses and the boundaries of the classes in the plane of the discriminants.

    Parameters
    ----------
    tree : xarray.DataTree
        A fit of ``gaussian_discriminant`` to two features or more.

    Returns
    -------
    matplotlib.figure.Figure
        Made without pyplot. The plane has the first two discriminant coordinates at the posterior means of the
        parameters, with the mean covariance within classes. Two classes have only one; the second axis is then that
        along which rows vary most in units of the covariance. Coordinates are standard deviations within classes, from
        the mean of all classes. Ellipses contain 95% of a class. Boundaries are drawn if the plane determines the
        class: with two features, or with one covariance and at most three classes. Bold boundaries are at the posterior
        means, pale ones at 50 draws.

    Raises
    ------
    InputError
        When the model has no Gaussian features in classes, one class, or one feature.
    Untrustworthy
        When the fit failed its gate.
    """
    fit = require_shown(Fit(tree), "pictures of it")
    if View.DISCRIMINANTS not in fit.model.views():
        hint = "give a fit of gaussian_discriminant"
        raise InputError(f"{fit.model.name} has no Gaussian features in classes", "no_capability", hint=hint)
    if not can_be_drawn(fit):
        raise InputError("a plane needs two features and two classes", "too_few_columns")
    draws, rows = fit.pooled(), np.asarray(fit.data["reals"])
    structure = str(fields_of(fit.model)["covariance"])
    plane = Plane(structure, {name: values.mean(axis=0) for name, values in draws.items()}, rows)
    figure, (panel,) = panels(1, 6.4, 4.8)
    figure.suptitle(f"{tree.attrs['model']}, {tree.attrs['method']} ({tree.attrs['kind']})", fontsize="medium")
    _draw_classes(panel, plane, plane.seen(rows), np.asarray(fit.data["y"]), fit.data["class"])
    if plane.decides:
        places = np.linspace(0, len(draws["shares"]) - 1, min(_DRAWS, len(draws["shares"]))).astype(int)
        selection = {name: values[places] for name, values in draws.items()}
        _draw_boundaries(panel, plane, selection, fit)
    return figure


class Plane:
    """The first two discriminant coordinates of K classes at ``params``, whose origin is the mean of the classes.

    ``structure`` is that of the covariances, such as "tied".
    """

    def __init__(self, structure: str, params: dict[str, np.ndarray], rows: np.ndarray) -> None:
        self.params = params
        K, D = params["means"].shape
        shares = params["shares"] / params["shares"].sum()
        matrices = np.broadcast_to(_matrices(structure, params, D), (K, D, D))
        within = np.einsum("k,kij->ij", shares, matrices)
        self.origin = shares @ params["means"]
        axes = discriminants(shares, params["means"], within).axes[:, :2]
        if axes.shape[1] == 1:
            axes = np.column_stack([axes, _next_axis(axes[:, 0], within, rows)])
        axes = axes * np.where(axes[np.argmax(np.abs(axes), axis=0), [0, 1]] < 0, -1.0, 1.0)  # signs are arbitrary
        self._axes, self._lift = axes, within @ axes
        self.means, self.covariances = self.seen(params["means"]), axes.T @ matrices @ axes
        self.decides = D == 2 or (structure == "tied" and K <= 3)

    def seen(self, rows: np.ndarray) -> np.ndarray:
        """Return the coordinates (n, 2) of rows (n, D)."""
        return np.asarray((rows - self.origin) @ self._axes)

    def lifted(self, points: np.ndarray) -> np.ndarray:
        """Return the rows (n, D) at coordinates (n, 2) whose other discriminants are 0."""
        return np.asarray(self.origin + points @ self._lift.T)


def _matrices(structure: str, params: dict[str, np.ndarray], columns: int) -> np.ndarray:
    """Return covariances as matrices, (D, D) or (K, D, D)."""
    values = params["covariances"]
    if structure == "diagonal":
        return np.asarray(values[..., None] * np.eye(columns))
    return np.asarray(values[:, None, None] * np.eye(columns) if structure == "spherical" else values)


def _next_axis(first: np.ndarray, within: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the axis orthogonal to the first along which rows vary most, both in units of ``within``."""
    factor = np.linalg.cholesky(within)
    white = scipy.linalg.solve_triangular(factor, (rows - rows.mean(axis=0)).T, lower=True)
    unit = factor.T @ first
    white -= np.outer(unit, unit @ white)
    directions = np.linalg.svd(white, full_matrices=False)[0]
    return np.asarray(scipy.linalg.solve_triangular(factor.T, directions[:, 0]))


def _draw_classes(panel: Axes, plane: Plane, rows: np.ndarray, y: np.ndarray, labels: np.ndarray) -> None:
    from matplotlib.patches import Ellipse

    radius = np.sqrt(scipy.stats.chi2(2).ppf(_SHARE))
    for k, label in enumerate(labels):
        colour = COLOURS[k % len(COLOURS)]
        panel.plot(*rows[y == k].T, "o", ms=2.5, color=colour, alpha=0.5, label=short(label))
        panel.plot(*plane.means[k], "+", ms=9, mew=1.6, color=colour)
        squares, axes = np.linalg.eigh(plane.covariances[k])
        angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
        sides = 2 * radius * np.sqrt(squares)
        panel.add_patch(Ellipse(plane.means[k], sides[1], sides[0], angle=angle, fill=False, ec=colour, lw=1.0))
    second = "discriminant coordinate 2" if len(labels) > 2 else "axis of largest variance beyond it"
    panel.set(xlabel="discriminant coordinate 1", ylabel=second)
    panel.legend(title="class", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _draw_boundaries(panel: Axes, plane: Plane, draws: dict[str, np.ndarray], fit: Fit) -> None:
    """Draw where the two most probable classes are equally probable, at the means of the parameters and at draws."""
    x, y = (np.linspace(*limits(), _GRID) for limits in (panel.get_xlim, panel.get_ylim))
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    model, inputs = fit.model, fit.model.inputs
    assert isinstance(model, Classifies)
    assert isinstance(inputs, Mixed)
    labels = {name: fit.data[name] for name in inputs.coords}
    rows = {**inputs.blank(labels, len(points)), "reals": plane.lifted(points)}
    means = {name: values[None] for name, values in plane.params.items()}
    for params, style in ((draws, {"colors": "0.75", "linewidths": 0.4}), (means, {"colors": "0.1"})):
        joint = np.asarray(model.log_joint_classes(params, rows))
        terms = joint.reshape(-1, _GRID, _GRID, len(plane.means))
        for log_joint in terms if params is means or len(terms) > 1 else ():
            for k in range(len(plane.means) - 1):
                lead = log_joint[..., k] - np.delete(log_joint, k, axis=-1).max(axis=-1)
                if lead.min() < 0 < lead.max():
                    panel.contour(x, y, lead, levels=[0.0], zorder=1, **style)
