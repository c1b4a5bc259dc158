"""Save and load fits: atomically, without overwriting by accident, and without trusting the file.

A fit is netCDF-4 (HDF5) through h5netcdf. No pickle is read or written.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import lazy_loader
import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.foundation.process.writing import replacing, require_writable
from bayeszoo.model.base import Model
from bayeszoo.model.find import lend
from bayeszoo.results.attributes import check_agreement
from bayeszoo.results.caveats import warn
from bayeszoo.results.stored import Fit, fits_of, is_by_group

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = lazy_loader.load("xarray")

ENGINE: Literal["h5netcdf"] = "h5netcdf"
DIGEST = "content_digest"
FORMAT = 1  # version of the groups and attributes; changes when an old file can no longer be read
MAX_BYTES = 4 * 2**30  # largest fit, in declared bytes, that `load` reads into memory
MOST_LINKS, DEEPEST = 5000, 8  # most arrays and groups, and most nested groups: xarray takes minutes for more
DENSEST = 1100  # most declared bytes for each byte of the file: deflate packs at most 1032
MOST_BYTES_OF_NAME = 255  # of a file, almost everywhere
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def probe(path: str | Path, overwrite: bool = False) -> Path:
    """Return ``path``, or raise `InputError` unless it is a ``.nc`` file that can be written now."""
    path = Path(path)
    if path.suffixes[-2:] != [".nc", ".partial"] and path.suffix != ".nc":
        raise InputError(f"fits are saved as netCDF: {path.name!r} must end in .nc", "wrong_suffix")
    if find_spec(ENGINE) is None:
        raise InputError(
            f"fits are written with {ENGINE}, which is not installed", "missing_package", hint=f"pip install {ENGINE}"
        )
    require_writable(path, overwrite)
    return path


def partial_of(path: Path) -> Path:
    """Return the path of an interrupted fit in place of ``path``; a name that would be too long is cut."""
    stem = os.fsencode(path.stem)[: MOST_BYTES_OF_NAME - len(".nc.partial")]
    return path.with_name(f"{os.fsdecode(stem)}{path.suffix}.partial")


def save(tree: xr.DataTree, path: str | Path, overwrite: bool = False) -> Path:
    """Write a fit, or fits by group, so that ``path`` has either the old file or the whole new one.

    Parameters
    ----------
    tree : xarray.DataTree
        Result of `fit` or `fit_by`.
    path : str or Path
        A name that ends in ``.nc``.
    overwrite : bool
        Whether an existing file may be replaced.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    InputError
        As from `probe`.
    NotWritten
        When writing fails, for example on a full disk; an existing file is untouched. It is an `OSError`.
    """
    path = probe(path, overwrite)
    for fit in _every_fit(tree):
        with suppress(InputError):  # the file of the model may be elsewhere
            _ = fit.observed  # puts back data that another tool has replaced
    tree = tree.copy()
    tree.name = None  # a group's fit has a name in the tree of all; a file has none
    if sum(1 + len(node.variables) for node in tree.subtree) > MOST_LINKS:
        raise InputError(
            "the tree is too large for one file", "too_large", hint="save fewer groups, or each fit separately"
        )
    tree.attrs[DIGEST] = json.dumps(digests(tree))
    # in memory: HDF5 crashes the process when the disk is full
    with memoryview(tree.to_netcdf(engine=ENGINE)) as content, replacing(path, overwrite) as temporary:
        with temporary.open("wb") as file:  # `write_bytes` would keep a view of the content after an error
            file.write(content)
        if not xr.load_datatree(temporary, engine=ENGINE).identical(tree):
            raise OSError("the file that was read back differs from the tree")
    return path


def load(path: str | Path, model: type[Model] | None = None) -> xr.DataTree:
    """Read a fit, or fits by group, that `save` wrote, or that was saved by ``to_netcdf``.

    Other tools may have added groups and variables, which are ignored, or removed draws. Loading a file runs no code:
    name a model that is not in the zoo, here or before.

    Parameters
    ----------
    path : str or Path
        The file.
    model : class, optional
        The class of your own model, ``bz.find("my_model.py:MyModel")``, for fits of it. A warning says if the text of
        its file has changed since the fit.

    Returns
    -------
    xarray.DataTree

    Raises
    ------
    InputError
        When the file is missing, not a bayeszoo result, damaged, changed since, or larger than `MAX_BYTES`; or its
        data are not those of the fit.

    Warns
    -----
    Caution
        When the numbers are shown with a warning.
    """
    path = Path(path)
    if model is not None:
        lend(model)
    tree = read_tree(path)
    try:
        if tree.attrs["bayeszoo_format"] != FORMAT:
            raise InputError(
                f"{path.name} was saved by another version of bayeszoo",
                "other_version",
                hint="fit again, or use that version",
            )
        _verify(tree, path)
    except (InputError, MemoryError):
        raise
    except Exception:  # HDF5, h5netcdf and xarray raise many kinds on bytes that are not theirs: the file is refused
        raise _damaged(path) from None
    for fit in _every_fit(tree):
        warn(fit)
    return tree


def read_tree(path: Path) -> xr.DataTree:
    """Read a NetCDF file of groups of unknown origin; nothing in it is run.

    Raises
    ------
    InputError
        When the file is missing, damaged, of another format, or larger than `MAX_BYTES`.
    """
    if not path.is_file():
        problem = "not a regular file" if path.exists() else "there is no file"
        raise InputError(f"{problem}: {path}", "no_such_file")
    with path.open("rb") as handle:
        if handle.read(len(_HDF5_SIGNATURE)) != _HDF5_SIGNATURE:
            raise _damaged(path)
    try:
        most = min(MAX_BYTES, max(2**26, DENSEST * path.stat().st_size))
        if (size := _declared_bytes(path)) > most:
            raise InputError(f"{path.name} declares {size} bytes", "damaged_fit", hint=f"at most {most} are read")
        return xr.load_datatree(path, engine=ENGINE)
    except (InputError, MemoryError):
        raise
    except Exception:  # HDF5, h5netcdf and xarray raise many kinds on bytes that are not theirs: the file is refused
        raise _damaged(path) from None


def _every_fit(tree: xr.DataTree) -> list[Fit]:
    return [*fits_of(tree).values()] if is_by_group(tree) else [Fit(tree)]


def _verify(tree: xr.DataTree, path: Path) -> None:
    """Refuse data that differ from those of the fit, and values that changed after `save`.

    Other tools may have added groups and variables, removed them or cut them, and may have written the file.
    """
    text = str(tree.attrs.pop(DIGEST, ""))
    now, saved = digests(tree), json.loads(text) if text.startswith("{") else {}  # older files had one digest for all
    for name, (shape, digest) in saved.items():
        is_attribute_of_the_fit = name.startswith("/@")
        if name not in now and not is_attribute_of_the_fit:
            continue
        if name not in now or (now[name][0] == shape and now[name][1] != digest):
            raise InputError(f"{path.name} was changed after bayeszoo wrote it", "changed_fit", hint="fit again")
    fits = _every_fit(tree)
    for fit in fits:
        check_agreement(fit.tree)
    if not all(fit.holds_its_data for fit in fits):
        raise InputError(
            f"the data in {path.name} are not those that the fit was made from", "data_differ", hint="fit again"
        )


def digests(tree: xr.DataTree) -> dict[str, tuple[list[int], str]]:
    """Return the shape and the SHA-256 of each variable and attribute, which show accidents and edits, not forgery."""
    places: dict[str, tuple[list[int], str]] = {}
    for node in tree.subtree:
        prefix = node.path.rstrip("/")
        for name, value in node.attrs.items():
            if name != DIGEST:
                places[f"{prefix}/@{name}"] = [], hashlib.sha256(str(value).encode()).hexdigest()
        for name, variable in node.to_dataset(inherit=False).variables.items():
            places[f"{prefix}/{name}"] = list(variable.shape), _digest_of(variable)
    return places


def _digest_of(variable: xr.Variable) -> str:
    values = variable.to_numpy()
    plain = values.astype(str) if values.dtype.kind in "OUS" else values
    kind = "text" if plain.dtype.kind == "U" else plain.dtype.str
    state = hashlib.sha256(f"{variable.dims}\0{kind}\0".encode())
    state.update("\0".join(plain.ravel()).encode() if kind == "text" else np.ascontiguousarray(plain).tobytes())
    return state.hexdigest()


def _declared_bytes(path: Path) -> int:
    """Return the total size of the arrays without reading any; refuse objects that no fit has.

    These are links out of the file, groups with two links, which may contain themselves, and too many groups. xarray
    would read coordinates at once.
    """
    import h5py  # type: ignore[import-untyped]

    sizes: list[int] = []  # 0 for groups
    links: list[str] = []

    def add(_: str, item: Any) -> None:
        is_array = isinstance(item, h5py.Dataset)
        if is_array and (item.external or item.is_virtual):
            raise _damaged(path)
        sizes.append(item.nbytes if is_array else 0)

    def refuse_links(name: str, link: object) -> None:
        links.append(name)
        if not isinstance(link, h5py.HardLink) or len(links) > MOST_LINKS or name.count("/") > DEEPEST:
            raise _damaged(path)

    with h5py.File(path, "r") as file:
        file.visititems_links(refuse_links)
        file.visititems(add)  # goes to each object once
    if len(sizes) != len(links):
        raise _damaged(path)
    return sum(sizes)


def _damaged(path: Path) -> InputError:
    return InputError(f"{path.name} is not a bayeszoo result (or is damaged)", "damaged_fit")
