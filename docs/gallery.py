"""What the site says of the zoo, made from the models themselves: no list here names one."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import bayeszoo as bz
from bayeszoo.cli.verbs.models import in_brief, in_full
from bayeszoo.contract import scorecard
from bayeszoo.model import find as zoo
from bayeszoo.model.views import View
from bayeszoo.results.summary import elements

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
CARD = ("What breaks", "How it looks", "What to do")
"""The three paragraphs of a failure card."""
SMALL = (4.6, 3.2)
"""Size of a thumbnail, in inches."""
SECTIONS = {
    "Data and models": ("data", "model", "families"),
    "Fits": ("fit", "foundation", "inference", "results"),
    "What a fit is asked": ("answers",),
    "Comparisons and checks": ("comparison", "contract"),
    "Answers without a fit": ("tools",),
    "Reports and pictures": ("report", "plots"),
    "Errors": ("errors",),
}
"""Sections of the Python reference, each with the folders of the library that it lists."""


def names() -> list[str]:
    """Return the names of the models of the zoo."""
    return zoo.builtin_names()


def families() -> dict[str, list[str]]:
    """Return the models by what they are for, as the table of the README has them."""
    rows = re.findall(r"^\| ([\w ,()]+) \| (`.*`) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    return {purpose: re.findall(r"`(\w+)`", own) for purpose, own in rows}


def linked(text: str) -> str:
    """Turn links of a page in the root of the repository into those of a page of the guide."""
    text = re.sub(r"\]\(models/(\w+)\.py\)", r"](../models/\1.md)", text)
    return text.replace("](CONTRACT.md)", "](contract.md)").replace("](docs/", "](../")


# Pictures


def fitted(name: str, method: str) -> Any:
    """Fit a model with its weak fields to its first real data set."""
    kind = bz.find(name)
    data = bz.example(kind)
    return bz.fit(kind.weak(data), data, method, seed=1)


def thumbnail(name: str, target: Path) -> None:
    """Draw what the model is for: states or levels over time, topics, factors, clusters, or a posterior."""
    figure = _figure(bz.find(name))
    figure.savefig(target, metadata={"Date": None})


def _figure(kind: Any) -> Any:
    if "state" in _axes(kind):
        return _small(bz.plot_states(fitted(kind.name, "map")))
    if "time" in _axes(kind):
        return _small(bz.plot_levels(fitted(kind.name, "map")))
    if View.FUNCTION in kind().views():
        return _small(bz.plot_function(fitted(kind.name, "map" if View.CLASSES in kind().views() else "mle")))
    if View.NODES in kind().views():
        return _small(bz.plot_nodes(fitted(kind.name, "map")))
    if "word" in _axes(kind):
        return bz.plot_topics(fitted(kind.name, "vb"), top=6, untrusted=True)  # which the picture says
    if "factor" in _axes(kind):
        return _small(bz.plot_biplot(fitted(kind.name, "map")))
    if "class" in _axes(kind) and "real" in _axes(kind):
        return _small(bz.plot_discriminants(fitted(kind.name, "exact")))
    if "component" in _axes(kind):
        return _clusters(kind)
    return _posterior(kind)


def _small(figure: Any) -> Any:
    """Make a figure small, so that its letters can be read on a card."""
    figure.set_size_inches(SMALL[0], 1.25 * SMALL[1])
    return figure


def _axes(kind: Any) -> set[str]:
    return {axis for axes in kind().dims.values() for axis in axes}


def _clusters(kind: Any) -> Any:
    data, assigned = bz.example(kind), bz.assign(fitted(kind.name, "map"))
    rows, columns = data["Y"], data["column"]
    figure = Figure(figsize=SMALL, layout="constrained")
    axes = figure.subplots()
    axes.scatter(rows[:, 0], rows[:, -1], c=assigned["p[1]"], cmap="coolwarm", s=22, edgecolors="0.3", linewidths=0.3)
    axes.set_xlabel(columns[0], parse_math=False)
    axes.set_ylabel(columns[-1], parse_math=False)
    return figure


def _posterior(kind: Any) -> Any:
    """Draw up to four scalars of the posterior, by independent draws where it has a closed form."""
    try:
        tree = fitted(kind.name, "exact" if "exact" in in_brief(kind)["methods"] else "nuts")
    except bz.NumericalError:  # it has one for other data
        tree = fitted(kind.name, "nuts")
    chosen = _scalars(tree)
    figure = Figure(figsize=SMALL, layout="constrained")
    rows = 1 + (len(chosen) > 2)
    panels = np.ravel(figure.subplots(rows, -(-len(chosen) // rows), squeeze=False))
    for panel, (label, draws) in zip(panels, chosen.items(), strict=False):
        panel.hist(draws, bins=40, density=True, color="#9dbbd8")
        panel.set_title(label, fontsize=11, parse_math=False)
        panel.set_yticks([])
        panel.locator_params(axis="x", nbins=3)
        panel.spines[["left", "right", "top"]].set_visible(False)
    for panel in panels[len(chosen) :]:
        panel.set_axis_off()
    return figure


def _scalars(tree: Any) -> dict[str, np.ndarray]:
    """Return draws of up to four scalars, of which no two are the same number as in a symmetric matrix they are."""
    found: dict[str, np.ndarray] = {}
    for variable in tree["posterior"].to_dataset().data_vars.values():
        values = variable.transpose("chain", "draw", ...).to_numpy()
        for index, label in elements(variable.transpose("chain", "draw", ...)):
            draws = values[(slice(None), slice(None), *index)].ravel()
            if len(found) < 4 and not any(np.array_equal(draws, other) for other in found.values()):
                found[label] = draws
    return found


def graph(name: str, target: Path) -> None:
    """Draw the graph of the textbook declaration."""
    from bayeszoo.plots.graph import model_svg

    kind = bz.find(name)
    target.write_bytes(model_svg(kind.weak(bz.example(kind)), bz.example(kind)))


PICTURES = {"thumbnail": thumbnail, "graph": graph}


# Pages


def notation(kind: Any) -> str:
    """Return the docstring of a model's file: its notation and sources."""
    return inspect.cleandoc(sys.modules[kind.__module__].__doc__ or "")


