"""Mutual information of classes and features: at known parameters, and of fits."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
import scipy
from scipy import stats
from sklearn.metrics import mutual_info_score

import bayeszoo as bz
from bayeszoo.distributions import information
from bayeszoo.results.stored import Fit
from tests.entropies import plain_information
from tests.refusals import raises

SPAM, GAUSSIAN, WORDS = map(bz.find, ("naive_bayes", "gaussian_discriminant", "naive_bayes_text"))
SIGMAS, DRAWS = 5.0, 250_000


# Classes and features at known parameters


@pytest.mark.parametrize(
    "rates", [[0.01, 0.02], [1.0, 3.0, 3.0], [0.0, 5.0], [200.0, 260.0], [3.0, 800.0], [0.001, 900.0]]
)
def test_counts_are_sums(rates):
    rates, K = np.array(rates), len(rates)
    shares = np.arange(1, K + 1) / (K * (K + 1) / 2)
    x = np.arange(1500)[:, None]
    mass = stats.poisson.pmf(x, rates)
    joint = shares * mass
    expected = scipy.special.rel_entr(joint, shares * joint.sum(1, keepdims=True)).sum()
    assert information.information_of_rates(shares, rates) == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(
        information.entropy_of_rates(rates), scipy.special.entr(mass).sum(0), rtol=1e-10, atol=1e-290
    )


@pytest.mark.parametrize("rate", [1e4, 1e8, 1e12])
def test_large_counts_are_nearly_normal(rate):
    rates, shares = rate + np.sqrt(rate) * np.array([0.0, 1.5]), np.array([0.3, 0.7])
    normal = information.information_of_normals(shares, rates, rates)
    assert information.information_of_rates(shares, rates) == pytest.approx(normal, abs=2 / np.sqrt(rate))
    expected = np.log(2 * np.pi * np.e * rate) / 2 - 1 / (12 * rate)
    assert information.entropy_of_rates(np.array(rate)) == pytest.approx(expected, rel=1e-9)


NORMALS = {
    "near": ([0.0, 1.0], [1.0, 1.0]),
    "far": ([0.0, 12.0], [1.0, 4.0]),
    "narrow in wide": ([0.0, 0.3], [1.0, 1e-8]),
    "three": ([0.0, 3.0, 6.0], [1.0, 2.0, 0.01]),
    "large": ([1e6, 1e6 + 1], [1.0, 2.0]),
    "alike": ([2.0, 2.0], [3.0, 3.0]),
}


@pytest.mark.parametrize("name", NORMALS)
def test_numbers_are_quadrature(name):
    means, variances = map(np.array, NORMALS[name])
    shares, sd = np.arange(1, len(means) + 1) / (len(means) * (len(means) + 1) / 2), np.sqrt(variances)

    def gain(x):
        joint = shares * stats.norm.pdf(x, means, sd)
        return scipy.special.rel_entr(joint, shares * joint.sum()).sum()

    ends = np.sort((means + np.multiply.outer([-10, -6, -3, -1, 0, 1, 3, 6, 10], sd)).ravel())
    parts = [scipy.integrate.quad(gain, *pair, epsabs=1e-12, limit=200)[0] for pair in itertools.pairwise(ends)]
    assert information.information_of_normals(shares, means, variances) == pytest.approx(sum(parts), abs=2e-9)


def test_limits_are_nothing_and_the_entropy_of_the_class():
    shares, alike = np.array([0.2, 0.8]), np.array([4.0, 4.0])
    assert information.information_of_rates(shares, alike) == pytest.approx(0, abs=1e-12)
    assert information.information_of_normals(shares, alike, alike) == pytest.approx(0, abs=1e-12)
    most = stats.entropy(shares)
    assert information.information_of_rates(shares, np.array([1.0, 500.0])) == pytest.approx(most, rel=1e-9)
    assert information.information_of_normals(shares, np.array([0.0, 90.0]), alike) == pytest.approx(most, rel=1e-9)
    assert information.information_of_levels(shares, np.eye(2)) == pytest.approx(most, rel=1e-12)


def test_a_word_is_a_feature_of_two_levels():
    rng = np.random.default_rng(5)
    shares, p = rng.dirichlet(np.ones(3), 7), rng.dirichlet(np.ones(4), (7, 3))
    each = information.information_of_words(shares, p)
    for word in range(4):
        two = np.stack([p[..., word], 1 - p[..., word]], axis=-1)
        np.testing.assert_allclose(each[word], information.information_of_levels(shares, two), rtol=1e-9, atol=1e-15)


def test_points_are_taken_block_by_block(monkeypatch):
    rng = np.random.default_rng(6)
    arrays = rng.dirichlet(np.ones(2), (3, 5)), rng.normal(size=(3, 5, 2)), rng.gamma(2.0, size=(3, 5, 2))
    whole = information.information_of_normals(*arrays)
    monkeypatch.setattr(information, "blocks", lambda count, width: (slice(i, i + 2) for i in range(0, count, 2)))
    np.testing.assert_allclose(information.information_of_normals(*arrays), whole, rtol=1e-13)
    assert whole.shape == (3, 5)


# Fits of class and features


N = 120
CODES = np.random.default_rng(8).integers(0, 2, N)


def mixed(seed=9):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "kind": np.array(["a", "b"])[CODES],
            "noise": np.array(["no", "yes"])[rng.integers(0, 2, N)],
            "flag": np.where(rng.random(N) < 0.2 + 0.6 * CODES, "yes", "no"),
            "grade": np.array(list("pqr"))[(rng.integers(0, 3, N) + (rng.random(N) < 0.3) * CODES) % 3],
            "visits": rng.poisson(1.0 + 3 * CODES),
            "size": rng.normal(CODES * 1.2, 1.0),
        }
    )


def fitted(model, frame=None, method="exact", **options):
    data = bz.read(type(model), mixed() if frame is None else frame, target="kind", counts=["visits"], **options)
    return bz.fit(model, data, method, seed=1)


@pytest.fixture(scope="module")
def tree():
    return fitted(SPAM())


def test_features_are_ranked_with_their_plug_in(tree):
    frame, rows = bz.mutual_information(tree), mixed()
    assert frame.index.name == "feature"
    assert frame["mean"].is_monotonic_decreasing
    assert {*frame.index} == {*rows.columns} - {"kind"}
    for name in ("noise", "flag", "grade"):
        expected = mutual_info_score(rows["kind"], rows[name])
        assert frame.loc[name, "plug_in"] == pytest.approx(expected, rel=1e-10, abs=1e-14)
    assert frame.loc[["visits", "size"], "plug_in"].isna().all()
    assert frame["p_highest"].sum() == pytest.approx(1)
    assert (frame["q025"] >= 0).all()
    assert (frame["q975"] <= np.log(2) + 1e-12).all()
    assert frame.attrs["class_entropy"] == pytest.approx(stats.entropy(np.bincount(CODES)), abs=0.01)


def test_draws_are_summed_again_by_hand(tree):
    """The table of class and level at each draw is share times probability."""
    draws, frame = Fit(tree).pooled(), bz.mutual_information(tree)
    labels = tree["posterior"]["level"].to_numpy().tolist()
    places = [labels.index(f"grade={level}") for level in "pqr"]
    joint = draws["shares"][:, :, None] * draws["theta"][:, :, places]
    values = plain_information(joint)
    assert frame.loc["grade", "mean"] == pytest.approx(values.mean(), rel=1e-10)
    assert frame.loc["grade", "q975"] == pytest.approx(np.quantile(values, 0.975), rel=1e-10)
    second = [
        information.information_of_rates(*pair) for pair in zip(draws["shares"], draws["rates"][..., 0], strict=True)
    ]
    assert frame.loc["visits", "mean"] == pytest.approx(np.mean(second), rel=1e-10)


def test_where_the_prior_is_one_of_tables_hutters_closed_form_is_the_mean():
    """Shares ~ Dirichlet(L eta) and levels ~ Dirichlet(eta) make the joint table of each feature Dirichlet(eta)."""
    rows = mixed()[["kind", "noise", "flag"]]
    data = bz.read(SPAM, rows, target="kind")
    frame = bz.mutual_information(bz.fit(SPAM(alpha=2.0, eta=1.0), data, "exact", seed=1, draws=10_000))
    for name in ("noise", "flag"):
        alpha = pd.crosstab(rows["kind"], rows[name]).to_numpy() + 1.0
        assert frame.loc[name, "mean"] == pytest.approx(
            information.mean_information(alpha), abs=SIGMAS * frame.loc[name, "mcse_mean"]
        )


def test_under_another_prior_of_the_shares_the_model_has_its_own_posterior():
    """Alpha of 500 holds the shares at 1/2; the table's closed form, which does not know it, is elsewhere."""
    frame = mixed()
    frame = pd.concat([frame, frame[frame["kind"] == "a"], frame[frame["kind"] == "a"]], ignore_index=True)
    data = bz.read(SPAM, frame[["kind", "flag"]], target="kind")
    model = SPAM(alpha=500.0)
    row = bz.mutual_information(bz.fit(model, data, "exact", seed=1)).iloc[0]
    rng, counts = np.random.default_rng(1), pd.crosstab(frame["kind"], frame["flag"]).to_numpy()
    shares = rng.dirichlet(counts.sum(1) + 500.0, DRAWS)
    levels = np.stack([rng.dirichlet(own + 1.0, DRAWS) for own in counts], axis=1)
    values = plain_information(shares[:, :, None] * levels)
    assert row["mean"] == pytest.approx(values.mean(), abs=SIGMAS * row["mcse_mean"])
    assert abs(row["mean"] - information.mean_information(counts + 1.0)) > 2 * SIGMAS * row["mcse_mean"]


