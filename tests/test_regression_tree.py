"""A regression tree: sums over all trees by listing them, SciPy's densities of leaves, and scikit-learn's cuts."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
import scipy
from bayeszoo.models.regression_tree import RegressionTree
from scipy.special import logsumexp
from sklearn.tree import DecisionTreeRegressor

import bayeszoo as bz
from bayeszoo.data.read import Data
from bayeszoo.distributions.conjugate.normal import Normal
from bayeszoo.families.partitions.boxes import Boxes, Cuts
from bayeszoo.families.partitions.cuts import MOST_CUTS, cuts_between, read_cuts
from bayeszoo.families.partitions.sums import TreePrior, TreeSums
from bayeszoo.fit import default_method
from bayeszoo.model.outer.integration import integrate
from tests.refusals import raises

RNG = np.random.default_rng(3)
Y = np.round(np.repeat([0.0, 2.0, -1.0], 3) + RNG.normal(size=9), 2)
PRIOR = TreePrior(alpha=0.95, beta=2.0, mean=0.3, sd=1.3)


def data_of(X, y):
    X = np.asarray(X, dtype=float)
    X = X[:, None] if X.ndim == 1 else X
    return Data({"X": X, "y": np.asarray(y, float), "feature": np.array([f"x{j}" for j in range(X.shape[1])])})


def laid(cells, y, counts, depth, prior=PRIOR):
    boxes = Boxes.of(counts, depth)
    return TreeSums(boxes, prior, boxes.moments(cells, y))


def every_tree(low, high, depth, d=0):
    """Each tree of cuts of a box of cells, as its leaves and its log prior probability."""
    widths = [b - a for a, b in zip(low, high, strict=True)]
    can = [j for j, width in enumerate(widths) if width > 1]
    cut = PRIOR.alpha * (1 + d) ** -PRIOR.beta if can and d < depth else 0.0
    yield ((low, high),), math.log1p(-cut)
    if not cut:
        return
    for j in can:
        for k in range(low[j] + 1, high[j]):
            log_cut = math.log(cut / len(can) / (widths[j] - 1))
            sides = (low, (*high[:j], k, *high[j + 1 :])), ((*low[:j], k, *low[j + 1 :]), high)
            for left, right in itertools.product(*(list(every_tree(*side, depth, d + 1)) for side in sides)):
                yield left[0] + right[0], left[1] + right[1] + log_cut


@cache
def log_leaf(rows, variance):
    """SciPy's density of the rows of a leaf: their value is common to them."""
    y = np.array(rows)
    if not len(y):
        return 0.0
    cov = variance * np.eye(len(y)) + PRIOR.sd**2
    return float(scipy.stats.multivariate_normal(np.full(len(y), PRIOR.mean), cov).logpdf(y))


def cut_places(leaves, counts):
    """The places that a tree cuts: where one of its leaves ends inside."""
    ends = {(j, end) for _, high in leaves for j, end in enumerate(high)}
    return {(j, end) for j, end in ends if end < counts[j]}


def summed(trees, cells, y, variance):
    """The log weight of each tree."""
    inside = lambda box: np.all((cells >= box[0]) & (cells < box[1]), axis=1)  # noqa: E731
    known = cache(lambda box: log_leaf(tuple(y[inside(box)]), variance))
    return np.array([log_prior + sum(map(known, leaves)) for leaves, log_prior in trees])


def as_leaves(boxes, tree):
    return [(tuple(boxes.low[box].tolist()), tuple(boxes.high[box].tolist())) for box in tree.leaves()]


CASES = {
    "one feature, every tree": (np.arange(9)[:, None], (9,), 8, 12235),
    "one feature, three cuts": (np.arange(9)[:, None], (9,), 3, 1221),
    "ties, and cells without rows": (np.array([0, 0, 1, 1, 1, 3, 4, 4, 4])[:, None], (5,), 4, 51),
    "two features": (np.random.default_rng(0).integers(0, (4, 3), (9, 2)), (4, 3), 2, 87),
}


