"""Formulas by formulaic: its columns, also for new rows, and what a formula may not do."""

import json
from itertools import pairwise

import lazy_loader
import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.data.inputs import Regression
from bayeszoo.data.inputs.features import expressions, formula
from bayeszoo.data.read import read
from bayeszoo.model.parts.chunks import read_chunks
from bayeszoo.results.stored import Fit
from tests.reading import by_name, model_of, plain, refusal, refuses
from tests.refusals import raises
from tests.test_levels import cars

formulaic = pytest.importorskip("formulaic")
Line = model_of(Regression("y"))
Linear = bz.find("linear_regression")

FORMULAS = [
    "mpg ~ weight*origin + gears",
    "mpg ~ C(origin) + C(gears) + weight:gears",
    "mpg ~ center(weight) + poly(gears, 2) + origin",
    "mpg ~ bs(weight, df=5) + C(origin, Treatment('usa'))",
    "mpg ~ np.sqrt(weight) + I(weight / 1000) + C(origin, Sum)",
    "mpg ~ cr(weight, df=3) + scale(gears) + origin:weight",
    "mpg ~ (weight + gears)**2 + `engine size`",
]


def table(rows=120, seed=3):
    return cars(rows, seed).assign(**{"engine size": lambda frame: frame["weight"] / 20 + frame["gears"]})


@pytest.mark.parametrize("text", FORMULAS)
def test_the_columns_are_those_of_formulaic_for_the_fit_and_for_new_rows(text):
    frame, new = table(), table(40, seed=4).iloc[::-1]
    new = new[new["weight"].between(frame["weight"].min(), frame["weight"].max())].head(9)  # splines end there
    matrix = formulaic.Formula(text).rhs.get_model_matrix(frame)
    data = read(Line, frame, formula=text)
    names = [name for name in matrix.columns if name != "Intercept"]
    assert data["feature"].tolist() == names
    assert np.array_equal(data["X"], matrix[names])
    assert np.array_equal(data["y"], frame["mpg"])
    again = json.loads(json.dumps(data.reading))  # as a file keeps it
    like = type(data)(dict(data), columns=data.columns, reading=again)
    for rows in (new, new.head(1), new.drop(columns="mpg")):
        own = read(Line, rows, new=True, like=like)
        expected = matrix.model_spec.get_model_matrix(rows)[names]
        assert np.allclose(own["X"], expected, rtol=1e-12, atol=1e-12)


def test_the_mle_is_least_squares_and_so_are_predictions_from_a_file(tmp_path):
    frame, text = table(), "mpg ~ center(weight)*C(origin, Treatment('usa')) + poly(gears, 2)"
    data = bz.read(Linear, frame, formula=text)
    tree = bz.fit(Linear.weak(data), data, "mle", seed=1)
    matrix = formulaic.Formula(text).rhs.get_model_matrix(frame).to_numpy(float)
    expected = matrix @ np.linalg.lstsq(matrix, frame["mpg"], rcond=None)[0]
    bz.save(tree, tmp_path / "fit.nc")
    predicted = bz.predict(bz.load(tmp_path / "fit.nc"), frame.head(7))["mean"]
    assert predicted.to_numpy() == pytest.approx(expected[:7], rel=1e-8)


def test_levels_are_in_the_order_that_is_asked_for_and_contrasts_know_the_terms():
    data = bz.read(Linear, table(), formula="mpg ~ weight + origin", levels={"origin": ["usa", "japan", "europe"]})
    assert data["feature"].tolist() == ["weight", "origin[T.japan]", "origin[T.europe]"]
    assert data.notes == ("column 'origin': levels usa, japan, europe", "origin: usa is the reference")
    tree = bz.fit(Linear.weak(data), data, "mle", seed=1)
    by_name_ = read(Linear, table(), target="mpg", features="weight,origin", levels="origin=usa,japan,europe")
    other = bz.contrasts(bz.fit(Linear.weak(by_name_), by_name_, "mle", seed=1))
    found = bz.contrasts(tree)
    assert (
        found[["quantity", "group", "against"]].values.tolist()
        == other[["quantity", "group", "against"]].values.tolist()
    )
    assert found["difference"].to_numpy() == pytest.approx(other["difference"].to_numpy(), rel=1e-9)


