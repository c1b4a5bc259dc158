"""Trees of features: sums over all trees against networkx's, evidences against SciPy's, and published tables."""

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2, dirichlet_multinomial

import bayeszoo as bz
from bayeszoo.families.trees import spanning, structure
from bayeszoo.families.trees.layout import Layout
from bayeszoo.families.trees.rows import TreeRows
from bayeszoo.families.trees.structure import AllTrees
from tests.refusals import raises

TREE = bz.find("tree_network")
ROWS = {"a": list("xxyyxyxy"), "b": list("uuvvuwvu"), "c": list("pqpqpqpp"), "d": list("mnnmmnnn")}
TITANIC = {
    ("child", "male"): {"1st": (0, 5), "2nd": (0, 11), "3rd": (35, 13), "crew": (0, 0)},
    ("child", "female"): {"1st": (0, 1), "2nd": (0, 13), "3rd": (17, 14), "crew": (0, 0)},
    ("adult", "male"): {"1st": (118, 57), "2nd": (154, 14), "3rd": (387, 75), "crew": (670, 192)},
    ("adult", "female"): {"1st": (4, 140), "2nd": (13, 80), "3rd": (89, 76), "crew": (3, 20)},
}
"""Who died and who survived, by age, sex and class (Dawson 1995)."""


def every_tree(V):
    """Return all spanning trees of V vertices."""
    trees = nx.SpanningTreeIterator(nx.complete_graph(V))
    return [tuple(sorted(tuple(sorted(edge)) for edge in tree.edges)) for tree in trees]


def log_weights(V, scale, seed=0):
    upper = np.triu(np.random.default_rng(seed).normal(0, scale, (V, V)), 1)
    return upper + upper.T


# Sums over trees


