"""Latent class analysis: against naive Bayes with the classes known, enumeration, and other people's mixtures."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import bayeszoo as bz
from bayeszoo.inference.methods.enumeration import enumerate_posterior
from bayeszoo.results.stored import Fit
from tests.refusals import raises

LATENT = bz.find("latent_class")
ROWS = {"a": list("nyynyy"), "b": list("pqpqqr"), "c": list("nnyyyn")}


def data():
    return bz.read(LATENT, ROWS)


def test_with_the_classes_known_it_is_naive_bayes():
    """The evidence of rows and assignments is that of naive Bayes whose class is the assignment."""
    model, naive = LATENT(K=2, alpha=0.8, eta=0.6), bz.find("naive_bayes")(alpha=0.8, eta=0.6)
    for codes in ([0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 0, 1]):
        labelled = bz.read(naive, {**ROWS, "y": np.array(["u", "v"])[codes]}, target="y")
        expected = naive.log_evidence(naive.statistics(labelled))
        assert model.log_joint(np.array([codes]), data())[0] == pytest.approx(expected, rel=1e-12)


def test_evidence_is_the_sum_over_all_assignments():
    model = LATENT(K=2, alpha=0.8, eta=0.6)
    every = np.array([*itertools.product(range(2), repeat=6)])
    total = logsumexp([model.log_joint(np.array([codes]), data())[0] for codes in every])
    assert enumerate_posterior(model, data()).log_evidence == pytest.approx(total, rel=1e-12)


def test_a_missing_cell_is_summed_over():
    model = LATENT(K=2)
    params = {
        "weights": np.array([0.3, 0.7]),
        "theta": np.array([[0.2, 0.8, 0.1, 0.6, 0.3], [0.5, 0.5, 0.3, 0.3, 0.4]]),
    }
    rows = {
        name: np.array(labels)
        for name, labels in (("feature", ["a", "b"]), ("level", ["a=n", "a=y", "b=p", "b=q", "b=r"]))
    }
    known = {"levels": np.array([[0, 2], [0, 3], [0, 4]]), **rows}
    hole = {"levels": np.array([[0, -1]]), **rows}
    assert model.log_rows(params, hole)[0] == pytest.approx(logsumexp(model.log_rows(params, known)), rel=1e-12)


def test_classes_of_few_features_are_not_identified():
    two = bz.read(LATENT, {"a": list("nyynyynyny"), "b": list("pqpqqpqppp")})
    with raises(bz.NumericalError, "no_maximum"):
        bz.fit(LATENT(K=2), two, "mle", seed=1)


@pytest.mark.parametrize("seed", [1, 2])
def test_three_classes_of_four_yes_no_features_are_not_identified_though_the_table_has_more_free_cells(seed):
    """14 parameters and 15 free cells, and yet one parameter is free (Goodman 1974, Biometrika 61, 215-231)."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 300)
    yes = np.array([[0.9, 0.2, 0.5], [0.8, 0.3, 0.1], [0.7, 0.1, 0.6], [0.9, 0.5, 0.2]])
    table = {
        name: np.where(rng.random(300) < share[classes], "y", "n") for name, share in zip("abcd", yes, strict=True)
    }
    four = bz.read(LATENT, table)
    with raises(bz.NumericalError, "no_maximum"):
        bz.fit(LATENT(K=3), four, "mle", seed=seed)
    assert bz.fit(LATENT(K=2), four, "mle", seed=seed).attrs["status"] == "ok"


def test_knowledge_of_cancer():
    """Two classes of the people asked in 1945: the likelihood is above independence, below the saturated table."""
    rows = bz.example(LATENT)
    by_k = {K: Fit(bz.fit(LATENT(K=K), rows, "mle", seed=1)).facts["log_likelihood"] for K in (1, 2)}
    shares = [np.bincount(rows["levels"][:, j])[places] for j, places in enumerate(tables())]
    independent = sum(np.sum(n * np.log(n / n.sum())) for n in shares)
    _, cells = np.unique(rows["levels"], axis=0, return_counts=True)
    assert by_k[1] == pytest.approx(independent, rel=1e-9)
    assert independent + 200 < by_k[2] < np.sum(cells * np.log(cells / 1729))


def tables():
    return [[2 * j, 2 * j + 1] for j in range(5)]