def test_missing_cells_are_left_out(tree):
    holes = mixed().astype(object)
    holes.loc[:40, "flag"] = None
    frame = bz.mutual_information(fitted(SPAM(), holes, missing="mask"))
    seen = holes["flag"].notna()
    assert frame.loc["flag", "plug_in"] == pytest.approx(mutual_info_score(holes["kind"][seen], holes["flag"][seen]))
    assert frame.loc["flag", "sd"] > bz.mutual_information(tree).loc["flag", "sd"]


def test_units_of_numbers_and_names_of_classes_do_not_matter():
    frame = mixed()[["kind", "size"]]
    other = frame.assign(size=1000 * frame["size"] + 5, kind=frame["kind"].map({"a": "z", "b": "y"}))
    one, two = (
        bz.mutual_information(bz.fit(SPAM, bz.read(SPAM, each, target="kind"), "exact", seed=1)).iloc[0]
        for each in (frame, other)
    )
    assert one["mean"] == pytest.approx(two["mean"], abs=SIGMAS * np.hypot(one["mcse_mean"], two["mcse_mean"]))


@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "spherical"])
def test_features_of_a_discriminant_are_taken_by_themselves(covariance):
    data = bz.example(GAUSSIAN)
    fit = bz.fit(GAUSSIAN(covariance=covariance, nu0=6.0), data, "exact", seed=1, draws=200)
    frame, draws = bz.mutual_information(fit), Fit(fit).pooled()
    assert set(frame.index) == set(data["real"])
    sigma = draws["covariances"]
    own = {
        "full": lambda: sigma[..., 2, 2],
        "tied": lambda: np.repeat(sigma[:, 2, 2][:, None], 3, axis=1),
        "diagonal": lambda: sigma[..., 2],
        "spherical": lambda: sigma,
    }[covariance]()
    values = information.information_of_normals(draws["shares"], draws["means"][..., 2], own)
    assert frame.loc[data["real"][2], "mean"] == pytest.approx(values.mean(), rel=1e-9)