@pytest.mark.parametrize("scale", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("V", [2, 3, 4, 5])
def test_sums_over_trees_are_those_of_networkx(V, scale):
    weights, trees = log_weights(V, scale), every_tree(V)
    assert len(trees) == V ** (V - 2)
    each = np.array([sum(weights[edge] for edge in tree) for tree in trees])
    total = logsumexp(each)
    assert spanning.log_sum_over_trees(weights) == pytest.approx(total, rel=1e-13, abs=1e-12)
    expected = np.zeros((V, V))
    for tree, p in zip(trees, np.exp(each - total), strict=True):
        for edge in tree:
            expected[edge] += p
    np.testing.assert_allclose(spanning.edge_probabilities(weights), expected + expected.T, rtol=1e-9)
    assert spanning.heaviest_tree(weights) == trees[np.argmax(each)] or scale == 0


def test_the_sum_is_kirchhoffs_determinant():
    weights = log_weights(12, 1.0)
    W = np.exp(weights) - np.eye(12)
    laplacian = np.diag(W.sum(axis=1)) - W
    assert spanning.log_sum_over_trees(weights) == pytest.approx(np.linalg.slogdet(laplacian[1:, 1:])[1], rel=1e-12)


def draws_of_trees(draw=spanning.draw_trees):
    """Return the p-value of the chi-square test of 20,000 trees of four vertices."""
    weights, trees = log_weights(4, 1.0), every_tree(4)
    each = np.array([sum(weights[edge] for edge in tree) for tree in trees])
    expected = 20_000 * np.exp(each - logsumexp(each))
    counts = Counter(draw(weights, 20_000, np.random.default_rng(1)))
    assert set(counts) <= set(trees)
    return chi2(len(trees) - 1).sf(sum((counts[t] - e) ** 2 / e for t, e in zip(trees, expected, strict=True)))


def test_trees_are_drawn_by_their_weights():
    assert draws_of_trees() > 1e-5


def test_trees_drawn_without_weights_are_seen():
    """A seeded bug: each part is joined to a neighbour at random."""
    assert draws_of_trees(lambda weights, count, rng: spanning.draw_trees(0 * weights, count, rng)) < 1e-5


def test_small_graphs():
    assert spanning.log_sum_over_trees(np.zeros((1, 1))) == 0
    assert spanning.edge_probabilities(np.zeros((1, 1))).tolist() == [[0]]
    assert [*spanning.draw_trees(np.zeros((2, 2)), 2, np.random.default_rng(0))] == [((0, 1),)] * 2


# Evidence


def log_dm(counts, alpha):
    """Log evidence of ordered draws, by SciPy's distribution of their counts."""
    counts = np.asarray(counts, dtype=int).ravel()
    coefficient = gammaln(counts.sum() + 1) - gammaln(counts + 1).sum()
    return dirichlet_multinomial(np.full(len(counts), alpha / len(counts)), counts.sum()).logpmf(counts) - coefficient


def log_evidence_of(rows, tree, alpha):
    """Log evidence of rows given a tree: of pairs over those of single features (Meila and Jaakkola 2006)."""
    names, total = list(rows), 0.0
    codes = [np.unique(rows[name], return_inverse=True)[1] for name in names]
    single = [log_dm(np.bincount(own), alpha) for own in codes]
    for u, v in tree:
        pair = np.zeros((codes[u].max() + 1, codes[v].max() + 1))
        np.add.at(pair, (codes[u], codes[v]), 1)
        total += log_dm(pair, alpha) - single[u] - single[v]
    return total + sum(single)


@pytest.mark.parametrize("alpha", [0.5, 4.0])
def test_evidences_are_those_of_all_trees_of_four_features(alpha):
    answer, each = bz.trees(ROWS, alpha=alpha), []
    for tree in every_tree(4):
        expected = log_evidence_of(ROWS, tree, alpha)
        model = TREE(alpha=alpha, tree=[["abcd"[u], "abcd"[v]] for u, v in tree])
        assert model.log_evidence(model.statistics(bz.read(TREE, ROWS))) == pytest.approx(expected, rel=1e-12)
        each.append(expected)
    assert answer.log_evidence == pytest.approx(logsumexp(each) - math.log(16), rel=1e-12)
    assert answer.log_evidence_of_tree == pytest.approx(max(each), rel=1e-12)
    assert answer.tree_probability == pytest.approx(math.exp(max(each) - logsumexp(each)), rel=1e-10)


def test_the_root_does_not_matter():
    """Features of other names have another root: the evidence and the predictions stay."""
    tree, renamed = [("a", "b"), ("b", "c"), ("b", "d")], {"a": "z", "b": "y", "c": "x", "d": "w"}
    other = {renamed[name]: column for name, column in ROWS.items()}
    models = [TREE(tree=tree), TREE(tree=[(renamed[u], renamed[v]) for u, v in tree])]
    data = [bz.read(TREE, rows) for rows in (ROWS, other)]
    first, second = (m.log_evidence(m.statistics(d)) for m, d in zip(models, data, strict=True))
    assert first == pytest.approx(second, rel=1e-13)
    scores = [m.predictive(m.statistics(d), d).logpmf(d["levels"]) for m, d in zip(models, data, strict=True)]
    np.testing.assert_allclose(*scores, rtol=1e-12)


def test_new_rows_are_ratios_of_evidences():
    new = {"a": ["x", "y"], "b": ["w", "u"], "c": ["q", "p"], "d": ["n", "m"]}
    answer = bz.trees(ROWS)
    for i, log_p in enumerate(answer.log_predictive(new)):
        more = bz.trees({name: [*column, new[name][i]] for name, column in ROWS.items()})
        assert log_p == pytest.approx(more.log_evidence - answer.log_evidence, rel=1e-10)


def without_prior_of_trees(self):
    return float(self.log_singles.sum()) + spanning.log_sum_over_trees(self.log_weights)


def of_the_likeliest_tree(self):
    return float(self.log_singles.sum() + sum(self.log_weights[edge] for edge in self.most_probable))


@pytest.mark.parametrize("bug", [without_prior_of_trees, of_the_likeliest_tree])
def test_seeded_bugs_of_the_evidence_are_seen(bug, monkeypatch):
    monkeypatch.setattr(AllTrees, "log_evidence", property(bug))
    with pytest.raises(AssertionError):
        test_evidences_are_those_of_all_trees_of_four_features(0.5)


def test_levels_of_a_feature_that_are_weighed_alone_are_seen(monkeypatch):
    """A seeded bug: concentrations of pairs that do not add up to those of single levels: the root matters."""
    right = structure.even_pairs
    monkeypatch.setattr("bayeszoo.families.trees.model.even_pairs", lambda total, levels: right(total, levels) + 0.1)
    with pytest.raises(AssertionError):
        test_the_root_does_not_matter()


# Tables of others


def test_knowledge_of_cancer():
    """Dyke and Patterson 1952, as computed for this table with NumPy by enumeration of all 125 trees."""
    answer = bz.trees(bz.example(TREE))
    assert answer.log_evidence == pytest.approx(-4746.8, abs=0.05)
    assert answer.log_evidence_independent == pytest.approx(-4977.4, abs=0.05)
    assert answer.log_evidence_saturated == pytest.approx(-4789.3, abs=0.05)
    summary = answer.summary["probability"]
    edges = {frozenset(pair): p for pair, p in summary.items()}
    for pair in (("reading", "newspaper"), ("knowledge", "reading"), ("radio", "newspaper")):
        assert edges[frozenset(pair)] == pytest.approx(1.0, abs=5e-5)
    for other, p in {"reading": 0.67, "newspaper": 0.24, "radio": 0.07, "knowledge": 0.02}.items():
        assert edges[frozenset(("lectures", other))] == pytest.approx(p, abs=6e-3)
    assert summary.sum() == pytest.approx(4, rel=1e-12)
    drawn = [frozenset(pair) for tree in answer.draw(2000, seed=1) for pair in tree]
    assert drawn.count(frozenset(("lectures", "reading"))) / 2000 == pytest.approx(0.67, abs=0.06)


def test_a_tree_is_not_enough_for_the_titanic():
    cells = [
        (age, sex, rank, fate, n)
        for (age, sex), ranks in TITANIC.items()
        for rank, counts in ranks.items()
        for fate, n in zip(("no", "yes"), counts, strict=True)
        if n
    ]
    table = dict(zip(("age", "sex", "class", "survived", "n"), map(list, zip(*cells, strict=True)), strict=True))
    answer = bz.trees(table, count="n")
    assert answer.log_evidence == pytest.approx(-5328.4, abs=0.05)
    assert answer.log_evidence_saturated == pytest.approx(-5255.7, abs=0.05)
    counts = np.zeros(32)
    counts[: len(cells)] = table["n"]
    assert answer.log_evidence_saturated == pytest.approx(log_dm(counts, 1.0), rel=1e-12)


# Rows with missing levels


def table_of(theta, layout):
    """Return the probability of every combination of levels, by going through them all."""
    every = np.array([*itertools.product(*layout.levels)])
    p = np.array([np.prod(theta[layout.cells(row[None])[0]]) for row in every])
    return every, p


def test_drawn_rows_are_the_places_of_levels_as_data_have_them():
    """ArviZ's groups hold rows as data do, and not indicators of levels."""
    layout = Layout(((0, 1), (2, 3, 4), (5, 6)), ((0, 1), (1, 2)), 0)
    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.ones(shape[1]), size=shape[0]).ravel() for shape in layout.shapes]
    law = TreeRows(np.concatenate(tables), layout, 20_000)
    drawn = law.rvs((20_000, 7), rng)
    levels = law.codes(drawn)
    assert (np.take_along_axis(drawn, levels, axis=-1) == 1).all()
    every, p = table_of(np.concatenate(tables), layout)
    shares = (levels[:, None] == every).all(axis=-1).mean(axis=0)
    assert np.abs(shares - p).max() < 6 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize("edges", [((0, 1), (1, 2), (2, 3)), ((0, 1), (0, 2), (0, 3)), ((0, 2), (1, 2), (1, 3))])
