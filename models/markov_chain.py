r"""Markov chain: transition probabilities between the symbols of sequences.

    P_i ~ Dirichlet(alpha)                       each row i of P, independently
    s_t ~ Categorical(P[s_(t-1)])                t = 2..T, in each sequence; the first symbol is given

P[i, j] is the probability of going from i to j. Given P, every transition is one observation, so the data have one row
a transition, and sequences are never glued. In a chain of order two or more the context i is the last few symbols.
Markov 1913; Murphy 2012, section 17.2; W4400, Markov models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import Transitions
from bayeszoo.data.read import Example
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.discrete import Categorical as CategoricalRows
from bayeszoo.distributions.information import entropy
from bayeszoo.distributions.statistics.counts import Counts
from bayeszoo.families.markov.stationary import stationary
from bayeszoo.model import Axes, BlockModel, plain, positive
from bayeszoo.model.types import Arrays, DeclaredModel, Params, RowLaw, Simulated

pm = lazy_loader.load("pymc")
declared = lazy_loader.load("bayeszoo.families.statistics.declaration", suppress_warning=True)


@dataclass(frozen=True)
class MarkovChain(BlockModel[Counts]):
    """A Markov chain with a Dirichlet prior on each row of its transition matrix.

    Parameters
    ----------
    alpha : float, list of float, or list of lists
        Concentration of the Dirichlet prior, > 0: one number for all transitions, one for each next symbol, or a
        matrix, as the posterior has.
    """

    alpha: float = positive(1.0, "prior alpha", axes=("context", "symbol"))

    inputs = Transitions()
    dims: ClassVar[Axes] = {"P": ("context", "symbol"), "stationary": ("symbol",)}
    probabilities = ("P", "stationary")
    examples = (
        Example("onegin.csv", "20,000 letters of Eugene Onegin, vowels and consonants", "Markov 1913"),
        Example("federalist_10.csv", "letters of an essay of Madison, after the two before", "Federalist No. 10, 1787"),
    )

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw P from the prior (of three symbols if alpha is one number) and a path of ``size`` steps.

        A prior with other contexts than symbols is of a chain of higher order: its contexts are drawn at random.
        """
        shape = np.shape(self.alpha)[:1] + np.shape(self.alpha)[-1:] or (3, 3)
        p = self._block(*shape).rvs((), rng)["P"]
        previous, following = np.zeros((2, size), dtype=np.int64)
        for t in range(size):
            previous[t] = following[t - 1] if shape[0] == shape[1] else rng.integers(shape[0])
            following[t] = rng.choice(shape[1], p=p[previous[t]])
        context, symbol = (np.array([f"s{k + 1}" for k in range(count)]) for count in shape)
        return {"P": p}, {"next": following, "previous": previous, "context": context, "symbol": symbol}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare one Categorical transition a row."""
        shape = len(data["context"]), len(data["symbol"])
        with pm.Model(coords=self.coords(data)) as model:
            p = pm.Dirichlet("P", a=self.entries("alpha", shape), dims=("context", "symbol"))
            previous = pm.Data("previous", data["previous"], dims="row")
            pm.Categorical("next", p=p[previous], observed=pm.Data("next_data", data["next"], dims="row"), dims="row")
        return model

    def statistics(self, data: Arrays) -> Counts:
        """Count each transition; ``alpha`` must have as many entries as there are contexts and symbols."""
        block = self._block(len(data["context"]), len(data["symbol"]))
        return block.statistics_by(data["previous"], data)

    def compressed(self, stats: Counts) -> DeclaredModel:
        """Declare the density of the transitions from their counts."""
        with pm.Model() as model:
            p = pm.Dirichlet("P", a=self.entries("alpha", stats.counts.shape))
            pm.Potential("next", declared.log_likelihood(stats, p))
        return model

    def block(self, stats: Counts) -> Categorical:
        """Return the prior of each row of P; the posterior of it is Dirichlet(alpha + its counts), independent."""
        return self._block(*stats.counts.shape)

    def _block(self, contexts: int, symbols: int) -> Categorical:
        return Categorical(("P",), "next", self.entries("alpha", (contexts, symbols)))

    def from_block(self, block: Categorical) -> MarkovChain:
        """Return the model with another Dirichlet prior of each row."""
        return self.replaced(alpha=plain(block.alpha))

    def predictive(self, stats: Counts, data: Arrays) -> RowLaw:
        """Return each row's predictive: the mean of the row of P that its context has."""
        alpha = self.block(stats).updated(stats).alpha[data["previous"]]
        return CategoricalRows(alpha / alpha.sum(axis=1, keepdims=True))

    def likelihood(self, params: Params, data: Arrays) -> RowLaw:
        """Return each row's categorical distribution; P of shape (..., contexts, symbols) gives (..., rows)."""
        return CategoricalRows(np.asarray(params["P"])[..., data["previous"], :])

    def entropies(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return the entropy rate of a chain of the first order: a step's, in the long run."""
        p = np.asarray(params["P"])
        return {"entropy rate": np.sum(stationary(p) * entropy(p), axis=-1)} if p.shape[-1] == p.shape[-2] else {}

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the stationary distribution of a chain of the first order."""
        p = np.asarray(params["P"])
        return {"stationary": stationary(p)} if p.shape[-1] == p.shape[-2] else {}