def test_effects_leave_out_what_cannot_vary_alone():
    data = bz.read(Linear, table(), formula="mpg ~ weight + np.log(weight) + gears + C(origin)")
    tree = bz.fit(Linear.weak(data), data, "map", seed=1)
    assert set(bz.contrasts(tree)["quantity"]) == {"C(origin)"}
    from bayeszoo.answers.effects import effects

    assert list(dict.fromkeys(effects(Fit(tree)).index.get_level_values("feature"))) == ["gears", "C(origin)"]
    alone = bz.read(Linear, table(), formula="mpg ~ bs(weight, df=4)")
    with raises(bz.InputError, "unknown_name", "formula"):
        effects(Fit(bz.fit(Linear.weak(alone), alone, "map", seed=1)))


def test_the_outcome_may_be_named_apart():
    frame = table()
    assert plain(read(Line, frame, formula="~ weight", target="mpg")) == plain(
        read(Line, frame, formula="mpg ~ weight")
    )
    assert read(Line, frame.rename(columns={"mpg": "y"}), formula="weight")["feature"].tolist() == ["weight"]


ROWS = {"y": [1.0, 2, 4, 3, 5, 2], "a": [1.0, 2, 3, 5, 4, 7], "c": ["u", "v", "u", "v", "v", "u"]}
RUN = "__import__('os').system('touch canary')"
UNSAFE = {
    "import": f"y ~ {RUN}",
    "identity": f"y ~ I({RUN})",
    "attribute": "y ~ I(a.__class__)",
    "load": "y ~ np.load('x')",
    "lambda": "y ~ I((lambda: 1)())",
    "comprehension": "y ~ I([a for a in a])",
    "subscript": "y ~ I(a[0])",
    "walrus": "y ~ I(a := 3)",
    "format": "y ~ I(f'{a}')",
    "lag": "y ~ lag(a)",
    "context": "y ~ C(c, contr.__class__)",
    "rows": "y ~ np.matmul(a, a)",
    "output": "y ~ np.log(a, out=a)",
    "shift": "y ~ I(1 << 10**10)",
    "text": "y ~ I('a' * 10**10)",
    "backticks in text": f'y ~ a + I("`" + str({RUN}) + "`")',
    "keyword in backticks": "y ~ I(`lambda`: 1)",
    "braces": f"y ~ {{{RUN}}}",
    "left": f"{RUN} ~ a",  # formulaic evaluates what is called while it parses
    "called on the left": f"I(1)({RUN})(a) ~ a",
    "quote of a state": f"""y ~ center(a, ddof='" + str({RUN.replace("'", '"')}) + "')""",
    "quote of a level": """y ~ C(c, Treatment('" + str(1) + "'))""",
    "power of powers": "y ~ I(9**9**9)",
    "repeated list": "y ~ bs(a, knots=[1] * 10**10)",
    "knots": "y ~ bs(a, df=1000000000)",
    "degree": "y ~ poly(a, 1000000000)",
}


