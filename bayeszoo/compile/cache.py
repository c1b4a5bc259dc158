"""Folders of compiled code: keys of their files, and a warning if other users may write to them."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path

import numba
import pytensor


def key(*parts: str) -> str:
    """Return the cache key of numba's compiled code from these parts, the package and its versions."""
    return sha256("\n".join((*parts, __name__, pytensor.__version__, numba.__version__)).encode()).hexdigest()


def warning() -> str:
    """Return a warning if other users may write to a folder of compiled code, which is run unchecked; else empty."""
    folders = pytensor.config.compiledir, Path(pytensor.config.base_compiledir) / "numba"
    return next(filter(None, map(open_to_others, folders)), "")


def open_to_others(folder: str | Path) -> str:
    """Return a warning if other users may write to a folder of compiled code; else an empty text.

    Its owner, root and the user's own group may write. Whoever may write to a parent folder can replace the folder,
    unless the parent is like ``/tmp``, where users may rename only their own files.
    """
    if not _is_open(folder := Path(folder).absolute(), but_for=0):
        above = {*folder.parents, *folder.resolve().parents}
        if not any(_is_open(parent, but_for=stat.S_ISVTX) for parent in above):
            return ""
    return (
        "warning: other users may write to the folder of compiled code, or to a folder above it, and PyTensor runs it: "
        "choose your own folder, PYTENSOR_FLAGS=base_compiledir=FOLDER"
    )


def _is_open(folder: Path, but_for: int) -> bool:
    """Say whether another user owns a folder, or may write to it although it has none of the bits ``but_for``."""
    status = folder.stat()
    foreign = status.st_uid not in (0, os.geteuid()) if hasattr(os, "geteuid") else False
    own_groups = (0, os.getegid()) if hasattr(os, "getegid") else (status.st_gid,)
    of_group = bool(status.st_mode & stat.S_IWGRP) and status.st_gid not in own_groups
    return foreign or (bool(status.st_mode & stat.S_IWOTH or of_group) and not status.st_mode & but_for)
