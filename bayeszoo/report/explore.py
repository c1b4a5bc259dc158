"""A page in which a reader moves a prior and adds rows: tables that Python has computed, for each place of the sliders.

No mathematics stands in the page: its script looks up what the model's closed form gave for each prior and number of
rows. Curves are stored to 1/255 of their peaks, numbers in full.
"""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayeszoo.data.read import Data, example, read
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.foundation.progress import Reporter
from bayeszoo.foundation.writing import require_writable, write_text
from bayeszoo.model.base import Arrays, Model
from bayeszoo.model.capabilities import PointEstimates, Predictive
from bayeszoo.model.fields import Hyperparameter, hyperparameters
from bayeszoo.report.provenance import notation
from bayeszoo.report.safe import allowed, script_safe

if TYPE_CHECKING:
    import jinja2

STEPS = {1: 33, 2: 13, 3: 7, 4: 5}
"""Places of each slider of the prior, by how many fields there are."""
FACTORS = {1: 0.25, 2: 1.0, 3: 1.0, 4: 2.0}
"""Powers of 2 from one place of a positive field to the next."""
MOST_ROWS = {1: 20, 2: 20, 3: 14, 4: 9}
"""Numbers of rows of the last slider, about, by how many fields there are."""
MOST_PARAMETERS = 2
BINS = 120
MOST_CODE = 200
"""Rows that the Python code of the page writes out."""
_PER_PARAMETER = ("mean", "sd", "q025", "q975", "map")
_PREDICTIVE = ("mean", "sd", "q025", "q975")


@dataclass(frozen=True)
class _Axis:
    """The places of one field of the prior, and which of them is the model's own."""

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
    """Write a page in which sliders move the fields of the prior, and rows are added one by one.

    It shows prior, likelihood (of one parameter) and posterior densities, the next row, the evidence, MAP and MLE, all
    exact, and the code that gives the same numbers.

    Parameters
    ----------
    model : Model or class
        One with a closed form, of one or two parameters: `beta_bernoulli`, `gamma_poisson`, `gaussian_mean`,
        `gaussian_precision` or `normal_gamma`, or your own. A class stands for its weakly informative prior.
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
        When the model has no closed form of one or two parameters, or the file cannot be written.

    Notes
    -----
    The page is one file: it fetches nothing, needs no server, and its security policy lets no script run but its own.
    """
    path = probe(Path(path), overwrite)
    rows = data if isinstance(data, Data) else example(model) if data is None else read(model, data)
    chosen = model.weak(rows) if isinstance(model, type) else model
    write_text(page(_explorable(chosen), rows, reporter or Reporter()), path, overwrite)
    return path


