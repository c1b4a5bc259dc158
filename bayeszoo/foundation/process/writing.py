"""Write files completely or not at all, and check before any work that they can be written.

A file is written in a temporary folder next to its target, then renamed. The folder's name holds its process,
so that the next command that writes there removes folders of killed processes.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayeszoo.errors import InputError, NotWritten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
"""The machine: other machines may write to the same folder with equal process numbers."""
_OURS = f".bayeszoo-{_HOST}-"


def require_writable(path: Path, overwrite: bool) -> None:
    """Raise `InputError` unless a file can be written to ``path``, or to its link target, now.

    The folder must exist and be writable; an existing file must be a regular one, and ``overwrite`` true.
    """
    target = _target_of(path)
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {str(target.parent)!r}", "no_such_file", hint="make it first")
    try:
        is_regular = stat.S_ISREG(os.lstat(target).st_mode)
    except FileNotFoundError:
        is_regular, overwrite = True, True
    except OSError as error:  # the name is too long, or the folder is not searchable
        raise InputError(f"cannot write {path}: {error.strerror}", "not_writable") from None
    if not is_regular:
        raise InputError(f"not a regular file: {path}", "no_such_file")
    if not overwrite:
        raise InputError(f"{path} exists", "file_exists", hint="choose another name or use --overwrite")
    try:
        os.rmdir(_folder_in(target.parent))
    except OSError as error:
        raise InputError(f"cannot write in {str(target.parent)!r}: {error.strerror}", "not_writable") from None


@contextmanager
def replacing(path: Path, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` when the block ends; after an error ``path`` is unchanged.

    A link stays, and its target is replaced; permissions of the old file are kept. Without ``overwrite`` a
    file that another process has written in the meantime is an `InputError`.

    Raises
    ------
    NotWritten
        When writing fails, as on a full disk.
    """
    target = _target_of(path)
    try:
        sweep(target.parent)
        folder = _folder_in(target.parent)
        try:
            yield (temporary := Path(folder, "content"))
            _sync(temporary)
            if overwrite:
                _replace(temporary, target)
            else:
                _create(temporary, target, path)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        _sync(target.parent)
    except OSError as error:
        raise NotWritten(path, error) from error


def _target_of(path: Path) -> Path:
    """Return the file that a path links to, or the path itself."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else path


def _folder_in(folder: Path) -> str:
    """Make a temporary folder of this process."""
    return tempfile.mkdtemp(prefix=f"{_OURS}{os.getpid()}-", dir=folder)


def _replace(temporary: Path, target: Path) -> None:
    """Replace a file by another, keeping owner and permissions."""
    with suppress(FileNotFoundError):
        before = os.stat(target)
        with suppress(OSError):  # only root may change the owner
            os.chown(temporary, before.st_uid, before.st_gid)
        os.chmod(temporary, stat.S_IMODE(before.st_mode))
    os.replace(temporary, target)


def _create(temporary: Path, target: Path, path: Path) -> None:
    """Rename a file to a new name; if two processes do, the second is refused."""
    try:
        try:
            os.link(temporary, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            os.close(os.open(target, os.O_CREAT | os.O_EXCL))
            os.replace(temporary, target)
    except FileExistsError:
        hint = "choose another name or use --overwrite"
        raise InputError(f"{path} was written by another run in the meantime", "not_writable", hint=hint) from None


def _sync(path: Path) -> None:
    """Flush a file or a folder to disk; some systems do not open folders."""
    with suppress(PermissionError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sweep(folder: Path) -> None:
    """Remove temporary folders of this user's processes that have ended."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            number = re.fullmatch(rf"{re.escape(_OURS)}(\d+)-\w+", entry.name)
            if number and not _is_there(int(number[1])) and _is_own_folder(entry):
                shutil.rmtree(entry, ignore_errors=True)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def _is_there(process: int) -> bool:
    """Say whether a process with this number exists, or may exist."""
    if os.name != "posix":  # where os.kill would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's process, or not a process number
        return True
    return True


def write_text(text: str, path: Path, overwrite: bool = False) -> None:
    """Write text so that ``path`` holds either the old file or the complete new one."""
    write_bytes(text.encode("utf-8", "backslashreplace"), path, overwrite)


def write_bytes(content: bytes, path: Path, overwrite: bool = False) -> None:
    """Write bytes so that ``path`` holds either the old file or the complete new one."""
    with replacing(path, overwrite) as temporary:
        temporary.write_bytes(content)


def probe_figure(path: Path, overwrite: bool = False) -> Path:
    """Check that a figure can be written, before any work."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"figures are saved as PNG, SVG or PDF: {path.name!r} must end in {', '.join(SUFFIXES)}", "wrong_suffix"
        )
    require_writable(path, overwrite)
    return path


def write_figure(figure: Figure, path: Path, overwrite: bool = False) -> Path:
    """Write a figure so that ``path`` holds either the old file or the complete new one; `probe_figure` checks it."""
    path = probe_figure(path, overwrite)
    undated: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower(), {})
    content = io.BytesIO()  # Matplotlib leaves a file half open if the disk is full
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=150, metadata=undated)
    write_bytes(content.getvalue(), path, overwrite)
    return path
