"""Files are written whole or not at all: through links, under any name, by one of two writers; answers come first."""

import json
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import bayeszoo as bz
from bayeszoo.cli.verbs import fits as fit_verb
from bayeszoo.errors import InputError, NotWritten
from bayeszoo.foundation.process import writing
from bayeszoo.results import files
from tests.quick import quick_first, quick_where
from tests.refusals import raises


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def test_of_two_that_write_one_name_the_second_is_refused(tmp_path):
    path = tmp_path / "page.html"
    for _ in range(2):  # both find it free before their work
        writing.require_writable(path, overwrite=False)
    writing.write_text("first", path)
    with raises(InputError, "not_writable"):
        writing.write_text("second", path)
    assert path.read_text() == "first"
    writing.write_text("third", path, overwrite=True)
    assert path.read_text() == "third"
    assert listing(tmp_path) == ["page.html"]


def test_so_it_is_where_a_file_system_has_no_links(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    test_of_two_that_write_one_name_the_second_is_refused(tmp_path)


@pytest.mark.parametrize("kind", ["picture", "fit"])
def test_pictures_and_fits_too(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(files, "require_writable", lambda *_: None)  # as it was free then
    monkeypatch.setattr(writing, "require_writable", lambda *_: None)
    tree = bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact", seed=1, groups=[])
    write = {"picture": lambda: writing.write_figure(Figure(), path), "fit": lambda: bz.save(tree, path)}[kind]
    path = tmp_path / {"picture": "a.svg", "fit": "a.nc"}[kind]
    write()
    before = path.read_bytes()
    with raises(InputError, "not_writable"):
        write()
    assert path.read_bytes() == before


def test_links_are_written_through_and_permissions_kept(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "table.csv", tmp_path / "table.csv"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(Path("there", "table.csv"))
    with raises(InputError, "file_exists", "exists"):
        writing.require_writable(link, overwrite=False)
    writing.write_text("new", link, overwrite=True)
    assert (link.is_symlink(), target.read_text(), target.stat().st_mode & 0o777) == (True, "new", 0o640)
    assert (listing(tmp_path), listing(target.parent)) == (["table.csv", "there"], ["table.csv"])


def test_a_link_to_nothing_makes_its_file(tmp_path):
    link = tmp_path / "latest.csv"
    link.symlink_to("today.csv")
    writing.require_writable(link, overwrite=False)
    writing.write_text("rows", link)
    assert (link.is_symlink(), (tmp_path / "today.csv").read_text()) == (True, "rows")


def test_links_in_a_circle_are_refused(tmp_path):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(InputError):
        writing.require_writable(one, overwrite=True)


@pytest.mark.parametrize("name", ["n" * 251 + ".csv", "ä" * 125 + ".csv", os.fsdecode(b"\xff\xfe.csv")])
def test_names_up_to_the_longest_and_of_any_bytes(tmp_path, name):
    path = tmp_path / name
    writing.require_writable(path, overwrite=False)
    writing.write_text("rows", path)
    assert path.read_text() == "rows"


@pytest.mark.parametrize("stem", ["fit", "n" * 252, "ä" * 120])
def test_an_interrupted_fit_has_a_name_that_is_not_too_long(tmp_path, stem):
    path = files.partial_of(tmp_path / f"{stem}.nc")
    assert path.name.endswith(".nc.partial")
    path.touch()
    assert files.probe(path, overwrite=True) == path


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    kept = [f"{writing._OURS}{os.getpid()}-abc", f".bayeszoo-00000000-{ended.pid}-abc", f".data.tmp-{ended.pid}"]
    for name in (*kept, f"{writing._OURS}{ended.pid}-abc"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").touch()
    (tmp_path / f"{writing._OURS}{ended.pid}-file").touch()
    writing.write_text("rows", tmp_path / "table.csv")
    assert listing(tmp_path) == sorted([*kept, f"{writing._OURS}{ended.pid}-file", "table.csv"])


@contextmanager
def full_disk():
    """Let no file of this process grow beyond a few bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def drawn():
    figure = Figure()
    figure.subplots().plot([1, 3, 2])
    return figure


FITTED = bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact", seed=1, groups=[])
WRITERS = {
    "a.csv": lambda path: writing.write_text("row\n" * 999, path, True),
    "a.pdf": lambda path: writing.write_figure(drawn(), path, True),
    "a.png": lambda path: writing.write_figure(drawn(), path, True),
    "a.svg": lambda path: writing.write_figure(drawn(), path, True),
    "a.nc": lambda path: bz.save(FITTED, path, True),
    "a.html": lambda path: bz.report(FITTED, path, overwrite=True),
}


@pytest.mark.parametrize("name", quick_where(WRITERS, lambda name: name != "a.html"))
def test_a_full_disk_is_one_error_for_every_writer_and_leaves_the_old_file(tmp_path, name):
    WRITERS[name](tmp_path / name)  # what else it writes, as what it compiles, is written now
    (tmp_path / name).write_text("old")
    with full_disk(), pytest.raises(NotWritten):
        WRITERS[name](tmp_path / name)
    assert listing(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "old"


# The answer is printed first

NUMBERS = "y\n1.2\n0.3\n2.2\n1.9\n0.7\n1.1\n1.6\n0.2\n"
ROWS = "x,y\n1,2.1\n2,3.9\n3,6.2\n4,7.8\n5,10.1\n6,12.2\n"
SPLIT = "g,part,y\na,p,1\na,q,0\nb,p,1\nb,q,1\na,p,0\nb,q,0\n"
CLASSES = "x,y\n-2,0\n-1,0\n0,1\n0.5,0\n1,1\n2,1\n"
VERBS = {
    "bootstrap": ("bootstrap", "numbers.csv", "-o", "new.csv"),
    "bayesbag": ("bayesbag", "normal_gamma", "numbers.csv", "--resamples", "20", "-o", "new.csv"),
    "compare": ("compare", "normal_gamma", "numbers.csv", "--methods", "exact", "-o", "new.csv"),
    "due-to": ("due-to", "split.csv", "--by", "g", "--within", "part", "--column", "y", "--plot", "new.pdf"),
    "fit": ("fit", "normal_gamma", "numbers.csv", "--method", "exact", "-o", "new.nc"),
    "fit by": ("fit", "beta_bernoulli", "split.csv", "--column", "y", "--method", "exact", "--by", "g", "-o", "new.nc"),
    "predict": ("predict", "lines.nc", "lines.csv", "-o", "new.csv"),
    "residuals": ("residuals", "lines.nc", "--replicates", "20", "--plot", "new.png"),
    "select": ("select", "lines.csv", "--target", "y", "-c", "linear_regression", "-o", "new.parquet"),
    "show": ("show", "normal_gamma", "--plot", "new.svg"),
    "classify": ("classify", "classes.nc", "-o", "new.csv"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and fits that the commands take."""
    folder = tmp_path_factory.mktemp("verbs")
    tables = {"numbers.csv": NUMBERS, "lines.csv": ROWS, "split.csv": SPLIT, "classes.csv": CLASSES}
    for name, text in tables.items():
        (folder / name).write_text(text)
    for name, model in {"lines": "linear_regression", "classes": "logistic_regression"}.items():
        kind = bz.find(model)
        rows = bz.read(kind, folder / f"{name}.csv", target="y")
        bz.save(bz.fit(kind.weak(rows), rows, "exact", seed=1, groups=[]), folder / f"{name}.nc")
    return folder


@pytest.mark.parametrize("verb", quick_first(VERBS, 20))
@pytest.mark.parametrize("as_json", quick_first([False, True], 2))
def test_a_file_that_cannot_be_written_takes_no_answer_with_it(folder, monkeypatch, run, verb, as_json):
    words = [*VERBS[verb], *["--json"] * as_json]
    monkeypatch.chdir(folder)
    code, answer, _ = run(*words)
    assert (code, answer != "") == (0, True)
    (made := Path(words[-1 - as_json])).unlink()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "_create", full)
    code, out, err = run(*words)
    assert code == NotWritten.exit_code
    last = err.splitlines()[-1]
    assert last.startswith(f"error: cannot write {made}: No space left on device")
    assert not made.exists()
    if not as_json:
        assert len(out.splitlines()) == len(answer.splitlines())
    else:
        assert {key for key, value in json.loads(answer).items() if value == str(made)} <= {"saved", "plot", "report"}
        assert str(made) not in {value for value in json.loads(out).values() if isinstance(value, str)}


def test_two_files_that_cannot_be_written_are_both_named(folder, monkeypatch, run):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(fit_verb.files, "require_writable", lambda *_: None)
    monkeypatch.setattr(writing, "_create", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    code, out, err = run("residuals", "lines.nc", "--replicates", "20", "--plot", "two.png", "-o", "two.csv")
    assert (code, "two.png" in err, "two.csv" in err, out != "") == (4, True, True, True)


def test_files_are_written_though_nobody_reads_the_answer(folder):
    """As behind ``| head``."""
    code = "from bayeszoo.cli.app import main; main(['predict', 'lines.nc', 'lines.csv', '-o', 'piped.csv'])"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, (folder / "piped.csv").is_file()) == (141, True)