@pytest.mark.parametrize("root", [0, 2])
def test_missing_levels_are_summed_over(edges, root):
    layout = Layout(((0, 1), (2, 3, 4), (5, 6), (7, 8)), edges, root)
    rng = np.random.default_rng(0)
    theta = np.empty((2, layout.starts[-1]))
    for table in layout.tables:
        theta[:, table] = rng.dirichlet(np.ones(len(table)), 2)
    rows = np.array([[0, 2, 5, 7], [-1, 3, 6, 8], [1, -1, -1, 7], [-1, 4, -1, -1], [-1, -1, -1, -1]])
    law = TreeRows(theta, layout, len(rows))
    ours = law.logpmf(rows)
    for draw in range(2):
        every, p = table_of(theta[draw], layout)
        assert p.sum() == pytest.approx(1, rel=1e-13)
        expected = [math.log(p[((row < 0) | (row == every)).all(axis=1)].sum()) for row in rows]
        np.testing.assert_allclose(ours[draw], expected, rtol=1e-12, atol=1e-14)
        shares = [p[(every == place).any(axis=1)].sum() for place in range(9)]
        np.testing.assert_allclose(law.mean()[draw, 0], shares, rtol=1e-12)
    drawn = TreeRows(theta[0], layout, 1).rvs((20_000, 1, 9), rng)[:, 0]
    np.testing.assert_allclose(drawn.mean(axis=0), law.mean()[0, 0], atol=5 * 0.5 / 20_000**0.5)


