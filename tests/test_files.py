"""Fits on disk: whole or not at all, never over an old one by accident, and nothing from outside is trusted."""

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayeszoo as bz
from bayeszoo.cli import app as cli
from bayeszoo.cli.verbs import fits as fit_verb
from bayeszoo.errors import InputError, NotWritten
from bayeszoo.fit import methods_for
from bayeszoo.foundation.process import writing
from bayeszoo.report.notebook import in_python, show_in_notebooks
from bayeszoo.results import files
from tests.quick import quick_first, quick_where
from tests.refusals import raises

ROOT = Path(__file__).resolve().parents[1]
METHODS = methods_for(bz.find("beta_bernoulli"))


@pytest.fixture(scope="module")
def fits():
    """Return a fit by the method that a test asks for, of the 980 births with placenta previa."""
    model = bz.find("beta_bernoulli")
    return cache(lambda method: bz.fit(model(), bz.example(model, "placenta_previa"), method, seed=1))


@pytest.fixture
def tree(fits):
    return fits("exact")


@pytest.fixture
def saved(tree, tmp_path):
    return bz.save(tree, tmp_path / "fit.nc")


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


# Round trip


@pytest.mark.parametrize("method", quick_where(METHODS, {"exact", "map", "nuts"}.__contains__))
def test_what_is_loaded_is_what_was_saved(fits, method, tmp_path):
    path = bz.save(fits(method), tmp_path / "fit.nc")
    path.with_name("other").touch()
    assert path.stat().st_mode == path.with_name("other").stat().st_mode
    loaded = bz.load(path)
    assert listing(tmp_path) == ["fit.nc", "other"]
    path.unlink()  # which the loaded fit does not hold
    xr.testing.assert_identical(loaded, fits(method))
    assert loaded.attrs["method"] == method


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("method", ["vb", "em"])
def test_a_fit_with_labels_that_mean_nothing_keeps_all_its_groups(method, tmp_path):
    tree = bz.fit(bz.find("multinomial_mixture")(), None, method, seed=1)
    loaded = bz.load(bz.save(tree, tmp_path / "fit.nc"))
    xr.testing.assert_identical(loaded, tree)
    assert {"posterior", "unaligned", "labels", "invariants"} <= set(loaded.children)


# Overwriting


def test_an_existing_file_is_kept_unless_asked(saved, fits):
    before = saved.read_bytes()
    with raises(InputError, "file_exists", "fit.nc", "another"):
        bz.save(fits("nuts"), saved)
    assert saved.read_bytes() == before
    bz.save(fits("nuts"), saved, overwrite=True)
    xr.testing.assert_identical(bz.load(saved), fits("nuts"))


def raising(error):
    def to_netcdf(self, *_, **__):
        raise error

    return to_netcdf


ANOTHER = xr.DataTree(xr.Dataset(attrs={"readable": "and not what was to be saved"})).to_netcdf(engine=files.ENGINE)
WRITERS = {
    "OSError": (raising(FileNotFoundError()), FileNotFoundError),
    "RuntimeError": (raising(RuntimeError("HDF5 gave up")), RuntimeError),
    "Ctrl-C": (raising(KeyboardInterrupt()), KeyboardInterrupt),
    "garbage": (lambda *_, **__: b"garbage", NotWritten),
    "another": (lambda *_, **__: ANOTHER, NotWritten),
}


@pytest.mark.parametrize(("writer", "error"), WRITERS.values(), ids=WRITERS.keys())
def test_a_write_that_fails_leaves_the_old_file(saved, fits, monkeypatch, writer, error):
    before = saved.read_bytes()
    monkeypatch.setattr(xr.DataTree, "to_netcdf", writer)
    with pytest.raises(error):
        bz.save(fits("nuts"), saved, overwrite=True)
    assert saved.read_bytes() == before
    assert listing(saved.parent) == ["fit.nc"]


