r"""Softmax regression: one of K classes, whose log odds are weighted sums of features.

    w_kj ~ N(0, tau^2)                         of a feature in units of `scale`; the intercepts ~ N(m0, s0^2)
    y_n ~ Categorical(p_n)                     p_nk proportional to exp(x_n' w_k),  n = 1..N, k = 1..K

With symmetric coding each class has weights, whose common part only the prior informs; with reference coding the
first class has none, and those of the others are log odds against it. Multinomial logit, or maximum entropy model:
McFadden 1974; Bishop, PRML, section 4.3.4; Murphy 2012, section 8.3.7; Agresti 2007, section 6.1; CS725 lecture 15.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import ClassRegression
from bayeszoo.distributions.discrete import LogitCategorical
from bayeszoo.errors import InputError
from bayeszoo.families.glm.model import LinkedTerms
from bayeszoo.families.glm.softmax import SoftmaxRows
from bayeszoo.families.linear.least_squares import Solution
from bayeszoo.model import Arrays, Axes, Classifies, DeclaredModel, Example, LogConcave, Params, Simulated

pm, ours = lazy_loader.load("pymc"), lazy_loader.load("bayeszoo.families.glm.declaration", suppress_warning=True)
ops = lazy_loader.load("bayeszoo.likelihoods.ops.glm", suppress_warning=True)
SYMMETRIC, REFERENCE = "symmetric", "reference"
FOODS = ["fish", "invertebrate", "reptile", "bird", "other"]


@dataclass(frozen=True)
class SoftmaxRegression(LinkedTerms, LogConcave, Classifies):
    """Outcomes of several classes, whose log odds against each other are linear in terms with Gaussian weights.

    Parameters
    ----------
    coding : {"symmetric", "reference"}
        Which classes have weights: all, so that their order does not matter, or all but the first.
    tau : float, or one for each term but the intercept
        Prior standard deviation of the weight of a standardized term, > 0, in log odds.
    s0 : float
        Prior standard deviation of the intercepts, > 0, in log odds.
    """

    coding: str = field(default=SYMMETRIC, kw_only=True)

    inputs = ClassRegression("y")
    integrated = False  # of two classes logistic_regression has exact answers
    dims: ClassVar[Axes] = {"w": ("equation", "term"), "contrast": ("pair", "term"), "odds_ratio": ("pair", "slope")}
    nonnegative = ("odds_ratio",)
    examples = (
        Example(
            "alligators.csv",
            "the primary food of 219 alligators of four lakes of Florida, and whether they are longer than 2.3 m",
            "Agresti 2002, table 7.1; Agresti 2007, section 6.1.2",
            {"target": "food", "features": ["lake", "size"], "classes": FOODS},
        ),
        Example(
            "iris.csv",
            "sepal and petal length and width of 150 flowers of three species of iris, cm",
            "Anderson 1935; Fisher 1936",
            {"target": "species"},
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coding not in (SYMMETRIC, REFERENCE):
            raise InputError(f"coding must be {SYMMETRIC} or {REFERENCE}, got {self.coding!r}", "wrong_type")

    @property
    def _first(self) -> int:
        return int(self.coding == REFERENCE)

    def weak_intercept(self, data: Arrays) -> dict[str, float]:
        """Return a prior of about equal shares, as wide as odds of e^5."""
        return {"m0": 0.0, "s0": 5.0}

    def coords(self, data: Arrays) -> dict[str, Any]:
        """Return the names of the terms, and of the classes or pairs of them that weights belong to."""
        classes = list(map(str, data["class"]))
        pairs = [f"{label} / {classes[0]}" for label in classes[1:]]
        equations = pairs if self.coding == REFERENCE else classes
        return {**super().coords(data), "equation": np.array(equations), "pair": np.array(pairs)}

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw weights from the prior, standard normal features, and ``size`` classes given both."""
        design, labels = self.simulate_design(rng, size, np.shape(self.tau)), self.labels.get("class", ("a", "b", "c"))
        mean, sd = self.prior(design)
        w = rng.normal(mean, sd, (len(labels) - self._first, len(mean)))
        noisy = self._logits(w, design) + rng.gumbel(size=(size, len(labels)))  # the largest is of softmax's law
        return {"w": w}, {"y": np.argmax(noisy, axis=1), **design, "class": np.array(labels, dtype=str)}

    def _logits(self, w: np.ndarray, data: Arrays) -> np.ndarray:
        """Return the logits of each row; weights (..., rows of w, T) give (..., rows, K)."""
        own = np.moveaxis(self.predictor({"w": w}, data), -1, -2)
        return np.concatenate([np.zeros((*own.shape[:-1], self._first)), own], axis=-1)

    def mean(self, params: Params, data: Arrays) -> np.ndarray:
        """Return the probabilities of the classes of each row; weights (..., rows of w, T) give (..., rows, K)."""
        return self.likelihood(params, data).mean()

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the contrasts of the weights with those of the first class, and the odds ratios against it."""
        w = np.asarray(params["w"])
        if self.coding == REFERENCE:
            return {"odds_ratio": self.ratios({"w": w})}
        contrast = w[..., 1:, :] - w[..., :1, :]
        return {"contrast": contrast, "odds_ratio": self.ratios({"w": contrast})}

    def concave(self, data: Arrays, **profiled: float) -> SoftmaxRows:
        """Return the log likelihood of the rows in units of the prior."""
        (terms, units), (origin, sd) = self.slopes(data), self.prior(data)
        scale = np.concatenate([np.ones(int(self.intercept)), units])
        design, classes = self._with_intercept(terms) * (sd * scale), list(map(str, data["class"]))
        offset, names = float(self.m0) * self.intercept, self.coords(data)["term"].tolist()
        return SoftmaxRows(design, data["y"], classes, self._first, offset, origin, sd, names, self.intercept)

    def laplace_solution(self, data: Arrays) -> Solution:
        """Return the Gaussian at the mode with the curvature there, of all weights in the user's units."""
        return self.concave(data).gaussian()

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the class of each row."""
        mean, sd = self.prior(data)
        with pm.Model(coords=self.coords(data)) as model:
            whitened = ours.WhitenedRows(self.laplace_solution(data))
            w = pm.Normal("w", mean, sd, dims=("equation", "term"), transform=whitened)
            terms = pm.Data("terms", self.design(data), dims=("row", "term"))
            logits = pm.math.dot(terms, (ours.with_reference(w) if self._first else w).T)
            ours.CategoricalByLogits("y", logits, pm.Data("y_data", data["y"], dims="row"))
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density on the compiled likelihood, whose gradient is linear in the rows."""
        (mean, sd), coords = self.prior(data), self.coords(data)
        means, sds = (np.tile(each, (len(coords["equation"]), 1)) for each in (mean, sd))
        with pm.Model(coords=coords) as model:
            whitened = ours.WhitenedRows(self.laplace_solution(data))
            w = ours.GaussianRows("w", means, sds, whitened, ("equation", "term"))
            terms, codes = pm.Data("terms", self.design(data)), pm.Data("y_data", data["y"])
            every = ours.with_reference(w) if self._first else w
            pm.Potential("y", ops.softmax_log_likelihood(every, terms, codes))
        return model

    def likelihood(self, params: Params, data: Arrays) -> LogitCategorical:
        """Return each row's distribution over the classes; leading axes of the parameters are draws."""
        return LogitCategorical(self._logits(params["w"], data))
