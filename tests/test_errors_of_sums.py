"""Monte Carlo errors of totals over rows: sums of log scores, wrong labels, mean scores and areas.

Rows share their draws, so that errors of single rows do not tell the error of a sum: each is held against the spread
over many sets of draws of a known posterior, or against scikit-learn at probabilities that are moved.
"""

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from scipy import special, stats

import bayeszoo as bz
from bayeszoo.answers.averages import error_of_sum, log_means, relative_sum
from bayeszoo.answers.checks.residuals import _kolmogorov
from bayeszoo.answers.classes.classify import WITHHELD
from bayeszoo.answers.classes.scores import scored
from bayeszoo.answers.latent.assigned import Assignments
from bayeszoo.comparison import held_out_rows
from bayeszoo.report.families.classes import score_rows

SETS, CHAINS, DRAWS = 300, 4, 100


def spread(values):
    """Return an sd and its standard error."""
    return np.std(values, ddof=1), np.std(values, ddof=1) / np.sqrt(2 * len(values))


@pytest.mark.parametrize("independent", [False, True])
def test_the_error_of_a_sum_of_log_scores_is_their_spread_over_sets_of_draws(independent):
    """Rows on one side of the posterior move together: independent errors would be half of it."""
    rng, y = np.random.default_rng(1), np.array([0.8, 1.0, 1.3, 1.7, 2.0, 2.2])
    sums, errors, as_if_independent = [], [], []
    for _ in range(SETS):
        theta = rng.normal(0, 0.3, (CHAINS, DRAWS, 1))
        log_p = stats.norm.logpdf(y, theta)
        value, error = log_means(log_p, independent=independent)
        sums.append(value.sum())
        errors.append(error_of_sum(relative_sum(log_p, value), independent=independent))
        as_if_independent.append(np.sqrt(np.sum(np.square(error))))
    truth, its_error = spread(sums)
    assert abs(np.mean(errors) - truth) < 4 * its_error
    assert abs(np.mean(as_if_independent) - truth) > 4 * its_error


def test_the_error_of_a_log_mean_of_independent_draws_is_scipys_of_the_mean_over_the_mean():
    """Chains that each stay on one side have larger errors than independent draws."""
    log_p = np.random.default_rng(5).normal(size=(4, 100, 3)) + np.array([-1, 1, -1, 1])[:, None, None]
    p = np.exp(log_p).reshape(-1, 3)
    value, error = log_means(log_p, independent=True)
    assert value == pytest.approx(np.log(p.mean(axis=0)), abs=1e-12)
    assert error == pytest.approx(stats.sem(p) / p.mean(axis=0), rel=1e-12)
    assert (log_means(log_p)[1] > 2 * error).all()


def test_a_sum_with_an_unknown_score_has_no_error_and_an_impossible_row_moves_nothing():
    log_p = np.random.default_rng(2).normal(size=(4, 100, 3))
    value = log_means(log_p)[0]
    assert np.isnan(error_of_sum(relative_sum(log_p, np.where([True, False, False], np.nan, value))))
    impossible = np.where([False, False, True], -np.inf, log_p)
    own = log_means(impossible)[0]
    of_two = error_of_sum(relative_sum(log_p[..., :2], value[:2]))
    assert error_of_sum(relative_sum(impossible, own)) == pytest.approx(of_two, rel=1e-12)
    assert error_of_sum(relative_sum(np.zeros((4, 100, 3)), np.zeros(3))) == 0


