"""Large files are read at once by pyarrow: every cell and every message is what it is row by row."""

import gzip
import random

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.data.table import strings, vectorized
from bayeszoo.data.table.cells import Numbers
from bayeszoo.data.table.read import read_parts, read_table
from bayeszoo.data.table.table import are_numbers, is_text, to_numbers
from bayeszoo.errors import InputError
from tests.reading import by_name
from tests.refusals import raises

PLAIN = ["1", "2.5", "-3", "1e5", "0.1", "7", "0", "1e-3"]
ODD = ["+4", "1E-3", "007", "1_000", "0x1F", "nan", "NaN", "NA", "n/a", "<NA>", "null", "None", "", " ", "  1 ", "\t2"]
ODD += ["inf", "-inf", "1e999", "1e-999", "5e-324", "-1e-320", "0e5", "0.0", "-0", "1.", ".", ".5", "1e", "--1", "1 2"]
ODD += ["1,5", "-,5", '"q"', '"1.5"', '"1,5"', '"a;b"', '"x\ny"', '"a ""b"""', 'a"b', '"x"y', "é", "yes", "no", "#x"]
ODD += ["9007199254740993", "12345678901234567890123", "0.1000000000000000055511151231257827", "x" * 50, "\x1c1"]
ODD += ["\uff11", "1\u00a0", "\u20282", "1\x0b", "\ufeff1", "True", "1e5,2"]


def outcome(read):
    """What reading gives, or how it is refused."""
    try:
        return read()
    except InputError as error:
        return str(error), error.column, error.rows, error.hint


def contents(path, rows, **how):
    """All that is told of a file: its cells as numbers, bit by bit, and as text."""

    def column(each):
        numbers = outcome(lambda: to_numbers(each).tobytes())
        return numbers, are_numbers(each), is_text(each), list(each.values), len(each), each.before

    def tables():
        read = read_parts(path, rows, **how)
        return [{name: column(each) for name, each in table.columns.items()} for table in read]

    return outcome(tables)


@pytest.fixture
def both(monkeypatch):
    """A function that reads row by row, and again at once in blocks of so many bytes."""

    def read(path, rows=None, block=10**6, **how):
        monkeypatch.setattr(vectorized, "SMALLEST", 10**9)
        slow = contents(path, rows, **how)
        for name, value in {"SMALLEST": 0, "FEWEST": 0, "BLOCK": block}.items():
            monkeypatch.setattr(vectorized, name, value)
        return slow, contents(path, rows, **how)

    return read


LONG = "".join(f"{i},{i / 7!r}\n" for i in range(500))
FILES = {
    "numbers": (f"a,b\n{LONG}", {}),
    "a word at the end": (f"a,b\n{LONG}x,1\n", {}),
    "lost digits at the end": (f"a,b\n{LONG}1,1e-999\n", {}),
    "too large at the end": (f"a,b\n{LONG}1,1e999\n", {}),
    "a short row at the end": (f"a,b\n{LONG}1\n", {}),
    "a long row at the end": (f"a,b\n{LONG}1,2,3\n", {}),
    "a blank line at the end": (f"a,b\n{LONG}\n1,2\n", {}),
    "a blank line after CRLF": ("a,b\r\n" + LONG.replace("\n", "\r\n") + "\r\n1,2\r\n", {}),
    "blank lines after the end": (f"a,b\n{LONG}\n\n", {}),
    "missing in the first column": ("a,b\n" + "1,2\n,3\n" * 50, {}),
    "rows of missing cells": ("a,b\n" + "1,2\n,\n" * 50, {}),
    "empty cells of one column": ("a\n" + "1\n\n2\n" * 50, {}),
    "quoted names": (f'"a","b"\n{LONG}', {}),
    "a name of two lines": (f'"a\nc",b\n{LONG}', {}),
    "quoted cells": ('a,b\n"1","x,y"\n2,z\n', {}),
    "text after a quote": (f'a,b\n{LONG}1,"x"y\n', {}),
    "a quote left open": (f'a,b\n"{LONG}', {}),
    "a cell that is too long": ("a,b\n1," + "1" * 140_000 + "\n", {}),
    "CR alone": (f"a,b\n{LONG}".replace("\n", "\r"), {}),
    "one CR": (f"a,b\n{LONG}1\r2,3\n", {}),
    "NUL": (f"a,b\n{LONG}1,\0\n", {}),
    "two byte order marks": (f"\ufeff\ufeffa,b\n{LONG}", {}),
    "a byte order mark below": (f"a,b\n{LONG}\ufeff1,2\n", {}),
    "decimal commas": ("a;b\n" + LONG.replace(",", ";").replace(".", ","), {"delimiter": ";", "decimal": ","}),
    "points for commas": ("a;b\n" + LONG.replace(",", ";"), {"delimiter": ";", "decimal": ","}),
    "quoted decimal commas": ('a,b\n"1,5",2\n3,"-,5"\n', {"decimal": ","}),
    "semicolons": (f"a,b\n{LONG}".replace(",", ";"), {}),
    "no header": (LONG, {"header": False}),
    "numbers as names": (LONG, {}),
    "a missing value as a name": ("NA\n1\nNA\n", {}),
    "no name": (f",b\n{LONG}", {}),
    "UTF-16": (f"a,b\n{LONG}é,1\n".encode("utf-16"), {"encoding": "utf-16"}),
    "not UTF-8": (f"a,b\n{LONG}".encode() + b"\xff,1\n", {}),
    "latin-1": (f"a,b\n{LONG}é,1\n".encode("latin-1"), {"encoding": "latin-1"}),
    "a mark that is not ASCII": ("a§b\n1§2\n", {"delimiter": "§"}),
    "header alone": ("a,b\n", {}),
    "nothing": ("", {}),
}