# Bad input


@pytest.mark.parametrize(
    ("tree", "code"),
    [
        ([["a", "b"], ["b", "c"]], "wrong_tree"),
        ([["a", "b"], ["b", "c"], ["a", "c"]], "wrong_tree"),
        ([["a", "b"], ["a", "b"], ["c", "d"]], "wrong_tree"),
        ([["a", "b"], ["b", "c"], ["c", "e"]], "wrong_tree"),
        ([["a", "a"], ["b", "c"], ["c", "d"]], "wrong_tree"),
        ("abc", "wrong_type"),
        ([["a", "b", "c"]], "wrong_type"),
    ],
)
def test_what_is_no_tree_is_refused(tree, code):
    with raises(bz.InputError, code):
        bz.fit(TREE(tree=tree), ROWS, "exact")


def test_rows_with_holes_are_refused_in_training_and_answered_afterwards():
    holes = {**ROWS, "a": [*"xxyyxyx", ""]}
    masked = bz.read(TREE, holes, missing="mask")
    for ask in (lambda: bz.trees(masked), lambda: bz.fit(TREE(), masked, "exact")):
        with raises(bz.InputError, "missing_values"):
            ask()
    fit = bz.fit(TREE(), ROWS, "exact", seed=1)
    new = {"a": ["", "x"], "b": ["w", "u"], "c": ["q", ""], "d": ["n", "m"]}
    frame = bz.predict(fit, new, missing="mask")
    assert np.isfinite(frame["log_score"]).all()
    assert frame.loc[(1, "a=x"), "observed":"observed"].isna().all()
    assert frame.loc[(2, "a=x"), "observed"] == 1
    for alpha in (0.0, math.inf, True):
        with raises(bz.InputError, "out_of_range"):
            bz.trees(ROWS, alpha=alpha)
    with raises(bz.InputError, "out_of_range"):
        bz.trees(ROWS).draw(0)


# Missing levels from the others


def completions(theta, layout, rows):
    """Return the probabilities of levels given those that rows have, and the most probable rows, by enumeration."""
    every, p = table_of(theta, layout)
    shares, best = [], []
    for row in rows:
        weight = p * ((row < 0) | (row == every)).all(axis=1)
        shares.append([weight[(every == place).any(axis=1)].sum() / weight.sum() for place in range(9)])
        best.append(every[np.argmax(weight)])
    return np.array(shares), np.array(best)


@pytest.mark.parametrize("edges", [((0, 1), (1, 2), (2, 3)), ((0, 1), (0, 2), (0, 3)), ((0, 2), (1, 2), (1, 3))])
def test_missing_levels_follow_from_the_others(edges):
    layout = Layout(((0, 1), (2, 3, 4), (5, 6), (7, 8)), edges, 1)
    rng = np.random.default_rng(2)
    theta = np.empty(layout.starts[-1])
    for table in layout.tables:
        theta[list(table)] = rng.dirichlet(np.ones(len(table)))
    rows = np.array([[0, 2, 5, 7], [-1, 3, 6, 8], [1, -1, -1, 7], [-1, 4, -1, -1], [-1, -1, -1, -1]])
    law = TreeRows(theta, layout, len(rows))
    shares, best = completions(theta, layout, rows)
    np.testing.assert_allclose(law.level_probabilities(rows), shares, rtol=1e-11, atol=1e-15)
    np.testing.assert_array_equal(law.completed(rows), best)