@pytest.mark.parametrize("name", CASES)
def test_sum_over_trees_is_that_of_each_by_scipy(name):
    cells, counts, depth, count = CASES[name]
    trees, sums = list(every_tree((0,) * len(counts), counts, depth)), laid(cells, Y, counts, depth)
    assert len(trees) == count
    assert logsumexp([log_prior for _, log_prior in trees]) == pytest.approx(0, abs=1e-12)
    for variance in (0.3, 2.0):
        own, weights = np.array([variance]), summed(trees, cells, Y, variance)
        total = logsumexp(weights)
        passes = sums.passes(own)
        np.testing.assert_allclose([*sums.log_density(own), *passes.log_density], total, rtol=1e-12)
        p = np.exp(weights - total)
        places, by_box = {}, {}
        for i, box in enumerate(
            zip(map(tuple, sums.boxes.low.tolist()), map(tuple, sums.boxes.high.tolist()), strict=True)
        ):
            places.setdefault(box, []).append(i)
        for (leaves, _), of_tree in zip(trees, p, strict=True):
            for box in leaves:
                by_box[box] = by_box.get(box, 0.0) + of_tree
        for box, own_places in places.items():  # of several features one box is reached by several orders of cuts
            assert passes.leaves[0, own_places].sum() == pytest.approx(by_box.get(box, 0.0), abs=1e-12)
        assert passes.first_cuts.shape == (1, sum(counts) - len(counts))
        by_count = np.bincount([len(leaves) for leaves, _ in trees], p)
        number = sums.number_of_leaves(own)[0]
        np.testing.assert_allclose(number[: len(by_count)], by_count, atol=1e-12)
        assert number.sum() == pytest.approx(1, abs=1e-12)
        assert passes.first_cuts.sum() == pytest.approx(1 - p[0], abs=1e-12)
        of_trees = [cut_places(leaves, counts) for leaves, _ in trees]
        every = [(j, k) for j, cells_along in enumerate(counts) for k in range(1, cells_along)]
        anywhere = [sum(own for own, places in zip(p, of_trees, strict=True) if place in places) for place in every]
        np.testing.assert_allclose(passes.places[0], anywhere, atol=1e-12)
        best = next(sums.highest(own))
        assert as_leaves(sums.boxes, best) == list(trees[int(np.argmax(p))][0])
        np.testing.assert_allclose(sums.log_probability(best, own, passes.log_density), np.log(p.max()), atol=1e-11)
        h = 1e-5 * variance
        ends = sums.log_density(np.array([variance - h, variance + h]))
        assert sums.slope(variance) == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-6)


def test_densities_too_small_for_numbers_are_summed_as_logs(monkeypatch):
    sums = laid(np.arange(9)[:, None], Y, (9,), 3)
    points = np.array([1e-9, 1e-7, 0.3, 1.0])  # at the first, three cuts miss by more nats than a number holds
    scaled = sums.passes(points)
    assert np.all(scaled.log_density[:2] < -1e3)
    monkeypatch.setattr(Boxes, "by_end", np.zeros(0, dtype=np.int64))
    logs = sums.passes(points)
    np.testing.assert_allclose(scaled.log_density, logs.log_density, rtol=1e-13)
    np.testing.assert_allclose(scaled.leaves, logs.leaves, atol=1e-12)
    np.testing.assert_allclose(scaled.first_cuts, logs.first_cuts, atol=1e-12)
    np.testing.assert_allclose(scaled.places, logs.places, atol=1e-12)


