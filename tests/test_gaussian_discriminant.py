"""Gaussian discriminant analysis against scikit-learn, Fisher's paper, the models of the zoo, and geometry."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

import bayeszoo as bz
from bayeszoo.contract import identities
from bayeszoo.contract.case import Case
from bayeszoo.errors import NumericalError
from bayeszoo.families.mixtures.gaussian_components import GaussianComponents
from tests.refusals import raises

DISCRIMINANT = bz.find("gaussian_discriminant")
FOLDER = Path(__file__).resolve().parents[1] / "models" / "data"
KINDS = ("full", "tied", "diagonal", "spherical")


@pytest.fixture(scope="module")
def iris():
    return bz.example(DISCRIMINANT)


def probabilities(frame):
    return frame[[f"p[{label}]" for label in frame.attrs["classes"]]].to_numpy()


def few(data, features=2, rows=24):
    """Return some rows of each class, and few features."""
    some = np.linspace(0, len(data["y"]) - 1, rows).astype(int)
    reals, names = data["reals"][some, :features], data["real"][:features]
    return bz.read(DISCRIMINANT, {**data.arrays, "y": data["y"][some], "reals": reals, "real": names})


# Against others


@pytest.mark.parametrize(
    ("kind", "theirs"),
    [
        ("tied", LinearDiscriminantAnalysis()),
        ("full", QuadraticDiscriminantAnalysis()),
        ("diagonal", GaussianNB(var_smoothing=0.0)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_maximum_of_the_likelihood_is_scikit_learns(iris, kind, theirs):
    ours = bz.classify(bz.fit(DISCRIMINANT(covariance=kind), iris, "mle"))
    expected = theirs.fit(iris["reals"], iris["y"]).predict_proba(iris["reals"])
    np.testing.assert_allclose(probabilities(ours), expected, rtol=1e-7, atol=1e-12)


def test_independent_columns_are_explained_one_by_one(iris):
    """With a variance for each column the log odds of a row are a sum of Student t terms, by SciPy."""
    model = DISCRIMINANT.weak(iris).replaced(covariance="diagonal")
    table = bz.explain(bz.fit(model, iris, "exact"), row=71)
    assert set(table.index) == {"(shares)", *iris["real"]}
    name, k0, m0 = iris["real"][2], model.kappa0, model.m0[2]
    for k, label in enumerate(iris["class"]):
        x = iris["reals"][iris["y"] == k, 2]
        n, kappa, a = len(x), k0 + len(x), (model.nu0 + len(x)) / 2
        scatter = np.sum((x - x.mean()) ** 2) + k0 * n / kappa * (x.mean() - m0) ** 2
        b = (model.Psi0[2][2] + scatter) / 2
        law = stats.t(2 * a, (k0 * m0 + x.sum()) / kappa, np.sqrt(b / a * (1 + 1 / kappa)))
        assert table.loc[name, f"log_density[{label}]"] == pytest.approx(law.logpdf(iris["reals"][70, 2]), rel=1e-10)
    assert table["log_odds"].sum() == pytest.approx(table.attrs["log_odds"], rel=1e-10)


def test_columns_that_depend_on_each_other_are_explained_together(iris):
    """The log density of a row in each class is SciPy's multivariate Student t, or that of `classify`."""
    model = DISCRIMINANT.weak(iris)
    table, D = bz.explain(bz.fit(model, iris, "exact"), row=71), iris["reals"].shape[1]
    assert list(table.index) == ["(shares)", "features"]
    for k, label in enumerate(iris["class"]):
        rows = iris["reals"][iris["y"] == k]
        n, kappa, nu = len(rows), model.kappa0 + len(rows), model.nu0 + len(rows)
        shift = rows.mean(axis=0) - model.m0
        psi = model.Psi0 + np.cov(rows.T, bias=True) * n + model.kappa0 * n / kappa * np.outer(shift, shift)
        law = stats.multivariate_t(
            model.m0 + n / kappa * shift, psi * (kappa + 1) / kappa / (nu - D + 1), df=nu - D + 1
        )
        assert table.loc["features", f"log_density[{label}]"] == pytest.approx(law.logpdf(iris["reals"][70]), rel=1e-9)
    for kind in ("tied", "spherical"):
        tree = bz.fit(model.replaced(covariance=kind), iris, "exact")
        assert bz.explain(tree, row=71).attrs["p"] == pytest.approx(
            probabilities(bz.classify(tree))[70].max(), rel=1e-9
        )


def test_errors_on_iris_are_the_published_ones(iris):
    """Of 150 flowers 3 are taken for another species, by both; with one covariance also when each is left out."""
    for kind, leave_one_out, wrong in (("tied", False, 3), ("full", False, 3), ("tied", True, 3)):
        model = DISCRIMINANT.weak(iris).replaced(covariance=kind)
        table = bz.classify(bz.fit(model, iris, "exact"), leave_one_out=leave_one_out)
        assert np.sum(table["decision"] != table["observed"]) == wrong


