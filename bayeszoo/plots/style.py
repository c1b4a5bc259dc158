"""Pictures for a page: SVG in one style, the same bytes each time, as data URIs."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ["#1f5a92", "#d9822b", "#5b9a3c", "#7a5ea8", "#c0392b", "#2a8f8a", "#8a6d3b", "#5d636d"]
"""Colours of things to be told apart, in order."""
MAX_NAME, _TITLE = 40, 36
"""Characters of a user's name in a line, and in one above a panel."""
_INK, _PALE = "#30343b", "#c9ced6"
STYLE: dict[str, Any] = {
    "figure.constrained_layout.use": True,
    "figure.dpi": 100.0,
    "figure.facecolor": "white",  # from which ArviZ takes the colour of its text
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": "#8a8f98",
    "axes.labelcolor": _INK,
    "axes.labelsize": 9.0,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.0,
    "axes.titleweight": "normal",
    "axes.axisbelow": True,
    "font.size": 9.0,
    "figure.titlesize": 10.0,
    "grid.color": _PALE,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.solid_capstyle": "round",
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "text.color": _INK,
    "xtick.color": "#5d636d",
    "ytick.color": "#5d636d",
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "svg.fonttype": "path",  # the same on every machine, and no text of a user's is markup
    "svg.hashsalt": "bayeszoo",  # else the names of clips differ from run to run
    "text.parse_math": False,  # a column may be called $x_1
    "text.usetex": False,
}
"""Settings of Matplotlib: no background, ink for both a light and an inverted page."""


@contextmanager
def styled(background: str = "none") -> Iterator[None]:
    """Draw in the style of the report; a file that is looked at by itself needs a ``background``.

    A character of a user's that the font does not have, such as an emoji, is a box, and no matter for a warning.
    """
    import matplotlib

    settings: Any = {
        **STYLE,
        "savefig.facecolor": background,
        "axes.prop_cycle": matplotlib.rcsetup.cycler(color=COLOURS),
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"(?s).*Glyph .* missing from")
        yield


def panels(
    count: int, width: float, height: float, across: int | None = None, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure made without pyplot and its panels, ``across`` in a row, each of a size in inches."""
    from matplotlib.figure import Figure

    across = min(count, across or count)
    down = -(-count // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    every = figure.subplots(down, across, squeeze=False, **options).ravel().tolist()
    for spare in every[count:]:
        spare.set_axis_off()
    return figure, every[:count]


def short(name: object, most: int = MAX_NAME) -> str:
    """Return a user's name as a line of at most N characters; longer names lose their middle."""
    text = "".join(c if c.isprintable() else " " for c in str(name))
    return text if len(text) <= most else f"{text[: most // 2]}…{text[(1 - most) // 2 :]}"


def wrapped(names: Iterable[object], width: int = MAX_NAME) -> tuple[list[str], int]:
    """Return names of a user's in up to three lines of ``width`` characters each, and how many the longest takes."""
    texts = [textwrap.fill(short(name, 3 * width - 6), width) for name in names]
    return texts, max((text.count("\n") + 1 for text in texts), default=1)


def svg(make: Callable[[], Any]) -> bytes:
    """Return what ``make`` draws, a `Figure` or a `PlotCollection`, as SVG without dates."""
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    with styled():
        try:
            drawn = make()
            figure = drawn.viz["figure"].item() if hasattr(drawn, "viz") else drawn
            _plain_powers(figure)
            for axes in figure.axes:
                axes.title.set_text(wrapped([axes.get_title()], _TITLE)[0][0])
            buffer, about = io.BytesIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(buffer, format="svg", metadata=about, bbox_inches="tight", pad_inches=0.04)
        finally:
            for number in set(plt.get_fignums()) - set(before):
                plt.close(number)
    return _PATH.sub(lambda path: _EXCESS.sub(b"", path.group()), _UNREAD.sub(b"", buffer.getvalue()))


_PATH, _EXCESS = re.compile(rb' [dxy]="[^"]*"'), re.compile(rb"(?<=\.\d)\d+| ?\n|(?<=[MLQC]) ")
"""Coordinates have six decimals of a point, and one is all that can be seen; lines need no blanks: most of a trace."""
_UNREAD = re.compile(rb'<!-- .*? -->|(?<=<g) id="[^"]*"|(?<=>)\s+(?=<)|(?<=[:;]) ', re.DOTALL)
"""What a picture does not need: its words in comments, names of groups, indents."""


def _plain_powers(figure: Figure) -> None:
    """Write the ticks of logarithmic axes as plain numbers: Matplotlib writes formulas, which are not read here."""
    from matplotlib.ticker import FuncFormatter, LogFormatter

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))


def data_uri(make: Callable[[], object]) -> str:
    """Return what ``make`` draws as the address of an image that needs no file, and may stand in a page."""
    return f"data:image/svg+xml,{quote(svg(make), safe=' ),/:;=')}"
