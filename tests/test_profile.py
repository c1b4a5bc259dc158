"""The profile of components, states and topics: what `fit` prints before the estimates of single parameters."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import bayeszoo as bz
from bayeszoo.report.families.profile import Profile, profiles
from bayeszoo.report.text.tables import estimate_rows
from bayeszoo.results.stored import Fit
from bayeszoo.results.summary import document


def by_title(tree, digits=None) -> dict[str, Profile]:
    described = document(Fit(tree))
    return {profile.title.partition(";")[0]: profile for profile in profiles(Fit(tree), described, digits)}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    centres = np.array([[0.0, 0.0], [6.0, 1.0], [1.0, 8.0]])
    group = rng.integers(0, 3, 120)
    return {"height": (Y := rng.normal(centres[group], [1.0, 2.0]))[:, 0], "weight": Y[:, 1]}


@pytest.mark.parametrize("structure", ["full", "tied", "diagonal", "spherical"])
def test_components_have_the_shares_means_and_sds_of_scikit_learn(rows, structure):
    model = bz.find("gaussian_mixture")
    data = bz.read(model, rows)
    tree = bz.fit(model.weak_with(data, {"K": 3, "covariance": structure}), data, "mle", seed=1)
    (profile,) = by_title(tree, digits=12).values()
    names = {"diagonal": "diag"}
    peer = GaussianMixture(3, covariance_type=names.get(structure, structure), tol=1e-12, max_iter=5000, n_init=5)
    peer.set_params(random_state=1, reg_covar=0).fit(data["Y"])
    order = np.argsort(-peer.weights_)
    variances = {
        "full": lambda: np.diagonal(peer.covariances_, axis1=1, axis2=2),
        "tied": lambda: np.tile(np.diag(peer.covariances_), (3, 1)),
        "diagonal": lambda: peer.covariances_,
        "spherical": lambda: np.tile(peer.covariances_[:, None], 2),
    }[structure]()
    assert profile.columns == ["component", "share", "column", "mean", "sd"]
    shares = [float(row[1]) for row in profile.rows if row[1]]
    np.testing.assert_allclose(shares, peer.weights_[order], rtol=1e-4)
    moments = np.array([[float(row[3]), float(row[4])] for row in profile.rows]).reshape(3, 2, 2)
    np.testing.assert_allclose(moments[..., 0], peer.means_[order], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(moments[..., 1], np.sqrt(variances[order]), rtol=1e-3)


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(5)
    states = np.repeat([0, 1, 0], [20, 15, 25])
    days = [str(day) for day in np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")]
    return {"date": days, "y": rng.normal(8.0 * states, 1.0)}


def test_states_have_their_stay_and_the_dates_of_their_changes(series):
    model = bz.find("hmm_gaussian")
    data = bz.read(model, series, column="y")
    tree = bz.fit(model.weak(data), data, "map", seed=1)
    known = by_title(tree, digits=12)
    states, stretches = known["states"], known["most probable states"]
    summary = bz.summarize(tree)
    staying = np.diag(summary["transition"]["mean"])
    table = {name: [row[i] for row in states.rows] for i, name in enumerate(states.columns)}
    np.testing.assert_allclose([float(x) for x in table["stay"]], 1 / (1 - staying), rtol=5e-3)
    np.testing.assert_allclose([float(x) for x in table["sd"]], np.sqrt(summary["variances"]["mean"]))
    decoded = bz.decode(tree)["state"].to_numpy()
    assert dict(zip(table["state"], table["rows"], strict=True)) == {
        "1": (decoded == 1).sum(),
        "2": (decoded == 2).sum(),
    }
    low = str(np.argmin(summary["means"]["mean"]) + 1)
    high = {"1": "2", "2": "1"}[low]
    days = series["date"]
    assert stretches.rows == [
        [low, days[0], days[19], 20],
        [high, days[20], days[34], 15],
        [low, days[35], days[59], 25],
    ]


def test_symbols_have_a_row_and_states_a_column():
    model = bz.find("hmm_categorical")
    data = bz.read(model, {"y": list("aaaaaaaaaabbbbbbbbbbcbcbcbcb")})
    tree = bz.fit(model.weak(data), data, "map", seed=1)
    profile = next(
        each for each in profiles(Fit(tree), document(Fit(tree)), 12) if each.columns[:1] == ["emission by state"]
    )
    cells = np.array([[float(cell) for cell in row[1:]] for row in profile.rows])
    np.testing.assert_allclose(cells.T, bz.summarize(tree)["emission"]["mean"], rtol=1e-9, atol=1e-9)


@pytest.mark.slow  # it climbs to modes of topics
def test_topics_have_a_line_each_with_their_words():
    model = bz.find("lda")
    table = [[9, 8, 7, 0, 0, 1], [8, 9, 6, 1, 0, 0], [0, 1, 0, 9, 8, 7], [1, 0, 0, 7, 9, 8]]
    data = bz.read(model, {"counts": table, "word": ["sun", "rain", "wind", "goal", "team", "match"]})
    tree = bz.fit(model(K=2, alpha=2.0, eta=2.0), data, "map", seed=1)
    lines = [profile.title for profile in profiles(Fit(tree), document(Fit(tree))) if not profile.columns]
    first = {frozenset(line.partition(" of the documents: ")[2].split(", ")[:3]) for line in lines}
    assert first == {frozenset({"sun", "rain", "wind"}), frozenset({"goal", "team", "match"})}


def test_entries_beyond_the_first_are_folded_into_their_range(rows):
    model = bz.find("gaussian_mixture")
    data = bz.read(model, rows)
    tree = bz.fit(model.weak_with(data, {"K": 3}), data, "map", seed=1)
    described = document(Fit(tree))
    _, every = estimate_rows(Fit(tree), described)
    names = [row[0] for row in every]
    assert "covariances[1, height, weight]" in names  # of a symmetric matrix each entry once
    assert "covariances[1, weight, height]" not in names
    _, few = estimate_rows(Fit(tree), described, most=4)
    means = bz.summarize(tree)["means"]["mean"]
    folded = {row[0].partition(":")[0]: row[1] for row in few if ":" in row[0]}
    assert folded["means"] == f"{means.min():.2g} to {means.max():.2g}"


@pytest.mark.slow  # two searches for modes of 80 rows
def test_a_state_of_a_few_rows_that_are_alike_is_a_spike():
    rng = np.random.default_rng(0)
    y = rng.normal(0, 3, 80)
    y[30:36] = 1.5 + rng.normal(0, 0.005, 6)
    model = bz.find("hmm_gaussian")
    for rows, is_spike in ((y, True), (np.r_[rng.normal(0, 1, 40), rng.normal(9, 1, 40)], False)):
        data = bz.read(model, {"y": rows})
        tree = bz.fit(model.weak(data), data, "map", seed=1)
        said = [profile.title for profile in profiles(Fit(tree), document(Fit(tree))) if "spike" in profile.title]
        assert ["--method mle" in line for line in said] == [True] * is_spike


def test_raters_have_the_diagonals_of_their_tables():
    model = bz.find("dawid_skene")
    data = bz.example(model)
    tree = bz.fit(model.weak(data), data, "em", seed=1)
    (profile,) = by_title(tree, digits=12).values()
    confusion = tree["posterior"]["confusion"].isel(chain=0, draw=0)
    assert [row[0] for row in profile.rows] == [str(rater) for rater in confusion["rater"].to_numpy()]
    diagonals = np.diagonal(confusion.transpose("rater", "class", "label").to_numpy(), axis1=1, axis2=2)
    np.testing.assert_allclose(np.array([row[1:] for row in profile.rows], dtype=float), diagonals, rtol=1e-9)