def test_errors_of_losses_and_of_wrong_labels_are_their_spread_over_sets_of_draws():
    """The rows move together; as if they did not, the error of the number of wrong labels would be a third."""
    rng, at = np.random.default_rng(3), rng_rows()
    losses, numbers, own, whole, apart = [], [], [], [], []
    for _ in range(SETS):
        moved = 0.6 * rng.standard_normal((CHAINS, DRAWS, 1, 1)) * np.array([1.0, -0.5, 0.0])
        known = Assignments.of_draws(special.softmax(at + moved, axis=-1))
        losses.append(known.expected_loss)
        numbers.append(known.expected_errors)
        own.append(known.mcse_expected_loss)
        whole.append(known.mcse_expected_errors)
        apart.append(np.sqrt(np.sum(np.square(known.mcse_expected_loss))))
    truth, its_error = np.transpose([spread(each) for each in np.transpose(losses)])
    assert (np.abs(np.mean(own, axis=0) - truth) < 4.5 * its_error).all()
    truth, its_error = spread(numbers)
    assert abs(np.mean(whole) - truth) < 4 * its_error
    assert np.mean(apart) < truth / 2


def rng_rows():
    """Logits of twelve rows and three components, the first always the most probable."""
    return np.random.default_rng(4).uniform(-0.3, 0.3, (12, 3)) + np.array([1.5, 0.0, 0.0])


def table(p, errors, classes):
    frame = pd.DataFrame({f"p[{label}]": p[:, k] for k, label in enumerate(classes)})
    frame = frame.assign(**{f"mcse[{label}]": errors[:, k] for k, label in enumerate(classes)})
    frame = frame.assign(decision=np.array(classes, dtype=object)[np.argmax(p, axis=1)], settled=True)
    frame.attrs |= {"classes": classes, "loss": None}
    return frame


@pytest.mark.parametrize("classes", [["a", "b"], ["a", "b", "c"]], ids=len)
def test_scores_at_moved_probabilities_are_within_their_errors(classes):
    """Scores and areas by scikit-learn, of probabilities that all moved by their errors, this way or that."""
    rng, K = np.random.default_rng(5), len(classes)
    p = rng.dirichlet(np.full(K, 2.0), 40)
    truth = rng.integers(0, K, len(p))
    counts = np.eye(K, dtype=int)[truth]
    errors = rng.uniform(0.0005, 0.002, p.shape)
    if K == 2:
        errors[:, 1] = errors[:, 0]
    frame = scored(table(p, errors, classes), counts, (np.log(p), errors / p), False)
    about = frame.attrs
    assert about["brier_score_of_one"] == pytest.approx(brier(truth, p), rel=1e-12)
    most = dict.fromkeys(("log", "brier"), 0.0)
    for _ in range(200):
        signs = rng.choice([-1.0, 1.0], p.shape)
        signs[:, 1] = -signs[:, 0] if K == 2 else signs[:, 1]
        q = p + signs * errors
        moved = {"log": np.log(q)[counts == 1].mean() - np.log(p)[counts == 1].mean()}
        moved["brier"] = brier(truth, q) - brier(truth, p)
        assert abs(moved["log"]) < 1.02 * about["mcse_log_score_of_one"] + 1e-5
        assert abs(moved["brier"]) < 1.02 * about["mcse_brier_score_of_one"]
        most = {name: max(most[name], abs(value)) for name, value in moved.items()}
        for label, area in about["auc"].items():
            k = classes.index(label)
            gap = sklearn.metrics.roc_auc_score(truth == k, q[:, k]) - area
            assert abs(gap) <= about["mcse_auc"][label] + 1e-12
    away = p + np.where(counts == 1, -1, 1) * errors  # all rows the same way
    reached = brier(truth, away) - brier(truth, p)
    assert reached == pytest.approx(about["mcse_brier_score_of_one"], rel=0.02)


def brier(truth, p):
    classes = p.shape[1]
    if classes == 2:
        return sklearn.metrics.brier_score_loss(truth, p[:, 1])
    return np.mean(np.sum(np.square(p - np.eye(classes)[truth]), axis=1))


