"""Models of words compared by words held out, on one corpus and one split.

Some words of each document are held out at random, and each model is fitted to the other words. The score is the log
predictive probability of each word held out, averaged over the posterior; it is never an ELBO. Draws are scored even if
their chains disagree: they are a predictive distribution in any case.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayeszoo.answers.latent.topics import TOPICS
from bayeszoo.data.inputs import Categories, Corpus, Documents
from bayeszoo.data.read import Data, example, read
from bayeszoo.data.without_model import TableOf
from bayeszoo.errors import InputError
from bayeszoo.families.documents.scores import split_words
from bayeszoo.fit import check_method, fit, methods_for, uninterrupted
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.named import Document, Options
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.model.base import Model, require_instance
from bayeszoo.model.capabilities import Latent
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd

SHARE = 0.2
PREFERRED = ("exact", "gibbs", "vb", "nuts")
"""Default methods; a model uses the first that it has."""
_CELLS = 2**22
"""Largest number of draws times words that are scored at once."""
CORPUS = TableOf(Corpus())
"""The corpus that several models of words read."""


class WordScore(NamedTuple):
    """The log predictive probability of words held out.

    ``by_document`` (documents,) has the sum over each document's words, in nats, and ``words`` (documents,) their
    number; ``mcse`` is the Monte Carlo error of the sum over all documents, 0 for an exact fit.
    """

    by_document: np.ndarray
    words: np.ndarray
    mcse: float

    @property
    def mean(self) -> float:
        """The mean log predictive probability of a word, in nats."""
        return math.fsum(self.by_document) / float(self.words.sum())


def held_out(
    models: Sequence[Model],
    data: object = None,
    *,
    share: float = SHARE,
    methods: Sequence[str] | None = None,
    seed: int = 0,
    reporter: Reporter | None = None,
    **options: object,
) -> pd.DataFrame:
    """Compare models of words by words held out from each document.

    Parameters
    ----------
    models : sequence of Model
        For example ``dirichlet_multinomial`` (all words from one distribution), ``multinomial_mixture`` (each document
        from one topic) and ``lda`` (each document a mixture of topics).
    data : Data or anything that `read` takes, optional
        A corpus; by default that of the first model with a corpus.
    share : float
        Share of the words of each document to hold out, between 0 and 1; a document with one word keeps it.
    methods : sequence of str, optional
        One for each model; by default the first of exact, gibbs, vb and nuts that the model has.
    seed : int
        Seed of the split and of the fits.
    reporter : Reporter, optional
        Takes progress.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        One row a model, the best first: ``log_score``, the mean log predictive probability of a word held out, in nats;
        ``mcse``, its Monte Carlo error; ``difference`` to the best and ``difference_se``, its standard error over
        documents; ``perplexity``, exp(-log_score); ``words``, the number held out; ``method``, ``kind``, ``status``
        and ``seconds`` of the fit. ``attrs["notes"]`` has the notes of reading.

    Raises
    ------
    InputError
        When a model is not one of words, or the corpus has no words to hold out.

    Notes
    -----
    Each word is scored given the words of the same document that were not held out (document completion; Wallace,
    Murray, Salakhutdinov and Mimno 2009, section 5). A method that ends in one of several modes is scored by that mode,
    and its status says so.
    """
    import pandas as pd

    chosen = _methods(models, methods)
    corpus = _corpus(models, data, options)
    seen, kept_back = split_words(corpus, share, np.random.default_rng(seed))
    if not len(kept_back["counts"]):
        raise InputError("no word is held out", "no_data", hint="give longer documents, or a larger share")
    rows, scores = [], []
    for model, method in zip(models, chosen, strict=True):
        (reporter or Reporter()).say(f"{model}: {method}")
        words = as_data_of(model, seen)
        fitted = uninterrupted(fit(model, words, method, seed=seed, reporter=reporter, groups=()))
        scores.append(word_score(fitted, kept_back))
        rows.append({"model": str(model), **_about(fitted, scores[-1])})
    best = max(scores, key=lambda score: score.mean)
    table = pd.DataFrame([row | _difference(score, best) for row, score in zip(rows, scores, strict=True)])
    table = table.sort_values("log_score", ascending=False, ignore_index=True)
    table.attrs["notes"] = list(corpus.notes)
    return table


def as_data_of(model: Model, corpus: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a corpus as the canonical arrays of a model of words; refuse other models."""
    inputs, words = model.inputs, corpus["word"]
    if isinstance(inputs, Corpus):
        return dict(corpus)
    if isinstance(inputs, Documents):
        counts = np.zeros((len(corpus["document"]), len(words)), dtype=np.int64)
        counts[corpus["doc"], corpus["term"]] = corpus["counts"]
        return {inputs.name: counts, inputs.axis: words}
    if isinstance(inputs, Categories):
        total = np.bincount(corpus["term"], corpus["counts"], minlength=len(words)).astype(np.int64)
        return {"counts": total[None], inputs.axis: words}
    hint = "take dirichlet_multinomial, multinomial_mixture or lda"
    raise InputError(f"{model.name} is not a model of words", "no_words", hint=hint)


