"""Scripts of PyMC alone: each has the log joint density of the model that it was written from, and samples it."""

import ast
import subprocess
import sys

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import simplex

import bayeszoo as bz
from bayeszoo.compile.script.literals import Names, literal
from bayeszoo.tools.references.code import log_joint
from tests.refusals import raises

EVERY = [(name, each.name) for name in bz.names() for each in bz.find(name).examples]
FEW = [
    ("normal_means", "eight_schools"),
    ("normal_inverse_wishart", "iris_setosa"),
    ("logistic_regression", "bioassay"),
]


POINTS, CLOSE = 5, 1e-9


def largest_gap(model, text):
    """Run a script and return the largest difference of its log joint density f from the model's, over max(1, |f|).

    The points lie about the initial point; discrete variables stay there.
    """
    space = {"__name__": "script"}
    exec(compile(text, "script", "exec"), space)
    ours, theirs = log_joint(model), log_joint(space["model"])
    start, rng, gaps = model.initial_point(), np.random.default_rng(0), []
    for scale in np.linspace(0.0, 0.4, POINTS):
        point = {k: v + scale * rng.standard_normal(v.shape) if v.dtype.kind == "f" else v for k, v in start.items()}
        gaps.append(abs(theirs(point) - ours(point)) / max(1.0, abs(ours(point))))
    return max(gaps) if np.isfinite(gaps).all() else np.inf


def assert_written(name, example):
    kind = bz.find(name)
    rows = bz.example(kind, example)
    model = kind.weak(rows)
    text = bz.code(model, rows)
    assert "bayeszoo" not in text
    assert largest_gap(model.declare(rows), text) <= CLOSE


@pytest.mark.parametrize(("name", "example"), FEW)
def test_a_script_has_the_density_of_its_model_and_does_not_need_this_library(name, example):
    assert_written(name, example)


@pytest.mark.slow  # two log densities are compiled for each data set
@pytest.mark.parametrize(("name", "example"), EVERY)
def test_every_model_on_every_data_set_of_its_own_becomes_a_script(name, example):
    assert_written(name, example)


@pytest.fixture(scope="module")
def coins():
    with pm.Model() as model:
        theta = pm.Beta("theta", 2.0, 3.0)
        pm.Binomial("heads", 9, theta, observed=7)
    return model, bz.code(model)


@pytest.mark.parametrize(
    ("right", "wrong"), [("beta=np.float32(3.0)", "beta=np.float32(4.0)"), ("observed=7", "observed=6")]
)
def test_a_script_of_another_density_is_seen(coins, right, wrong):
    model, text = coins
    assert right in text
    assert largest_gap(model, text) <= CLOSE
    assert largest_gap(model, text.replace(right, wrong)) > 1e-3


def test_what_a_user_declares_is_written_too():
    x = np.linspace(-1, 1, 12).reshape(6, 2)
    with pm.Model(coords={"term": ["a b", 'quote"s', "\n"][:2], "row": range(6)}) as model:
        w = pm.Normal("w's", 0, pm.Exponential("scale", 2.0), dims="term")
        cut = pm.Uniform("cut", -1, pt.maximum(1.0, pt.abs(w[0])))
        mean = pm.Deterministic("mean", pm.math.invlogit(pt.dot(x, w) - cut), dims="row")
        pm.Potential("soft", -pt.sum(w**2) / 7)
        pm.LogNormal("y", mean, pm.Gamma("s", mu=2, sigma=1), observed=np.arange(1.0, 7.0), dims="row")
    text = bz.code(model)
    assert "pm.Gamma(" in text
    assert largest_gap(model, text) <= CLOSE


def test_an_axis_that_only_a_padded_sum_has_is_written():
    """PyMC's simplex joins a vector and its sum, whose axis of one entry no other term has."""
    with pm.Model() as model:
        draw = {"logp": lambda x, a: pt.sum((a - 1) * pt.log(x), axis=-1), "signature": "(n)->(n)"}
        options = {"shape": 3, "transform": simplex, "initval": np.array([0.2, 0.3, 0.5])}
        w = pm.CustomDist("w", np.array([2.0, 3.0, 4.0]), **draw, **options)
        pm.Normal("y", w @ np.array([1.0, 2.0, 3.0]), np.float64(1), observed=np.array([2.0]))
    assert largest_gap(model, bz.code(model)) <= CLOSE


def test_labels_of_a_table_are_text_and_never_code():
    label = 'x"]); import os; os.system("touch here") #\n\'\\'
    Ridge = bz.find("ridge")
    rows = bz.read(Ridge, {"y": [1.0, 2.0, 3.0, 4.0], label: [1.0, 2.0, 0.0, 1.0], "b\u2028c": [0.0, 1.0, 1.0, 3.0]})
    tree = ast.parse(bz.code(Ridge.weak(rows), rows))
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not any(name.startswith(("os", "open", "eval", "exec")) for name in called)
    assert sum(isinstance(node, ast.Import) for node in ast.walk(tree)) == 4


def test_what_cannot_be_written_is_refused():
    with pm.Model() as looped:
        steps = pytensor.scan(lambda x: x * 0.5, outputs_info=[pm.Normal("x")], n_steps=3, return_updates=False)
        pm.Potential("p", steps[-1])
    with raises(bz.InputError, "not_a_script"):
        bz.code(looped)
    with raises(bz.InputError, "conflicting_options"):
        bz.code(looped, {"y": [1]})


NUMBERS = (
    *(np.float64(0.1), np.float32(0.1), np.int64(-3), 1 / 3 * np.arange(5), np.array([np.nan, -np.inf, 5e-324])),
    *(np.arange(12.0).reshape(3, 4) / 7, np.zeros((0, 2)), np.array([True, False]), np.array(["a'\"", "\u2028\\"])),
)


@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_keep_every_digit(value):
    names = Names()
    text = literal(value, names, "x")
    space = {"np": np, **names.arrays}
    again = eval(text, space)
    np.testing.assert_array_equal(again, value)
    assert np.asarray(again).dtype == np.asarray(value).dtype


@pytest.mark.slow  # the script samples
def test_the_draws_of_a_script_are_of_the_posterior(tmp_path):
    model = bz.find("beta_bernoulli")(a=2, b=2)
    tree = bz.fit(model, {"y": [0, 1, 1, 1]}, "exact")
    bz.save(tree, tmp_path / "fit.nc")
    (tmp_path / "script.py").write_text(bz.code(tmp_path / "fit.nc") + '    tree.to_netcdf("draws.nc")\n')
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True, capture_output=True)
    judged = bz.judge(tmp_path / "draws.nc").quantities.loc["theta"]
    exact = bz.summarize(tree)["theta"]
    assert abs(judged["mean"] - exact["mean"]) < 5 * judged["mcse_mean"]
