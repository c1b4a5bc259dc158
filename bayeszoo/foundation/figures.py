"""Writing figures: checked before any work is done, and then whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.errors import InputError
from bayeszoo.results.files import require_writable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")


def probe(path: Path, overwrite: bool = False) -> Path:
    """Check that a figure can be written, before any work is done.

    Raises
    ------
    InputError
        When the name does not end as a kind of figure does, the folder is missing or not writable, or the file exists
        and ``overwrite`` is false.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"figures are saved as PNG, SVG or PDF: {path.name!r} must end in {', '.join(SUFFIXES)}")
    require_writable(path, overwrite)
    return path


def write(figure: Figure, path: Path, overwrite: bool = False) -> Path:
    """Write a figure so that ``path`` holds either the old file or the whole new one; checked as by `probe`."""
    path = probe(path, overwrite)
    undated: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower(), {})
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.tmp-") as folder:
        made = Path(folder) / f"figure{path.suffix.lower()}"
        figure.savefig(made, dpi=150, metadata=undated)
        os.replace(made, path)
    return path
