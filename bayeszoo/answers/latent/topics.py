"""Topics of a fit: their words, their shares in documents, and scores of documents that the fit has not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import lazy_loader
import numpy as np

from bayeszoo.answers.columns import error_of_mean, not_updated
from bayeszoo.answers.quantiles import Quantiles
from bayeszoo.data.inputs import Corpus
from bayeszoo.data.read import Data, read
from bayeszoo.distributions.posterior import QUANTILES
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.families.documents.scores import DocumentScores, coherence, document_completion, left_to_right
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.named import Options
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.model.base import Model
from bayeszoo.model.draws import shape_of
from bayeszoo.model.views import View
from bayeszoo.results.caveats import failures_of, next_step
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import components_withheld

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
else:
    pd = lazy_loader.load("pandas")

TOPICS, PROPORTIONS = "topics", "proportions"
"""Parameter names of topic models: word probabilities of topics, and topic shares of documents."""
MOST_DRAWS = 400
"""Largest number of draws of the topics used for new documents."""
HOW: dict[str, Callable[..., DocumentScores]] = {"completion": document_completion, "left-to-right": left_to_right}
SCORED_DRAWS = {"completion": 400, "left-to-right": 20}
"""Draws of the topics that scores are averaged over: left to right takes seconds per draw."""


def has_proportions(model: Model) -> bool:
    """Return whether each document has its own topic proportions; new documents then need inference too."""
    return View.TOPICS in model.views()


def topics(tree: xr.DataTree, top: int = 10, *, untrusted: bool = False) -> pd.DataFrame:
    """List the most probable words of each topic.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a model with ``topics``: `lda` or `multinomial_mixture`.
    top : int
        Number of words per topic; all words where the vocabulary has fewer.
    untrusted : bool
        Whether to list topics of a fit whose estimates are withheld: one solution of perhaps many, as the gate says.

    Returns
    -------
    pandas.DataFrame
        Index ``topic`` and ``rank``; ``word``; its probability in the topic: ``mean``, ``sd``, ``q025``, ``median``,
        ``q975`` and their Monte Carlo errors (a point estimate has the mean alone). ``attrs["shares"]`` is the mean
        share of each topic in a document, ``attrs["mcse_shares"]`` its error, ``attrs["stability"]`` how far a
        sampler's draws agree about what the topic is, ``attrs["coherence"]`` the normalized pointwise mutual
        information of its words in the documents of the fit, if their rows were kept, and ``attrs["caveat"]`` why the
        estimates are withheld or to be read with caution.

    Raises
    ------
    Untrustworthy
        Without ``untrusted``, when the fit failed its gate, or its draws do not agree what the topics are.
    InputError
        When the model has no topics.
    """
    fit = Fit(tree)
    caveat, variable = _caveat(fit, untrusted), _variable(fit, TOPICS)
    words, labels = (variable[dim].to_numpy() for dim in reversed(variable.dims[2:]))
    if top < 1:
        raise InputError(f"the number of words of each topic must be >= 1, got {top}", "out_of_range")
    top = min(top, len(words))
    draws, mean = variable.to_numpy(), variable.to_numpy().mean(axis=(0, 1))
    best = np.argsort(-mean, axis=1, kind="stable")[:, :top]
    moments = _moments(np.take_along_axis(draws, best[None, None], axis=3), fit.kind)
    index = pd.MultiIndex.from_product([labels, range(1, top + 1)], names=["topic", "rank"])
    columns = {"word": words[best].ravel(), **{name: values.ravel() for name, values in moments.items()}}
    frame = pd.DataFrame(columns, index=index)
    shares = _variable(fit, PROPORTIONS).to_numpy().mean(axis=2) if PROPORTIONS in fit.tree["posterior"] else None
    is_point = fit.kind == "point estimate"
    has_documents = isinstance(fit.model.inputs, Corpus) and isinstance(fit.observed, Data) and top >= 2
    frame.attrs |= {
        "shares": None if shares is None else shares.mean(axis=(0, 1)).tolist(),  # documents have equal weights
        "mcse_shares": None if shares is None or is_point else error_of_mean(shares, fit.kind).tolist(),
        "stability": fit.facts.get("label_stability"),
        "coherence": coherence(mean, fit.data, top).tolist() if has_documents else None,
        **caveat,
    }
    return frame


def proportions(
    tree: xr.DataTree,
    new_data: object = None,
    *,
    untrusted: bool = False,
    seed: int | np.random.Generator = 0,
    **options: Any,
) -> pd.DataFrame:
    """List the share of each topic in each document.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a model with ``proportions``, such as `lda`.
    new_data : Data or anything that `read` takes, optional
        Other documents; by default those of the fit. Words that the fit does not know are left out, and a note says how
        many.
    untrusted : bool
        As in `topics`.
    seed : int or numpy.random.Generator
        Seed of the draws for new documents.
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        Index ``document`` and ``topic``; ``mean``, ``sd``, ``q025``, ``median``, ``q975`` and ``mcse_mean`` of the
        share. ``attrs["caveat"]`` as in `topics`, ``attrs["notes"]`` the notes of reading; ``attrs["remarks"]`` says
        that other documents do not update the topics.

    Raises
    ------
    Untrustworthy, InputError
        As `topics`.
    """
    fit = Fit(tree)
    caveat = _caveat(fit, untrusted)
    variable, notes = _variable(fit, PROPORTIONS), list[str]()
    draws, documents = variable.to_numpy(), variable[variable.dims[2]].to_numpy()
    if new_data is not None:
        model, data = _new_documents(fit, new_data, options)
        rng = stream_of_fit(tree.attrs, seed, "fold in", data.digest)
        draws = np.asarray(model.own_parameters(_some_draws(fit, MOST_DRAWS), data, rng)[PROPORTIONS])
        if not np.isfinite(draws).all():
            raise NumericalError(f"{model.name}.own_parameters gives numbers that are not finite", "not_finite")
        documents, notes = data["document"], list(data.notes)
    moments = _moments(draws, tree.attrs["kind"] if new_data is None else "approximate")
    index = pd.MultiIndex.from_product(
        [documents, variable[variable.dims[3]].to_numpy()], names=[str(dim) for dim in variable.dims[2:]]
    )
    frame = pd.DataFrame({name: values.ravel() for name, values in moments.items()}, index=index)
    frame.attrs |= {"notes": notes, **caveat}
    return frame if new_data is None else not_updated(frame, fit.kind)


def document_scores(
    tree: xr.DataTree,
    new_data: object,
    *,
    how: Literal["completion", "left-to-right"] = "completion",
    seed: int = 0,
    **options: object,
) -> pd.DataFrame:
    """Score documents that a fit has not seen; perplexity comes from here, and never from an ELBO.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned for a topic model such as `lda`. It may have failed its gate: the score judges its draws as
        they are.
    new_data : Data or anything that `read` takes
        Documents. Words that the fit does not know are left out, and a note says how many.
    how : {"completion", "left-to-right"}
        Score half of each document's words given the other half; or all words of a document.
    seed : int
    **options
        Options of `read`.

    Returns
    -------
    pandas.DataFrame
        Index ``document``; ``words``, how many are scored; ``log_score``, the log of their probability in nats, and
        ``mcse``, its Monte Carlo error (both NaN if too few draws carry the mean); ``withheld``, the reason for NaN,
        else "". In ``attrs``: ``log_score``, the mean per word (NaN if any document is withheld), its ``mcse``,
        ``perplexity``, exp(-log_score), ``mcse_perplexity``, and ``notes``. From left to right there is also ``bound``,
        the mean over draws of the log probability, a lower bound of the score (Jensen) with a small error, and
        ``perplexity_bound``.

    Raises
    ------
    InputError
        When the model is no topic model, or no word of the documents is known to the fit.

    Notes
    -----
    Document completion and left-to-right estimation: Wallach, Murray, Salakhutdinov and Mimno 2009.
    """
    fit = Fit(tree)
    if how not in HOW:
        raise InputError(f"how must be {' or '.join(map(repr, HOW))}, got {how!r}", "wrong_type")
    model, data = _new_documents(fit, new_data, options)
    topics = _some_draws(fit, SCORED_DRAWS[how])[TOPICS]
    rng = stream_of_fit(tree.attrs, seed, how, data.digest)
    scores = HOW[how](data, topics, model.entries("alpha", topics.shape[2]), rng)
    if not (size := float(scores.words.sum())):
        raise InputError("the documents have no words to be scored", "no_data", hint="give longer ones")
    columns = {"words": scores.words, "log_score": scores.log_p, "mcse": scores.mcse, "withheld": scores.withheld}
    frame = pd.DataFrame(columns, index=pd.Index(data["document"], name="document"))
    mean_per_word, mcse = float(scores.log_p.sum()) / size, scores.mcse_total / size
    perplexity = float(np.exp(-mean_per_word))
    frame.attrs |= {"log_score": mean_per_word, "mcse": mcse, "perplexity": perplexity}
    frame.attrs |= {"mcse_perplexity": perplexity * mcse, "notes": list(data.notes)}
    if scores.bound is not None:
        frame["bound"] = scores.bound
        frame.attrs["perplexity_bound"] = float(np.exp(-scores.bound.sum() / size))
    return frame


def _caveat(fit: Fit, untrusted: bool) -> dict[str, str]:
    """Return the caveat of the estimates, if any; raise `Untrustworthy` if they are withheld, unless ``untrusted``."""
    is_shown, components, lines = fit.is_shown, components_withheld(fit), failures_of(fit)
    if is_shown:
        lines = [f"topics are withheld: {components}"] if components else lines[1:]
    if not untrusted and (components or not is_shown):
        hint = "untrusted=True (--untrusted) shows them as one solution"
        raise Untrustworthy("; ".join(filter(None, (*lines, next_step(fit), hint))), "withheld")
    return {"caveat": "; ".join(lines)} if lines else {}


def _variable(fit: Fit, name: str) -> xr.DataArray:
    posterior = fit.tree["posterior"].to_dataset()
    if name not in posterior or posterior[name].ndim != 4:
        raise InputError(f"{fit.tree.attrs['model']} has no {name}", "no_capability", hint="fit lda")
    return posterior[name].transpose("chain", "draw", ...)


def _moments(draws: np.ndarray, kind: str) -> dict[str, np.ndarray]:
    """Return moments and quantiles over draws (chain, draw, ...), with their Monte Carlo errors."""
    mean = draws.mean(axis=(0, 1))
    if kind == "point estimate" or draws.shape[1] < 4:
        names = ("sd", *QUANTILES, "mcse_mean", *(f"mcse_{name}" for name in QUANTILES))
        return {"mean": mean, **dict.fromkeys(names, np.full(mean.shape, np.nan))}
    quantiles = Quantiles.of_draws(draws)
    columns = {"mean": mean, "sd": draws.std(axis=(0, 1), ddof=1), **quantiles.values}
    return {**columns, "mcse_mean": diagnostics.mcse(draws), **quantiles.columns()}


def _new_documents(fit: Fit, new_data: object, options: Options) -> tuple[Model, Data]:
    """Return the topic model, and new documents read with the vocabulary of its fit."""
    model = fit.model
    if not has_proportions(model):
        problem = f"{model.name} cannot infer the topics of other documents"
        raise InputError(problem, "no_topic_inference", hint="fit lda")
    return model, read(model, new_data, new=True, like=fit.like, **options)


def _some_draws(fit: Fit, most: int) -> dict[str, np.ndarray]:
    """Return at most ``most`` draws, evenly spaced in each chain: arrays of shape (chain, draw, ...)."""
    draws = fit.draws()
    chains, size = shape_of(draws)
    indices = np.unique(np.linspace(0, size - 1, max(1, min(size, most // chains))).round().astype(int))
    return {name: values[:, indices] for name, values in draws.items()}
