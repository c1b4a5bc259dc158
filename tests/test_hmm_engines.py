"""Hidden Markov models by every engine, against each other and posteriordb; and seeded bugs, each of which is seen."""

import json
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from arviz_stats.base import array_stats
from scipy import stats

import bayeszoo as bz
from bayeszoo.answers.leave_out import NoScore, psis
from bayeszoo.contract.latent import sampler_checks
from bayeszoo.data.read import example
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.families.hmm import model as hmm_model
from bayeszoo.families.hmm.emissions import Emissions, Normals, PoissonCounts, Symbols
from bayeszoo.families.hmm.tables import HiddenChain, ProbabilityTable
from bayeszoo.inference.labels.align import align
from tests.own_models.hmm_example import HMMExample
from tests.test_hmm_models import CASINO, CATEGORICAL, FEW, NAMES, log_joint, one_check, rows, symbols

REFERENCE = Path(__file__).parent / "own_models" / "hmm_example.json"


@pytest.fixture(scope="module")
def fits():
    """Fits of the first example of each model, each made once."""
    made = {}

    def fitted(name, method):
        data = example(bz.find(name))
        model = bz.find(name).weak(data)
        if (name, method) not in made:
            made[name, method] = bz.fit(model, data, method, seed=1)
        return made[name, method]

    return fitted


def means(tree):
    return {str(name): v.mean(("chain", "draw")).to_numpy() for name, v in tree["posterior"].data_vars.items()}


EMITTED = {"hmm_gaussian": ("means", 40.0), "hmm_poisson": ("rates", 1.0)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hmm_gaussian", "hmm_poisson"])
def test_em_vb_and_nuts_agree(name, fits):
    emitted, tolerance = EMITTED[name]
    found = {method: means(fits(name, method)) for method in ("em", "vb", "nuts")}
    assert fits(name, "nuts").attrs["status"] == fits(name, "em").attrs["status"] == "ok"
    for method in ("em", "vb"):
        order, other = (np.argsort(found[one][emitted]) for one in (method, "nuts"))
        assert np.allclose(found[method][emitted][order], found["nuts"][emitted][other], atol=tolerance)
        stay = [np.diagonal(found[one]["transition"])[k] for one, k in ((method, order), ("nuts", other))]
        assert np.allclose(*stay, atol=0.12)


@pytest.mark.slow
def test_the_elbo_is_below_the_evidence_by_smc(fits):
    smc = json.loads(fits("hmm_poisson", "smc").attrs["facts"])
    elbo = json.loads(fits("hmm_poisson", "vb").attrs["facts"])["elbo"]
    assert elbo <= smc["log_evidence"] + 3 * smc.get("log_evidence_se", 0.1)
    assert elbo >= smc["log_evidence"] - 8


@pytest.mark.slow
def test_nuts_on_the_dice_passes_its_gate(fits):
    tree = fits("hmm_categorical", "nuts")
    assert tree.attrs["status"] == "ok"
    # the sixes of one die and of the other, in order, do not depend on labels
    sixes = tree["invariants"]["sorted_emission"].to_numpy()[..., 5]
    assert sixes[..., 0].mean() < 0.16 < 0.4 < sixes[..., 1].mean()


def test_the_dice_are_the_published_simulation():
    rng, state, made = np.random.default_rng(1), 0, []
    tables = np.array(CASINO["transition"]), np.array(CASINO["emission"])
    for t in range(300):
        state = rng.choice(2, p=tables[0][state]) if t else 0
        made.append((rng.choice(6, p=tables[1][state]) + 1, ("fair", "loaded")[state]))
    file = pd.read_csv(resources.files("bayeszoo.models.data") / "dice.csv")
    assert made == list(file.itertuples(index=False, name=None))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nuts_agrees_with_the_sum_over_all_paths(name):
    for check in sampler_checks(bz.find(name), None, 0):
        assert check.passed, str(check)


@pytest.mark.slow
def test_posteriordbs_reference_is_met():
    stored = json.loads(REFERENCE.read_text())
    tree = bz.fit(HMMExample(), {"y": np.array(stored["data"]["y"])}, "nuts", seed=1)
    assert tree.attrs["status"] == "ok"
    theta, mu = (tree["posterior"][name].to_numpy() for name in ("theta", "mu"))
    draws = {f"theta{i + 1}[{j + 1}]": theta[..., i, j] for i in range(2) for j in range(2)}
    draws |= {f"mu[{k + 1}]": mu[..., k] for k in range(2)}
    assert {row["parameter"] for row in stored["reference"]} == set(draws)
    for row in stored["reference"]:
        values = draws[row["parameter"]]
        mcse = array_stats.mcse(values, method="mean", chain_axis=0, draw_axis=1)
        error = np.hypot(mcse, float(row["sd"]) / np.sqrt(int(row["n_draws"])))
        assert abs(values.mean() - float(row["mean"])) <= 4.4 * error, row
        assert values.std() == pytest.approx(float(row["sd"]), rel=0.15)


# What rows that are not independent do not have


@pytest.mark.slow
def test_what_needs_independent_rows_says_so(fits):
    tree, data = fits("hmm_poisson", "nuts"), example(bz.find("hmm_poisson"))
    model = bz.find("hmm_poisson").weak(data)
    for refused in (lambda: bz.predict(tree), lambda: bz.residuals(tree), lambda: bz.predictive_check(tree)):
        with pytest.raises(InputError, match="does not say how its observations are distributed"):
            refused()
    with pytest.raises(NoScore, match="does not say how one observation"):
        psis(model, data, tree["posterior"])
    with pytest.raises(InputError, match="no closed-form evidence"):
        bz.empirical_bayes(model, data)
    table = bz.select([tree])
    assert table["loo_from"][0].startswith("withheld: the model does not say")
    assert np.isnan(table["kfold"][0])
    assert np.isnan(bz.compare([tree, fits("hmm_poisson", "em")])["loo_score"]).all()


@pytest.mark.slow
def test_states_of_new_rows_are_known_from_a_fit(fits):
    found = bz.assign(fits("hmm_poisson", "nuts"), {"y": [3, 2, 45, 40]})
    assert found["component"].tolist() == [1, 1, 2, 2]


def test_labels_of_a_long_series_are_aligned_by_rows_in_their_order():
    rng = np.random.default_rng(0)
    model = bz.find("hmm_poisson")(K=2)
    data = rows(rng.poisson(np.repeat([1.0, 6.0], 1500)))
    params = {
        "initial": np.full((1, 3, 2), 0.5),
        "transition": np.tile([[0.99, 0.01], [0.01, 0.99]], (1, 3, 1, 1)),
        "rates": np.array([[[1.0, 6.0], [6.0, 1.0], [1.0, 6.0]]]),
    }
    found = align(model, params, data)
    first, second = found.permutations[0, :2]
    assert first.tolist() == second[::-1].tolist()
    chosen = np.sort(np.random.default_rng(0).choice(3000, 1000, replace=False, shuffle=False))
    every = model.assign({name: values[0, 0] for name, values in params.items()}, data)
    assert np.allclose(found.responsibilities, every[chosen][:, first], atol=1e-9)


# Seeded bugs: each must be seen


def fails(identity, model, data):
    try:
        return not one_check(identity, model, data).passed
    except NumericalError:  # as a climb that falls
        return True


def patched(owner, name, wrong):
    """Return a bug: a step that is ``wrong`` of the true one."""
    return lambda monkeypatch: monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))