def test_fishers_coefficients(iris):
    """Fisher 1936, setosa against versicolor: 1, 5.9037, -7.1299, -10.1036, as rounded by hand."""
    two = iris["y"] < 2
    rows = {"y": iris["y"][two], "reals": iris["reals"][two], "real": iris["real"], "class": iris["class"][:2]}
    tree = bz.fit(DISCRIMINANT(covariance="tied"), bz.read(DISCRIMINANT, rows), "mle")
    direction = tree["derived"]["direction"].to_numpy().ravel()
    np.testing.assert_allclose(direction / direction[0], [1, 5.9037, -7.1299, -10.1036], rtol=3e-5)
    apart = np.diff([rows["reals"][rows["y"] == k].mean(axis=0) for k in (0, 1)], axis=0)[0]
    pooled = sum(np.cov(rows["reals"][rows["y"] == k].T, ddof=0) for k in (0, 1)) / 2
    distance = scipy.spatial.distance.mahalanobis(apart, np.zeros(4), np.linalg.inv(pooled))
    assert tree["derived"]["distance"].item() == pytest.approx(distance, rel=1e-9)
    assert tree["derived"]["least_error"].item() == pytest.approx(scipy.stats.norm.sf(distance / 2), rel=1e-9)


def test_evidence_is_that_of_the_models_of_the_zoo_class_by_class(iris):
    psi, columns = tuple(map(tuple, np.eye(4) + 0.2)), iris["real"]
    ours = DISCRIMINANT(alpha=0.8, m0=1.0, kappa0=0.3, nu0=6.0, Psi0=psi)
    shares = bz.find("dirichlet_multinomial")(alpha=0.8)
    total = shares.log_evidence(shares.statistics({"y": iris["y"], "category": iris["class"]}))
    rows = bz.find("normal_inverse_wishart")(1.0, 0.3, 6.0, psi)
    for k in range(3):
        total += rows.log_evidence(rows.statistics({"Y": iris["reals"][iris["y"] == k], "column": columns}))
    assert ours.log_evidence(ours.statistics(iris)) == pytest.approx(total, rel=1e-12)


def test_one_spherical_covariance_is_the_perpendicular_bisector():
    """The log odds of two classes as frequent are the projection on the line between the means, 0 half way."""
    rng = np.random.default_rng(2)
    means, variances = rng.normal(size=(2, 3)), np.array([0.7, 0.7])
    params = {"shares": np.array([0.5, 0.5]), "means": means, "covariances": variances}
    x = rng.normal(size=(6, 3))
    labels = {"class": np.array(["a", "b"]), "real": np.array(["u", "v", "w"])}
    log_p = DISCRIMINANT(covariance="spherical").log_class_probabilities(params, {"reals": x, **labels})
    expected = (x - means.mean(axis=0)) @ (means[1] - means[0]) / 0.7
    np.testing.assert_allclose(log_p[:, 1] - log_p[:, 0], expected, rtol=1e-12)


# Identities of each kind of covariance; the scorecard has those of full ones


@pytest.mark.parametrize("kind", KINDS[1:])
def test_identities_of_each_kind(iris, kind):
    """It compiles, in PyTensor's fast mode: that is the density which is sampled."""
    data = few(iris)
    model = DISCRIMINANT.weak(data).replaced(covariance=kind, alpha=0.7)
    case = Case(model.labelled(data), data)
    for identity in (
        *(identities.independent_density, identities.candidate_identity, identities.compressed_density),
        *(identities.chain_rule, identities.label_order, identities.batches, identities.free_parameters),
    ):
        assert identity(case).passed, identity


@pytest.mark.parametrize("kind", KINDS)
def test_rows_left_out_are_those_of_fits_without_them(iris, kind):
    data = few(iris)
    model = DISCRIMINANT.weak(data).replaced(covariance=kind)
    table = bz.classify(bz.fit(model, data, "exact"), leave_one_out=True)
    for i in (0, 9, 23):
        others = model.inputs.reordered(data, np.delete(np.arange(24), i))
        law = model.predictive(model.statistics(others), model.inputs.reordered(data, np.array([i])))
        np.testing.assert_allclose(probabilities(table)[i], law.mean()[0], rtol=1e-8)


# Refusals


def test_a_class_with_few_rows_has_no_estimate_by_likelihood():
    rows = {"kind": ["a"] * 4 + ["b"], "x": [0.0, 1.0, 2.0, 4.0, 3.0], "z": [1.0, 0.0, 2.0, 1.0, 5.0]}
    data = bz.read(DISCRIMINANT, rows, target="kind")
    for kind in ("full", "diagonal", "spherical"):
        with raises(bz.NumericalError, "no_maximum"):
            bz.fit(DISCRIMINANT(covariance=kind), data, "mle")
    assert bz.fit(DISCRIMINANT(covariance="tied"), data, "mle").attrs["status"] == "ok"
    assert bz.fit(DISCRIMINANT.weak(data), data, "exact").attrs["status"] == "ok"


