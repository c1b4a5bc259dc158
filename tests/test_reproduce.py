"""The command and the Python of a report are run, and reproduce its fit."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.cli.app import main
from bayeszoo.comparison.compare import fit_each
from bayeszoo.data.read import own_example
from bayeszoo.report import provenance
from bayeszoo.results.stored import Fit

RNG = np.random.default_rng(1)
TABLE = pd.DataFrame(RNG.normal(size=(12, 4)).round(2), columns=["a", "b", "y", "z"]).assign(t=np.arange(1, 13))
WORDS = {
    "reg.csv": TABLE.to_csv(index=False),
    "seq.csv": "\n".join(["n,s", *(f"{i},{s}" for i, s in enumerate("abbabaabbbabaabab"))]),
    "cat.csv": "\n".join(["n,s", *(f"{i},{s}" for i, s in enumerate("xyzzyxxyz"))]),
    "gaps.csv": "k,y\n1,1.5\n2,\n3,2.5\n4,0.5\n",
    "coins.csv": "won,day\n" + "yes,no\nno,no\nyes,yes\nyes,no\n",
    "comma.csv": "y;n\n1,5;1\n2,5;1\n0,5;1\n",
    "bare.csv": "1.5\n2.5\n0.25\n",
    "odd.csv": '"km, h", w,q\n1.5,2,3\n2.5,1,4\n0.5,7,1\n1.25,3,2\n',
    "newcomb.csv": "y\n1.5\n2.5\n0.25\n",
    "-dash.csv": "y\n1.5\n2.5\n0.25\n",
}
READ = [
    ("linear_regression", "reg.csv", {"target": "z", "features": ["a", "t"]}, "map"),
    ("ridge", "reg.csv", {"target": "y", "features": "a,b"}, "exact"),
    ("markov_chain", "seq.csv", {"column": "s", "order": 2}, "exact"),
    ("dirichlet_multinomial", "cat.csv", {"column": "s", "categories": "z,y,x,w"}, "exact"),
    ("dirichlet_multinomial", "cat.csv", {"column": "s", "categories": ("w", "x, or so", "x", "y", "z")}, "exact"),
    ("gaussian_mean", "gaps.csv", {"column": "y", "missing": "drop"}, "exact"),
    ("beta_bernoulli", "coins.csv", {"column": "won", "positive": "no"}, "exact"),
    ("gaussian_mean", "comma.csv", {"column": "y", "decimal": ",", "delimiter": ";"}, "exact"),
    ("gaussian_mean", "bare.csv", {"header": False}, "exact"),
    ("normal_inverse_wishart", "odd.csv", {"columns": ["q", "km, h"]}, "exact"),
    ("normal_gamma", "-dash.csv", {}, "exact"),
    ("ridge", None, {"features": ["bmi", "s5"]}, "exact"),
    ("normal_gamma", [1.5, 0.5, 2.5, 1.0], {}, "map"),
    ("linear_regression", TABLE, {"target": "z", "features": ["a", "b"]}, "map"),
    ("beta_bernoulli", {"won": ["yes", "no", "yes"]}, {"positive": "yes"}, "map"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with the tables, and we are in it."""
    for name, words in WORDS.items():
        (tmp_path / name).write_text(words, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def typed(capsys):
    """The command line, whose words fits remember."""

    def call(*words):
        with pytest.raises(SystemExit) as stop:
            main([*map(str, words)])
        assert stop.value.code == 0, capsys.readouterr().err

    return call


def by_python(*trees, arrays=None):
    """Run the Python that is printed for fits; return what it makes. ``arrays`` stand for the dots."""
    lines, last = provenance.python([*map(Fit, trees)]).rsplit("\n", 1)
    assert last == 'bz.report(fits, "report.html")'
    assert ("(M, ..." in lines) == (arrays is not None)
    scope = {"arrays": arrays}
    exec(lines.replace("(M, ...", "(M, arrays"), scope)
    return scope["fits"]


def assert_same(again, once):
    for name in ("model", "data_digest", "seed"):
        assert again.attrs[name] == once.attrs[name]
    assert json.loads(again.attrs["fields"]) == json.loads(once.attrs["fields"])
    assert again["posterior"].to_dataset().equals(once["posterior"].to_dataset())


def assert_remade(*trees, arrays=None):
    for again, once in zip(by_python(*trees, arrays=arrays), trees, strict=True):
        assert_same(again, once)


def fit_of(name, source, method, **options):
    """Fit what is read from a file or arrays, with the weak prior."""
    kind = bz.find(name)
    data = bz.read(kind, source, **options)
    return bz.fit(kind.weak(data), data, method)


def all_blocks(section):
    """The blocks of a section, and those folded in it."""
    for block in section.blocks:
        yield block
        if block.kind == "folded":
            yield from all_blocks(block)


def text_of(section):
    return "\n".join(getattr(block, "text", "") for block in all_blocks(section))


@pytest.mark.parametrize(("name", "source", "options", "method"), READ)
def test_a_fit_made_in_python_is_made_again_from_its_file_or_from_arrays_that_stand_as_dots(
    name, source, options, method, tmp_path
):
    tree = fit_of(name, tmp_path / source if isinstance(source, str) else source, method, **options)
    arrays = None if source is None or isinstance(source, str) else source
    told = f"  # the arrays that were given, SHA-256 {tree.attrs['data_digest']}\n" in provenance.python([Fit(tree)])
    assert told == (arrays is not None)
    assert_remade(tree, arrays=arrays)


@pytest.mark.parametrize(
    "words",
    [
        "ridge reg.csv --target y --features a,t --method exact --prior textbook",
        "beta_bernoulli coins.csv --column won --positive yes --method exact --set a=2",
        "gaussian_mean comma.csv --column y --decimal , --delimiter ';' --method exact --draws 500",
        "normal_gamma --example cavendish --method exact",
        "linear_regression reg.csv --target z --chunk-rows 5 --method exact",
    ],
)
def test_a_fit_made_on_the_command_line_is_made_again_without_its_seed_being_given(words, typed, tmp_path):
    typed("fit", *shlex.split(words), "-o", tmp_path / "fit.nc")
    tree = bz.load(tmp_path / "fit.nc")
    command = provenance.command(Fit(tree))
    assert command == f"bayeszoo fit {words} -o fit.nc --seed {tree.attrs['seed']}"
    typed(*shlex.split(command)[1:], "--overwrite")
    assert_same(bz.load(tmp_path / "fit.nc"), tree)
    assert_remade(tree)


def test_data_out_of_a_fit_are_read_as_the_fit_was():
    once = fit_of("linear_regression", "reg.csv", "map", target="z", features=np.array(["b", "a"]))
    fit = Fit(bz.load(bz.save(once, "fit.nc")))
    tree = bz.fit(fit.model, fit.observed, "mle", seed=1)
    assert_remade(tree)


def test_what_was_read_is_in_the_table_of_provenance():
    tree = fit_of("linear_regression", "reg.csv", "map", target="z", features="a,b")
    tables = [block for block in all_blocks(provenance.again({"map": Fit(tree)})) if block.kind == "table"]
    (rows,) = [table.rows for table in tables if table.columns[0] == "data"]
    assert ["read with", "target='z', features='a,b'"] in [list(row) for row in rows]


def test_what_was_read_for_other_inputs_is_not_said_to_be_read_so():
    coins = bz.read(bz.find("beta_bernoulli"), "coins.csv", column="won", positive="yes")
    tree = bz.fit(bz.find("gamma_poisson")(), coins, "exact")
    assert_remade(tree, arrays=coins)


def test_an_example_and_options_of_the_method_are_said():
    mixture, normal = bz.find("gaussian_mixture"), bz.find("normal_gamma")
    rows = bz.read(mixture, "reg.csv", columns="a,b")
    assert_remade(bz.fit(mixture.weak(rows), rows, "em", restarts=3))
    assert_remade(bz.fit(normal(), bz.example(normal, "cavendish"), "exact"))


def test_an_interrupted_fit_is_said_to_be_made_whole():
    tree = bz.fit(bz.find("normal_gamma")(), "newcomb.csv", "exact")
    assert "interrupted" not in text_of(provenance.again({"exact": Fit(tree)}))
    tree.attrs["status"] = "interrupted"
    assert "An interrupted fit is repeated" in text_of(provenance.again({"exact": Fit(tree)}))


def test_a_file_that_is_called_as_an_example_is_not_taken_for_it():
    kind = bz.find("normal_gamma")
    mine, own = (bz.fit(kind(), data, "exact") for data in ("newcomb.csv", bz.example(kind)))
    assert ["bz.example(M, 'newcomb')" in provenance.python([Fit(tree)]) for tree in (mine, own)] == [False, True]
    assert [
        "Example data of the model" in text_of(provenance.section({"normal_gamma": Fit(tree)})) for tree in (mine, own)
    ] == [
        False,
        True,
    ]
    packed = bz.example(kind := bz.find("lda"))
    assert own_example(kind, packed.source, packed.digest).name == "federalist"


def test_one_seed_is_drawn_for_all_methods_of_a_call_and_one_command_is_printed(typed, tmp_path, monkeypatch):
    fits = []
    monkeypatch.setitem(bz.report.__globals__, "page", lambda trees, *_: fits.append(trees) or "<!doctype html>")
    words = "compare linear_regression reg.csv --target z --methods exact,map --report page.html --plot densities.svg"
    typed(*words.split())
    (seed,) = {fit.tree.attrs["seed"] for fit in fits[0]}
    assert provenance.again(dict(enumerate(fits[0]))).blocks[1].text == f"bayeszoo {words} --seed {seed}"
    assert_remade(*(fit.tree for fit in fits[0]))
    model = bz.find("beta_bernoulli")()
    (first,), (other,) = ({f.attrs["seed"] for f in fit_each(model, [1, 0], ["exact", "map"])} for _ in range(2))
    assert first != other
    assert fit_each(model, [1, 0], ["map"], 5)[0].attrs["seed"] == 5


def test_model_and_data_are_said_again_only_where_they_change():
    asked_for = [("linear_regression", "map"), ("linear_regression", "exact"), ("ridge", "exact")]
    trees = [fit_of(name, "reg.csv", method, target="z") for name, method in asked_for]
    lines = provenance.python([*map(Fit, trees)])
    assert lines.count("bz.find(") == lines.count("bz.read(") == 2
    assert_remade(*trees)
