"""Gaussian features in each of K classes, with one covariance per class or for all, and their conjugate prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayeszoo.distributions.information import information_of_normals
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import InputError
from bayeszoo.families.mixtures.gaussian_components import STRUCTURES, GaussianComponents
from bayeszoo.foundation.named import Arrays, Coords, Fields, Params
from bayeszoo.model.base import Axes, Model
from bayeszoo.model.fields import covariance as scale_matrix
from bayeszoo.model.fields import plain, positive, real
from bayeszoo.model.views import View

AXES: dict[str, tuple[str, ...]] = {
    **{"full": ("class", "real", "real_2"), "tied": ("real", "real_2")},
    **{"diagonal": ("class", "real"), "spherical": ("class",)},
}
"""The axes of the covariances, by structure."""


@dataclass(frozen=True)
class GaussianFeatures(Model, family=True):
    """The conjugate prior of the means and covariances of rows of D numbers in each of K classes.

    A model with these fields documents them.
    """

    m0: float = real(0.0, "prior mean m0", axes=("class", "real"))
    kappa0: float = positive(1.0, "prior kappa0", axes=("class",))
    nu0: float = positive(4.0, "prior degrees of freedom nu0", axes=("class",))
    Psi0: float = scale_matrix(1.0, "Psi0", axes=("class", "real", "real"))
    covariance: str = "full"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.covariance, str) or self.covariance not in STRUCTURES:
            problem = f"there is no covariance {self.covariance!r}"
            raise InputError(problem, "unknown_method", hint=f"use one of {', '.join(STRUCTURES)}")

    @property
    def dims(self) -> Axes:  # type: ignore[override]
        """The axes of the parameters."""
        return {"shares": ("class",), "means": ("class", "real"), "covariances": AXES[self.covariance]}

    def views(self) -> frozenset[View]:
        """Return the views of all models, and the plane of the discriminant coordinates."""
        return super().views() | {View.DISCRIMINANTS}

    def coords(self, data: Arrays) -> Coords:
        """Return the labels of classes, of features for both axes of a matrix, and of discriminant coordinates."""
        coordinates = np.arange(1, min(len(data["real"]), len(data["class"]) - 1) + 1)
        return {**super().coords(data), "real_2": data["real"], "coordinate": coordinates}

    def weak_fields(self, data: Arrays) -> Fields:
        """Return weak fields from the columns: means worth 0.01 rows; Psi0 of the variances, nu0 = D + 2."""
        stats = Moments.of(data["reals"])
        freedom, psi = len(stats.mean) + 2.0, plain(np.diag(stats.sd**2))
        return {"m0": plain(stats.mean), "kappa0": 0.01, "nu0": freedom, "Psi0": psi}

    def features_law(self, labels: Arrays) -> GaussianComponents:
        """Return the prior of means and covariances; raise `InputError` if the shape of a field is wrong."""
        K, D = len(labels["class"]), len(labels["real"])
        psi = np.asarray(self.Psi0, dtype=np.float64) if np.ndim(self.Psi0) else self.Psi0 * np.eye(D)
        is_tied = self.covariance == "tied"
        if psi.shape != (D, D) and (is_tied or psi.shape != (K, D, D)):
            shape = " x ".join(map(str, psi.shape))
            raise InputError(f"Psi0 is {shape}, for {D} features in {K} classes", "wrong_shape")
        if is_tied and np.ndim(self.nu0):
            raise InputError("nu0 has an entry for each class, which share one covariance", "wrong_shape")
        nu = self.nu0 if is_tied else self.entries("nu0", K)
        m0, kappa = self.entries("m0", (K, D)), self.entries("kappa0", K)
        return GaussianComponents.of(self.covariance, K, m0, kappa, nu, psi, "reals")

    def fields_of_features(self, law: GaussianComponents) -> Fields:
        """Return the fields of a prior of means and covariances."""
        psi = law.structure.matrix(law.psi)
        return {"m0": plain(law.m), "kappa0": plain(law.kappa), "nu0": plain(law.nu), "Psi0": plain(psi)}

    def feature_names(self, labels: Arrays) -> list[str]:
        """Return the columns if they are independent given the class, else one name for all."""
        return list(map(str, labels["real"])) if self.covariance == "diagonal" else ["features"]

    def information(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return the mutual information (...) of the class and each single feature."""
        variances = self.features_law(data).variances(params["covariances"])
        columns = zip(np.moveaxis(params["means"], -1, 0), np.moveaxis(variances, -1, 0), strict=True)
        values = (information_of_normals(params["shares"], *column) for column in columns)
        return dict(zip(map(str, data["real"]), values, strict=True))

    @staticmethod
    def draw_features(
        params: Params, classes: np.ndarray, law: GaussianComponents, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw the rows (n, D) of known classes (n,)."""
        factors = np.linalg.cholesky(law.matrices(params["covariances"]))[classes]
        noise = rng.standard_normal((len(classes), law.columns, 1))
        return np.asarray(params["means"][classes] + (factors @ noise)[..., 0])