def test_fields_that_do_not_suit_are_refused(iris):
    for fields, code in (
        ({"covariance": "round"}, "unknown_method"),
        ({"Psi0": np.eye(3), "nu0": 6.0}, "wrong_shape"),
        ({"nu0": [6.0, 7.0, 8.0], "covariance": "tied"}, "wrong_shape"),
        ({"nu0": 3.0}, "out_of_range"),
        ({"Psi0": [np.eye(4), np.eye(4), -np.eye(4)]}, "not_positive_definite"),
    ):
        with raises(bz.InputError, code):
            bz.fit(DISCRIMINANT(**fields), iris, "exact")


def test_the_predictive_density_is_scipys_student_t(iris):
    model = DISCRIMINANT.weak(iris)
    law = model.block(model.statistics(iris)).updated(model.statistics(iris)).law
    terms = law.log_predictive({"reals": iris["reals"]})
    for k in range(3):
        freedom = law.nu[k] - 3  # of four columns
        shape = law.psi[k] * (law.kappa[k] + 1) / (law.kappa[k] * freedom)
        expected = scipy.stats.multivariate_t(law.m[k], shape, df=freedom).logpdf(iris["reals"])
        np.testing.assert_allclose(terms[:, k], expected, rtol=1e-10)


@pytest.mark.parametrize("covariance", ["full", "tied"])
@pytest.mark.parametrize("D", [2, 6])
def test_many_rows_far_from_zero_have_student_densities_of_scipy(covariance, D):
    """Rows are taken in parts, and differences, not squares, are subtracted."""
    rng = np.random.default_rng(5)
    root = rng.normal(size=(D, D))
    rows, m = 1e6 + rng.normal(size=(2500, D)) @ root, 1e6 + rng.normal(size=(3, D))
    kappa, nu, psi = np.array([1.0, 2.0, 9.0]), D + 2.0, root @ root.T + np.eye(D)
    law = GaussianComponents.of(covariance, 3, m, kappa, nu, psi, "reals")
    free, scales = nu - D + 1, (1 + kappa) / kappa
    expected = [
        scipy.stats.multivariate_t.logpdf(rows - centre, shape=psi * scale / free, df=free)
        for centre, scale in zip(m, scales, strict=True)
    ]
    np.testing.assert_allclose(law.log_predictive({"reals": rows}), np.transpose(expected), rtol=1e-11)


def test_ripleys_points():
    """Ripley 1996: LDA errs on 10.8% of the points to test on, QDA on 10.2%; the exact predictive on as few."""
    table = pd.read_csv(FOLDER / "ripley_test.csv")
    data = bz.example(DISCRIMINANT, "ripley")
    wrong = {}
    for kind, method in itertools.product(("tied", "full"), ("mle", "exact")):
        tree = bz.fit(DISCRIMINANT.weak(data).replaced(covariance=kind), data, method)
        decided = bz.classify(tree, table.drop(columns="class"))["decision"]
        wrong[kind, method] = int(np.sum(decided.to_numpy() != table["class"].astype(str).to_numpy()))
    assert (wrong["tied", "mle"], wrong["full", "mle"]) == (108, 102)
    assert wrong["tied", "exact"] <= 109
    assert wrong["full", "exact"] <= 103
    logits = bz.find("logistic_regression")
    by_logits = bz.fit(logits(tau=100.0), bz.read(logits, FOLDER / "ripley.csv", target="class"), "map")
    decided = bz.classify(by_logits, table.drop(columns="class"))["decision"]
    assert np.sum(decided.to_numpy() != table["class"].astype(str).to_numpy()) == 114


@pytest.mark.parametrize(
    ("kind", "classes", "code"),
    [
        ("tied", "aaabbbccc", "not_identified"),
        ("full", "aaabbbccc", "no_maximum"),
        ("spherical", "aaaabbbbc", "no_maximum"),
    ],
)
def test_rows_without_a_maximum_of_the_likelihood_are_sent_to_map(kind, classes, code):
    """Nine rows in twelve dimensions, or a class of one row; the prior gives them a mode."""
    rows = np.random.default_rng(0).normal(size=(9, 12))
    data = bz.read(DISCRIMINANT, (rows, np.array([*classes])))
    model = DISCRIMINANT.weak(data).replaced(covariance=kind)
    with raises(NumericalError, code, "no maximum-likelihood estimate", "try map"):
        bz.fit(model, data, "mle", groups=())
    assert bz.fit(model, data, "map", groups=()).attrs["status"] == "ok"