def probe(path: Path, overwrite: bool = False) -> Path:
    """Check that the page can be written, before any work is done."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"the page is HTML: {path.name!r} must end in .html", "wrong_suffix")
    require_writable(path, overwrite)
    return path


def _explorable(model: Model) -> Predictive[Any]:
    """Refuse a model without a closed form of few numbers."""
    if isinstance(model, Predictive) and isinstance(model, PointEstimates) and _moved(model):
        return cast(Predictive[Any], model)
    hint = "take beta_bernoulli, gamma_poisson, gaussian_mean, gaussian_precision or normal_gamma"
    raise InputError(f"{model.name} has no closed form with sliders", "no_closed_form", hint=hint)


def _moved(model: Model) -> dict[str, Hyperparameter]:
    """Return the fields that are one number each, up to four."""
    known = {name: h for name, h in hyperparameters(model).items() if not (h.whole or h.matrix)}
    moved = {name: h for name, h in known.items() if np.ndim(getattr(model, name)) == 0}
    return moved if len(moved) == len(known) and len(moved) in STEPS else {}


def page(model: Predictive[Any], rows: Data, reporter: Reporter) -> str:
    """Return the page as text."""
    content = tables(model, rows, reporter)
    parts = {
        "title": f"Explore {model.name}",
        "notation": _shown(notation(type(model))),
        "content": script_safe(content),
    }
    return _template().render(**parts, **_assets())


def _shown(text: str) -> str:
    """Return the title and the lines in ~ notation, without remarks and sources."""
    title, _, rest = text.partition("\n")
    return "\n".join([title, "", *(line for line in rest.split("\n") if line.startswith("    "))])


def tables(model: Predictive[Any], rows: Data, reporter: Reporter | None = None) -> dict[str, Any]:
    """Return all that the page shows, by places of the sliders; arrays are base64."""
    counts = _row_counts(rows.rows, MOST_ROWS[len(_moved(model))])
    parts = [model.inputs.reordered(rows, np.arange(n)) for n in counts]
    stats = [model.statistics(part) for part in parts]
    names = _scalars(model, stats[-1])
    edges = {name: _edges(model, stats, name) for name in names}
    axes = _axes(model, edges)
    places = list(itertools.product(*(axis.values for axis in axes)))
    curves, numbers = list[np.ndarray](), list[list[float]]()
    for i, values in enumerate(places):
        if reporter is not None:
            reporter.progress("priors", i, len(places))
        prior = model.replaced(**dict(zip((axis.name for axis in axes), values, strict=True)))
        for part, known in zip(parts, stats, strict=True):
            densities, own = _at(prior, known, part, edges)
            curves += densities
            numbers.append(own)
    heights, peaks = _packed(np.array(curves))
    about = {"model": model.name, "source": rows.source, "rows": rows.rows, "counts": counts}
    about |= {"fields": [vars(axis) for axis in axes], "names": names, "bins": BINS}
    about |= {"ends": [[float(edges[name][0]), float(edges[name][-1])] for name in names]}
    about |= {"mle": [_mle(model, known, names) for known in stats]}
    about |= {"likelihood": _packed(_likelihoods(model, stats, edges))[0]} if len(names) == 1 else {}
    table = {name: np.asarray(column).tolist() for name, column in model.inputs.table(rows).items()}
    about |= {"table": table if rows.rows <= MOST_CODE else None}
    return about | {"heights": heights, "peaks": peaks, "numbers": _base64(np.array(numbers, dtype="<f8"))}


def _row_counts(rows: int, most: int) -> list[int]:
    """Return the numbers of rows that are shown: each one at first, then ever more, and all."""
    few = min(rows, most // 2)
    more = np.geomspace(few, rows, most - few).round().astype(int).tolist() if rows > few else []
    return sorted({*range(few + 1), *more, rows})


def _scalars(model: Predictive[Any], stats: Any) -> list[str]:
    """Name the parameters, which must be one or two numbers."""
    marginals = model.posterior(stats)
    names = [name for name, marginal in marginals.items() if np.ndim(marginal.mean()) == 0]
    if len(names) < len(marginals) or len(names) > MOST_PARAMETERS:
        hint = "take a model of one or two numbers, such as beta_bernoulli or normal_gamma"
        raise InputError(f"{model.name} has {len(marginals)} parameters", "too_many_parameters", hint=hint)
    return names


def _edges(model: Predictive[Any], stats: Sequence[Any], name: str) -> np.ndarray:
    """Return the edges of the bins of a parameter: where the posteriors of half the numbers of rows and of all are."""
    some = stats[max(len(stats) // 2, min(1, len(stats) - 1)) :]
    ends = np.array([model.posterior(known)[name].ppf([0.002, 0.998]) for known in some])
    ends = ends[np.isfinite(ends).all(axis=1)]
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    support = [float(end) for end in model.posterior(stats[-1])[name].ppf([0.0, 1.0])]
    margin = 0.4 * (high - low)
    return np.linspace(max(low - margin, support[0]), min(high + margin, support[1]), BINS + 1)


def _axes(model: Predictive[Any], edges: dict[str, np.ndarray]) -> list[_Axis]:
    """Return the sliders of the fields: powers of 2 times a positive one, equal steps of one that may be negative."""
    moved = _moved(model)
    steps, power = STEPS[len(moved)], FACTORS[len(moved)]
    width = float(np.ptp(next(iter(edges.values()))))
    axes = []
    for name, declared in moved.items():
        own, middle = float(getattr(model, name)), steps // 2
        shifts = np.arange(steps) - middle
        moves = own * 2.0 ** (power * shifts) if declared.positive else own + width * shifts / (steps - 1)
        values = [own if shift == 0 else float(f"{value:.3g}") for shift, value in zip(shifts, moves, strict=True)]
        axes.append(_Axis(name, declared.label, values, middle))
    return axes


def _at(
    prior: Predictive[Any], stats: Any, part: Arrays, edges: dict[str, np.ndarray]
) -> tuple[list[np.ndarray], list[float]]:
    """Return the density of each parameter in bins, and the numbers, of one prior and number of rows."""
    posterior = prior.posterior(stats)
    densities, numbers = list[np.ndarray](), [float(prior.log_evidence(stats))]
    modes = _mode(prior, stats)
    for name, ends in edges.items():
        marginal = posterior[name]
        densities.append(np.diff(marginal.cdf(ends)) / np.diff(ends))
        low, high = marginal.ppf([0.025, 0.975])
        numbers += [float(marginal.mean()), float(marginal.std()), float(low), float(high), modes.get(name, math.nan)]
    return densities, numbers + _next_row(prior, stats, part)


def _likelihoods(model: Predictive[Any], stats: Sequence[Any], edges: dict[str, np.ndarray]) -> np.ndarray:
    """Return the likelihood of one parameter over its peak, in the middles of the bins: posterior over prior."""
    ((name, ends),) = edges.items()
    at = {name: (ends[:-1] + ends[1:]) / 2}
    prior = model.posterior(stats[0]).logpdf(at)
    logs = np.array([model.posterior(known).logpdf(at) - prior for known in stats])
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _mode(prior: Any, stats: Any) -> dict[str, float]:
    """Return the MAP estimate; nothing where there is none."""
    with suppress(NumericalError):
        return {name: float(value) for name, value in prior.map(stats).items()}
    return {}


def _mle(model: Any, stats: Any, names: Sequence[str]) -> list[float | None]:
    with suppress(NumericalError):
        estimates = model.mle(stats)
        return [float(estimates[name]) for name in names]
    return [None] * len(names)


def _next_row(prior: Predictive[Any], stats: Any, part: Arrays) -> list[float]:
    """Return mean, sd and 95% interval of the next row; NaN where one has further columns."""
    with suppress(InputError, NumericalError):
        law = prior.predictive(stats, prior.inputs.unseen(part, 1))
        return [float(np.ravel(value)[0]) for value in (law.mean(), law.std(), law.ppf(0.025), law.ppf(0.975))]
    return [math.nan] * len(_PREDICTIVE)


def _packed(curves: np.ndarray) -> tuple[str, str]:
    """Return curves as parts of 255 of their peaks, and the peaks."""
    finite = np.where(np.isfinite(curves), curves, 0.0)
    peaks = finite.max(axis=1)
    parts = np.round(255 * finite / np.where(peaks > 0, peaks, 1.0)[:, None]).astype(np.uint8)
    return _base64(parts), _base64(peaks.astype("<f8"))


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def unpacked(content: dict[str, Any]) -> Iterator[tuple[tuple[int, ...], int, dict[str, float]]]:
    """Yield the places of the sliders, the number of rows, and the numbers there, as the page's script reads them."""
    width = 1 + len(_PER_PARAMETER) * len(content["names"]) + len(_PREDICTIVE)
    numbers = np.frombuffer(base64.b64decode(content["numbers"]), "<f8").reshape(-1, len(content["counts"]), width)
    heads = ["log_evidence", *(f"{key}[{name}]" for name in content["names"] for key in _PER_PARAMETER)]
    heads += [f"next {key}" for key in _PREDICTIVE]
    places = itertools.product(*(range(len(field["values"])) for field in content["fields"]))
    for place, own in zip(places, numbers, strict=True):
        for count, row in zip(content["counts"], own, strict=True):
            yield place, count, dict(zip(heads, row.tolist(), strict=True))


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    import jinja2

    loader = jinja2.PackageLoader("bayeszoo.report", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template("explore.html.j2")


@lru_cache(maxsize=1)
def _assets() -> dict[str, Any]:
    """Return the style and the script, and the policy that allows them alone."""
    from markupsafe import Markup

    folder = resources.files("bayeszoo.report") / "templates"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("explore.css", "explore.js"))
    policy = f"default-src 'none'; style-src {allowed(style)}; script-src {allowed(script)}; base-uri 'none'"
    return {"style": Markup(style), "script": Markup(script), "policy": policy}