def test_completions_are_ratios_of_evidences():
    """Of an exact fit the probability of a level is that of the row with it over that of the row with any."""
    fit = bz.fit(TREE(), ROWS, "exact", seed=1)
    frame = bz.complete(fit, {"a": ["x"], "b": [""], "c": ["q"], "d": ["m"]})
    assert frame.index.tolist() == [(1, "b", "u"), (1, "b", "v"), (1, "b", "w")]
    model = TREE()
    before = model.log_evidence(model.statistics(bz.read(TREE, ROWS)))
    ratios = []
    for level in "uvw":
        new = {"a": "x", "b": level, "c": "q", "d": "m"}
        rows = bz.read(TREE, {name: [*column, new[name]] for name, column in ROWS.items()})
        ratios.append(math.exp(model.log_evidence(model.statistics(rows)) - before))
    np.testing.assert_allclose(frame["probability"], np.array(ratios) / sum(ratios), rtol=1e-10)
    assert frame["is_in_completion"].tolist() == (frame["probability"] == frame["probability"].max()).tolist()
    point = bz.complete(
        bz.fit(TREE(alpha=30.0), ROWS, "map"), {"a": ["x"], "b": [""], "c": ["q"], "d": ["m"]}, missing="mask"
    )
    assert point["probability"].sum() == pytest.approx(1, rel=1e-12)


def test_the_most_probable_tree_is_said_to_have_the_highest_evidence():
    """The mean over all trees is lower: NetworkX draws every tree of four features."""
    rows = bz.read(TREE, ROWS)
    chosen = TREE.weak(rows)
    stats, labels = chosen.statistics(rows), list("abcd")
    every = [nx.from_prufer_sequence(list(code)).edges for code in itertools.product(range(4), repeat=2)]
    models = [TREE(tree=[(labels[u], labels[v]) for u, v in edges]) for edges in every]
    heights = np.array([model.log_evidence(model.statistics(rows)) for model in models])
    assert chosen.log_evidence(stats) == pytest.approx(heights.max(), rel=1e-12)
    assert AllTrees.of(rows).log_evidence == pytest.approx(logsumexp(heights) - math.log(16), rel=1e-12)
    assert chosen.remarks(stats, rows)
    other = models[int(heights.argmin())]
    assert not other.remarks(other.statistics(rows), rows)


def test_another_model_is_refused_as_such_before_its_rows_are_read(run, written, tmp_path):
    other = bz.save(bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact", groups=()), tmp_path / "coin.nc")
    code, _, err = run("complete", other, written("y\n1\n\n"), "--missing", "drop")
    assert (code, "completes no rows; give a fit of tree_network" in err) == (2, True)
    code, _, err = run("complete", other, written("y\n1\n0\n"))
    assert (code, "completes no rows; give a fit of tree_network" in err) == (2, True)
    assert run("complete", tmp_path / "none.nc")[2] == f"error: there is no file: {tmp_path / 'none.nc'}\n"


def test_missing_levels_are_refused_before_pairs_are_counted(run, written):
    """The most probable tree of such rows was looked for in memory that was not theirs: the process ended."""
    table = {"a": ["y", "n", "y", ""], "b": ["1", "2", "1", "2"], "c": ["u", "u", "v", "v"]}
    rows = bz.read(TREE, table, missing="mask")
    for answer in (TREE.weak, AllTrees.of, lambda data: bz.fit(TREE(), data, "exact", seed=1)):
        with raises(bz.InputError, "missing_values", "--missing drop"):
            answer(rows)
    file = written("a,b,c\n" + "\n".join(map(",".join, zip(*table.values(), strict=True))))
    for command in (("fit", "tree_network", file, "--method", "exact"), ("trees", file)):
        code, _, err = run(*command)
        assert (code, "--missing mask" in err, "--missing drop" in err) == (2, False, True)
        assert run(*command, "--missing", "drop")[0] == 0


def test_what_cannot_be_completed_is_refused():
    fit = bz.fit(TREE(), ROWS, "exact", seed=1)
    with raises(bz.InputError, "no_data"):
        bz.complete(fit)
    other = bz.find("gaussian_mean")
    with raises(bz.InputError, "no_capability"):
        bz.complete(bz.fit(other(), bz.example(other), "map"))
