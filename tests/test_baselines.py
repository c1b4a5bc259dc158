"""Errors on rows held out: by scikit-learn's own estimates of the same rows, and refused where there are none."""

import numpy as np
import pytest
import scipy
import sklearn.ensemble
import sklearn.linear_model
import sklearn.neighbors
import sklearn.svm
import sklearn.tree
from sklearn.preprocessing import StandardScaler

import bayeszoo as bz
from bayeszoo.comparison.held_out_rows import _parts
from bayeszoo.tools.baselines import machines_of_classes, machines_of_real_outcomes
from tests.refusals import raises

LOGISTIC, LINEAR, RIDGE = bz.find("logistic_regression"), bz.find("linear_regression"), bz.find("ridge")
NAIVE = bz.find("naive_bayes")


def classes(n=90, seed=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2)) * [1.0, 50.0]
    return X, (X @ [1.5, 0.02] + rng.logistic(size=n) > 0).astype(int)


def each_split(X, y, machine, **how):
    """Return what a machine of scikit-learn says of the rows held out, and what they are."""
    said = []
    for held in _parts(len(y), how.get("share"), how.get("folds"), how["seed"]):
        seen = np.setdiff1d(np.arange(len(y)), held)
        scaler = StandardScaler().fit(X[seen])
        said.append((machine().fit(scaler.transform(X[seen]), y[seen]).predict(scaler.transform(X[held])), y[held]))
    return np.concatenate([pair[0] for pair in said]), np.concatenate([pair[1] for pair in said])


def row(frame, name):
    return frame.set_index("by").loc[name]


@pytest.mark.parametrize("how", [{"share": 0.3}, {"folds": 4}])
def test_wrong_decisions_are_those_of_scikit_learn_on_the_same_rows(how):
    X, y = classes()
    frame = bz.held_out_error(LOGISTIC(), (X, y), methods=["mle"], baselines=["svc", "forest"], seed=7, **how)
    machines = {
        "mle": lambda: sklearn.linear_model.LogisticRegression(C=1e10, tol=1e-10),
        "svc": lambda: sklearn.svm.SVC(random_state=7),
        "forest": lambda: sklearn.ensemble.RandomForestClassifier(random_state=7),
    }
    for name, machine in machines.items():
        said, known = each_split(X, y, machine, seed=7, **how)
        wrong = np.mean(said != known)
        assert row(frame, name)["error"] == pytest.approx(wrong)
        assert row(frame, name)["trials"] == len(known)
        assert row(frame, name)["error_se"] == pytest.approx(np.std(said != known, ddof=1) / np.sqrt(len(known)))
    assert frame["error"].is_monotonic_increasing


def test_no_errors_at_all_have_no_standard_error():
    """0 would say that no other row can be put into a wrong class."""
    X = np.r_[np.linspace(-9, -5, 40), np.linspace(5, 9, 40)][:, None]
    y = (X[:, 0] > 0).astype(int)
    found = row(bz.held_out_error(LOGISTIC(), (X, y), methods=["map"], seed=1), "map")
    assert (found["error"], found["trials"] > 1) == (0, True)
    assert np.isnan(found["error_se"])
    scored = bz.classify(bz.fit(LOGISTIC(), (X, y), "map", groups=()), (X, y)).attrs
    assert scored["loss_of_one"] == 0
    assert np.isnan(scored["se_loss_of_one"])
    assert scored["se_log_score_of_one"] > 0


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("tree", lambda: sklearn.tree.DecisionTreeClassifier(random_state=7)),
        ("gradient_boosting", lambda: sklearn.ensemble.GradientBoostingClassifier(random_state=7)),
        ("neighbours", sklearn.neighbors.KNeighborsClassifier),
    ],
)
def test_trees_and_neighbours_err_as_those_of_scikit_learn(name, machine):
    X, y = classes()
    frame = bz.held_out_error(LOGISTIC(), (X, y), methods=["map"], baselines=[name], seed=7)
    said, known = each_split(X, y, machine, seed=7)
    assert row(frame, name)["error"] == pytest.approx(np.mean(said != known))


def test_numbers_and_levels_are_columns_of_the_baselines():
    (X, y), rng = classes(), np.random.default_rng(3)
    colour = rng.choice(["blue", "green", "red"], len(y))
    table = {"class": np.where(y == 1, "yes", "no"), "a": X[:, 0], "b": X[:, 1], "colour": colour}
    whole = np.column_stack([X, *(colour == name for name in ("blue", "green", "red"))])
    how = {"methods": ["exact"], "baselines": ["forest"], "seed": 7}
    frame = bz.held_out_error(NAIVE, bz.read(NAIVE, table, target="class"), **how)
    said, known = each_split(whole, y, lambda: sklearn.ensemble.RandomForestClassifier(random_state=7), seed=7)
    assert row(frame, "forest")["error"] == pytest.approx(np.mean(said != known))
    with raises(bz.InputError, "missing_values"):
        bz.held_out_error(
            NAIVE, bz.read(NAIVE, table | {"a": [np.nan, *X[1:, 0]]}, target="class", missing="mask"), **how
        )
    with raises(bz.InputError, "unknown_method", "naive_bayes_text"):
        bz.held_out_error(bz.find("naive_bayes_text"), **how)


