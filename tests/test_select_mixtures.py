"""The number of components against scikit-learn, closed forms and enumeration."""

import importlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture as Reference

import bayeszoo as bz
from bayeszoo.comparison import criteria
from bayeszoo.comparison.compare import Withheld, fit_each
from bayeszoo.plots import select as select_plot
from tests.refusals import raises

MIXTURE = bz.find("gaussian_mixture")
TOPICS = bz.find("multinomial_mixture")
FEW = {"x": [0.1, -0.4, 2.9, 3.4, 0.3, 3.1, -0.2], "z": [1.0, 0.2, -1.1, -0.8, 0.6, -1.5, 0.9]}
DOCUMENTS = {"a": [4, 3, 0, 1, 5, 0], "b": [1, 0, 6, 4, 1, 2], "c": [0, 1, 1, 2, 0, 3]}


@pytest.fixture(scope="module")
def faithful():
    return bz.read(MIXTURE(), None)


def of_old_faithful(*numbers):
    """A fixture: Old Faithful, the same prior of each component whatever their number."""

    def selected(faithful):
        return bz.select(bz.components(MIXTURE.weak_with(faithful, {"K": 1}), numbers), faithful).set_index("model")

    return pytest.fixture(scope="module")(selected)


table, wide_table = of_old_faithful(1, 2), of_old_faithful(1, 2, 3)


def by_scikit_learn(Y, K):
    """Return the highest sound maximum of scikit-learn from random rows as means."""
    pooled = np.cov(Y.T)
    rng, found = np.random.default_rng(3), []
    for _ in range(15 if K > 2 else 3):
        begin = {"means_init": rng.choice(Y, K, replace=False), "precisions_init": [np.linalg.inv(pooled)] * K}
        made = Reference(K, tol=1e-9, reg_covar=0, max_iter=5000, weights_init=np.full(K, 1 / K), **begin).fit(Y)
        spread = np.linalg.eigvals(np.linalg.solve(pooled, made.covariances_)).min()
        if made.converged_ and spread > 1e-5 and made.weights_.min() * len(Y) >= 3:
            found.append(made)
    return max(found, key=lambda one: one.score(Y))


@pytest.mark.parametrize(
    ("K", "of"), [(1, "table"), (2, "table"), pytest.param(3, "wide_table", marks=pytest.mark.slow)]
)
def test_aic_and_bic_are_scikit_learn_s(request, faithful, K, of):
    found, row = by_scikit_learn(faithful["Y"], K), request.getfixturevalue(of).loc[f"K={K}"]
    assert row["aic"] == pytest.approx(found.aic(faithful["Y"]), rel=1e-6)
    assert row["bic"] == pytest.approx(found.bic(faithful["Y"]), rel=1e-6)
    assert row["likelihood_from"].startswith("EM, ")
    assert (row["components"], row["observations"]) == (K, 272)


def test_one_component_has_the_closed_form_of_one_gaussian(table, faithful):
    weak = MIXTURE.weak_with(faithful, {"K": 1})
    one = bz.find("normal_inverse_wishart")(mu0=weak.m0, kappa0=weak.kappa0, nu0=weak.nu0, Psi0=weak.Psi0)
    exact = bz.select([one], faithful).iloc[0]["log_evidence"]
    row = table.loc["K=1"]
    assert row["log_evidence"] == pytest.approx(exact, rel=1e-12)
    assert row["elbo"] == pytest.approx(exact, rel=1e-12)  # q(theta) is the posterior
    assert (row["evidence_se"], row["evidence_from"]) == (0, "enumeration")


@pytest.mark.parametrize("of", ["table", pytest.param("wide_table", marks=pytest.mark.slow)])
def test_old_faithful_has_two_components(request, of):
    table = request.getfixturevalue(of)
    assert table.index[0] == "K=2"
    assert table["bic"].idxmin() == table["elbo"].idxmax() == "K=2"
    row = table.loc["K=2"]
    assert (row["evidence_from"], row["elbo_from"][:4]) == ("importance sampling", "VB, ")
    assert 0 < row["evidence_se"] < 0.05
    assert 0 < row["log_evidence"] - row["elbo"] < math.log(2) + 1  # of the two orders of the labels q has one
    assert set(table["kfold_from"]) == {"withheld: no closed form"}
    assert table["loo_from"].str.startswith("withheld: ").all()


def with_evidence(pairs):
    """Return models and few rows, with their exact evidence."""
    return [(model, data, bz.enumerate_posterior(model, data).log_evidence) for model, data in pairs]


