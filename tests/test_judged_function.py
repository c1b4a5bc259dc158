"""Values of functions by approximations whose parameters are withheld, against the exact answers of the quadrature."""

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.answers.function import _bands, _judged, _judged_bands, function_bands
from bayeszoo.errors import Untrustworthy
from bayeszoo.report.families.function import about_function
from bayeszoo.results.stored import Fit
from tests.refusals import raises
from tests.test_judged import as_approximation, scaled

PROCESS = bz.find("gaussian_process")
X = np.linspace(0, 10, 25)
TABLE = {"x": X, "y": np.sin(X) + 0.2 * np.random.default_rng(1).normal(size=25)}
AT = {"x": [0.0, 2.1, 5.2, 9.0, 11.0, 12.0, 14.0, 60.0]}
NAMES = ["mean", "q025", "median", "q975"]


@pytest.fixture(scope="module")
def exact():
    data = bz.read(PROCESS, TABLE, target="y")
    return bz.fit(PROCESS.weak(data), data, "exact", seed=1)


@pytest.fixture(scope="module")
def process(exact):
    """The exact fit as if it were an approximation, measured against its own draws: nothing is compiled."""
    return as_approximation(exact.copy(deep=True), "length")


@pytest.mark.parametrize("by", [{"length": 1.0}, {"length": 1.1}, {"sigma": 1.15}, {"amplitude": 1.3}], ids=str)
def test_what_is_shown_of_a_function_is_near_the_exact_answer(process, exact, by):
    """Where the length is off, rows between and beyond those of the fit see it, and places far away do not."""
    frame, true = bz.function_values(scaled(process, **by), AT), bz.function_values(exact, AT)
    shown = frame["median"].notna()
    assert shown.any()
    assert shown.all() == (by == {"length": 1.0})
    assert (np.abs(frame[NAMES] - true[NAMES])[shown].max(axis=1) < 0.55 * true["sd"][shown]).all()
    gap = (frame["median"] - true["median"])[shown] / true["sd"][shown]
    assert np.abs(gap).max() < 0.15
    ratio = (frame["sd"] / true["sd"]).dropna()
    assert ratio.between(0.87, 1.13).all()
    share = (frame["prior_share"] / true["prior_share"]).dropna()
    assert share.between(0.75, 1.3).all()
    assert ("rows are too far from it; try --method exact" in frame.attrs["judged"]) == (not shown.all())


def test_a_share_of_the_prior_does_not_pass_because_the_values_agree(process):
    own = bz.function_values(process, AT).drop(columns="withheld", errors="ignore")
    shares = own["prior_share"] * [1.0, 1.5, 1.1, 0.9, 0.7, 1.0, 1.0, 1.0]
    frame = _judged(Fit(process), own.assign(prior_share=shares), own)
    assert frame["prior_share"].isna().tolist() == [False, True, False, False, True, False, False, False]
    assert frame["median"].notna().all()


def test_functions_drawn_are_refused_where_parameters_are_withheld(process):
    with raises(Untrustworthy, "withheld", "leave draws out", "--method exact"):
        bz.function_values(process, AT, draws=2)


def test_a_function_that_is_off_everywhere_is_refused(process):
    with raises(Untrustworthy, "withheld"):
        bz.function_values(scaled(process, length=1.5, sigma=2.0), {"x": AT["x"][:5]})


PLACES = {"X": X[:, None], "feature": np.array(["x"])}


def test_bands_that_are_shown_are_near_those_of_the_exact_answer(process, exact):
    right, frame = function_bands(Fit(exact), PLACES), function_bands(Fit(scaled(process, amplitude=1.3)), PLACES)
    width = right["q975"] - right["q025"]
    for name in ("mean", "q025", "q975"):
        shown = frame[name].notna()
        assert 0 < shown.sum() < len(X)
        assert (np.abs(frame[name] - right[name])[shown] < 0.06 * width[shown]).all()


def test_bands_of_rows_do_not_pass_because_the_function_does(process):
    """Noise that is too wide by a quarter about functions that are the posterior's."""
    fit, data = Fit(process), Fit(process).data
    own, noisy = _bands(fit, data), _bands(Fit(scaled(process, sigma=1.3)), data)
    frame = _judged_bands(fit, data, own._replace(rows=(noisy.rows[0]._replace(mean=own.rows[0].mean), noisy.rows[1])))
    assert frame[["mean", "q025", "q975"]].notna().all(axis=None)
    assert frame[["row_q025", "row_q975"]].isna().all(axis=None)
    assert frame["withheld"].str.startswith("quantiles of rows").all()
    frame = _judged_bands(fit, data, own._replace(function=noisy.function))
    assert frame["row_q025"].notna().all()
    assert frame["mean"].isna().any()


def test_what_is_withheld_of_a_function_is_said_on_its_page_and_not_drawn(process):
    off = scaled(process, amplitude=1.3)
    said = about_function(Fit(off))
    assert "leaves" not in said[0].text
    assert any("judged by itself" in block.text for block in said[1:] if hasattr(block, "text"))
    lines = [line.get_label() for line in bz.plot_function(off).axes[0].lines]
    assert "drawn functions" not in lines
    assert "mean of the function" in lines


TREES = bz.find("regression_tree")
NINE = {"x": np.arange(9.0), "y": [0.1, -0.3, 0.2, 0.0, 2.1, 1.8, 2.2, 5.0, 5.3]}


@pytest.fixture(scope="module")
def trees():
    data = bz.read(TREES, NINE)
    tree = bz.fit(TREES.weak(data), data, "exact", seed=1)
    return tree, as_approximation(tree.copy(deep=True), "sigma2")


def test_steps_that_agree_are_those_of_the_exact_fit(trees):
    true, own = map(bz.steps, trees)
    for name in ("jumps", "leaves"):
        assert np.abs(getattr(own, name)["probability"] - getattr(true, name)["probability"]).max() < 0.03
    assert own.drawing.count("row") == true.drawing.count("row")


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_steps_of_too_little_or_too_much_noise_are_withheld(trees, factor):
    with raises(Untrustworthy, "withheld", "--method exact"):
        bz.steps(scaled(trees[1], sigma2=factor))