def test_trials_of_a_row_are_as_many_neighbours():
    """Thirty equal trials of a row are the five nearest; each row of new ones takes their majority."""
    table = {"x": [0.0, 1.0, 2.0, 3.0], "y": [1, 25, 3, 28], "n": [30, 30, 30, 30]}
    frame = bz.held_out_error(
        LOGISTIC(), bz.read(LOGISTIC, table, trials="n"), share=0.25, methods=["map"], baselines=["neighbours"]
    )
    assert row(frame, "neighbours")["trials"] == 30


def test_errors_of_a_real_outcome_are_those_of_scikit_learn_on_the_same_rows():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.standard_normal(60)
    frame = bz.held_out_error(LINEAR, (X, y), folds=5, methods=["mle"], baselines=["forest"], seed=1)
    said, known = each_split(X, y, sklearn.linear_model.LinearRegression, folds=5, seed=1)
    assert row(frame, "mle")["error"] == pytest.approx(np.sqrt(np.mean((said - known) ** 2)))
    trees = lambda: sklearn.ensemble.RandomForestRegressor(random_state=1)  # noqa: E731
    said, known = each_split(X, y, trees, folds=5, seed=1)
    root = np.sqrt(np.mean((said - known) ** 2))
    assert row(frame, "forest")["error"] == pytest.approx(root)
    assert row(frame, "forest")["error_se"] == pytest.approx(scipy.stats.sem((said - known) ** 2) / (2 * root))
    assert row(frame, "forest")["kind"] == "baseline"
    assert np.isnan(row(frame, "forest")["log_score"])
    assert np.isfinite(row(frame, "mle")["log_score"])


def test_every_baseline_has_the_seed():
    of_numbers = {f"{name} of numbers": maker for name, maker in machines_of_real_outcomes().items()}
    makers = machines_of_classes() | of_numbers
    seeds = {name: maker(7).get_params().get("random_state") for name, maker in makers.items()}
    assert seeds == {name: None if "neighbours" in name else 7 for name in makers}  # which draw nothing


def test_every_row_is_held_out_once_by_folds_and_the_seed_decides():
    parts = list(_parts(23, None, 4, 5))
    assert sorted(np.concatenate(parts)) == list(range(23))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert len(next(_parts(23, 0.3, None, 5))) == 7
    assert not np.array_equal(next(_parts(23, 0.3, None, 5)), next(_parts(23, 0.3, None, 6)))


def test_the_prior_is_scaled_to_the_rows_that_are_seen(monkeypatch):
    seen = []
    right = LOGISTIC.weak.__func__
    monkeypatch.setattr(
        LOGISTIC, "weak", classmethod(lambda cls, data: seen.append(len(data["y"])) or right(cls, data))
    )
    X, y = classes()
    bz.held_out_error(LOGISTIC, (X, y), share=0.2, methods=["map"], fields={"tau": 1.0}, seed=1)
    assert seen == [72]


def test_trials_of_a_row_are_held_out_together_and_weigh_in_the_baselines():
    rng = np.random.default_rng(0)
    x = np.linspace(-2, 2, 30)
    table = {"successes": rng.binomial(20, 1 / (1 + np.exp(-2 * x))), "trials": np.full(30, 20), "x": x}
    frame = bz.held_out_error(LOGISTIC, bz.read(LOGISTIC, table), methods=["map"], baselines=["boosting"], seed=1)
    assert frame["trials"].tolist() == [180, 180]
    assert abs(frame["error"][0] - frame["error"][1]) < 0.1
    assert frame["error"].max() < 0.35


def test_a_fit_without_an_answer_is_withheld_with_its_reason():
    X = classes()[0]
    frame = bz.held_out_error(LOGISTIC, (X, (X[:, 0] > 0).astype(int)), methods=["mle", "map"], seed=1)
    assert row(frame, "mle")["status"].startswith("withheld: no maximum-likelihood estimate")
    assert np.isnan(row(frame, "mle")["error"])
    assert row(frame, "map")["status"] == "ok"


@pytest.mark.parametrize(
    ("kind", "asked", "said"),
    [
        (RIDGE, {"baselines": ["svc"]}, ("unknown_method", "ridge", "baseline", "'svc'", "forest")),
        (LOGISTIC, {"baselines": ["bart"]}, ("unknown_method", "baseline", "'bart'", "svc", "boosting", "forest")),
        (LOGISTIC, {"share": 1.5}, ("too_few_rows", "1.5")),
        (LOGISTIC, {"share": 0.2, "folds": 5}, ("conflicting_options",)),
        (LOGISTIC, {"folds": 1}, ("out_of_range", "folds", "2")),
        (bz.find("beta_bernoulli"), {}, ("not_held_out", "beta_bernoulli")),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(kind, asked, said):
    with raises(bz.InputError, *said):
        bz.held_out_error(kind, seed=1, **asked)


def test_the_command_labels_baselines_and_gives_them_no_density(run):
    code, out, _ = run(
        *("compare", "logistic_regression", "--example", "challenger", "--held-out", "0.3"),
        *("--baselines", "forest,svc", "--methods", "map", "--seed", "1"),
    )
    assert code == 0
    assert "7 of 23 rows held out, seed 1" in out
    lines = {line.split()[0]: line.split() for line in out.splitlines() if "baseline " in line or "point" in line}
    assert lines["forest"][1] == lines["svc"][1] == "baseline"
    assert lines["forest"][-1] == lines["svc"][-1] == "-"
    code, _, err = run("compare", "ridge", "--folds", "3", "--methods", "map", "--plot", "held.png")
    assert code == 2
    assert "--report and --plot show fits of all rows, and rows are held out" in err