def sentence(kind: Any) -> str:
    """Return what a model is for."""
    return in_brief(kind)["about"]


def model_page(name: str, script: Path, printed: str, pictures: list[str]) -> str:
    """Write a model's page: notation, picture, fields, what it can do, its data, how it fails, and its scorecard."""
    kind, brief = bz.find(name), in_brief(bz.find(name))
    title, _, rest = notation(kind).partition("\n")
    parts = [f"# {name}", title, *[_formulas_or_prose(part) for part in rest.strip("\n").split("\n\n")]]
    if f"{name}_thumbnail.svg" in pictures:
        parts.append(picture(f"{name}_thumbnail.svg", f"{name} on its own data"))
    parts += ["## Fields", fields_table(kind), "## Data", f"A table with {kind.inputs.describe()}.", data_table(kind)]
    parts += ["## Methods", ", ".join(f"`{one}`" for one in brief["methods"]), command(name)]
    if f"{name}_graph.svg" in pictures:
        parts.append(picture(f"{name}_graph.svg", f"graph of {name}"))
    parts += [failure_card(script, printed), "## Scorecard", scorecard_table(name), "## Source"]
    parts.append(f":::{{dropdown}} models/{name}.py\n```{{literalinclude}} {name}.py\n:language: python\n```\n:::")
    return "\n\n".join(parts) + "\n"


def _formulas_or_prose(paragraph: str) -> str:
    """Return a paragraph of a model's docstring: what is indented are formulas."""
    return fence("text", inspect.cleandoc("\n" + paragraph)) if paragraph.startswith(" ") else paragraph


