"""A folder of text files, or files that match a pattern, as a table with a document for each file."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

from bayeszoo.data.table.read import read_table, to_column
from bayeszoo.data.table.table import Table, escaped
from bayeszoo.errors import InputError

SUFFIX = ".txt"
MOST_FILES = 100_000


def table_of(source: Any, takes_texts: bool, **how: Any) -> Table:
    """Read a table, as `read_table` does; for models that take texts also a folder of text files."""
    return (texts_of(source, how["encoding"]) if takes_texts else None) or read_table(source, **how)


def texts_of(source: object, encoding: str) -> Table | None:
    """Read the text files in a folder and its subfolders, or those that match a pattern such as ``letters/*.txt``.

    Parameters
    ----------
    source : object
        The source that the user named.
    encoding : str
        Encoding of the files.

    Returns
    -------
    Table or None
        Columns ``document``, the path within the folder without its ending, and ``text``; where files lie in several
        folders also ``folder``, the name of each. None where the source is neither a folder nor a pattern.

    Raises
    ------
    InputError
        When there is no text file, or one cannot be decoded.
    """
    if not isinstance(source, str | os.PathLike) or os.path.isfile(source):
        return None
    root, name = Path(source), str(source)
    if not root.is_dir() and not (glob.has_magic(name) and name.endswith(SUFFIX)):
        return None
    matches = glob.glob(str(Path(glob.escape(name)) / "**" / f"*{SUFFIX}") if root.is_dir() else name, recursive=True)
    paths = sorted(Path(path) for path in matches if os.path.isfile(path))
    if not paths:
        raise InputError(f"there is no {SUFFIX} file: {escaped(name)}", "no_such_file")
    if len(paths) > MOST_FILES:
        raise InputError(f"{len(paths)} files are too many", "too_large", hint="put them into one table")
    base = root if root.is_dir() else Path(os.path.commonpath([path.parent for path in paths]))
    columns = {
        "document": [path.relative_to(base).with_suffix("").as_posix() for path in paths],
        "text": [_text(path, encoding) for path in paths],
    }
    if len({path.parent for path in paths}) > 1:
        columns["folder"] = [path.parent.name for path in paths]
    return Table(name, {head: to_column(head, cells) for head, cells in columns.items()})


def _text(path: Path, encoding: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except UnicodeDecodeError:
        hint = "name its encoding with --encoding, such as latin-1"
        raise InputError(f"{escaped(path.name)} is not {encoding}", "unreadable_file", hint=hint) from None
    except LookupError:
        raise InputError(f"unknown encoding {escaped(encoding)}", "unknown_encoding") from None