EDITS = {
    "draws": lambda file: file["posterior/theta"].write_direct(file["posterior/theta"][...] / 2),
    "prior": lambda file: file.attrs.modify("fields", '{"a": 50.0, "b": 1.0}'),
    "kind": lambda file: file.attrs.modify("kind", "sampled"),
    "no gate": lambda file: file.attrs.pop("gate"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_file_is_refused(saved, edit):
    with h5py.File(saved, "r+") as file:
        EDITS[edit](file)
    with raises(bz.InputError, "changed_fit", "fit.nc", "again"):
        bz.load(saved)


FULL_DISK = """
import resource, sys
from bayeszoo.cli.app import main
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
main(["fit", "beta_bernoulli", "--example", "placenta_previa", "--method", "exact", "-o", "fit.nc", "--overwrite"])
"""


@pytest.mark.parametrize("limit", quick_first([4096, 0, 50_000]))
def test_a_full_disk_leaves_the_old_file(saved, limit):
    """HDF5 writing to the file itself would crash the process here (exit code 139)."""
    before = saved.read_bytes()
    assert len(before) > limit
    command = [sys.executable, "-c", FULL_DISK, str(limit)]
    done = subprocess.run(command, cwd=saved.parent, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 4
    assert "theta" in done.stdout, "the result is printed even if it cannot be saved"
    said = [line for line in done.stderr.splitlines() if line not in ("checking the fit", "saving")]  # slow machines
    assert len(said) == 1
    assert said[0].startswith("error: cannot write fit.nc: ")
    assert saved.read_bytes() == before
    assert listing(saved.parent) == ["fit.nc"]


# Names that cannot be written, refused before any work

NAMES = {
    "exists.nc": "exists.nc exists; choose another name or use --overwrite",
    "missing/fit.nc": "there is no folder 'missing'; make it first",
    "exists.nc/fit.nc": "there is no folder 'exists.nc'; make it first",
    "fit.csv": "fits are saved as netCDF: 'fit.csv' must end in .nc",
    "fit": "fits are saved as netCDF: 'fit' must end in .nc",
    ".": "fits are saved as netCDF: '' must end in .nc",
    "folder.nc": "not a regular file: folder.nc",
    "n" * 253 + ".nc": f"cannot write {'n' * 253}.nc: File name too long",
}


@pytest.mark.parametrize(("name", "message"), NAMES.items(), ids=range(len(NAMES)))
def test_a_bad_name_is_refused_by_save_and_before_the_fit(tree, name, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("exists.nc").write_bytes(b"old")
    Path("folder.nc").mkdir()
    with pytest.raises(InputError) as caught:
        bz.save(tree, name)
    assert str(caught.value) == message
    monkeypatch.setattr(fit_verb, "fit", lambda *_, **__: pytest.fail("fitted before the name was checked"))
    with pytest.raises(SystemExit) as ended:
        cli.main(["fit", "beta_bernoulli", "-o", name])
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", f"error: {message}\n")
    assert listing(tmp_path) == ["exists.nc", "folder.nc"]
    assert Path("exists.nc").read_bytes() == b"old"


def test_a_folder_that_cannot_be_written_in(tree, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(writing.tempfile, "mkdtemp", refuse)  # the tests may run as root, who may write anywhere
    with raises(InputError, "not_writable"):
        bz.save(tree, tmp_path / "fit.nc")


# Files that are not ours


def test_a_missing_file_a_folder_or_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "fit.nc")
    for path in (tmp_path / "nothing.nc", tmp_path, tmp_path / "fit.nc"):
        with raises(InputError, "no_such_file"):
            bz.load(path)


GARBAGE = {
    "somebody else's": xr.Dataset({"theta": ("draw", np.zeros(3))}).to_netcdf(engine="h5netcdf"),
    "nothing": b"",
    "text": b"theta,0.5\n",
    "netCDF 3": b"CDF\x01\0\0\0\0",
    "only the signature": b"\x89HDF\r\n\x1a\n" + b"\0" * 200,
    "signature and noise": b"\x89HDF\r\n\x1a\n" + bytes(range(256)) * 8,
    **{f"cut to {share}": share for share in (0.05, 0.3, 0.6, 0.9, 0.999)},
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_and_files_cut_short(saved, content):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(content * len(whole))] if isinstance(content, float) else content)
    with raises(InputError, "damaged_fit", "fit.nc"):
        bz.load(saved)


def test_a_file_larger_than_is_read(saved, tree, monkeypatch):
    size = sum(group.to_dataset(inherit=False).nbytes for group in tree.subtree)
    monkeypatch.setattr(files, "MAX_BYTES", size // 2)
    with raises(InputError, "damaged_fit", "fit.nc"):
        bz.load(saved)
    monkeypatch.setattr(files, "MAX_BYTES", 2 * size)
    xr.testing.assert_identical(bz.load(saved), tree)


@pytest.mark.parametrize("size", [2**40, 400_000_000])
def test_a_small_file_that_declares_much_is_not_read(saved, size, monkeypatch):
    """xarray reads coordinates while it opens a file: their size must be known before."""
    with h5py.File(saved, "a") as file:
        file.create_dataset("n", shape=(size,), dtype="i8", chunks=(2**20,))
        file["n"].make_scale("n")
    assert saved.stat().st_size < 1e6
    monkeypatch.setattr(xr, "load_datatree", lambda *_, **__: pytest.fail("minutes, and gigabytes"))
    with raises(InputError, "damaged_fit", "fit.nc", str(8 * size)[:4]):
        bz.load(saved)


def test_a_file_that_memory_is_too_small_for_is_not_called_damaged(saved, monkeypatch):
    def no_memory(*_, **__):
        raise MemoryError

    monkeypatch.setattr(xr, "load_datatree", no_memory)
    with pytest.raises(MemoryError):
        bz.load(saved)


def with_virtual_rows(file):
    layout = h5py.VirtualLayout(shape=(4,), dtype="f8")
    layout[:] = h5py.VirtualSource("secret.h5", "theta", shape=(4,))
    file.create_virtual_dataset("posterior/other", layout)


LINKS = {
    "link": lambda file: file.update({"posterior/other": h5py.ExternalLink("secret.h5", "/theta")}),
    "soft link": lambda file: file.update({"posterior/other": h5py.SoftLink("/posterior/theta")}),
    "raw": lambda file: file.create_dataset("posterior/other", (4,), "i1", external=[("secret.h5", 0, 4)]),
    "virtual": with_virtual_rows,
    "loop": lambda file: file["posterior"].update({"again": file["/"]}),
    "depth": lambda file: file.create_group("/".join(f"g{i}" for i in range(600))),
}


@pytest.mark.parametrize("edit", LINKS.values(), ids=LINKS)
def test_a_file_may_not_lead_to_another_nor_on_and_on(saved, edit, monkeypatch):
    monkeypatch.chdir(saved.parent)
    monkeypatch.setattr(xr, "load_datatree", lambda *_, **__: pytest.fail("minutes"))
    with h5py.File("secret.h5", "w") as secret:
        secret["theta"] = np.arange(4.0)
    with h5py.File(saved, "a") as file:
        edit(file)
    with raises(InputError, "damaged_fit", "fit.nc"):
        bz.load(saved)


# No code from files


def called_names(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.keyword(arg="allow_pickle" as name):
                yield name
            case ast.Call(func=ast.Attribute(attr="eval"), args=[]):  # PyTensor's `x.eval()`
                yield "no eval"
            case ast.Attribute(attr=name) if name != "eval":
                yield name
            case ast.Call(func=ast.Attribute(attr="eval")):
                yield "eval"
            case ast.ImportFrom(module="joblib", names=names):  # its processes, but not its files
                yield from (f"joblib.{alias.name}" for alias in names)
            case ast.alias(name=name) | ast.ImportFrom(module=str(name)):
                yield name.partition(".")[0]


FORBIDDEN = {
    *(
        "pickle",
        "cPickle",
        "dill",
        "cloudpickle",
        "joblib",
        "joblib.load",
        "joblib.dump",
        "joblib.Memory",
        "shelve",
        "marshal",
        "read_pickle",
        "to_pickle",
    ),
    *("allow_pickle", "eval", "exec", "numexpr", "patsy", "query", "system", "popen"),
}


@pytest.mark.quick
def test_no_source_can_run_what_it_reads():
    paths = [*ROOT.glob("bayeszoo/**/*.py"), *ROOT.glob("models/*.py")]
    assert {path: names for path in paths if (names := FORBIDDEN & set(called_names(path)))} == {}


@pytest.fixture
def elsewhere(tmp_path):
    """Write a fit as other tools do, with groups and variables of their own, and return the path."""

    def write(tree):
        tree = tree.copy()
        tree["predictions"] = xr.DataTree(xr.Dataset({"y": ("new", [1.0, 2.0])}))
        tree["constant_data"] = xr.DataTree(tree["constant_data"].to_dataset().assign(theirs=("else", [1, 2, 3])))
        tree["posterior"] = xr.DataTree(tree["posterior"].to_dataset().assign_attrs(tool="another"))
        tree.to_netcdf(path := tmp_path / "elsewhere.nc", engine="h5netcdf")
        return path

    return write


@pytest.mark.parametrize("read", [bz.load, xr.load_datatree])
@pytest.mark.parametrize("again", [False, True])
def test_what_another_tool_saved_is_a_fit(tmp_path, elsewhere, read, again):
    M = bz.find("linear_regression")
    tree = bz.fit(M.weak(bz.example(M)), method="exact", seed=1, groups=[])
    if again:
        tree = xr.load_datatree(bz.save(tree, tmp_path / "ours.nc"))  # which has our digests
    back = read(elsewhere(tree if again else tree.isel(draw=slice(500), missing_dims="ignore")))
    assert back["predictions"]["y"].to_numpy().tolist() == [1, 2]
    pd.testing.assert_frame_equal(bz.predict(back, bz.example(M)), bz.predict(tree, bz.example(M)))
    assert "log_likelihood" in bz.extend(back, ["log_likelihood"]).children


@pytest.mark.parametrize("group", ["observed_data", "constant_data"])
def test_other_data_are_refused_whoever_saved_them(elsewhere, group):
    M = bz.find("linear_regression")
    tree = bz.fit(M.weak(bz.example(M)), method="exact", seed=1, groups=[]).copy()
    tree[group] = xr.DataTree(tree[group].to_dataset() * 1.5)
    with raises(bz.InputError, "data_differ", "elsewhere.nc"):
        bz.load(elsewhere(tree))
    with raises(bz.InputError, "data_differ"):
        bz.predict(tree, 1)


def test_a_notebook_shows_the_table_and_the_verdict():
    y = [0.5, 1.0, 2.0]
    tree = bz.fit(bz.find("normal_gamma")(), y, "exact", seed=1, groups=[])
    html = bz.view(tree)._repr_html_()
    assert "exact: ok" in html
    assert html.count("<tr>") == 4  # the head, mu, lam and sigma
    assert html.count("<img") == 1
    assert f"{float(tree['exact']['mu'].sel(statistic='mean')):.4g}" in html
    tree.attrs["status"] = "failed"
    withheld = bz.view(tree)._repr_html_()
    assert "estimates are withheld" in withheld
    assert "<td>mu</td><td>withheld</td>" in withheld
    assert "<img" not in withheld


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ("try --chains 4 --draws 1000", "try chains=4, draws=1000"),
        ("try --draws 4000, or --method exact", "try draws=4000, or method='exact'"),
        ("try bayeszoo select -c m --components 1-4, or --method vb", None),
    ],
)
def test_a_notebook_names_arguments_where_a_terminal_names_options(options, arguments):
    assert in_python(options) == (arguments or options.replace("--method vb", "method='vb'"))


@pytest.mark.slow  # with the packages of the notebooks
def test_ipython_shows_fits_so_and_other_trees_as_xarray_does(monkeypatch):
    from IPython.core.formatters import HTMLFormatter

    formatter = HTMLFormatter()
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    with monkeypatch.context() as patch:
        patch.setattr("IPython.get_ipython", lambda: shell)
        show_in_notebooks()
    tree = bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact", seed=1, groups=[])
    assert "beta_bernoulli(a=1, b=1), exact: ok" in formatter(tree)
    other = xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset()})
    assert "exact: ok" not in formatter(other)
    assert "xr-header" in formatter(other)
    assert "exact: ok" not in tree._repr_html_()  # xarray itself is as it was


def replaced_as_by_pymc(tree):
    """Replace the groups of data as `pm.sample_posterior_predictive(..., extend_inferencedata=True)` does."""
    rows = {"row": np.arange(3)}
    terms = np.column_stack([np.ones(3), np.arange(3.0)])
    tree["observed_data"] = xr.DataTree(xr.Dataset({"y": ("row", [1.0, 3, 2])}, rows))
    tree["constant_data"] = xr.DataTree(xr.Dataset({"terms": (("row", "term"), terms)}, rows))
    return tree


@pytest.fixture
def line():
    kind = bz.find("linear_regression")
    data = bz.read(kind, {"y": [1.0, 3, 2], "x": [0.0, 1, 2]}, target="y")
    return bz.fit(kind.weak(data), data, "exact", seed=1)


def test_data_that_pymc_has_replaced_are_put_back(line, tmp_path):
    expected = bz.predict(line, {"x": [5.0]})
    replaced_as_by_pymc(line)
    path = bz.save(line, tmp_path / "line.nc")
    pd.testing.assert_frame_equal(bz.predict(line, {"x": [5.0]}), expected)
    back = bz.load(path)
    pd.testing.assert_frame_equal(bz.predict(back, {"x": [5.0]}), expected)
    assert "terms" in back["constant_data"]  # what PyMC has added is left alone
    assert bz.residuals(back).index.tolist() == [1, 2, 3]


def test_data_that_were_replaced_before_bayeszoo_saw_them_are_named(line):
    with raises(InputError, "data_differ", "X"):
        bz.predict(replaced_as_by_pymc(line.copy(deep=True)), {"x": [5.0]})
