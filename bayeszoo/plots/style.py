"""Pictures for a page: SVG in one style, with reproducible bytes, as data URIs."""

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
"""Colours of distinct items, in order."""
MAX_NAME, _TITLE = 40, 36
"""Most characters of a user's name in a line, and in a title of a panel."""
_INK, _PALE = "#30343b", "#c9ced6"
STYLE: dict[str, Any] = {
    "figure.constrained_layout.use": True,
    "figure.dpi": 100.0,
    "figure.facecolor": "white",  # ArviZ derives the colour of its text from it
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
    "svg.fonttype": "path",  # the same on every machine, and a user's text is no markup
    "svg.hashsalt": "bayeszoo",  # otherwise names of clips would change between runs
    "text.parse_math": False,  # a column may be called $x_1
    "text.usetex": False,
}
"""Settings of Matplotlib: no background, and ink for light and inverted pages."""


@contextmanager
def styled(background: str = "none") -> Iterator[None]:
    """Draw in the style of the report; a separate file needs a ``background``.

    A user's character that the font lacks, such as an emoji, becomes a box without a warning.
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
    """Return a figure made without pyplot and its panels, ``across`` in a row, each with a size in inches."""
    from matplotlib.figure import Figure

    across = min(count, across or count)
    down = -(-count // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, **options).ravel().tolist()
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]


def short(name: object, most: int = MAX_NAME) -> str:
    """Return a user's name as a line of at most ``most`` characters; longer names lose their middle."""
    text = "".join(c if c.isprintable() else " " for c in str(name))
    return text if len(text) <= most else f"{text[: most // 2]}…{text[(1 - most) // 2 :]}"


def wrapped(names: Iterable[object], width: int = MAX_NAME) -> tuple[list[str], int]:
    """Return a user's names in up to three lines of ``width`` characters each, and the largest number of lines."""
    texts = [textwrap.fill(short(name, 3 * width - 6), width) for name in names]
    return texts, max((text.count("\n") + 1 for text in texts), default=1)


def svg(make: Callable[[], Any]) -> bytes:
    """Return the `Figure` or `PlotCollection` that ``make`` draws as SVG without dates."""
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
"""Invisible decimals after the first, and blanks in paths, which are most of the bytes of a trace."""
_UNREAD = re.compile(rb'<!-- .*? -->|(?<=<g) id="[^"]*"|(?<=>)\s+(?=<)|(?<=[:;]) ', re.DOTALL)
"""Parts that are not displayed: comments, names of groups, indents."""


def _plain_powers(figure: Figure) -> None:
    """Write the ticks of logarithmic axes as plain numbers, as Matplotlib's formulas are not rendered here."""
    from matplotlib.ticker import FuncFormatter, LogFormatter

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))


def data_uri(make: Callable[[], object]) -> str:
    """Return what ``make`` draws as a data URI, an image address in a page without a file."""
    return f"data:image/svg+xml,{quote(svg(make), safe=' ),/:;=')}"