def test_upon_tells_hamilton_from_madison():
    """Mosteller and Wallace's best marker."""
    frame = bz.mutual_information(bz.fit(WORDS(), bz.example(WORDS), "exact", seed=1))
    assert frame.index[0] == "upon"
    assert len(frame) == 74


def test_a_point_estimate_has_no_interval():
    frame = bz.mutual_information(fitted(SPAM(), mixed()[["kind", "noise", "flag", "visits"]], "mle"))
    assert frame[["sd", "q025", "p_highest"]].isna().all(axis=None)
    assert frame.loc["flag", "mean"] == pytest.approx(frame.loc["flag", "plug_in"], rel=1e-9)


def test_what_quadrature_does_not_give_is_withheld(tree, monkeypatch):
    monkeypatch.setattr(information, "_NODES", 1)
    frame = bz.mutual_information(tree)
    assert frame.loc["size"].drop("withheld").isna().all()
    assert frame.index[-1] == "size"
    assert len(frame.attrs["withheld"]) == 1
    assert frame.drop("size")["mean"].notna().all()


def test_many_classes_take_some_draws_and_too_many_are_refused():
    rng, codes = np.random.default_rng(2), np.repeat(np.arange(101), 2)
    labels = np.array([f"c{code:03d}" for code in range(101)])
    frame = pd.DataFrame({"kind": labels[codes], "flag": np.array(["no", "yes"])[rng.integers(0, 2, 202)]})
    frame["size"] = rng.normal(codes, 1.0)

    def answer(rows, draws):
        return bz.mutual_information(bz.fit(SPAM, bz.read(SPAM, rows, target="kind"), "exact", seed=1, draws=draws))

    with raises(bz.InputError, "too_large", 101):
        answer(frame, 100)
    whole = answer(frame[["kind", "flag"]], 1000).iloc[0]
    assert whole["mcse_mean"] == pytest.approx(whole["sd"] / np.sqrt(160), rel=0.01)
    few = frame[codes < 30]
    assert answer(few, 100)["mean"].between(0, np.log(30)).all()


