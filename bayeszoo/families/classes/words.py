"""Counts of the words of documents in each class: multinomial, Poisson or negative binomial, and their priors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bayeszoo.distributions.conjugate.categorical import Categorical
from bayeszoo.distributions.conjugate.columns import SparseColumns
from bayeszoo.distributions.conjugate.law import Block, Law
from bayeszoo.distributions.conjugate.negative_binomial import NegativeBinomial
from bayeszoo.distributions.conjugate.poisson import Poisson
from bayeszoo.distributions.information import information_of_rates, information_of_words
from bayeszoo.distributions.special import log_rising
from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays, Fields, Params
from bayeszoo.model.base import Axes, Model
from bayeszoo.model.fields import plain, positive


@dataclass(frozen=True, eq=False)
class WordsInTurn(Categorical):
    """Multinomial words, whose log predictive density is a sum over the words, as if these came in random order.

    The j-th occurrence of word v, as the i-th word, has the probability (alpha_v + j - 1) / (sum of alpha + i - 1). The
    mean log over all orders has a term for each word: its own occurrences, and its share of the denominators.
    """

    def apart(self, rows: Arrays) -> Iterator[tuple[Any, Arrays]]:
        """Yield each word's part of the density, with its counts and the lengths of the documents."""
        counts = rows[self.column]
        length = np.asarray(counts.sum(axis=1))
        for v in range(self.alpha.shape[-1]):
            own = counts[:, [v]].toarray()[:, 0]
            yield _WordInTurn(self.alpha[:, v], self.alpha.sum(axis=1)), {"own": own, "length": length}


@dataclass(frozen=True, eq=False)
class _WordInTurn:
    alpha: np.ndarray
    total: np.ndarray

    def log_predictive(self, rows: Arrays) -> np.ndarray:
        """Return the part of the log density of each document in each class, (n, K)."""
        own, length = (np.asarray(rows[name], dtype=np.float64)[:, None] for name in ("own", "length"))
        share = own / np.maximum(length, 1.0)
        return np.asarray(log_rising(self.alpha, own) - share * log_rising(self.total, length))


PARAMETERS = {"multinomial": "theta", "poisson": "rates", "negative_binomial": "p"}
"""The parameter of the words, by the distribution of their counts."""


@dataclass(frozen=True)
class WordCounts(Model, family=True):
    """The conjugate priors of the counts of V words in each of K classes, independent given the class or multinomial.

    A model with these fields documents them.
    """

    eta: float = positive(1.0, "prior eta", axes=("class", "word"))
    a: float = positive(1.0, "prior shape a", axes=("class", "word"))
    b: float = positive(1.0, "prior rate b", axes=("class", "word"))
    size: float = positive(1.0, "size")
    counts: str = "multinomial"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.counts, str) or self.counts not in PARAMETERS:
            problem = f"there are no counts {self.counts!r}"
            raise InputError(problem, "unknown_method", hint=f"use one of {', '.join(PARAMETERS)}")

    @property
    def dims(self) -> Axes:  # type: ignore[override]
        """The axes of the parameters."""
        names = [PARAMETERS[self.counts], *["rates"] * (self.counts == "negative_binomial")]
        return {"shares": ("class",), **dict.fromkeys(names, ("class", "word"))}

    @property
    def density_of(self) -> str:
        """The observations of a density: densities of ordered words and of counts are not comparable."""
        return "words in their order" if self.counts == "multinomial" else "counts of words"

    def possible(self, data: Arrays) -> Iterator[Arrays] | None:
        """Yield all documents of one word if counts are multinomial, whose length is known; else return None."""
        return super().possible(data) if self.counts == "multinomial" else None

    def rows_of(self, data: Arrays) -> Arrays:
        """Return the counts as a sparse table (documents, words)."""
        shape = len(data["length"]), len(data["word"])
        ends = np.searchsorted(data["doc"], np.arange(shape[0] + 1))
        cells = (np.asarray(data["counts"], dtype=np.float64), data["term"], ends)
        return {**data, "counts": scipy.sparse.csr_array(cells, shape=shape)}

    def features_law(self, labels: Arrays) -> Law[Any]:
        """Return the law of the words of a document in each class, with its prior."""
        shape = len(labels["class"]), len(labels["word"])
        if self.counts == "multinomial":
            return WordsInTurn(("theta",), "counts", self.entries("eta", shape))
        a, b, size = self.entries("a", shape), self.entries("b", shape), float(self.size)
        if self.counts == "poisson":
            return SparseColumns(Poisson(("rates",), "counts", a, b, "length"))
        return SparseColumns(NegativeBinomial(("p",), "counts", size * b, a, size=size, exposure="length"))

    def fields_of_features(self, law: Any) -> Fields:
        """Return the fields of a prior of the words."""
        if isinstance(law, Categorical):
            return {"eta": plain(law.alpha)}
        block: Block[Any] = law.block
        if isinstance(block, NegativeBinomial):
            return {"a": plain(block.b), "b": plain(block.a / self.size)}
        return {"a": plain(law.block.a), "b": plain(law.block.b)}

    def feature_names(self, labels: Arrays) -> list[str]:
        """Return the words, which are independent given the class; of multinomial counts their parts add up."""
        return list(map(str, labels["word"]))

    def information(self, params: Params, data: Arrays) -> dict[str, np.ndarray]:
        """Return the mutual information (...) of the class and each word, empty for negative binomial counts.

        For multinomial counts, the event is that a drawn word is this word; for Poisson counts, the variable is its
        count in a document of length 1.
        """
        shares, values = params["shares"], list[np.ndarray]()
        if self.counts == "multinomial":
            values = list(information_of_words(shares, params["theta"]))
        elif self.counts == "poisson":
            values = [information_of_rates(shares, rates) for rates in np.moveaxis(params["rates"], -1, 0)]
        return dict(zip(map(str, data["word"]), values, strict=True)) if values else {}

    def derived(self, params: Params) -> dict[str, np.ndarray]:
        """Return the rates of negative binomial counts, their means in a document of length 1, (..., K, V)."""
        if self.counts != "negative_binomial":
            return {}
        p = np.asarray(params["p"])
        with np.errstate(divide="ignore"):
            return {"rates": self.size * (1 - p) / p}

    def draw_counts(
        self, params: Params, classes: np.ndarray, length: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw the counts of words (n, V) in documents of known classes and lengths (n,)."""
        rows = params[PARAMETERS[self.counts]][classes]
        if self.counts == "multinomial":
            return rng.multinomial(length, rows)
        if self.counts == "poisson":
            return rng.poisson(length[:, None] * rows)
        return rng.negative_binomial(self.size * length[:, None], rows)
