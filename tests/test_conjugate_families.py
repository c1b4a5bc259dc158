"""The seven conjugate families against SciPy, quadrature, enumeration and the numbers of the books."""

import math

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.data.read import example
from bayeszoo.families.markov.stationary import stationary
from tests.refusals import raises

GaussianMean, GaussianPrecision = bz.find("gaussian_mean"), bz.find("gaussian_precision")
GammaPoisson, NormalGamma = bz.find("gamma_poisson"), bz.find("normal_gamma")
DirichletMultinomial, MarkovChain = bz.find("dirichlet_multinomial"), bz.find("markov_chain")
NormalInverseWishart = bz.find("normal_inverse_wishart")

Y = np.array([1.3, -0.2, 4.1, 2.2, 0.7, 1.9])
ROWS = np.array([[1.0, 2.0, 0.3], [2.5, 1.0, -0.2], [0.5, 2.2, 0.1], [1.7, 0.4, 1.1], [3.0, 1.5, 0.2]])
PSI = ((2.0, 0.3, -0.1), (0.3, 1.5, 0.2), (-0.1, 0.2, 0.8))
WISHART = NormalInverseWishart((0.5, 1.0, 0.0), 0.7, 4.5, PSI)
SYMBOLS = np.array(["a", "b", "c"])


def evidence(model, data):
    return model.log_evidence(model.statistics(data))


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_normal_inverse_wishart_is_a_matrix_t(rows):
    """Gupta and Nagar 2000, chapter 4; degrees of freedom of SciPy: nu0 - D + 1. One and two rows are fewer than D."""
    spread, mean = np.eye(rows) + 1 / WISHART.kappa0, np.tile(WISHART.mu0, (rows, 1))
    law = stats.matrix_t(mean=mean, row_spread=spread, col_spread=np.array(PSI), df=WISHART.nu0 - 2)
    found = evidence(WISHART, {"Y": ROWS[:rows], "column": SYMBOLS})
    assert found == pytest.approx(law.logpdf(ROWS[:rows]), rel=1e-11)


def test_the_step_from_one_sequence_to_the_next_is_none():
    data = bz.read(MarkovChain, [["a", "b", "a"], ["c", "c", "b"]])
    rows = [[0, 1, 0], [1, 0, 0], [0, 1, 1]]
    expected = sum(stats.dirichlet_multinomial([2.0] * 3, sum(row)).logpmf(row) for row in rows)
    orders = math.log(2)  # cb and cc in whatever order
    assert evidence(MarkovChain(2.0), data) == pytest.approx(expected - orders, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "rows", "options"),
    [(GammaPoisson(1.0, 2.0), [0, 0], {}), (DirichletMultinomial(1.0), ["a", "b"], {"categories": "a,b,c"})],
)
def test_modes_on_the_edge_pass_the_gate(model, rows, options):
    """No event, or a category that never occurs, under flat priors: the mode has a zero."""
    tree = bz.fit(model, bz.read(model, rows, **options), "map")
    assert tree.attrs["status"] == "ok"
    assert next(iter(tree["posterior"].data_vars.values())).to_numpy().min() == 0


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (GammaPoisson(0.5, 2.0), {"y": np.array([0, 0])}, ("no_maximum",)),
        (DirichletMultinomial(0.5), {"y": np.array([0, 1]), "category": SYMBOLS}, ("no_maximum", "1")),
        (MarkovChain(1.0), bz.read(MarkovChain, [["a", "b"]]), ("no_maximum", "P", "2")),
        (NormalGamma(0, 1, 0.2, 1), {"y": np.array([])}, ("no_maximum", "0")),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_posteriors_without_a_mode_have_no_map(model, data, message):
    with raises(bz.NumericalError, *message):
        model.map(model.statistics(data))


def test_weak_prior_of_a_rate_is_centred_on_the_rate():
    data = {"y": np.array([3, 0, 9]), "exposure": np.array([10.0, 2.0, 28.0])}
    weak = GammaPoisson.weak(data)
    assert weak.a / weak.b == pytest.approx(12 / 40)
    assert GammaPoisson.weak({"y": np.array([0, 0])}).b == 4  # half an event in two units


# The books' numbers


def test_poll_of_1988():
    """BDA3 section 3.4: theta ~ Dirichlet(728, 584, 138), theta_1 - theta_2 well above zero."""
    data = example(DirichletMultinomial)
    posterior = DirichletMultinomial().posterior(DirichletMultinomial().statistics(data))
    law = stats.dirichlet([728, 584, 138])
    assert posterior["p"].mean() == pytest.approx(law.mean(), rel=1e-13)
    contrast = np.array([1.0, -1.0, 0.0])
    mean, sd = contrast @ law.mean(), math.sqrt(contrast @ law.cov() @ contrast)
    assert (mean, sd) == pytest.approx((0.0993, 0.0248), abs=5e-5)


def test_letters_of_onegin():
    """Markov 1913: 0.128 of the letters after a vowel are vowels, 0.663 of those after a consonant; 0.432 of all."""
    data = example(MarkovChain)
    p = MarkovChain().mle(MarkovChain().statistics(data))["P"]
    vowel, consonant = (data["symbol"].tolist().index(name) for name in ("vowel", "consonant"))
    assert p[vowel, vowel].round(3) == 0.128
    assert p[consonant, vowel].round(3) == 0.663
    assert stationary(p)[vowel].round(3) == 0.432
    assert len(data["next"]) == 1104 + 7534 + 7535 + 3827


def test_newcomb():
    """BDA3 section 3.2: mean 26.2, sd 10.8, and under the flat prior a central 95% interval [23.6, 28.8]."""
    data = example(NormalGamma, "newcomb")
    flat = NormalGamma(0.0, 1e-9, 1e-9, 1e-9)
    mu = flat.posterior(flat.statistics(data))["mu"]
    assert (data["y"].mean().round(1), data["y"].std(ddof=1).round(1)) == (26.2, 10.7)
    assert [float(round(mu.ppf(q), 1)) for q in (0.025, 0.975)] == [23.6, 28.8]


def test_cavendish_michelson_setosa_and_horse_kicks():
    kicks = example(GammaPoisson)  # Bortkiewicz 1898: 196 deaths in 280 corps and years
    assert GammaPoisson().mle(GammaPoisson().statistics(kicks))["rate"] == 196 / 280 == 0.7
    assert np.bincount(kicks["y"]).tolist() == [144, 91, 32, 11, 2]
    michelson = example(GaussianMean)["y"]
    assert (len(michelson), michelson.mean()) == (100, pytest.approx(852.4))
    assert michelson.std(ddof=1) == pytest.approx(79.0, abs=0.05)
    assert example(NormalGamma, "cavendish")["y"].mean() == pytest.approx(5.448, abs=5e-4)
    setosa = example(NormalInverseWishart)
    assert setosa["Y"].mean(axis=0) == pytest.approx([5.006, 3.428, 1.462, 0.246], abs=1e-9)
    assert setosa["Y"].std(axis=0, ddof=1) == pytest.approx([0.352, 0.379, 0.174, 0.105], abs=6e-4)
