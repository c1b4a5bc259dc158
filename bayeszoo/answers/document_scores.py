"""How well a fit of a topic model foresees documents that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from bayeszoo.answers.topics import TOPICS, new_documents, some_draws
from bayeszoo.errors import InputError
from bayeszoo.families.documents.scores import DocumentScores, document_completion, left_to_right
from bayeszoo.foundation.streams import stream_of_fit
from bayeszoo.results.stored import Fit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

HOW: dict[str, Callable[..., DocumentScores]] = {"completion": document_completion, "left-to-right": left_to_right}
MOST_DRAWS = {"completion": 400, "left-to-right": 20}
"""Draws of the topics that are averaged over: left to right takes seconds for each of them."""


def document_scores(
    tree: xr.DataTree,
    new_data: Any,
    *,
    how: Literal["completion", "left-to-right"] = "completion",
    seed: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """Score documents that a fit has not seen; perplexity comes from here, and never from an ELBO.

    Parameters
    ----------
    tree : xarray.DataTree
        What `fit` returned, of a topic model such as `lda`. It may have failed its gate: the score judges its draws as
        they are.
    new_data : Data or anything that `read` takes
        Documents. Words that the fit does not know are left out, and a note says how many.
    how : {"completion", "left-to-right"}
        One half of each document's words given the other half; or all words of it.
    seed : int
    **options
        Of `read`.

    Returns
    -------
    pandas.DataFrame
        Index ``document``; ``words``, how many are scored; ``log_score``, the log of their probability in nats, and
        ``mcse``, its Monte Carlo error (both NaN where too few draws carry the mean). In ``attrs``: ``log_score``, the
        mean of a word, its ``mcse``, ``perplexity``, exp(-log_score), ``mcse_perplexity``, and ``notes``. From left to
        right there is also ``bound``, the mean over draws of the log probability, which the score is at least (Jensen)
        and whose error is small, and ``perplexity_bound``.

    Raises
    ------
    InputError
        When the model is no topic model, or no word of the documents is known to the fit.

    Notes
    -----
    See `topic_scores.document_completion` and `topic_scores.left_to_right` (Wallach, Murray, Salakhutdinov and Mimno
    2009).
    """
    import pandas as pd

    if how not in HOW:
        raise InputError(f"how must be {' or '.join(map(repr, HOW))}, got {how!r}")
    data, model = new_documents(tree, new_data, options), Fit(tree).model
    topics = some_draws(tree, MOST_DRAWS[how])[TOPICS]
    rng = stream_of_fit(tree.attrs, seed, how, data.digest)
    found = HOW[how](data, topics, model.entries("alpha", topics.shape[2]), rng)
    columns = {"words": found.words, "log_score": found.log_p, "mcse": found.mcse}
    frame = pd.DataFrame(columns, index=pd.Index(data["document"], name="document"))
    whole = {"log_score": found.mean, "mcse": found.mcse_mean, "perplexity": found.perplexity}
    frame.attrs |= {**whole, "mcse_perplexity": found.mcse_perplexity, "notes": list(data.notes)}
    if found.bound is not None:
        frame["bound"] = found.bound
        frame.attrs["perplexity_bound"] = found.perplexity_bound
    return frame