def test_fits_without_features_are_refused():
    plain = bz.fit(bz.find("logistic_regression")(), None, "map")
    with raises(bz.InputError, "no_closed_form"):
        bz.mutual_information(plain)
    with raises(bz.InputError, "no_closed_form"):
        bz.entropy(plain)


def test_options_of_tables_are_not_of_fits(tree):
    with raises(bz.InputError, "conflicting_options", "alpha"):
        bz.mutual_information(tree, alpha=2)


# The command and the picture


@pytest.fixture(scope="module")
def saved(tree, tmp_path_factory):
    return bz.save(tree, tmp_path_factory.mktemp("information") / "mixed.nc")


def test_the_command_prints_and_writes_what_the_function_returns(tree, saved, run, tmp_path):
    code, out, _ = run("information", saved, "--bits", "-o", tmp_path / "all.csv", "--top", 2)
    frame = bz.mutual_information(tree, bits=True)
    assert code == 0
    first = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert [name for name in first if name in frame.index] == frame.index[:2].tolist()
    written = pd.read_csv(tmp_path / "all.csv", index_col="feature")
    np.testing.assert_allclose(written["mean"], frame["mean"], rtol=1e-12)
    assert len(written) == 5


def test_the_command_writes_json_and_draws(saved, run, tmp_path):
    code, out, _ = run("information", saved, "--json", "--plot", tmp_path / "told.png")
    document = json.loads(out)
    assert code == 0
    assert document["unit"] == "nats"
    assert len(document["rows"]) == 5
    assert (tmp_path / "told.png").stat().st_size > 1000


def test_the_command_tells_the_entropy_of_a_row(run, tmp_path, saved):
    chain = bz.find("markov_chain")
    path = bz.save(bz.fit(chain(), bz.example(chain), "exact", seed=1), tmp_path / "chain.nc")
    code, out, _ = run("information", path, "--of-row")
    assert code == 0
    assert "entropy rate" in out
    assert run("information", path)[0] == 2
    assert run("information", saved, "--of-row")[0] == 2
    assert run("information", path, "--of-row", "--plot", tmp_path / "x.png")[0] == 2


def test_the_picture_has_a_line_a_feature(tree):
    frame = bz.mutual_information(tree)
    (panel,) = bz.plot_information(frame).axes
    assert [text.get_text() for text in panel.get_yticklabels()] == frame.index.tolist()
    points = next(line for line in panel.lines if len(line.get_xdata()) == len(frame))
    np.testing.assert_allclose(points.get_xdata(), frame["mean"])


def test_many_features_are_drawn_in_part():
    frame = bz.mutual_information(bz.fit(WORDS(), bz.example(WORDS), "exact", seed=1))
    (panel,) = bz.plot_information(frame).axes
    assert len(panel.get_yticklabels()) == 30
    assert "74" in panel.get_xlabel()
