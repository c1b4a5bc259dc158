"""Stationary distributions against 300 digits; PageRank against NumPy and published ranks; transitions of texts."""

from importlib import resources

import mpmath as mp
import networkx
import numpy as np
import pandas as pd
import pytest

from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.markov.stationary import stationary
from bayeszoo.tools.neighbourhoods.pagerank import pagerank
from bayeszoo.tools.ngrams import ngrams, vowel_or_consonant
from tests.refusals import raises


def rational(transition):
    """Solve p = p P by entries off the diagonal: the balance of each state but the last, and the sum; 300 digits."""
    with mp.workdps(300):
        rate = mp.matrix(np.asarray(transition).T.tolist())
        for i in range(rate.rows):
            rate[i, i] = -sum(rate[j, i] for j in range(rate.rows) if j != i)
        rate[rate.rows - 1, :] = mp.ones(1, rate.rows)
        return np.array(mp.lu_solve(rate, mp.matrix([0] * (rate.rows - 1) + [1])), dtype=float).ravel()


def ehrenfest(balls):
    """Move a random ball to the other urn: the chain has period 2, and stays at the binomial distribution."""
    transition = np.zeros((balls + 1, balls + 1))
    for k in range(balls):
        transition[k, k + 1], transition[k + 1, k] = 1 - k / balls, (k + 1) / balls
    return transition


def nearly_decomposable(leak):
    """Two pairs of states that hardly ever leave each other's company."""
    transition = np.array([[0, 0.5, leak, 0], [0.75, 0, 0, 0], [0, 0, 0, 0.75], [0, 3 * leak, 0.5, 0]])
    return transition + np.diag(1 - transition.sum(axis=1))


CHAINS = {
    "one state": np.eye(1),
    "weather": np.array([[0.9, 0.1], [0.5, 0.5]]),
    "random": np.random.default_rng(0).dirichlet(np.ones(6), size=6),
    "sparse draw": np.random.default_rng(1).dirichlet(np.full(5, 0.2), size=5),
    "cycle": np.roll(np.eye(5), 1, axis=1),
    "urn": ehrenfest(6),
    "transient": np.array([[0.2, 0.3, 0.5, 0], [0, 0.1, 0, 0.9], [0.5, 0.25, 0, 0.25], [0, 0.6, 0, 0.4]]),
    "absorbing": np.array([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0, 1.0]]),
    **{f"leak {leak}": nearly_decomposable(leak) for leak in (1e-3, 1e-12, 1e-17, 1e-40)},
}


@pytest.mark.parametrize("name", CHAINS)
def test_it_is_stationary_and_exact(name):
    assert stationary(CHAINS[name]) == pytest.approx(rational(CHAINS[name]), rel=1e-12, abs=1e-300)


def test_a_transient_state_that_is_hardly_ever_left_does_no_harm():
    assert stationary([[1.0, 1e-300], [0.0, 1.0]]).tolist() == [0, 1]


def test_draws_are_done_each_for_itself():
    """Draws of Dirichlet rows with small alpha have their zeros at different places."""
    draws = np.random.default_rng(2).dirichlet(np.full(4, 0.5), size=(2, 3, 4))
    draws[0, 1] = np.roll(np.eye(4), 1, axis=1)
    draws[1, 0] = CHAINS["transient"]
    draws[1, 2] = CHAINS["transient"][::-1, ::-1]
    before = draws.copy()
    found = stationary(draws)
    assert found.shape == (2, 3, 4)
    for index in np.ndindex(2, 3):
        assert found[index] == pytest.approx(rational(draws[index]), rel=1e-10, abs=1e-13)
    assert np.array_equal(draws, before)
    assert stationary(draws[:, :0]).shape == (2, 0, 4)