@pytest.fixture(scope="module")
def documents():
    return with_evidence([(model, bz.read(model, DOCUMENTS)) for model in (TOPICS(K=2, eta=0.7), TOPICS(K=3))])


@pytest.fixture(scope="module")
def enumerated(documents):
    rng = np.random.default_rng(8)
    tied, diagonal = MIXTURE(K=2, kappa0=0.1, covariance="tied"), MIXTURE(K=3, covariance="diagonal")
    pairs = []
    for model in (MIXTURE(K=2, kappa0=0.1), tied, diagonal):
        moved = {name: np.asarray(column) + rng.normal(0, 0.5, len(column)) for name, column in FEW.items()}
        pairs.append((model, bz.read(model, moved)))
    return [*with_evidence(pairs), *documents]


def errors(enumerated, broken=lambda model: model):
    """Return the errors of importance sampling in its own standard errors, where it has any."""
    found = [(criteria.estimate(broken(m), data, np.random.default_rng(1)), exact) for m, data, exact in enumerated]
    return np.array([(one.log_evidence - exact) / one.mcse for one, exact in found if one.k_hat <= 0.7])


@pytest.mark.slow
def test_importance_sampling_agrees_with_enumeration(enumerated):
    z = errors(enumerated)
    assert len(z) >= 4
    assert np.abs(z).max() < 4.4


def test_the_comparison_sees_that_q_has_one_order_of_the_labels_only(documents):
    class OneOrder:
        def __init__(self, model):
            self.model = model

        def __getattr__(self, name):
            return getattr(self.model, name)

        def vb_log_densities(self, qs, params):
            return self.model.vb_log_densities(qs, params) + math.lgamma(self.model.K + 1)

    assert np.abs(errors(documents, OneOrder)).max() > 10


@pytest.mark.slow
def test_importance_sampling_covers_what_the_optima_of_variational_bayes_miss():
    """Weights of these optima have k-hat 0.65, and an estimate that is seven of its errors off."""
    x = [1.43, -0.35, 0.03, 4.02, 5.65, 3.37, -0.11, -0.51, -2.13]
    z = [0.08, 1.25, 0.51, 2.12, 2.12, 5.74, 0.11, 0.33, -0.65]
    model = MIXTURE(K=2, kappa0=0.5)
    data = bz.read(model, {"x": x, "z": z})
    exact = bz.enumerate_posterior(model, data).log_evidence
    for seed in range(3):
        found = criteria.estimate(model, data, np.random.default_rng(seed))
        assert abs(found.log_evidence - exact) < 4.4 * found.mcse < 0.25
        assert found.k_hat <= 0.7


@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "spherical"])
def test_several_proposals_are_weighed_at_once_as_one_by_one(faithful, covariance):
    model, rng = MIXTURE.weak_with(faithful, {"K": 3, "covariance": covariance}), np.random.default_rng(0)
    qs = [model.vb_start(faithful, rng) for _ in range(5)]
    drawn = model.vb_posterior(qs[0]).rvs((20,), rng)
    each = np.array([model.vb_log_density(q, drawn) for q in qs])
    assert model.vb_log_densities(qs, drawn) == pytest.approx(each, rel=1e-11, abs=1e-9)


def test_few_rows_are_enumerated():
    models = bz.components(TOPICS(K=1, eta=0.5), [1, 2, 3])
    table = bz.select(models, DOCUMENTS).set_index("model")
    exact = {name: bz.enumerate_posterior(model, DOCUMENTS).log_evidence for name, model in models.items()}
    assert table["log_evidence"].to_dict() == pytest.approx(exact, rel=1e-12)
    assert (set(table["evidence_from"]), set(table["evidence_se"])) == ({"enumeration"}, {0})
    assert (table["elbo"] <= table["log_evidence"] + 1e-9).all()
    rows = {"x": [1.0, 1.0, 1.0, 5.0, 5.0, 5.0], "z": [2.0, 2.0, 2.0, 1.0, 1.0, 1.0]}
    row = bz.select([MIXTURE(K=2)], rows).iloc[0]  # its maximum is degenerate
    assert row["likelihood_from"].startswith("withheld: ")
    assert math.isnan(row["bic"])
    assert row["evidence_from"] == "enumeration"  # the prior keeps covariances from collapsing


