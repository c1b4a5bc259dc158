r"""Hidden Markov model of counts: hidden Markov model: each hidden state has its own Poisson rate.

    initial       ~ Dirichlet(alpha 1_K)
    transition_k  ~ Dirichlet(beta 1_K + sticky e_k)     k = 1..K
    rates_k       ~ Gamma(a_k, rate b_k)
    z_1           ~ Categorical(initial)                 in each sequence
    z_t | z_{t-1} ~ Categorical(transition_{z_{t-1}})    t = 2..T, all z summed out
    y_t | z_t     ~ Poisson(rates_{z_t})

The prior of the rates is of all states, or of each; tables or rates may be known instead. Zucchini and MacDonald 2009,
chapters 1 to 3, whose earthquakes are the example; Leroux and Puterman 1992; Scott 2002; Bishop, PRML, section 13.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import CountSeries, starts
from bayeszoo.distributions.conjugate.law import Law
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.families.hmm.emissions import distinct
from bayeszoo.families.hmm.model import HiddenMarkovModel
from bayeszoo.model import Axes, Example, positive, real, whole
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
declared = lazy_loader.load("bayeszoo.families.hmm.declaration", suppress_warning=True)
ours = lazy_loader.load("bayeszoo.likelihoods.ops.hmm", suppress_warning=True)


@dataclass(frozen=True)
class HMMPoisson(HiddenMarkovModel):
    """Counts emitted by the K states of a hidden Markov chain, with conjugate priors.

    Parameters
    ----------
    K : int
        How many states.
    alpha : float
        Concentration of the prior of the initial probabilities, > 0.
    beta, sticky : float
        Concentration of the prior of each row of the transition matrix, > 0, and the extra concentration of staying in
        the same state, >= 0.
    a, b : float or list of float
        Shape and rate of the Gamma prior of each rate, > 0: like a events in b rows seen before; for all states, or
        each its own. Where states differ, the prior names them.
    initial, transition : list of float, list of lists of float, optional
        Known tables, a row for each state, which then are no parameters; zeros are allowed.
    rates : list of float, optional
        Known rates, > 0, one for each state.
    """

    K: int = whole(2, "the number of states K")
    alpha: float = positive(1.0, "prior alpha")
    beta: float = positive(1.0, "prior beta")
    sticky: float = real(0.0, "prior sticky")
    a: float = positive(1.0, "prior shape a", axes=("state",))
    b: float = positive(1.0, "prior rate b", axes=("state",))
    initial: Any = None
    transition: Any = None
    rates: Any = None

    emitted: ClassVar[tuple[str, ...]] = ("rates",)
    inputs = CountSeries("y")
    dims: ClassVar[Axes] = {"initial": ("state",), "transition": ("state", "state_2"), "rates": ("state",)}
    nonnegative = ("rates",)
    examples = (
        Example(
            "earthquakes.csv",
            "earthquakes of magnitude 7 or more a year, 1900-2006",
            "Zucchini and MacDonald 2009, page 4",
            {"column": "count"},
        ),
    )

    def weak_fields(self, data: Arrays) -> dict[str, float]:
        """Take a prior worth one event, its mean the rate of the data (half an event where there is none)."""
        seen = data["y"][data["y"] >= 0]
        return {"a": 1.0, "b": len(seen) / max(float(seen.sum()), 0.5)}

    def emission_law(self, data: Arrays) -> Law[Any]:
        """Return the law of a count in each state: a Gamma prior of its rate, or a known one."""
        return self.or_known(Poisson(("rates",), "y", self.entries("a", self.K), self.entries("b", self.K)))

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw parameters from the prior, a path, and counts."""
        params, path = self.draw_path(rng, size)
        rates = self.known_emitted.get("rates", rng.gamma(self.entries("a", self.K), 1 / self.entries("b", self.K)))
        y = rng.poisson(rates[path]).astype(np.int64)
        params |= {} if self.rates else {"rates": rates}
        return params, {"y": y, "sequence": np.zeros(size, dtype=np.int64)}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the forward algorithm."""
        missing, dims = data["y"][:, None] < 0, self.dims
        with pm.Model(coords=self.coords(data)) as model:
            initial, transition = (declared.table(law, dims) for law in self.tables)
            rates = self._rates(np.asarray(self.a), np.asarray(self.b), dims["rates"])
            y = pm.Data("y_data", np.maximum(data["y"], 0), dims="row")
            log_b = pm.math.switch(missing, np.float64(0), pm.logp(pm.Poisson.dist(rates), y[:, None]))
            pm.Potential("y", declared.forward(initial, transition, log_b, starts(data["sequence"]), len(missing)))
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density on a compiled likelihood of the distinct counts."""
        self.require_rows(data)
        with pm.Model() as model:
            tables = [declared.table(law) for law in self.tables]
            a, b = (pm.Data(name, np.asarray(getattr(self, name), dtype=np.float64)) for name in ("a", "b"))
            rates = self._rates(a, b, None)
            values, codes = distinct(data["y"])
            rows = pm.Data("counts", values), pm.Data("codes", codes), pm.Data("starts", starts(data["sequence"]))
            pm.Potential("y", ours.hmm_poisson_log_likelihood(*tables, rates, *rows))
        return model

    def _rates(self, a: Any, b: Any, dims: Any) -> Any:
        return self.known_emitted["rates"] if self.rates else pm.Gamma("rates", a, b, shape=self.K, dims=dims)