TWO_CLASSES = np.array([[0, 0.5, 0.5, 0, 0], *np.eye(5)[[4, 3, 2, 1]]])
UP = np.concatenate([np.full(32, 1e-10), np.full(32, 0.5)])
WELLS = np.diag(UP, 1) + np.diag(UP[::-1], -1)  # two, with a barrier of probability 1e-320 between them
WELLS += np.diag(1 - WELLS.sum(axis=1))


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        (TWO_CLASSES, ("not_identified", "transition", "2", "1", "4", "3")),
        ([np.full((2, 5, 5), 0.2), [TWO_CLASSES] * 2], ("not_identified", "transition", "1", "0", "2", "4")),
        (np.eye(12), ("not_identified", "12", "0", "3", "4")),
        ([np.full((65, 65), 1 / 65), WELLS], ("not_finite", "transition", "1")),
    ],
)
def test_a_chain_without_a_stationary_distribution_is_named(transition, message):
    with raises(NumericalError, *message):
        stationary(transition)


def changed(row, column, value):
    transition = CHAINS["weather"].copy()
    transition[row, column] = value
    return transition


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        (changed(1, 0, 0.47), ("not_a_probability", "transition", "1", "0.97")),
        (changed(1, 0, 0.5 + 2e-8), ("not_a_probability", "transition", "1.00000002")),
        ([np.eye(2), changed(0, 0, 0.8)], ("not_a_probability", "transition", "1", "0.9")),
        ([[1.1, -0.1], [0.5, 0.5]], ("not_a_probability", "transition", "-0.1")),
        (changed(0, 1, np.nan), ("not_a_probability", "transition", "0", "1")),
        (CHAINS["transient"].T, ("not_a_probability",)),
        ([0.5, 0.5], ("wrong_shape", "transition", "2", "expected")),
        (np.empty((0, 0)), ("wrong_shape", "0")),
        ([[1.0], [0.5, 0.5]], ("ragged",)),
        ([["a", "b"], ["c", "d"]], ("wrong_type",)),
        (pd.DataFrame(np.eye(2), index=["a", "b"], columns=["b", "a"]), ("labels_differ", "transition")),
    ],
)
def test_what_is_no_transition_matrix_is_refused(transition, message):
    assert stationary(changed(1, 0, 0.5 + 5e-9)) == pytest.approx([5 / 6, 1 / 6], rel=1e-8)  # rounded rows are taken
    with raises(InputError, *message):
        stationary(transition)


# PageRank

# Bryan and Leise 2006, The $25,000,000,000 eigenvector: figure 1, and its ranks
WEB = [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 1), (4, 1), (4, 3)]
# Langville and Meyer 2004, Deeper inside PageRank, section 4: node 2 has no links
DANGLING = [(1, 2), (1, 3), (3, 1), (3, 2), (3, 5), (4, 5), (4, 6), (5, 4), (5, 6), (6, 4)]


def solved(edges, damping, size):
    """Return the stationary distribution of the dense matrix of the surfer, nodes 0..size-1, by a linear system."""
    links = np.zeros((size, size))
    for source, target, weight in edges:
        links[source, target] += weight
    links[links.sum(axis=1) == 0] = 1.0
    matrix = damping * links / links.sum(axis=1, keepdims=True) + (1 - damping) / size
    return np.linalg.solve(np.eye(size) - matrix.T + 1, np.ones(size))


@pytest.mark.parametrize("damping", [0.0, 0.5, 0.85, 0.999, 0.9999])
def test_ranks_are_the_stationary_distribution_of_the_google_matrix(damping):
    """Of a graph with self-links, parallel edges, weights, nodes without links out, and one with none at all."""
    rng = np.random.default_rng(3)
    source, target = rng.integers(0, 30, 120), rng.integers(0, 39, 120)
    edges = [(int(i), int(j), float(w)) for i, j, w in zip(source, target, rng.gamma(1.0, size=120), strict=True)]
    ranks = pagerank(edges, damping, nodes=range(40))["rank"].sort_index()
    assert np.allclose(ranks, solved(edges, damping, 40), rtol=0, atol=1e-11)


def test_published_ranks():
    frame = pagerank(WEB)
    assert list(frame.columns) == ["rank", "links_in", "links_out"]
    assert frame.index.name == "node"
    assert frame.index.tolist() == [1, 3, 4, 2]
    assert frame["rank"].round(3).tolist() == [0.368, 0.288, 0.202, 0.142]
    assert frame["links_in"].tolist() == [2, 3, 2, 1]
    assert frame["links_out"].tolist() == [3, 1, 2, 2]
    assert pagerank(WEB, 1)["rank"].tolist() == pytest.approx([12 / 31, 9 / 31, 6 / 31, 4 / 31], rel=1e-12)
    published = {1: 0.03721, 2: 0.05396, 3: 0.04151, 4: 0.3751, 5: 0.206, 6: 0.2862}
    assert pagerank(DANGLING, 0.9)["rank"].to_dict() == pytest.approx(published, abs=5e-5)