@by_name(("text",), {name: (text,) for name, text in UNSAFE.items()})
def test_what_is_not_arithmetic_is_refused_before_it_is_evaluated(text, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(formulaic.ModelSpec, "get_model_matrix", lambda *_, **__: pytest.fail("it was evaluated"))
    message = str(refusal(Line, ROWS, formula=text))
    assert "cannot be used in a formula" in message or "unterminated string" in message
    assert not list(tmp_path.iterdir())


ENDLESS = {
    "power": "y ~ (a + c)**100000",
    "float power": "y ~ a**1e9",
    "products": f"y ~ ({'+'.join(f'v{i}' for i in range(200))})**3",
    "parentheses": f"y ~ {'(' * 9000}a{')' * 9000}",
    "parentheses in Python": f"y ~ I({'(' * 200}a{')' * 200})",
    "signs": f"y ~ I({'-' * 900}a)",
    "tokens": f"y ~ {'a:' * 4000}a",
    "length": f"y ~ {'a' * 30_000}",
}


@by_name(("text",), {name: (text,) for name, text in ENDLESS.items()})
def test_formulas_without_end_are_refused(text):
    refusal(Line, ROWS, formula=text)


def test_what_was_not_checked_cannot_be_evaluated(monkeypatch, tmp_path):
    """The second fence: Python's builtins and NumPy's other functions are not there, whatever passes the check."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(expressions, "_factor", lambda _: iter(["a"]))
    for term in (f"I({RUN})", "np.save('canary', a)", "I(print(a))", "hashed(c, levels=2)"):
        refusal(Line, ROWS, formula=f"y ~ {term}")
    assert not list(tmp_path.iterdir())


def test_levels_may_not_multiply_into_columns_without_end():
    rows = {"y": range(400), "a": range(400), "b": range(400)}
    assert str(refusal(Line, rows, formula="y ~ C(a):C(b)")).startswith("the formula 'C(a):C(b)' makes 160000 columns")


def test_a_formula_in_a_file_is_checked_as_well():
    data = read(Line, ROWS, formula="y ~ center(a)")
    coding = {**data.reading["coding"], "formula": "1 + I(a.__class__)"}
    forged = type(data)(dict(data), columns=data.columns, reading={**data.reading, "coding": coding})
    with raises(bz.InputError, "bad_formula", "formula"):
        read(Line, {"a": [1]}, new=True, like=forged)


REFUSED = {
    "no column": ("y ~ b", {}, "the table has no column 'b'; its columns are 'y', 'a', 'c'"),
    "no intercept": (
        "y ~ 0 + a",
        {},
        "the formula 'y ~ 0 + a' has no intercept; leave out the 0 or -1, and say --set intercept=false",
    ),
    "outcome": ("log(y) ~ a", {}, "the outcome of the formula 'log(y) ~ a' is no column; write it as a column first"),
    "features": (
        "y ~ a",
        {"features": "a"},
        "a formula names the features itself, and features too; leave out --features",
    ),
    "target": ("y ~ a", {"target": "a"}, "the formula has the outcome 'y', --target 'a'"),
    "syntax": ("y ~ (a", {}, "formula 'y ~ (a': Could not find matching context marker."),
    "none": ("y ~ 1", {}, "there is no feature, or each has one level; give one that differs between rows"),
}
test_formulas_that_are_refused = refuses(
    Line, {name: (ROWS, {"formula": text, **more}, message) for name, (text, more, message) in REFUSED.items()}
)


def test_numbers_that_are_no_levels_of_the_fit_and_what_is_not_finite_are_refused():
    like = read(Line, ROWS, formula="y ~ C(a) + c")
    found = refusal(Line, {"a": [1, 6], "c": ["u", "v"]}, new=True, like=like)
    assert str(found) == "column 'a': 6 is no level of C(a) in the fit; leave it out, or fit again with it"
    unknown = refusal(Line, {"a": [1, 2], "c": ["u", "w"]}, new=True, like=like)
    assert str(unknown).startswith("column 'c', row 2: level 'w' is not among the 2 of the fit")
    infinite = refusal(Line, {**ROWS, "a": [1.0, 0, 3, 5, 4, 7]}, formula="y ~ log(a)")
    assert str(infinite) == "'log(a)' of the formula is not finite in row 2 of those with all values"


def test_rows_that_were_read_by_themselves_are_not_those_of_the_fit():
    frame = table()
    data = bz.read(Linear, frame, formula="mpg ~ center(weight)")
    tree = bz.fit(Linear.weak(data), data, "map", seed=1)
    assert Fit(tree).data.reading["coding"]["state"]
    apart = bz.read(Linear, frame.head(10), formula="mpg ~ center(weight)")
    with raises(bz.InputError, "formula_needs_fit"):
        bz.predict(tree, apart)


def test_chunks_and_a_missing_library_are_said(tmp_path, monkeypatch):
    table(50).to_csv(tmp_path / "cars.csv", index=False)
    with raises(bz.InputError, "needs_rows", "formula"):
        list(read_chunks(Line, tmp_path / "cars.csv", 20, formula="mpg ~ weight"))
    monkeypatch.setattr(formula, "formulaic", lazy_loader.load("no_such_library_as_this"))
    assert str(refusal(Line, ROWS, formula="y ~ a")) == "formulas need formulaic; pip install 'bayeszoo[formula]'"


def column_of(text, table):
    """The one column of numbers that a formula makes of a table."""
    data = bz.read(Line, {"y": np.arange(len(next(iter(table.values())))) * 1.0, **table}, formula=f"y ~ {text}")
    return data["X"][:, 0]


QUOTED = [
    "a b",
    "a_b",
    "a-b",
    "a b c",
    "1a",
    "lambda",
    "log",
    "np",
    "a.b",
    "a[b",
    "x{y",
    "1",
    "__x",
    "print",
    "_quoted_a_b",
]
QUOTED += ["_python", "\ufb01", "fi", "\ufb01 x", "fi x", "\xb5", "\u03bc", "e\u0301 f", "\xe9 f", "\xaa b"]


@pytest.mark.parametrize(("first", "second"), [*pairwise(QUOTED), *pairwise(QUOTED[::-1]), ("a b c", "a b")])
def test_quoted_columns_in_sums_and_products_are_those_that_are_named(first, second):
    """Columns begin one another, are named as functions or keywords, or are one name to Python."""
    table = {first: [1.0, 2.0, 3.0, 5.0], second: [2.0, 0.5, 7.0, 1.0]}
    a, b = map(np.array, table.values())
    assert column_of(f"I(`{first}` * `{second}`)", table) == pytest.approx(a * b)
    assert column_of(f"I(`{first}` - 2 * `{second}` / `{first}`)", table) == pytest.approx(a - 2 * b / a)
    assert column_of(f"center(`{first}` * `{second}`)", table) == pytest.approx(a * b - (a * b).mean())
    assert column_of(f"{{ `{second}` + `{first}` }}", table) == pytest.approx(a + b)


def test_a_name_is_the_column_that_is_written_and_not_the_one_that_python_makes_of_it():
    table = {"\xb5": [1.0, 2.0, 3.0, 5.0], "\u03bc": [2.0, 0.5, 7.0, 1.0]}
    assert column_of("I(\xb5 - \u03bc)", table) == pytest.approx(np.subtract(*table.values()))


def test_centers_of_quoted_columns_are_those_of_the_fit():
    rows = {"y": [1.0, 2, 4, 3], "a b c": [1.0, 2, 3, 6], "a b": [2.0, 0.5, 7.0, 1.0]}
    like = read(Line, rows, formula="y ~ center(`a b c` * `a b`)")
    like = type(like)(dict(like), columns=like.columns, reading=json.loads(json.dumps(like.reading)))
    new = read(Line, {"a b c": [1.0, 2], "a b": [1.0, 3]}, new=True, like=like)
    assert new["X"][:, 0] == pytest.approx(np.array([1.0, 6.0]) - 7.5)
    coding = {**like.reading["coding"], "state": {"items": []}}
    other = type(like)(dict(like), columns=like.columns, reading={**like.reading, "coding": coding})
    assert "needs statistics of new rows" in str(refusal(Line, {"a b c": [1.0], "a b": [1.0]}, new=True, like=other))


@pytest.mark.parametrize(
    "term", ["C(`a b`)", "C(`a b`):x", "C(`a b`, Sum)", "C(np.exp(`a b`))", "C(I(2 * x), Treatment(4))"]
)
def test_values_that_are_no_levels_of_the_fit_are_refused(term):
    rows = {"y": [1.0, 2, 4, 3, 5, 2], "a b": [1.0, 2, 3, 3, 2, 1], "x": [1.0, 2, 3, 3, 2, 1]}
    like = read(Line, rows, formula=f"y ~ {term}")
    assert read(Line, {"a b": [1.0, 2.0], "x": [1.0, 2.0]}, new=True, like=like)["X"].any()
    assert "no level of" in str(refusal(Line, {"a b": [1.0, 6.0], "x": [1.0, 6.0]}, new=True, like=like))


@pytest.mark.parametrize("name", ["log", "center", "np", "C", "I"])
def test_a_column_with_the_name_of_a_function_takes_no_functions_place(name):
    table = {"y": [1.0, 2.0, 4.0, 8.0], name: [1.0, 2.0, 3.0, 5.0], "x": [3.0, 0.5, 7.0, 1.0]}
    data = bz.read(Line, table, formula=f"y ~ {name} + log(x) + np.exp(x) + center(x) + I(x**2)")
    x = np.array(table["x"])
    expected = np.column_stack([table[name], np.log(x), np.exp(x), x - x.mean(), x**2])
    assert data["X"] == pytest.approx(expected)
    for term in (f"I(2 * {name})", f"C({name})", f"center({name})"):
        with raises(bz.InputError, "bad_formula", name):
            bz.read(Line, table, formula=f"y ~ {term}")
    assert column_of(f"I(2 * `{name}` * log(x))", table) == pytest.approx(2 * np.array(table[name]) * np.log(x))


def test_whole_numbers_of_a_formula_do_not_overflow():
    x = np.array([1.5, 2.0, 3.0, 4.5])
    assert column_of("I(x * np.power(10, 20))", {"x": x}) == pytest.approx(1e20 * x)
    assert column_of("I(x**2)", {"x": x}) == pytest.approx(x**2)


@pytest.mark.parametrize(
    "term",
    [
        "I(I(9)**I(9)**I(9))",
        "exp10(x)",
        "np.log(x, x)",
        "np.add(x)",
        "x^2*sqrt(x)",
        "I(x^2)",
        "poly(x,100):poly(z,100)",
    ],
)
def test_what_reads_otherwise_than_it_computes_is_refused(term):
    """A power of hidden numbers, x**10 under the name of 10**x, an output of NumPy's in place of a base."""
    x = np.linspace(1.0, 2.0, 300)
    with pytest.raises(bz.InputError):
        column_of(term, {"x": x, "z": x**2})
