"""A page in which a reader moves a prior and adds rows, by tables computed for each place of the sliders.

The page computes nothing: its script looks up the model's exact answer for each prior and number of rows.
Curves are stored to 1/255 of their peaks, numbers in full.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayeszoo.data.inputs.groups.kinds import GROUP
from bayeszoo.data.read import Data, example, read
from bayeszoo.distributions.posterior import Posterior
from bayeszoo.errors import InputError
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.foundation.process.writing import write_text
from bayeszoo.model.base import Model
from bayeszoo.model.fields import Hyperparameter, hyperparameters
from bayeszoo.report.explore import em
from bayeszoo.report.explore.answers import Answer, Answers, ByClosedForm, answers_of
from bayeszoo.report.explore.packing import base64_of, packed
from bayeszoo.report.provenance import notation
from bayeszoo.report.safe import assets, probe, script_safe, template

STEPS = {1: 33, 2: 13, 3: 7, 4: 5}
"""Places of each slider of the prior, by the number of fields."""
INTEGRATED_STEPS = 5
"""Places of each slider if answers are by quadrature, a tenth of a second each."""
FACTORS = {1: 0.25, 2: 1.0, 3: 1.0, 4: 2.0}
"""Powers of 2 from one place of a positive field to the next, by the number of fields."""
MOST_ROWS = {1: 20, 2: 20, 3: 14, 4: 9}
"""Rough number of places of the slider of rows, by the number of fields."""
MOST_PARAMETERS = 2
BINS = 120
MOST_CODE = 200
"""Most rows that the Python code of the page writes out."""
EXPLORED = (
    *("beta_bernoulli", "gamma_poisson", "gaussian_mean", "gaussian_precision", "normal_gamma", "normal_means"),
    "gaussian_mixture",
)
"""Models of the zoo that have a page."""


@dataclass(frozen=True)
class _Axis:
    """The slider of a field of the prior: its values, and the index of the model's value."""

    name: str
    label: str
    values: list[float]
    start: int


def explore(
    model: Model | type[Model],
    data: Any = None,
    path: str | Path = "explore.html",
    *,
    overwrite: bool = False,
    reporter: Reporter | None = None,
) -> Path:
    """Write a page in which sliders move the fields of the prior and add rows one by one.

    It shows prior, likelihood (of one parameter) and posterior densities, the next row, the evidence, MAP and MLE, and
    of a hierarchy its groups, partially pooled; all exact, with the code that gives the same numbers.

    Parameters
    ----------
    model : Model or class
        One with a closed form, of one or two parameters: `beta_bernoulli`, `gamma_poisson`, `gaussian_mean`,
        `gaussian_precision` or `normal_gamma`, or your own; or the hierarchy `normal_means`, by
        quadrature; or `gaussian_mixture` of one column, whose page steps through EM. A class stands for its weakly
        informative prior.
    data : Data or anything that `read` takes, optional
        The rows, in the order in which they are added; by default the model's first example.
    path : str or Path
        A name that ends in ``.html``.
    overwrite : bool
        Whether an existing file may be replaced.
    reporter : Reporter, optional
        Takes progress; silent by default.

    Returns
    -------
    Path
        Where it was written.

    Raises
    ------
    InputError
        When the model has no exact answer of one or two parameters, or the file cannot be written.

    Notes
    -----
    The page is one file: it fetches nothing, needs no server, and its security policy lets no script run but its own.
    """
    path = probe(Path(path), overwrite)
    rows = data if isinstance(data, Data) else example(model) if data is None else read(model, data)
    chosen = model.weak(rows) if isinstance(model, type) else model
    write_text(page(_require_sliders(chosen), rows, reporter or Reporter()), path, overwrite)
    return path


def _require_sliders(model: Model) -> Model:
    """Refuse a model without exact answers, or without fields that sliders move; mixtures have a page of their own."""
    if em.is_stepped(model):
        return model
    if answers_of(model) is None or not _moved(model):
        hint = f"take one of {', '.join(EXPLORED)}"
        raise InputError(f"{model.name} has no page with sliders", "no_closed_form", hint=hint)
    return model


def _moved(model: Model) -> dict[str, Hyperparameter]:
    """Return the fields that are one number each, up to four."""
    number_fields = {name: h for name, h in hyperparameters(model).items() if not (h.whole or h.matrix)}
    moved = {name: h for name, h in number_fields.items() if np.ndim(getattr(model, name)) == 0}
    return moved if len(moved) == len(number_fields) and len(moved) in STEPS else {}


def page(model: Model, rows: Data, reporter: Reporter) -> str:
    """Return the page as text."""
    if em.is_stepped(model):
        content, script = em.tables(model, rows), "explore_em.js"
    else:
        content, script = tables(model, rows, reporter), "explore.js"
    parts = {
        "title": f"Explore {model.name}",
        "notation": _shown(notation(type(model))),
        "content": script_safe(content),
    }
    return template("explore.html.j2").render(**parts, **assets("explore.css", "explore_common.js", script))


def _shown(text: str) -> str:
    """Return the title and the lines in ~ notation, without remarks and sources."""
    title, _, body = text.partition("\n")
    return "\n".join([title, "", *(line for line in body.split("\n") if line.startswith("    "))])