@pytest.mark.parametrize("shape", [(40, 1), (60, 3)])
def test_most_probable_stump_cuts_where_scikit_learn_does(shape):
    X, rng = RNG.normal(size=shape), np.random.default_rng(1)
    y = np.where(X[:, -1] > 0.3, 3.0, 0.0) + rng.normal(size=len(X))
    data = data_of(X, y)
    model = RegressionTree.weak_with(data, {"depth": 1, "s_leaf": 1e4})
    sums = model.sums(data)
    tree = next(sums.highest(np.array([1e-3])))  # without noise the sum of squares alone decides
    j, k = int(sums.boxes.feature[tree.split]), int(sums.boxes.cell[tree.split])
    peer = DecisionTreeRegressor(max_depth=1).fit(X, y).tree_
    assert j == peer.feature[0]
    assert model.cut_places(data)[j][k - 1] == pytest.approx(peer.threshold[0], rel=1e-6)  # of float32


def test_trees_and_functions_drawn_are_those_of_the_sum():
    data = data_of(np.arange(9.0), Y)
    model = RegressionTree.weak_with(data, {"depth": 3})
    draws, new = {"sigma2": np.full(1000, 0.5)}, data_of([0.2, 3.1, 4.6, 8.0, 30.0], np.zeros(5))
    drawn = model.drawn_function(draws, data, new, np.random.default_rng(0))
    law = model.function({"sigma2": np.array([0.5])}, data, new)
    assert np.all(np.abs(drawn.mean(axis=0) - law.mean()[0]) < 5 * law.std()[0] / math.sqrt(1000))
    np.testing.assert_allclose(drawn.std(axis=0), law.std()[0], rtol=0.15)
    below = np.mean(drawn <= law.ppf(0.3), axis=0)
    assert np.all(np.abs(below - 0.3) < 5 * math.sqrt(0.21 / 1000))


@pytest.mark.parametrize(("cuts", "depth"), [((0.0, 1.0, 2.0, 3.0), 4), (((0.0, 1.0), (0.0, 2.0)), 2)])
def test_functions_from_the_prior_have_the_steps_of_the_sum_over_no_rows(cuts, depth):
    model = RegressionTree(depth=depth, cuts=cuts, beta=0.5)
    rng, size = np.random.default_rng(2), 1000
    grid = np.array(list(itertools.product(*[[*(own - 0.5), own[-1] + 0.5] for own in read_cuts(cuts)])))
    steps = [len(np.unique(model.simulated_function(rng, data_of(grid, np.zeros(len(grid)))))) for _ in range(size)]
    nothing = data_of(np.zeros((0, grid.shape[1])), [])
    expected = model.sums(nothing).passes(np.ones(1)).leaves.sum()
    assert abs(np.mean(steps) - expected) < 5 * np.std(steps) / math.sqrt(size)


def test_exact_answers_are_plain_sums_over_the_noise():
    data = data_of(np.arange(9.0), Y)
    model = RegressionTree.weak_with(data, {"depth": 3})
    answer = integrate(model, data)
    points = np.exp(np.linspace(-9, 7, 2001))
    heights = np.exp(model.log_outer_prior({"sigma2": points}) + model.log_marginal({"sigma2": points}, data))
    evidence = scipy.integrate.simpson(heights * points, x=np.log(points))
    assert answer.log_evidence == pytest.approx(math.log(evidence), abs=1e-6)
    mean = scipy.integrate.simpson(heights * points**2, x=np.log(points)) / evidence
    assert answer.posterior["sigma2"].mean() == pytest.approx(mean, rel=1e-5)