def test_weights_are_repeated_edges():
    repeated = pagerank([("a", "b"), ("a", "c"), ("a", "c"), ("c", "a"), ("b", "a")])
    weighted = pagerank([("a", "b", 0.5), ("a", "c", 0.25), ("a", "c", 0.75), ("c", "a", 1e150), ("b", "a", 1e-300)])
    pd.testing.assert_frame_equal(repeated, weighted, rtol=1e-13)
    assert repeated["rank"]["c"] > repeated["rank"]["b"] + 0.1
    assert repeated.loc["a", "links_out"] == 2


def test_the_tolerance_bounds_the_error_not_the_change():
    """The surfer seldom leaves node 2: each step changes about a hundredth of the error."""
    edges = [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 99.0), (2, 0, 1.0)]
    frame = pagerank(edges, 0.999, tolerance=1e-11)
    assert np.abs(frame["rank"].sort_index() - solved(edges, 0.999, 3)).sum() <= 1.1e-11


@pytest.mark.parametrize("gap", [1e-3, 1.1e-3, 1e-4, 1e-8, 1e-14])
def test_a_damping_near_to_one_loses_nothing_to_rounding(gap):
    """A step from equal ranks changes less than rounding does, when the surfer hardly ever leaves node 2."""
    edges = [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (2, 0, gap)]
    found = pagerank(edges, 1 - gap)["rank"].sort_index()
    jump, leave = 1 - (1 - gap), gap / (1 + gap)
    assert found[2] == pytest.approx(jump / 3 / (jump + (1 - jump) * leave), rel=1e-11)  # what comes is what goes
    assert found[1] == pytest.approx(1 / 3, rel=1e-11)


def test_edges_from_anywhere_give_the_same_ranks(tmp_path):
    expected = pagerank(WEB)
    columns = {"source": [i for i, _ in WEB], "target": [j for _, j in WEB]}
    for edges in (np.array(WEB), columns, pd.DataFrame(columns), [list(edge) for edge in WEB], np.array(WEB, np.uint8)):
        pd.testing.assert_frame_equal(pagerank(edges), expected)
    path = tmp_path / "web.csv"
    path.write_text("target,source,weight\n" + "".join(f"0{j},0{i},1.5\n" for i, j in WEB))
    frame = pagerank(path)
    assert frame.index.tolist() == ["01", "03", "04", "02"]  # text, as it stands in the file
    assert frame["rank"].tolist() == pytest.approx(expected["rank"].tolist(), rel=1e-12)