def masked_symbols_are_the_last(monkeypatch):
    monkeypatch.setattr(Symbols, "_rows", lambda self, log_table, y: log_table.T[y])
    monkeypatch.setattr(Symbols, "smoothed", Emissions.smoothed)


def without_sticky(true):
    return classmethod(lambda cls, K, alpha, beta, sticky, *known: true(K, alpha, beta, 0.0, *known))


SEEN = {
    "transposed": patched(
        Symbols, "sums", lambda true: lambda *a: (found := true(*a))._replace(transition=found.transition.T)
    ),
    "first states forgotten": patched(
        hmm_model, "path_counts", lambda true: lambda *a: (0 * (found := true(*a))[0], found[1])
    ),
    "glued": patched(hmm_model, "starts", lambda true: lambda sequence: np.array([0])),
    "pseudo-counts too many": patched(
        ProbabilityTable, "mode", lambda true: lambda self, counts, flat: true(self, counts + (not flat), flat)
    ),
    "bound without the emissions": patched(Symbols, "divergence", lambda true: lambda self, hyper: 0.0),
    "masked symbols are the last": masked_symbols_are_the_last,
    "variance read as deviation": patched(
        Normals, "sums", lambda true: lambda self, t, p, *a: true(self, t, {**p, "variances": p["variances"] ** 2}, *a)
    ),
    "rate read as scale": patched(
        PoissonCounts,
        "log_prior",
        lambda true: lambda self, p: stats.gamma.logpdf(p["rates"], self.a, scale=self.b).sum(axis=-1),
    ),
    "states not exchanged": patched(
        hmm_model.HiddenMarkovModel,
        "invariants",
        lambda true: lambda self, p, data: {**true(self, p, data), "stay": np.asarray(p["transition"])[..., 0, 0]},
    ),
}
TWO = {name: {**data, "sequence": np.array([0, 0, 0, 1, 1])} for name, (_, data) in FEW.items()}
MASKED = {**FEW["hmm_categorical"][1], "y": np.array([0, 2, -1, 1, 0])}
LONG = symbols(np.random.default_rng(5).integers(0, 3, 60))
PRIOR = CATEGORICAL(alpha=1.5, beta=1.8, sticky=2.0, eta=1.4)

BUGS = [
    ("transposed", "em_map_is_stationary", PRIOR, LONG),
    ("first states forgotten", "enumerated_candidate", PRIOR, TWO["hmm_categorical"]),
    ("glued", "em_objective", PRIOR, TWO["hmm_categorical"]),
    ("pseudo-counts too many", "em_map_is_stationary", PRIOR, LONG),
    ("bound without the emissions", "one_component", PRIOR, TWO["hmm_categorical"]),
    ("masked symbols are the last", "em_objective", PRIOR, MASKED),
    ("variance read as deviation", "em_objective", FEW["hmm_gaussian"][0], TWO["hmm_gaussian"]),
    ("rate read as scale", "em_objective", FEW["hmm_poisson"][0], TWO["hmm_poisson"]),
    ("states not exchanged", "labels_mean_nothing", PRIOR, LONG),
]


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "identity", "model", "data"), BUGS)
def test_seeded_bugs_are_seen(bug, identity, model, data, monkeypatch):
    assert not fails(identity, model, data)
    SEEN[bug](monkeypatch)
    assert fails(identity, model, data)


def test_a_prior_without_sticky_is_seen_by_the_sum_over_paths(monkeypatch):
    model, data = FEW["hmm_categorical"]  # declaration, simulator and steps all have the bug, and agree
    expected = log_joint("hmm_categorical", model, (0, 0, 1, 1, 1), data["y"], (0,))
    patched(HiddenChain, "of", without_sticky)(monkeypatch)
    assert abs(model.log_joint(np.array([[0, 0, 1, 1, 1]]), data)[0] - expected) > 0.1
