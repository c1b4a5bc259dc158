r"""Hidden Markov model of numbers: hidden Markov model: each hidden state has its own mean and variance.

    initial              ~ Dirichlet(alpha 1_K)
    transition_k         ~ Dirichlet(beta 1_K + sticky e_k)     k = 1..K
    variances_k          ~ InvGamma(a0_k, scale b0_k)
    means_k | variances_k ~ N(m0_k, variances_k / kappa0_k)
    z_1                  ~ Categorical(initial)                 in each sequence
    z_t | z_{t-1}        ~ Categorical(transition_{z_{t-1}})    t = 2..T, all z summed out
    y_t | z_t            ~ N(means_{z_t}, variances_{z_t})

The prior of a mean is scaled by its variance, which makes it conjugate: variational Bayes and sums over paths are then
in closed form. It is of all states, or of each. Either table, means or variances may be known instead. Rabiner 1989;
Hamilton 1989; Zucchini and MacDonald 2009; Beal 2003, chapter 3; Bishop, PRML, section 13.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import RealSeries, starts
from bayeszoo.distributions.conjugate.law import Law
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.distributions.statistics.moments import Moments
from bayeszoo.families.hmm.model import HiddenMarkovModel
from bayeszoo.model import Arrays, Axes, DeclaredModel, Example, Simulated, known, positive, real, whole

pm = lazy_loader.load("pymc")
declared = lazy_loader.load("bayeszoo.families.hmm.declaration", suppress_warning=True)
ours = lazy_loader.load("bayeszoo.likelihoods.ops.hmm", suppress_warning=True)


@dataclass(frozen=True)
class HMMGaussian(HiddenMarkovModel):
    """Numbers emitted by the K states of a hidden Markov chain, with conjugate priors.

    Parameters
    ----------
    K : int
        How many states.
    alpha : float
        Concentration of the prior of the initial probabilities, > 0.
    beta, sticky : float
        Concentration of the prior of each row of the transition matrix, > 0, and the extra concentration of staying in
        the same state, >= 0.
    m0, kappa0 : float or list of float
        Mean of the prior of each mean, and how many rows it is worth, > 0; for all states, or each its own.
    a0, b0 : float or list of float
        Shape and scale of the prior of each variance, > 0, likewise. Where states differ, the prior names them.
    initial, transition : list of float, list of lists of float, optional
        Known tables, a row for each state, which then are no parameters; zeros are allowed.
    means, variances : list of float, optional
        Known ones, a number for each state, which then are no parameters.
    """

    K: int = whole(2, "the number of states K")
    alpha: float = positive(1.0, "prior alpha")
    beta: float = positive(1.0, "prior beta")
    sticky: float = real(0.0, "prior sticky")
    m0: float = real(0.0, "prior mean m0", axes=("state",), units=1, location=True)
    kappa0: float = positive(1.0, "prior kappa0", axes=("state",))
    a0: float = positive(2.0, "prior shape a0", axes=("state",))
    b0: float = positive(1.0, "prior scale b0", axes=("state",), units=2)
    initial: Any = None
    transition: Any = None
    means: Sequence[float] | None = known(units=1, location=True)
    variances: Sequence[float] | None = known(units=2)

    emitted: ClassVar[tuple[str, ...]] = ("means", "variances")
    inputs = RealSeries("y")
    dims: ClassVar[Axes] = {
        "initial": ("state",),
        "transition": ("state", "state_2"),
        "means": ("state",),
        "variances": ("state",),
    }
    nonnegative = ("variances",)
    examples = (
        Example("nile.csv", "annual flow of the Nile at Aswan, 1871-1970, 10^8 m^3", "Cobb 1978", {"column": "flow"}),
    )

    def weak_fields(self, data: Arrays) -> dict[str, Any]:
        """Centre the means on the data; the scale of the variances is that of the data over K^2, a share for each.

        Centres that are given by state are worth four rows: worth less, the states could change places.
        """
        stats = Moments.of(data["y"][~np.isnan(data["y"])][:, None])
        variance = stats.sd[0] ** 2 / self.K**2
        return {"m0": stats.mean[0], "kappa0": 4.0 if np.ptp(self.m0) else 0.01, "a0": 1.5, "b0": variance / 2}

    def emission_law(self, data: Arrays) -> Law[Any]:
        """Return the law of a number in each state: normal, with a conjugate prior of its unknown parameters."""
        m, kappa, a, b = (self.entries(name, self.K) for name in ("m0", "kappa0", "a0", "b0"))
        known = self.known_emitted
        if known.keys() == {"means"}:  # as if they had been seen in any number of rows
            return Normal(("variances",), "y", known["means"], np.full(self.K, np.inf), a, b)
        if known.keys() == {"variances"}:
            return Normal(("means",), "y", m, kappa, a, b, variance=known["variances"])
        return self.or_known(Normal(("means", "variances"), "y", m, kappa, a, b))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior, a path, and numbers."""
        params, path = self.draw_path(rng, size)
        law = self.emission_law({})
        drawn = law.rvs((), rng) if isinstance(law, Normal) else {}
        both = {**self.known_emitted, **drawn}
        y = both["means"][path] + np.sqrt(both["variances"][path]) * rng.standard_normal(size)
        return {**params, **drawn}, {"y": y, "sequence": np.zeros(size, dtype=np.int64)}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the forward algorithm."""
        missing, dims = np.isnan(data["y"])[:, None], self.dims
        with pm.Model(coords=self.coords(data)) as model:
            initial, transition = (declared.table(law, dims) for law in self.tables)
            means, variances = self._states(dims["means"])
            y = pm.Data("y_data", np.where(missing[:, 0], np.mean(self.m0), data["y"]), dims="row")
            log_b = pm.logp(pm.Normal.dist(means, pm.math.sqrt(variances)), y[:, None])
            log_b = pm.math.switch(missing, np.float64(0), log_b)
            pm.Potential("y", declared.forward(initial, transition, log_b, starts(data["sequence"]), len(missing)))
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density on a compiled likelihood."""
        self.require_rows(data)
        with pm.Model() as model:
            tables = [declared.table(law) for law in self.tables]
            means, variances = self._states(None)
            missing, first = np.isnan(data["y"]), pm.Data("starts", starts(data["sequence"]))
            y = pm.Data("y_data", np.where(missing, np.mean(self.m0), data["y"]))  # which takes no NaN
            y = pm.math.switch(pm.Data("missing", missing), np.float64(np.nan), y)
            sigmas = pm.math.sqrt(variances)
            pm.Potential("y", ours.hmm_gaussian_log_likelihood(*tables, means, sigmas, y, first))
        return model

    def _states(self, dims: Any) -> tuple[Any, Any]:
        def prior(*names: str) -> list[Any]:
            return [pm.Data(name, np.asarray(getattr(self, name), dtype=np.float64)) for name in names]

        means, variances = (self.known_emitted.get(name) for name in self.emitted)
        if variances is None:
            a0, b0 = prior("a0", "b0")
            variances = pm.InverseGamma("variances", alpha=a0, beta=b0, shape=self.K, dims=dims)
        if means is None:
            m0, kappa0 = prior("m0", "kappa0")
            means = pm.Normal("means", mu=m0, sigma=pm.math.sqrt(variances / kappa0), shape=self.K, dims=dims)
        return means, variances