@by_name(("content", "how"), FILES)
def test_files_are_read_as_row_by_row(written, both, content, how):
    path = written(content)
    for rows, block in [(None, 10**6), (None, 64), (7, 64), (499, 10**6), (500, 300)]:
        slow, fast = both(path, rows, block, **how)
        assert fast == slow


def test_archives_are_read_as_row_by_row(written, both):
    for packed in (gzip.compress(f"a,b\n{LONG}".encode()), gzip.compress(f"a,b\n{LONG}".encode())[:-9]):
        slow, fast = both(written(packed, "data.csv.gz"), block=64)
        assert fast == slow


@pytest.mark.parametrize("cell", ODD)
def test_odd_cells_are_read_as_row_by_row(written, both, cell):
    for mark, decimal in ((",", "."), (";", ",")):
        for number in ("1.5", "1,5"):
            rows = [f"{i}{mark}{number}" for i in range(20)]
            path = written("\n".join([f"a{mark}b", *rows, f"1{mark}{cell}", *rows]) + "\n")
            slow, fast = both(path, delimiter=mark, decimal=decimal, block=60)
            assert fast == slow


def random_file(rng):
    """A file of odd cells, and how to read it."""
    mark, width, end = rng.choice(",,,;\t| "), rng.choice([1, 1, 2, 2, 3]), rng.choice(["\n", "\n", "\r\n", "\r"])
    pools = [rng.choice([PLAIN, PLAIN, ODD, PLAIN + rng.choices(ODD, k=2)]) for _ in range(width)]
    lines = [mark.join(map(rng.choice, pools)) for _ in range(rng.choice([0, 1, 2, 3, 8, 20]))]
    if rng.random() < 0.2:
        lines.append(rng.choice(["", mark, mark.join("1" * (width + 1)), '"', "\0"]))
    names = [rng.choice([f"x{i}"] * 8 + [f'"x{i}"', "1", "", "NA"]) for i in range(width)]
    text = end.join([mark.join(names), *lines]) + rng.choice(["", end, end * 3])
    how = {"delimiter": rng.choice([mark, mark, None]), "decimal": rng.choice(".." + ","), "header": rng.random() < 0.8}
    return text, {**how, "rows": rng.choice([None, None, 1, 3, 100]), "block": rng.choice([3, 10, 30, 10**6])}


@pytest.mark.parametrize("seed", range(10))
def test_random_files_are_read_as_row_by_row(written, both, seed):
    rng = random.Random(seed)
    for _ in range(30):
        text, how = random_file(rng)
        slow, fast = both(written(text), **how)
        assert fast == slow, text


BUGS = {
    "quotes and line ends": (vectorized, "_refuse_odd", lambda block, mark: None, "text after a quote"),
    "blank lines": (vectorized, "_has_blank_line", lambda block: False, "a blank line at the end"),
    "lost digits": (strings, "is_lost", lambda text: False, "lost digits at the end"),
    "decimal marks": (strings, "_PLAIN", dict.fromkeys(".,", b"0123456789.,-"), "points for commas"),
}


@by_name(("module", "name", "wrong", "file"), BUGS)
def test_a_seeded_bug_is_seen(written, both, monkeypatch, module, name, wrong, file):
    content, how = FILES[file]
    monkeypatch.setattr(module, name, wrong)
    slow, fast = both(written(content), **how)
    assert fast != slow


def test_digits_are_rounded_as_python_does():
    pa = pytest.importorskip("pyarrow")
    rng = random.Random(0)
    texts = [np.array(rng.getrandbits(64), np.uint64).view(np.float64).item().__repr__() for _ in range(3000)]
    texts += [f"{rng.getrandbits(90)}e{rng.randrange(-340, 280)}" for _ in range(3000)]
    texts = [text for text in texts if text not in ("nan", "inf", "-inf")]
    numbers = strings._plain(pa.array(texts), ".")
    np.testing.assert_array_equal(numbers.view(np.int64), np.array([*map(float, texts)]).view(np.int64))


def test_columns_of_numbers_are_not_kept_as_text(written, monkeypatch):
    monkeypatch.setattr(vectorized, "SMALLEST", 0)
    path = written(f"a,b\n{LONG}")
    column = read_table(path)["b"]
    assert isinstance(column.cells, Numbers)
    assert column.values[:3] == ["0.0", repr(1 / 7), repr(2 / 7)]
    assert column.of_rows(np.array([2, 1])).values == [repr(2 / 7), repr(1 / 7)]
    table = read_table(path)
    path.write_text("a,b\n1,2\n")
    with raises(InputError, "unreadable_file"):
        _ = table["b"].values


def test_fits_are_of_the_same_data(written, monkeypatch):
    path, digests = written("x,y\n" + LONG), set()
    for smallest in (0, 10**9):
        monkeypatch.setattr(vectorized, "SMALLEST", smallest)
        digests |= {bz.read(bz.find("ridge"), path).digest}
    assert len(digests) == 1
