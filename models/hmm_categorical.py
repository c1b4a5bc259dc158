r"""Hidden Markov model of symbols: hidden Markov model: each hidden state emits symbols.

    initial       ~ Dirichlet(alpha 1_K)
    transition_k  ~ Dirichlet(beta 1_K + sticky e_k)     k = 1..K
    emission_k    ~ Dirichlet(eta)
    z_1           ~ Categorical(initial)                 in each sequence
    z_t | z_{t-1} ~ Categorical(transition_{z_{t-1}})    t = 2..T, all z summed out
    y_t | z_t     ~ Categorical(emission_{z_t})

Any of the three tables may be known instead. Rabiner 1989; Durbin, Eddy, Krogh and Mitchison 1998, section 3.2, the
occasionally dishonest casino; Bishop, PRML, section 13.2; W4400, hidden Markov models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import lazy_loader
import numpy as np

from bayeszoo.data.inputs import SymbolSeries, starts
from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.law import Known, Law
from bayeszoo.errors import InputError
from bayeszoo.families.hmm.model import HiddenMarkovModel
from bayeszoo.model import Axes, Example, positive, real, whole
from bayeszoo.model.types import Arrays, DeclaredModel, Simulated

pm = lazy_loader.load("pymc")
declared = lazy_loader.load("bayeszoo.families.hmm.declaration", suppress_warning=True)
ours = lazy_loader.load("bayeszoo.likelihoods.ops.hmm", suppress_warning=True)


@dataclass(frozen=True)
class HMMCategorical(HiddenMarkovModel):
    """Symbols emitted by the K states of a hidden Markov chain, with Dirichlet priors on its tables.

    Parameters
    ----------
    K : int
        How many states.
    alpha : float
        Concentration of the prior of the initial probabilities, > 0.
    beta, sticky : float
        Concentration of the prior of each row of the transition matrix, > 0, and the extra concentration of staying in
        the same state, >= 0.
    eta : float or list of float
        Concentration of the prior of each state's emissions, > 0, one for all symbols or one each.
    initial, transition, emission : list of float, lists of lists of float, optional
        Known tables, a row for each state, which then are no parameters; zeros are allowed.
    """

    K: int = whole(2, "the number of states K")
    alpha: float = positive(1.0, "prior alpha")
    beta: float = positive(1.0, "prior beta")
    sticky: float = real(0.0, "prior sticky")
    eta: float = positive(1.0, "prior eta", axes=("symbol",))
    initial: Any = None
    transition: Any = None
    emission: Any = None

    inputs = SymbolSeries("y")
    known: ClassVar[tuple[str, ...]] = ("initial", "transition", "emission")
    dims: ClassVar[Axes] = {
        "initial": ("state",),
        "transition": ("state", "state_2"),
        "emission": ("state", "symbol"),
        "next": ("symbol",),
    }
    probabilities = ("initial", "transition", "emission")
    examples = (
        Example(
            "dice.csv",
            "300 rolls of a die that is sometimes exchanged for a loaded one, simulated",
            "after Durbin et al. 1998, section 3.2",
            {"column": "roll"},
        ),
    )

    def emission_law(self, data: Arrays) -> Law[Any]:
        """Return the law of a symbol in each state: a Dirichlet prior of its probabilities, or known ones."""
        size = len(data["symbol"])
        if self.emission is not None and len(self.emission[0]) != size:
            raise InputError(
                f"emission has {len(self.emission[0])} columns, the data have {size} symbols", "wrong_shape"
            )
        block = Categorical(("emission",), "y", np.tile(self.entries("eta", size), (self.K, 1)))
        return block if self.emission is None else Known(block, {"emission": np.array(self.emission)})

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw the tables from the prior (of three symbols where nothing tells how many), a path, and symbols."""
        entries = np.size(self.eta) if np.ndim(self.eta) else 3
        symbols = entries if self.emission is None else len(self.emission[0])
        labels = np.array([f"s{v + 1}" for v in range(symbols)])
        params, path = self.draw_path(rng, size)
        law = self.emission_law({"symbol": labels})
        drawn = law.rvs((), rng) if isinstance(law, Categorical) else {}
        emission = law.at(drawn)["emission"]
        y = np.array([rng.choice(symbols, p=emission[state]) for state in path], dtype=np.int64)
        params |= drawn
        return params, {"y": y, "sequence": np.zeros(size, dtype=np.int64), "symbol": labels}

    def declare(self, data: Arrays) -> DeclaredModel:
        """Declare the forward algorithm."""
        missing = data["y"][:, None] < 0
        with pm.Model(coords=self.coords(data)) as model:
            initial, transition, emission = self._tables(data, self.dims)
            symbols = pm.Data("y_data", np.maximum(data["y"], 0), dims="row")
            log_b = pm.math.switch(missing, np.float64(0), declared.log_of(emission).T[symbols])
            pm.Potential("y", declared.forward(initial, transition, log_b, starts(data["sequence"]), len(missing)))
        return model

    def compiled(self, data: Arrays) -> DeclaredModel:
        """Declare the same density on a compiled likelihood."""
        self.require_rows(data)
        with pm.Model() as model:
            tables = self._tables(data, {})
            rows = pm.Data("y_data", data["y"]), pm.Data("starts", starts(data["sequence"]))
            pm.Potential("y", ours.hmm_categorical_log_likelihood(*tables, *rows))
        return model

    def _tables(self, data: Arrays, dims: Mapping[str, object]) -> list[Any]:
        return [declared.table(law, dims) for law in self.prior(data).laws]
