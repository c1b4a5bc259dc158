"""The folders where compiled code is kept: keys of the files in them, and who else may write to them."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path

import numba
import pytensor


def key(*parts: str) -> str:
    """Return the key of numba's compiled code for these parts, versions and package."""
    return sha256("\n".join((*parts, __name__, pytensor.__version__, numba.__version__)).encode()).hexdigest()


def warning() -> str:
    """Say that others may write to a folder of compiled code, which is run as it is found; nothing if they may not."""
    folders = pytensor.config.compiledir, Path(pytensor.config.base_compiledir) / "numba"
    return next(filter(None, map(open_to_others, folders)), "")


def open_to_others(folder: str | Path) -> str:
    """Say that others may write to the folder of compiled code; nothing if they may not.

    Its owner, root and the user's own group may. Who may write to a folder above it can put another one in its place,
    unless that folder is one like ``/tmp``, where users may rename only their own files.
    """
    if not _is_open(folder := Path(folder).absolute(), but_for=0):
        above = {*folder.parents, *folder.resolve().parents}
        if not any(_is_open(parent, but_for=stat.S_ISVTX) for parent in above):
            return ""
    return (
        "warning: others may write to the folder of compiled code, or to one above it, which PyTensor runs as it finds "
        "it: take one of your own, PYTENSOR_FLAGS=base_compiledir=FOLDER"
    )


def _is_open(folder: Path, but_for: int) -> bool:
    """Say whether others own a folder, or may write to it and it has none of the bits ``but_for``."""
    status = folder.stat()
    foreign = status.st_uid not in (0, os.geteuid()) if hasattr(os, "geteuid") else False
    own_groups = (0, os.getegid()) if hasattr(os, "getegid") else (status.st_gid,)
    of_group = bool(status.st_mode & stat.S_IWGRP) and status.st_gid not in own_groups
    return foreign or (bool(status.st_mode & stat.S_IWOTH or of_group) and not status.st_mode & but_for)