def word_score(fit: Fit, held_out: Mapping[str, np.ndarray]) -> WordScore:
    """Score words held out: arrays of `Corpus` with the documents and the vocabulary of the fit."""
    weights, topics = _factors(fit, len(held_out["document"]))
    chains, draws = topics.shape[:2]
    log_p, weight_of_draw = np.empty(len(held_out["counts"])), np.zeros((chains, draws))
    step = max(1, _CELLS // (chains * draws))
    for block in (slice(first, first + step) for first in range(0, len(log_p), step)):
        p = np.zeros((chains, draws, len(log_p[block])))
        for k in range(topics.shape[2]):
            p += weights[:, :, held_out["doc"][block], k] * topics[:, :, k, held_out["term"][block]]
        mean = p.mean(axis=(0, 1))
        with np.errstate(divide="ignore"):
            log_p[block] = np.log(mean)
        weight_of_draw += p @ np.divide(held_out["counts"][block], mean, out=np.zeros(len(mean)), where=mean > 0)
    by_document = np.bincount(held_out["doc"], held_out["counts"] * log_p, minlength=len(held_out["document"]))
    words = np.bincount(held_out["doc"], held_out["counts"], minlength=len(held_out["document"]))
    mcse = 0.0 if weight_of_draw.size == 1 else float(diagnostics.mcse(weight_of_draw))
    return WordScore(by_document, words, mcse)


def _factors(fit: Fit, documents: int) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of the topic shares of documents (..., documents, K) and word shares of topics (..., K, words).

    A document of one topic has the probabilities of its topic as shares. If all words share one distribution, that is
    the only topic; the score of an exact fit needs only its expectation.
    """
    model, draws = fit.model, fit.draws()
    if TOPICS in draws and isinstance(model, Latent):
        return np.asarray(model.component_probabilities(draws, fit.data)), draws[TOPICS]
    ((name, values),) = draws.items()
    if fit.kind == "exact":
        values = fit.tree["exact"][name].sel(statistic="mean").to_numpy()[None, None]
    return np.ones((*values.shape[:2], documents, 1)), values[:, :, None]


def _methods(models: Sequence[Model], methods: Sequence[str] | None) -> list[str]:
    for model in [models] if isinstance(models, type) else models:
        require_instance(model)
    if not models:
        raise InputError("there are no models to compare", "no_data")
    if methods is None:
        return [next(name for name in PREFERRED if name in methods_for(type(model))) for model in models]
    if len(methods) != len(models):
        raise InputError(f"{len(methods)} methods for {len(models)} models", "not_comparable", hint="give one for each")
    for model, method in zip(models, methods, strict=True):
        check_method(type(model), method)
    return list(methods)


def _corpus(models: Sequence[Model], data: Any, options: Options) -> Data:
    if data is not None:
        return read(CORPUS, data, **options)
    with_corpus = next((model for model in models if isinstance(model.inputs, Corpus) and model.examples), None)
    if with_corpus is None:
        raise InputError("none of the models comes with a corpus", "no_example", hint="give the data")
    return example(with_corpus)


def _about(fit: Fit, score: WordScore) -> Document:
    words = int(score.words.sum())
    of_fit = {name: fit.tree.attrs[name] for name in ("method", "kind", "status")}
    scored = {"log_score": score.mean, "mcse": score.mcse / words, "perplexity": math.exp(-score.mean), "words": words}
    return {**scored, **of_fit, "seconds": sum(fit.seconds.values())}


def _difference(score: WordScore, best: WordScore) -> dict[str, float]:
    """Return the difference of mean scores, and its standard error over documents by linearizing the ratio of sums."""
    gap, words = score.by_document - best.by_document, score.words
    mean, count = float(gap.sum() / words.sum()), int(np.sum(words > 0))
    if score is best or count < 2:
        return {"difference": mean, "difference_se": math.nan}
    spread = float(np.sum((gap - mean * words) ** 2)) * count / (count - 1)
    return {"difference": mean, "difference_se": math.sqrt(spread) / float(words.sum())}