def test_ranks_that_would_be_wrong_are_withheld(monkeypatch):
    """Of a chain in which several classes are never left; with too many nodes for elimination; and too few steps."""
    assert pagerank([("a", "b"), ("b", "a"), ("c", "a")], 1)["rank"].to_dict() == {"a": 0.5, "b": 0.5, "c": 0}
    assert pagerank([("a", "b")], 1)["rank"].to_dict() == pytest.approx({"b": 2 / 3, "a": 1 / 3})  # b jumps
    with raises(NumericalError, "not_identified", "2", "0", "1"):
        pagerank([("a", "a"), ("b", "b")], 1)
    monkeypatch.setattr("bayeszoo.tools.neighbourhoods.pagerank._MAX_DENSE", 3)
    with raises(InputError, "out_of_range", "damping", "1", "4", "3"):
        pagerank(WEB, 1)
    monkeypatch.setattr("bayeszoo.tools.neighbourhoods.pagerank._MAX_STEPS", 20)
    with raises(NumericalError, "not_converged", "20", "damping"):
        pagerank(WEB)


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        (WEB, {"damping": 1.2}, ("out_of_range", "damping", "0", "1.2")),
        (WEB, {"damping": "0.85"}, ("out_of_range", "damping", "'0.85'")),
        (WEB, {"tolerance": 0}, ("out_of_range", "tolerance", "0", "1")),
        ([], {}, ("no_data", "edges")),
        (["ab", "bc"], {}, ("wrong_type", "edges")),
        ([("a", "b"), ("b", "c", 2.0)], {}, ("wrong_type", "edges")),
        ((np.arange(3), np.arange(3)), {}, ("wrong_type", "edges")),
        (np.array([[1.0, 2.0]]), {}, ("wrong_type", "'source'", "1.0")),
        ([("a", "b"), ("a", None)], {}, ("wrong_type", "'target'", "2")),
        ([(True, False)], {}, ("wrong_type", "'source'", "1")),
        ([(1, "b")], {}, ("mixed_types",)),
        (WEB, {"nodes": "12"}, ("wrong_type", "'nodes'")),
        ([("a", "b", 1.0), ("a", "b", -1.0)], {}, ("out_of_range", "'weight'", "2", "-1.0")),
        ([("a", "b", np.nan)], {}, ("out_of_range", "'weight'", "1")),
        ([("a", "b", "much")], {}, ("not_a_number", "'weight'", "1", "'much'")),
        ({"source": ["a"], "target": ["b"], "count": [3]}, {}, ("missing_column", "'count'")),
        ({"source": pd.Series(["a"]), "target": pd.Series(["b"], index=[1])}, {}, ("bad_graph",)),
        ({"from": ["a"], "target": ["b"]}, {}, ("missing_column", "'source'", "'target'")),
    ],
)
def test_edges_that_cannot_be_used_are_refused(edges, options, message):
    with raises(InputError, *message):
        pagerank(edges, **options)


# Transitions of texts


def counts(*args, **options):
    """Return the rows as a mapping of (source, target) to count."""
    table = ngrams(*args, **options)
    assert list(table) == ["source", "target", "count"]
    pairs = list(zip(table["source"], table["target"], strict=True))
    assert sorted(set(pairs)) == pairs
    return dict(zip(pairs, table["count"], strict=True))


THE = [("the", "cat", 2), ("cat", "said", 1), ("said", "the", 1), ("cat", "don't", 1), ("don't", "don't", 1)]
LETTERS = {"b": "c", "n": "c", "a": "v", "e": "v"}


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("Banana", {"order": 2}, [("b a", "n", 1), ("a n", "a", 2), ("n a", "n", 1)]),
        ("Hat,\n 7 HAT!", {}, [("h", "a", 2), ("a", "t", 2), ("t", "h", 1)]),
        ("'The cat,' said the cat; don\u2019t -- don't 3 the", {"unit": "word"}, [*THE, ("don't", "the", 1)]),
        ("Of the, of the", {"order": 2, "unit": "word"}, [("of the", "of", 1), ("the of", "the", 1)]),
        # white space is one space, also at the ends; case and digits stay
        ("A \n\t a1\n", {"unit": "character"}, [("A", " ", 1), (" ", "a", 1), ("a", "1", 1), ("1", " ", 1)]),
        ("a  b", {"order": 2, "unit": "character"}, [("a ", "b", 1)]),
        ("Дядя, иди!", {}, [("д", "я", 2), ("я", "д", 1), ("я", "и", 1), ("и", "д", 1), ("д", "и", 1)]),
        ("Maß", {}, [("m", "a", 1), ("a", "s", 1), ("s", "s", 1)]),
        ("e\u0301te", {}, [("\u00e9", "t", 1), ("t", "e", 1)]),
        ("e\u0301te", {"unit": "character"}, [("\u00e9", "t", 1), ("t", "e", 1)]),
        # an accent without a composed form: skipped among letters, part of its word
        ("я\u0301д", {}, [("я", "д", 1)]),
        ("я\u0301д я", {"unit": "word"}, [("я\u0301д", "я", 1)]),
        (["ab", "ba"], {}, [("a", "b", 1), ("b", "a", 1)]),  # no transition crosses documents
        (("abc", "abd"), {"order": 2}, [("a b", "c", 1), ("a b", "d", 1)]),
        ("Banana", {"classes": vowel_or_consonant}, [("consonant", "vowel", 3), ("vowel", "consonant", 2)]),
        ("Bananae", {"order": 2, "classes": LETTERS}, [("c v", "c", 2), ("v c", "v", 2), ("c v", "v", 1)]),
    ],
)
def test_transitions_of_texts(text, options, expected):
    assert counts(text, **options) == {(source, target): count for source, target, count in expected}
    assert counts("Όσος") == counts("ΌΣΟΣ")  # the sigma at the end is the same letter