def test_decisions_that_are_not_settled_may_move_the_loss():
    p = np.array([[0.8, 0.2], [0.501, 0.499], [0.3, 0.7]])
    frame = table(p, np.full(p.shape, 0.002), ["a", "b"]).assign(settled=[True, False, True])
    counts = np.array([[1, 0], [1, 0], [0, 1]])
    about = scored(frame, counts, (np.log(p), 0.002 / p), False).attrs
    assert about["mcse_loss_of_one"] == pytest.approx(1 / 3)
    heads, rows = score_rows(about)
    assert heads[-1] == "Monte Carlo error at most"
    assert {row[0]: row[-1] for row in rows}["loss"] == "0.33"
    sure = scored(frame.assign(settled=True, **{"mcse[a]": 0.0, "mcse[b]": 0.0}), counts, (np.log(p), 0 * p), False)
    assert {row[-1] for row in score_rows(sure.attrs)[1]} == {"-"}


def test_the_score_of_held_out_rows_is_withheld_where_that_of_one_is():
    """A row 60 sd away has no score by draws; without it the mean was -0.2, and by the closed form it is -8."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=60)
    y = x + rng.normal(size=60) * 0.3
    y[np.random.default_rng(1).permutation(60)[2]] = 60
    frame = bz.held_out_error(
        bz.find("linear_regression"), (x[:, None], y), share=0.3, methods=["exact", "laplace"], seed=1
    ).set_index("by")
    assert frame.loc["exact", "log_score"] < -5
    assert frame.loc["exact", ["mcse_error", "mcse_log_score"]].tolist() == [0, 0]
    assert np.isnan(frame.loc["laplace", ["log_score", "mcse_log_score"]].astype(float)).all()
    assert 0 < frame.loc["laplace", "mcse_error"] < 0.01


def test_the_score_of_a_series_is_withheld_where_that_of_a_row_is():
    """A row 80 sd away: by draws eight rows have no score, and the sum over the others was shown."""
    M, rng = bz.find("local_level"), np.random.default_rng(1)
    y = np.cumsum(rng.normal(size=60) * 0.3) + rng.normal(size=60)
    tree = bz.fit(M, bz.read(M, y), "laplace", seed=1)
    assert np.isnan(bz.decode(tree, np.insert(y[:40], 20, 80.0)).attrs["log_score"])
    known = bz.decode(tree, y[:40])
    assert known.attrs["log_score"] == pytest.approx(known["log_score"].sum(), rel=1e-12)
    assert 0 < known.attrs["mcse_log_score"] < 0.2


def test_a_held_out_decision_that_is_withheld_is_not_counted_as_wrong(monkeypatch):
    M, rng = bz.find("logistic_regression"), np.random.default_rng(6)
    X = rng.normal(size=(40, 1))
    y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)
    own = held_out_rows.classify

    def first_withheld(tree, new):
        frame = own(tree, new)
        frame["decision"] = np.where(np.arange(len(frame)) == 0, WITHHELD, frame["decision"])
        return frame

    asked = {"share": 0.3, "methods": ["map"], "seed": 1}
    assert np.isfinite(bz.held_out_error(M, (X, y), **asked).loc[0, "error"])
    monkeypatch.setattr(held_out_rows, "classify", first_withheld)
    assert np.isnan(bz.held_out_error(M, (X, y), **asked).loc[0, "error"])


def test_the_p_value_of_uniform_pits_moves_no_further_than_its_error():
    """By SciPy's test of PITs that moved by their errors, each its own way; without errors there is none."""
    rng = np.random.default_rng(7)
    pit, errors = np.sort(rng.uniform(size=80) ** 1.1), rng.uniform(0.0005, 0.002, 80)
    p, p_error = _kolmogorov(pit, errors)
    assert p == stats.kstest(pit, "uniform").pvalue
    moved = [stats.kstest(pit + rng.choice([-1, 1], 80) * errors, "uniform").pvalue - p for _ in range(300)]
    assert np.max(np.abs(moved)) <= p_error
    assert p_error < 5 * np.max(np.abs(moved))
    assert _kolmogorov(pit, np.full(80, np.nan)) == (p, 0.0)
    assert np.isnan(_kolmogorov(np.empty(0), np.empty(0))).all()