def fence(language: str, text: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def picture(file: str, alt: str) -> str:
    """Return an image of at most the text's width."""
    return f"```{{image}} {file}\n:alt: {alt}\n:class: picture\n```"


def table(header: list[str], rows: list[list[Any]]) -> str:
    """Return a table, with what would end a cell escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def fields_table(kind: Any) -> str:
    """Return the fields of a model with their meaning and default."""
    said, fields = meanings(kind), in_full(kind)["fields"]
    rows = [[f"`{one['field']}`", one["is"] or said.get(one["field"], ""), f"`{one['default']}`"] for one in fields]
    return table(["field", "is", "default"], rows)


def meanings(kind: Any) -> dict[str, str]:
    """Return what the docstrings of a model's class and of its bases say of their parameters."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        listed = inspect.cleandoc(one.__doc__ or "").partition("Parameters\n----------\n")[2]
        for fields, text in re.findall(r"^(\w[\w, ]*) : .*\n((?:    .*(?:\n|$))+)", listed, re.M):
            found |= dict.fromkeys(fields.split(", "), " ".join(text.split()))
    return found


def data_table(kind: Any) -> str:
    """Return the real data that come with a model."""
    return table(["example", "what", "source"], [[f"`{one.name}`", one.about, one.source] for one in kind.examples])


def command(name: str) -> str:
    """Return the commands to try."""
    return fence("console", f"$ bayeszoo show {name}\n$ bayeszoo compare {name} --seed 1\n$ bayeszoo check {name}")


def paragraphs(script: Path) -> tuple[str, dict[str, str], str]:
    """Return title, the three paragraphs and the code of a failure card's file."""
    _, text, code = script.read_text(encoding="utf-8").split('"""', 2)
    title, *rest = text.strip().split("\n\n")
    return title.strip().rstrip("."), dict(part.split(": ", 1) for part in rest), code.strip()


def failure_card(script: Path, printed: str) -> str:
    """Return how a model fails: what breaks, how it looks, what to do, and a twin that can be run."""
    if not script.exists():
        return ""
    title, said, code = paragraphs(script)
    body = "\n\n".join(f"**{head}.** {' '.join(said[head].split())}" for head in CARD)
    twin = [fence("python", code)] + ([fence("text", printed)] if printed else [])
    return "\n\n".join([f"## How it fails: {title[0].lower()}{title[1:]}", body, *twin])


def scorecard_table(name: str) -> str:
    """Return the stored scorecard of a model."""
    try:
        card = scorecard.load(name)
    except bz.InputError:
        return "None is stored: `make scorecards` makes it."
    rows = [
        [
            "ok" if one.passed else "**BAD**",
            one.name,
            "-" if one.value is None else f"{one.value:.3g}",
            f"{one.limit}",
        ]
        for one in card.checks
    ]
    used = ", ".join(f"{package} {version}" for package, version in card.versions.items())
    said = f"Checked on {card.date[:10]}, seed {card.seed}, with {used}."
    return f"{said}\n\n{table(['', 'check', 'figure', 'must be'], rows)}"


def models_page(folder: Path) -> str:
    """Write the gallery: a card for each model, with its picture and how many checks it passed."""
    parts = ["# Models", "Each is one file. The pictures are fits to the data that come with the model."]
    for purpose, own in families().items():
        cards = "\n".join(_card(bz.find(name), (folder / f"{name}_thumbnail.svg").exists()) for name in own)
        parts += [f"## {purpose[0].upper()}{purpose[1:]}", f"::::{{grid}} 1 2 2 3\n:gutter: 3\n\n{cards}\n::::"]
    toctree = "\n".join(names())
    return "\n\n".join([*parts, f"```{{toctree}}\n:hidden:\n\n{toctree}\n```\n"])


def _card(kind: Any, has_picture: bool) -> str:
    top = f":img-top: {kind.name}_thumbnail.svg\n" if has_picture else ""
    return (
        f":::{{grid-item-card}} {kind.name}\n:link: {kind.name}\n:link-type: doc\n{top}\n"
        f"{sentence(kind)}\n\n*{_passed(kind.name)}*\n:::\n"
    )


def _passed(name: str) -> str:
    try:
        checks = scorecard.load(name).checks
    except bz.InputError:
        return "no scorecard yet"
    return f"{sum(one.passed for one in checks)} of {len(checks)} checks passed"


def heading(script: Path) -> tuple[str, str]:
    """Return the title of a notebook and its first paragraph."""
    lines = [line.removeprefix("#").strip() for line in script.read_text(encoding="utf-8").splitlines()]
    first = lines.index("%% [markdown]")
    title = lines[first + 1].lstrip("# ")
    body = lines[first + 3 :]
    return title, " ".join(body[: body.index("")])


def notebooks_page() -> str:
    """Write the list of notebooks."""
    said = "Each asserts what it claims, so that running it is a test. NUTS takes 400 draws a chain."
    items = [f"[{title}]({script.stem}.ipynb)\n: {about}" for script in NOTEBOOKS for title, about in [heading(script)]]
    toctree = "\n".join(script.stem for script in NOTEBOOKS)
    return "\n\n".join(["# Notebooks", said, *items, f"```{{toctree}}\n:hidden:\n\n{toctree}\n```"]) + "\n"


def api_page() -> str:
    """Write the reference of every public name, in the order of the storeys."""
    parts = ["# Python reference", "Everything is imported from `bayeszoo`, usually `as bz`."]
    for title, folders in SECTIONS.items():
        members = [name for name in bz.__all__ if callable(getattr(bz, name)) and _folder(getattr(bz, name)) in folders]
        if "plots" in folders:
            members += [f"plots.{name}" for name, member in vars(bz.plots).items() if _draws(member)]
        kinds = ["autoclass" if inspect.isclass(getattr(bz, name, None)) else "autofunction" for name in members]
        directives = "\n\n".join(f".. {kind}:: bayeszoo.{name}" for kind, name in zip(kinds, members, strict=True))
        parts += [f"## {title}", f"```{{eval-rst}}\n{directives}\n```"]
    return "\n\n".join(parts) + "\n"


def _folder(member: Any) -> str:
    """Return the folder of the library that defines a public name."""
    return str(member.__module__).split(".")[1]


def _draws(one: Any) -> bool:
    """Say whether it is a function of ours that draws a picture, as its docstring says."""
    return inspect.isfunction(one) and (inspect.getdoc(one) or "").startswith("Draw ") and one.__name__[0] != "_"
