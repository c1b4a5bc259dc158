r"""Naive Bayes: classes whose features are independent given the class; levels, counts and real numbers.

    shares ~ Dirichlet(alpha)                                                of K classes
    c_n    ~ Categorical(shares)                                             n = 1..N
    theta_kj ~ Dirichlet(eta);       x_nj | c_n ~ Categorical(theta_{c_n j}) of each feature j of levels
    rates_kj ~ Gamma(a, rate b);     x_nj | c_n ~ Poisson(rates_{c_n j})     of each count
    variances_kj ~ InvGamma(a0, b0), means_kj ~ N(mu0, variances_kj / kappa0)
                                     x_nj | c_n ~ N(means_{c_n j}, variances_{c_n j})    of each real number

A cell that is missing is left out, exactly. CS725, lecture 25; Murphy 2012, section 3.5; Ng and Jordan 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Labelled, tables_of
from bayeszoo.distributions.conjugate.product import LabelledStats
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.errors import NumericalError
from bayeszoo.families.classes.mixed import MixedFeatures
from bayeszoo.families.classes.model import ClassConditional
from bayeszoo.model import Example, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
declared = lazy_loader.load("bayeszoo.families.statistics.declaration", suppress_warning=True)
priors = lazy_loader.load("bayeszoo.likelihoods.dirichlet_tables", suppress_warning=True)
TWO_FEATURES = {"class": "abc", "feature": "fg", "level": ("f=no", "f=yes", "g=no", "g=yes"), "count": (), "real": ()}


@dataclass(frozen=True)
class NaiveBayes(MixedFeatures, ClassConditional):
    """Classes with a Dirichlet prior on their shares, and independent features with conjugate priors in each.

    Parameters
    ----------
    eta : float, list of float, or list of lists
        Concentration of the prior of the levels of each feature, > 0: for all, for each level, or for each class and
        level.
    a, b : float, list of float, or list of lists
        Shape and rate of the Gamma prior of the rate of a count, > 0.
    mu0, kappa0 : float, list of float, or list of lists
        Mean of the prior of the mean of a real number, and how many rows it is worth, > 0.
    a0, b0 : float, list of float, or list of lists
        Shape and scale of the inverse-gamma prior of its variance, > 0.
    alpha : float or list of float
        Concentration of the prior of the shares, > 0, one for all classes or one each.
    """

    alpha: float = positive(1.0, "prior alpha", axes=("class",))

    inputs = Labelled("y")
    nonnegative, probabilities = ("rates", "variances"), ("shares", "theta")
    examples = (
        Example(
            "spam.csv",
            "4,601 letters, spam or not, and whether five words and signs occur in them",
            "Hopkins, Reeber, Forman and Suermondt 1999 (Spambase)",
            {"target": "spam", "count": "count"},
        ),
        Example("iris.csv", "sepals and petals of 150 flowers of iris, cm", "Fisher 1936", {"target": "species"}),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior and ``size`` rows; without known labels of three classes and two features."""
        labels = {name: np.array(self.labels.get(name, tuple(own)), dtype=str) for name, own in TWO_FEATURES.items()}
        params = self.prior(labels).rvs((), rng)
        y = rng.choice(len(labels["class"]), size, p=params["shares"])
        return params, {"y": y, **self.draw_features(params, y, labels, rng), **labels}

    def mle(self, stats: LabelledStats) -> dict[str, np.ndarray]:
        """Return the maximum of the likelihood: `NumericalError` where real numbers of a class do not differ."""
        for part in stats.parts[1].parts if (stats.parts[0].counts > 0).all() else ():
            if isinstance(part, Moments) and len(same := np.argwhere((part.scatter == 0) & (part.n > 0))):
                label, name = (stats.labels[axis][at] for axis, at in zip(("class", "real"), same[0], strict=True))
                problem = f"the values of {name} in class {label} do not differ"
                raise NumericalError(f"no maximum-likelihood estimate: {problem}", "no_maximum")
        return super().mle(stats)

    def _parameters(self, labels: Arrays) -> dict[str, tuple[Any, ...]]:
        """Declare the parameters, by kind of feature."""
        kinds: dict[str, tuple[Any, ...]] = {
            "shares": (pm.Dirichlet("shares", self.entries("alpha", len(labels["class"])), dims="class"),)
        }
        for kind, law in self.laws(labels).items():
            block: Any = law.blocks[0]
            if kind == "levels":
                kinds[kind] = (priors.DirichletTables("theta", block.alpha, block.tables, ("class", "level")),)
            elif kind == "counts":
                kinds[kind] = (pm.Gamma("rates", alpha=block.a, beta=block.b, dims=("class", "count")),)
            else:
                variances = pm.InverseGamma("variances", alpha=block.a, beta=block.b, dims=("class", "real"))
                scale = pm.math.sqrt(variances / block.kappa)
                kinds[kind] = pm.Normal("means", mu=block.m, sigma=scale, dims=("class", "real")), variances
        return kinds

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the class of each row, and each feature given it, where it is not missing."""
        with pm.Model(coords=self.coords(data)) as model:
            kinds = self._parameters(data)
            pm.Categorical("y", kinds["shares"][0], observed=pm.Data("y_data", data["y"], dims="row"), dims="row")
            for j, places in enumerate(tables_of(data)):
                seen = np.flatnonzero(data["levels"][:, j] >= 0)
                p = kinds["levels"][0][data["y"][seen]][:, list(places)]
                pm.Categorical(f"levels_{j + 1}", p, observed=np.searchsorted(places, data["levels"][seen, j]))
            for kind in ("counts", "reals"):
                if kind in kinds:
                    row, column = np.nonzero(~np.isnan(data[kind]))
                    first, *second = (values[data["y"][row], column] for values in kinds[kind])
                    cells, sd = data[kind][row, column], [pm.math.sqrt(variance) for variance in second]
                    (pm.Normal if sd else pm.Poisson)(kind, first, *sd, observed=cells)
        return model

    def compressed(self, stats: LabelledStats) -> DeclaredModel:
        """Declare the density of classes and features from their statistics."""
        of_classes, of_features = stats.parts
        with pm.Model(coords=self.coords(stats.labels)) as model:
            kinds = self._parameters(stats.labels)
            parts = zip(kinds, (of_classes, *of_features.parts), strict=True)
            terms = [declared.log_likelihood(part, *kinds[kind]) for kind, part in parts]
            pm.Potential("y", pm.math.sum(pm.math.stack(terms)))
        return model
