"""Write files whole or not at all, and check that they can be written before any work is done."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")


def require_writable(path: Path, overwrite: bool) -> None:
    """Raise `InputError` unless a file can be written to ``path`` now.

    The folder must exist and be writable; an existing file must be a regular one, and ``overwrite`` true.
    """
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r}", hint="make it first")
    if path.exists() and not path.is_file():
        raise InputError(f"not a regular file: {path}")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists", hint="choose another name or use --overwrite")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.tmp-")
    except OSError as error:
        raise InputError(f"cannot write in {str(path.parent)!r}: {error.strerror}") from None
    os.close(handle)
    os.unlink(name)


def write_text(text: str, path: Path) -> None:
    """Write a text so that ``path`` holds either the old file or the whole new one."""
    write_bytes(text.encode("utf-8"), path)


def write_bytes(content: bytes, path: Path) -> None:
    """Write bytes so that ``path`` holds either the old file or the whole new one."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.tmp-") as folder:
        temporary = Path(folder) / "content"
        temporary.write_bytes(content)
        os.replace(temporary, path)


def probe_figure(path: Path, overwrite: bool = False) -> Path:
    """Check that a figure can be written, before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"figures are saved as PNG, SVG or PDF: {path.name!r} must end in {', '.join(SUFFIXES)}")
    require_writable(path, overwrite)
    return path


def write_figure(figure: Figure, path: Path, overwrite: bool = False) -> Path:
    """Write a figure so that ``path`` holds either the old file or the whole new one; checked as by `probe_figure`."""
    path = probe_figure(path, overwrite)
    undated: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower(), {})
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.tmp-") as folder:
        temporary = Path(folder) / f"figure{path.suffix.lower()}"
        figure.savefig(temporary, dpi=150, metadata=undated)
        os.replace(temporary, path)
    return path