@pytest.mark.slow
def test_everything_is_the_same_whenever_the_seed_is():
    rows = np.random.default_rng(2).normal(size=(30, 2)) + 6 * (np.arange(30) % 2)[:, None]
    data = bz.read(MIXTURE(), {"Y": rows, "column": np.array(["a", "b"])})
    model = MIXTURE.weak_with(data, {"K": 2})
    both = bz.select({"two": model, "one": replace(model, K=1)}, data, seed=4).set_index("model")
    alone = bz.select({"two": model}, data, seed=4).iloc[0]
    names = ["log_evidence", "evidence_se", "elbo", "log_likelihood", "evidence_from", "elbo_from", "likelihood_from"]
    assert both.loc["two", names].tolist() == alone[names].tolist()
    assert bz.select({"two": model}, data, seed=5).iloc[0]["log_evidence"] != alone["log_evidence"]


@pytest.mark.usefixtures("unmeasured")
def test_a_fit_adds_what_its_method_gives():
    model = TOPICS(K=2)
    fits = {method: bz.fit(model, DOCUMENTS, method, seed=1) for method in ("vb", "enumerate")}
    table = bz.select(fits).set_index("model")
    bare = bz.select([model], DOCUMENTS).iloc[0]
    for name in ("log_evidence", "elbo", "bic"):
        assert table[name].tolist() == [bare[name]] * 2
    assert table.loc["vb", "loo_from"].startswith("withheld: vb")
    assert table.loc["enumerate", "loo_from"] == "PSIS" or "k-hat" in table.loc["enumerate", "loo_from"]


def test_criteria_are_drawn_against_the_number_of_components(table):
    shown = table.reset_index()
    shown.loc[shown["components"] == 1, ["log_evidence", "log_bayes_factor_se"]] = np.nan
    figure = bz.plot_select(shown)
    assert [panel.get_title() for panel in figure.axes] == ["log evidence", "ELBO", "AIC", "BIC"]
    for panel, column in zip(figure.axes, ("log_evidence", "elbo", "aic", "bic"), strict=True):
        points = dict(zip(*map(list, panel.containers[0].lines[0].get_data()), strict=True))
        known = shown[shown[column].notna()]
        best = known[column].min() if column in ("aic", "bic") else known[column].max()
        assert points == pytest.approx(dict(zip(known["components"], np.abs(known[column] - best), strict=True)))
        assert (panel.yaxis_inverted(), panel.get_xlabel()) == (True, "components K")
    lost = [stripe for stripe in figure.axes[0].patches if stripe.get_label() == "withheld"]
    assert [stripe.get_x() + stripe.get_width() / 2 for stripe in lost] == pytest.approx([1.0])
    assert [text.get_text() for text in figure.axes[0].texts] == ["withheld"]  # and no mark where the worst would be
    factors = shown.assign(model=[f"q={k}" for k in shown["components"]])
    assert {panel.get_xlabel() for panel in bz.plot_select(factors).axes} == {"factors q"}
    others = [c.title for c in select_plot.CRITERIA[1:] if c.column not in select_plot.OF_SOME]
    names = [panel.get_title() for panel in bz.plot_select(table.reset_index().assign(components=2)).axes]
    assert names == ["log evidence", "ELBO", *others]  # not by their number


@pytest.fixture
def path(written):
    return written("x,z\n" + "".join(f"{x},{z}\n" for x, z in zip(FEW["x"], FEW["z"], strict=True)), "few.csv")