@pytest.mark.parametrize(("unit", "symbols"), [("letter", 23 + 17), ("character", 31 + 22), ("word", 8 + 6)])
def test_counts_sum_to_the_symbols_less_the_order_of_each_document(unit, symbols):
    documents = ["O for a muse of fire, ascend so", "so be it my old friend"]
    for order in range(1, 6):
        assert sum(counts(documents, order, unit=unit).values()) == symbols - 2 * order


def test_vowel_or_consonant():
    found = {letter: vowel_or_consonant(letter) for letter in "abcdefghijklmnopqrstuvwxyz"}
    assert [letter for letter, kind in found.items() if kind == "vowel"] == list("aeiou")
    assert set(found.values()) == {"vowel", "consonant"}
    assert [vowel_or_consonant(letter) for letter in ("É", "e\u0301", "ç", "Y")] == ["vowel"] * 2 + ["consonant"] * 2
    for other in ("я", "", "1", "ab", "æ", " "):
        with raises(InputError, "unknown_name"):
            vowel_or_consonant(other)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, ("too_few_rows", "1", "2")),
        ("a", {}, ("too_few_rows", "1", "2")),
        ("one two", {"order": 2, "unit": "word"}, ("too_few_rows", "2", "3")),
        (["abc", "ab"], {"order": 2}, ("too_few_rows", "2")),
        ([], {}, ("no_data",)),
        ("abc", {"order": 0}, ("wrong_type", "1", "5", "0")),
        ("abc", {"order": 1.0}, ("wrong_type", "1.0")),
        ("abc", {"unit": "line"}, ("wrong_type", "unit", "character", "word", "'line'")),
        ({"title": "text"}, {}, ("wrong_type", "list")),
        (["abc", 3], {}, ("wrong_type",)),
        ("abc", {"classes": {"a": "v"}}, ("bad_symbol", "'b'")),
        ("abc", {"classes": lambda letter: letter == "a"}, ("bad_symbol",)),
        ("abc", {"classes": lambda letter: "a vowel"}, ("bad_symbol", "'a vowel'")),
        ("дом", {"classes": vowel_or_consonant}, ("unknown_name", "'д'")),
    ],
)
def test_what_cannot_be_counted_is_refused(text, options, message):
    with raises(InputError, *message):
        ngrams(text, **options)


def test_the_shipped_counts_are_those_of_the_shipped_text():
    folder = resources.files("bayeszoo.models.data")
    found = ngrams((folder / "federalist_10.txt").read_text(), order=2, classes=vowel_or_consonant)
    assert pd.read_csv(folder / "federalist_10.csv").to_dict("list") == found


def test_pagerank_from_earlier_ranks_is_the_same_in_fewer_steps():
    rng = np.random.default_rng(3)
    edges = [(int(i), int(j)) for i, j in rng.integers(0, 60, (300, 2))]
    before, changed = pagerank(edges), [*edges[1:], (7, 8), (99, 7)]
    cold, warm = pagerank(changed), pagerank(changed, start=before)
    assert warm["rank"].sort_index().to_numpy() == pytest.approx(cold["rank"].sort_index().to_numpy(), abs=1e-11)
    assert warm.attrs["steps"] < cold.attrs["steps"]
    graph = networkx.DiGraph(changed)
    ranks = networkx.pagerank(graph, tol=1e-14, max_iter=1000)
    single = pagerank(sorted(graph.edges), start=dict.fromkeys(graph, 1.0))["rank"]
    assert [ranks[node] for node in single.index] == pytest.approx(single.tolist(), abs=1e-10)
    with raises(InputError, "out_of_range"):
        pagerank(edges, start={7: -1.0})