def test_cuts_of_data_are_half_way_and_few():
    X = np.array([[1.0, 5.0], [2.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    assert cuts_between(X[:, :1]) == (1.5, 3.0)
    assert cuts_between(X) == ((1.5, 3.0), (5.0, 5.0))
    assert [own.tolist() for own in read_cuts(cuts_between(X))] == [[1.5, 3.0], [5.0]]
    many = cuts_between(RNG.normal(size=(5000, 1)))
    assert len(many) == MOST_CUTS
    assert sum(map(len, cuts_between(RNG.normal(size=(5000, 10))))) <= 150


def test_what_cannot_be_summed_is_refused_by_name():
    data = data_of(RNG.normal(size=(9, 2)), Y)
    with raises(bz.InputError, "out_of_range", "depth"):
        RegressionTree.weak_with(data, {"depth": 3}).sums(data)
    with raises(bz.InputError, "too_many_rows", "cuts"):
        RegressionTree(cuts=tuple(range(3000))).sums(data_of(np.arange(9.0), Y))
    with raises(bz.InputError, "wrong_shape"):
        RegressionTree(depth=2, cuts=((1.0,), (2.0,), (3.0,))).sums(data)
    for cuts in ((), "1, 2", (1.0, float("nan")), ((1.0,), ())):
        with raises(bz.InputError, "wrong_type", "cuts"):
            RegressionTree(cuts=cuts)
    for alpha in (0.0, 1.0, True):
        with raises(bz.InputError, "out_of_range", "alpha"):
            RegressionTree(alpha=alpha)
    with raises(bz.InputError, "out_of_range"):
        RegressionTree(depth=0)


def test_features_in_another_order_have_their_cuts():
    data = data_of(RNG.normal(size=(9, 2)), Y)
    model = RegressionTree.weak(data)
    swapped = {**data, "X": data["X"][:, ::-1]}
    turned = model.relabelled("feature", np.array([1, 0]))
    outer = {"sigma2": np.array([0.5])}
    np.testing.assert_allclose(turned.log_marginal(outer, swapped), model.log_marginal(outer, data), rtol=1e-12)


def at_depth(prior, depth, first=1.0):
    cut = prior.alpha * (first + np.arange(depth)) ** -prior.beta
    return np.log1p(-cut), np.log(cut)


def as_if_each_row_could_be_cut_off(low, high):
    """Ties counted as places to cut: nine rows in five cells have eight."""
    cuts = CUTS_OF(low, high)
    return cuts._replace(log_share=cuts.log_share - math.log(8 / 4))


def without_normalizer(block, stats):
    return EVIDENCE_OF(block, stats) + np.log1p(stats.n / block.kappa) / 2


CUTS_OF, EVIDENCE_OF = Cuts.of, Normal.log_evidence
BUGS = {
    "depth off by one": (TreePrior, "log_cut", lambda prior, depth: at_depth(prior, depth, 2.0)),
    "boxes that are not cut weigh 1": (TreePrior, "log_cut", lambda prior, n: (np.zeros(n), at_depth(prior, n)[1])),
    "ties are cut": (Cuts, "of", staticmethod(as_if_each_row_could_be_cut_off)),
    "a leaf without its normalizer": (Normal, "log_evidence", without_normalizer),
}


def test_both_sides_of_a_cut_that_are_cut_at_one_place_count_once(monkeypatch):
    cells, counts, depth, _ = CASES["two features"]
    own = np.array([0.3])
    right = laid(cells, Y, counts, depth).passes(own).places
    monkeypatch.setattr(Boxes, "_pairs", np.zeros((0, 3), dtype=np.int64))
    assert np.max(np.abs(laid(cells, Y, counts, depth).passes(own).places - right)) > 1e-3


@pytest.mark.parametrize("bug", BUGS)
def test_the_list_of_trees_catches_bugs(monkeypatch, bug):
    cells, counts, depth, _ = CASES["ties, and cells without rows"]
    expected = logsumexp(summed(list(every_tree((0,), counts, depth)), cells, Y, 0.3))
    assert laid(cells, Y, counts, depth).log_density(np.array([0.3]))[0] == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr(*BUGS[bug])
    assert abs(laid(cells, Y, counts, depth).log_density(np.array([0.3]))[0] - expected) > 0.01


def test_steps_of_a_fit_are_those_of_the_sum_over_trees():
    data = bz.read(RegressionTree, {"x": np.arange(9.0), "y": Y})
    tree = bz.fit(RegressionTree.weak_with(data, {"depth": 3}), data, "exact", seed=1)
    answer = bz.steps(tree)
    assert answer.leaves["probability"].sum() == pytest.approx(1, abs=1e-9)
    assert answer.first_cuts["probability"].sum() == pytest.approx(1, abs=1e-9)
    assert answer.tree_probability[0] <= answer.most_probable * (1 + 1e-12) <= 1
    assert answer.tree_probability[1] == 0
    assert (answer.jumps["mcse_probability"] == 0).all()
    leaves = list(answer.trees.tree.leaves())
    assert sum(part.rows for part in leaves) == answer.at_steps["rows"].sum() == 9
    assert answer.drawing.count("row") == len(leaves) + 1
    values = bz.function_values(tree, {"x": [0.0, 4.0]})
    assert answer.jumps["probability"].sum() == pytest.approx(answer.leaves.index @ answer.leaves["probability"] - 1)
    assert answer.function["jump"].iloc[:-1].tolist() == answer.jumps["probability"].tolist()
    at_steps, function = answer.at_steps, answer.function
    own = np.searchsorted(function["to"], at_steps["at"])
    np.testing.assert_allclose(at_steps[["mean", "q975"]], function[["mean", "q975"]].iloc[own], rtol=1e-9)
    cells = answer.function.iloc[[0, 4]]
    np.testing.assert_allclose(cells[["mean", "sd", "q025"]], values[["mean", "sd", "q025"]], rtol=1e-9)
    assert answer.function["rows"].tolist() == [1] * 9
    with raises(bz.InputError, "no_capability", "ridge"):
        bz.steps(bz.fit(bz.find("ridge")(), {"x": [1.0, 2.0], "y": [1.0, 3.0]}, "exact", seed=1))
    upper, lower = bz.plot_steps(tree).axes
    assert upper.get_xlabel() == lower.get_xlabel() == "x"
    assert len(lower.collections[0].get_segments()) == 8


@pytest.mark.slow
def test_probabilities_of_steps_by_draws_are_within_their_errors():
    """It samples: only chains have these errors, and the exact answer is known."""
    data = bz.read(RegressionTree, {"x": np.arange(9.0), "y": Y})
    model = RegressionTree.weak_with(data, {"depth": 3})
    exact, drawn = (bz.steps(bz.fit(model, data, method, seed=2)) for method in ("exact", "nuts"))
    for name in ("jumps", "first_cuts", "leaves"):
        known, own = (getattr(answer, name) for answer in (exact, drawn))
        if name == "first_cuts":
            known, own = (frame.set_index(["feature", "cut"]).sort_index() for frame in (known, own))
        errors = own["mcse_probability"]
        assert (errors > 0).all()
        assert (errors < 0.02).all()
        z = (own["probability"] - known["probability"]) / errors
        assert np.abs(z).max() < 5, (name, z)
    probability, error = drawn.tree_probability
    assert abs(probability - exact.tree_probability[0]) < 5 * error


def test_the_exact_answer_is_the_usual_one():
    assert default_method(RegressionTree) == "exact"


def test_the_command_prints_steps_tree_cuts_and_numbers_of_leaves(tmp_path, run):
    rng = np.random.default_rng(0)
    table, fit, out = tmp_path / "rows.csv", tmp_path / "fit.nc", tmp_path / "cuts.csv"
    depth, soil = np.round(rng.uniform(0, 9, 20), 1), np.tile(["dry", "wet"], 10)
    outcome = np.where((depth > 4) & (soil == "wet"), 9.0, 1.0) + rng.normal(size=20)
    lines = [f"{a},{b},{c:.2f}" for a, b, c in zip(depth, soil, outcome, strict=True)]
    table.write_text("\n".join(["depth,soil,outcome", *lines]), encoding="utf-8")
    code, printed, _ = run("fit", "regression_tree", table, "--target", "outcome", "-o", fit)
    assert code == 0
    assert printed.index("the function: mean outcome") < printed.index("sigma2")
    code, printed, _ = run("steps", fit, "-o", out)
    assert code == 0
    assert "└─ soil[wet] > 0.5" in printed
    assert out.read_text(encoding="utf-8").splitlines()[0].endswith("feature,cut,probability,mcse_probability")