@pytest.mark.slow
def test_command_selects_a_number_of_components(run, path, tmp_path):
    options = ("select", path, "-c", "gaussian_mixture nu0=5", "--components", "1-2", "--plot", tmp_path / "k.png")
    code, out, err = run(*options)
    assert (code, err.count("the prior is scaled to the data")) == (0, 1)  # the same for all
    assert "Variational bound" in out
    assert "ELBO: a lower bound" in out
    assert (tmp_path / "k.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(run(*options, "--overwrite", "--json")[1])
    data = bz.read(MIXTURE(), str(path))
    exact = bz.select(bz.components(MIXTURE.weak_with(data, {"K": 1, "nu0": 5.0}), [1, 2]), data)
    assert [row["model"] for row in found["table"]] == exact["model"].tolist()
    assert [row["log_evidence"] for row in found["table"]] == pytest.approx(exact["log_evidence"].tolist(), rel=1e-12)
    tied = ("-c", "gaussian_mixture", "-c", "gaussian_mixture covariance='\"tied\"'", "--components", "1,2", "--json")
    assert len({row["model"] for row in json.loads(run("select", path, *tied)[1])["table"]}) == 4


@pytest.mark.parametrize(
    ("candidate", "options", "message"),
    [
        ("gaussian_mixture", ("--components", "two"), "--components 'two' is not a list of components"),
        ("gaussian_mixture", ("--components", "0-2"), "must be at least 1, got 0"),
        ("gaussian_mixture", ("--components", "1,1"), "K=1 is given twice"),
        ("gaussian_mixture", ("--components", "1-2", "--subsets"), "give one of --subsets, --components"),
        ("gaussian_mixture K=2", ("--components", "1-2"), "give K or --components, not both"),
        ("normal_inverse_wishart", ("--components", "1-2"), "numbers of components need models with a field K"),
    ],
)
def test_command_refuses_in_one_line(run, path, candidate, options, message):
    code, out, err = run("select", path, "-c", candidate, "--prior", "textbook", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_what_is_no_list_of_components_is_refused():
    for kind, numbers, code, name in (
        (MIXTURE(), [], "no_data", ""),
        (MIXTURE(), [1.5], "wrong_type", 1.5),
        (MIXTURE, [1], "not_a_model", "GaussianMixture"),
        (bz.find("linear_regression")(), [1], "no_components_field", "got linear_regression"),
    ):
        with raises(bz.InputError, code, name):
            bz.components(kind, numbers)


def test_command_keeps_the_model_where_its_fit_is_not_ok(run, path, monkeypatch):
    def fit(model, data, method, **options):
        tree = bz.fit(model, data, "enumerate", seed=1)
        tree.attrs |= {"method": method, "kind": "sampled", "status": {1: "ok", 2: "failed"}[model.K]}
        return tree

    monkeypatch.setattr(importlib.import_module("bayeszoo.cli.verbs.comparison.select"), "fit", fit)
    mixture = ("-c", "gaussian_mixture kappa0=1 nu0=9", "--components", "1-2")
    code, out, err = run("select", path, *mixture, "--nuts", "--json")
    rows = {row["model"]: row for row in json.loads(out)["table"]}
    assert (code, "K=2: the fit by nuts is left out, as its status is failed" in err) == (0, True)
    reasons = [rows[name]["loo_from"] for name in ("K=1", "K=2")]
    assert [reason.partition(":")[0] for reason in reasons] == ["PSIS", "withheld"]
    assert rows["K=2"]["log_evidence"] is not None


def test_too_many_assignments_do_not_end_a_comparison(faithful):
    found = fit_each(MIXTURE.weak(faithful), faithful, ["enumerate", "map"], seed=1)
    assert isinstance(found[0], Withheld)
    assert "more than 2000000" in found[0].reason
    assert found[1].attrs["method"] == "map"
    frame = bz.compare(found)
    assert frame["status"].tolist()[0].startswith("withheld: 272 rows have 2**272 assignments")


def test_em_is_not_compared_with_itself(monkeypatch):
    asked, module = [], importlib.import_module("bayeszoo.comparison.compare")
    monkeypatch.setattr(module, "fit_each", lambda model, data, methods, seed: asked.append(methods) or [])
    bz.compare(TOPICS(), DOCUMENTS)
    bz.compare(TOPICS(), DOCUMENTS, ["em"])
    assert (asked[0].count("em"), asked[1]) == (0, ["em"])
    assert {"map", "mle", "vb", "enumerate"} <= set(asked[0])


@pytest.mark.usefixtures("unmeasured")
def test_prediction_names_the_component_of_new_rows_with_an_outcome():
    tree = bz.fit(TOPICS(K=2), DOCUMENTS, "vb", seed=1)
    new = {"a": [5, 0], "b": [0, 4], "c": [0, 3]}
    frame = bz.predict(tree, new)
    assigned = bz.assign(tree, new)
    for row, (component, loss) in assigned[["component", "expected_loss"]].iterrows():
        assert set(frame.loc[row, "component"]) == {component}
        assert frame.loc[row, "probability"].to_numpy() == pytest.approx(1 - loss)
    assert "component" not in bz.predict(tree, 2)
    assert "component" not in bz.predict(bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact"), [1, 0])
    t = bz.fit(bz.find("student_t")(), [0.1, 0.4, -1.0, 0.2], "map", seed=1)
    assert "component" not in bz.predict(t, [0.3])  # its latent variable is a number
    tree.attrs["facts"] = json.dumps({**json.loads(tree.attrs["facts"]), "components_withheld": "they have not mixed"})
    assert bz.predict(tree, new)[["component", "probability"]].isna().all(axis=None)
