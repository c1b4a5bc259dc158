"""The blocks of a section of the report. Everything is plain text here: the template escapes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bayeszoo.data.table.table import escaped
from bayeszoo.errors import InputError, NumericalError, Untrustworthy
from bayeszoo.plots.style import data_uri
from bayeszoo.report.text.numbers import number


class Block:
    """A part of a section, which the template shows by its ``kind``."""

    @property
    def kind(self) -> str:
        """The name of the class in lower case."""
        return type(self).__name__.removesuffix("Block").lower()


@dataclass(frozen=True)
class Words(Block):
    """A paragraph; ``tone`` is ``""``, ``"note"`` or ``"bad"``."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Code(Block):
    """Text to be read as it stands, or to be run."""

    text: str
    title: str = ""


@dataclass(frozen=True)
class Skipped(Block):
    """A part of the page that is left out, and why."""

    part: str
    reason: str


@dataclass(frozen=True)
class Picture(Block):
    """An image as a data URI, with alternative text."""

    source: str
    alt: str
    caption: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Folded(Block):
    """Blocks that a reader unfolds."""

    title: str
    blocks: Sequence[Any]


@dataclass(frozen=True)
class Choice(Block):
    """Alternatives: a reader chooses one, ``first`` to begin with; without scripts all are shown."""

    label: str
    options: Mapping[str, Sequence[Any]]
    first: str = ""


@dataclass(frozen=True)
class TableBlock(Block):
    """A table whose first column names the row; ``words`` are the other columns that hold text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    words: Sequence[str] = ()
    sortable: bool = True

    @property
    def text_columns(self) -> list[bool]:
        """Whether each column holds text rather than numbers."""
        return [i == 0 or name in self.words for i, name in enumerate(self.columns)]


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading."""

    anchor: str
    title: str
    blocks: Sequence[Any]


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", words: Sequence[str] = (), **options: Any
) -> TableBlock:
    """Return a table of text and numbers, formatted as on the terminal, without blank columns."""
    cells = [[escaped(cell) if isinstance(cell, str) else number(cell) for cell in row] for row in rows]
    shown = [i for i in range(len(columns)) if i == 0 or not cells or any(row[i] not in ("", "-") for row in cells)]
    rows = [[row[i] for i in shown] for row in cells]
    return TableBlock([columns[i] for i in shown], rows, caption, words, **options)


@contextmanager
def skipping[B: Block](part: str, into: list[B | Skipped]) -> Iterator[None]:
    """Leave out a part that a model, its data or its fit does not allow, and store the reason in ``into``."""
    try:
        yield
    except (InputError, NumericalError, Untrustworthy) as error:
        into.append(Skipped(part, str(error)))


def picture(make: Callable[[], object], alt: str, caption: str = "", wide: bool = False) -> Picture | Skipped:
    """Draw a picture, or return the reason why it cannot be drawn."""
    figures: list[Any] = []
    with skipping(alt, figures):
        figures.append(Picture(data_uri(make), alt, caption, wide))
    return figures[0]