def tables(model: Model, rows: Data, reporter: Reporter | None = None) -> dict[str, Any]:
    """Return the content of the page, by places of the sliders; arrays are base64."""
    answers = answers_of(model)
    assert answers is not None
    counts = _row_counts(rows.rows, MOST_ROWS[len(_moved(model))])
    parts = [answers.part(model, rows, n) for n in counts]
    answered = [answers.answer(model, part) for part in parts]
    names = _scalars(model, answered[-1].posterior)
    edges = {
        name: _edges([answer.posterior[name] for answer in answered], answers.support(model, answered[-1], name))
        for name in names
    }
    axes = _axes(model, edges, answers)
    priors = _priors(model, axes)
    curves, numbers, groups = list[np.ndarray](), list[list[float]](), list[np.ndarray]()
    for i, prior in enumerate(priors):
        if reporter is not None:
            reporter.progress("priors", i, len(priors))
        for part in parts:
            answer = answers.answer(prior, part)
            curves += [np.diff(answer.posterior[name].cdf(ends)) / np.diff(ends) for name, ends in edges.items()]
            numbers.append(_numbers(answer, names))
            groups.append(answer.groups(rows.rows))
    heights, peaks = _packed(np.array(curves))
    content = {"model": model.name, "kind": answers.kind, "source": rows.source, "rows": rows.rows, "counts": counts}
    content |= {"fields": [vars(axis) for axis in axes], "names": names, "bins": BINS}
    content |= {"ends": [[float(edges[name][0]), float(edges[name][-1])] for name in names]}
    content |= {"mle": [answers.mle(model, part, names) for part in parts], "raw": answers.raw(model, rows)}
    if isinstance(answers, ByClosedForm) and len(names) == 1:
        content |= {"likelihood": _packed(answers.likelihoods(model, parts, edges[names[0]]))[0]}
    table = {name: np.asarray(column).tolist() for name, column in model.inputs.table(rows).items()}
    content |= {"table": table if rows.rows <= MOST_CODE else None}
    content |= {"heights": heights, "peaks": peaks, "numbers": base64_of(np.array(numbers, dtype="<f8"))}
    return content | {"groups": base64_of(np.array(groups, dtype="<f8")) if content["raw"] else None}


def _priors(model: Model, axes: Sequence[_Axis]) -> list[Model]:
    """Return the model at each place of the sliders, the last slider moving fastest."""
    places = itertools.product(*(axis.values for axis in axes))
    return [model.replaced(**dict(zip((axis.name for axis in axes), values, strict=True))) for values in places]


def _numbers(answer: Answer, names: Sequence[str]) -> list[float]:
    """Return the log evidence, the moments, interval and mode of each parameter, and those of the next row."""
    numbers = [answer.log_evidence]
    for name in names:
        marginal = answer.posterior[name]
        numbers += [float(marginal.mean()), float(marginal.std()), *_interval(marginal, 0.025, 0.975)]
        numbers.append(answer.mode(name))
    return numbers + answer.next_row


def _row_counts(rows: int, most: int) -> list[int]:
    """Return the numbers of rows on the slider: 0, 1, 2, ..., then with growing steps, and all."""
    singles = min(rows, most // 2)
    spaced = np.geomspace(singles, rows, most - singles).round().astype(int).tolist() if rows > singles else []
    return sorted({*range(singles + 1), *spaced, rows})


def _scalars(model: Model, posterior: Posterior) -> list[str]:
    """Return the names of the parameters with densities, which must be one or two numbers."""
    names = [name for name, marginal in posterior.items() if np.ndim(marginal.mean()) == 0]
    arrays = [name for name in posterior if name not in names and model.dims.get(name) != (GROUP,)]
    if arrays or len(names) > MOST_PARAMETERS:
        hint = "take a model of one or two numbers, such as beta_bernoulli or normal_gamma"
        raise InputError(f"{model.name} has {len(posterior)} parameters", "too_many_parameters", hint=hint)
    return names


def _edges(marginals: Sequence[Any], support: tuple[float, float]) -> np.ndarray:
    """Return the edges of bins that cover the posteriors of the later half of the numbers of rows, within a support."""
    late = marginals[max(len(marginals) // 2, min(1, len(marginals) - 1)) :]
    ends = np.array([_interval(marginal, 0.002, 0.998) for marginal in late])
    ends = ends[np.isfinite(ends).all(axis=1)]
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    margin = 0.4 * (high - low)
    return np.linspace(max(low - margin, support[0]), min(high + margin, support[1]), BINS + 1)


def _interval(marginal: Any, low: float, high: float) -> list[float]:
    """Return the quantiles at two probabilities."""
    return [float(marginal.ppf(low)), float(marginal.ppf(high))]


def _axes(model: Model, edges: dict[str, np.ndarray], answers: Answers) -> list[_Axis]:
    """Return the sliders of the fields: factors of a power of 2 if positive, else equal steps."""
    moved = _moved(model)
    steps, power = STEPS[len(moved)], FACTORS[len(moved)]
    if not isinstance(answers, ByClosedForm):
        steps = min(steps, INTEGRATED_STEPS)
    width = float(np.ptp(next(iter(edges.values()))))
    axes = []
    for name, declared in moved.items():
        value, middle = float(getattr(model, name)), steps // 2
        shifts = np.arange(steps) - middle
        moves = value * 2.0 ** (power * shifts) if declared.positive else value + width * shifts / (steps - 1)
        values = [value if shift == 0 else float(f"{move:.3g}") for shift, move in zip(shifts, moves, strict=True)]
        axes.append(_Axis(name, declared.label, values, middle))
    return axes


def _packed(curves: np.ndarray) -> tuple[str, str]:
    """Return curves relative to their peaks in bytes, and the peaks."""
    finite = np.where(np.isfinite(curves), curves, 0.0)
    peaks = finite.max(axis=1)
    return packed(finite / np.where(peaks > 0, peaks, 1.0)[:, None]), base64_of(peaks.astype("<f8"))
