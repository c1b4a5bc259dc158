"""The Bayesian lasso against scikit-learn, quadrature and its own two declarations."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
from sklearn.linear_model import Lasso as SklearnLasso

import bayeszoo as bz
from bayeszoo.contract.case import Case
from bayeszoo.contract.check import applicable, run_identity
from bayeszoo.contract.sampler import MAX_Z, largest_z
from bayeszoo.results.summary import probability_positive

LASSO = bz.find("bayesian_lasso")
DIABETES = bz.example(LASSO)
STANDARD = (DIABETES["X"] - DIABETES["X"].mean(axis=0)) / DIABETES["X"].std(axis=0, ddof=1)


def one_predictor(n=12, slope=0.4):
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    return bz.read(LASSO, {"x": x, "y": slope * x + rng.normal(size=n)})


def orthogonal(n=16, seed=1):
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(n, 3))
    X = np.linalg.qr(raw - raw.mean(axis=0))[0] * np.sqrt(n)
    return bz.read(LASSO, (X, X @ [1.0, 0.0, -0.3] + rng.normal(size=n)))


@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0, 20.0, 44.0, 60.0])
def test_the_mode_is_scikit_learns_lasso(alpha):
    base = LASSO.weak(DIABETES)
    model = replace(base, b=base.sigma**2 / (442 * alpha))
    tree = bz.fit(model, DIABETES, "map")
    found = tree["posterior"]["w"].to_numpy()[0, 0]
    reference = SklearnLasso(alpha=alpha, tol=1e-13, max_iter=100_000).fit(STANDARD, DIABETES["y"])
    assert tree.attrs["status"] == "ok"
    assert np.allclose(found[1:] * model.scale, reference.coef_, atol=1e-6)
    assert np.array_equal(found[1:] == 0, reference.coef_ == 0)
    assert np.isclose(found[0], reference.intercept_, rtol=1e-9)


def test_a_wrong_mode_does_not_pass_its_certificate():
    model = LASSO.weak(DIABETES)
    stats = model.statistics(DIABETES)
    params = model.map(stats)
    assert all(check.passed for check in model.certificate(stats, params))
    moved = {"w": params["w"] + 1e-5 * np.eye(11)[3]}
    assert not all(check.passed for check in model.certificate(stats, moved))
    shrunk = {"w": model.mle(stats)["w"]}
    assert not all(check.passed for check in model.certificate(stats, shrunk))


def test_the_joint_mode_with_unknown_noise_is_an_optimizers():
    data = one_predictor(40)
    model = LASSO(b=0.3, a0=2.0, b0=1.5, learn_sigma=True, s0=20.0)
    found = model.map(model.statistics(data))
    assert all(check.passed for check in model.certificate(model.statistics(data), found))

    def negative(v):
        mean = v[0] + data["X"][:, 0] * v[1]
        likelihood = scipy.stats.norm(mean, np.exp(v[2] / 2)).logpdf(data["y"]).sum()
        prior = scipy.stats.laplace(0, [20.0, 0.3]).logpdf(v[:2]).sum()
        return -(likelihood + prior + scipy.stats.invgamma(2.0, scale=1.5).logpdf(np.exp(v[2])))

    reference = scipy.optimize.minimize(
        negative, [0.1, 0.2, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000}
    )
    assert np.allclose([*found["w"], np.log(found["sigma2"])], reference.x, atol=1e-6)


def quadrature(model, data):
    """Log evidence, mean and sd of the slope of one predictor without intercept, by adaptive quadrature."""
    x, y = data["X"][:, 0], data["y"]
    peak = float(model.map(model.statistics(data))["w"][0])

    def log_joint(w):
        likelihood = scipy.stats.norm(x * w, model.sigma).logpdf(y).sum()
        return likelihood + scipy.stats.laplace(0, model.b).logpdf(w)

    top = log_joint(peak)
    integrals = [
        scipy.integrate.quad(
            lambda w, k=k: w**k * np.exp(log_joint(w) - top), -20, 20, points=[0.0, peak], epsabs=1e-13, epsrel=1e-12
        )[0]
        for k in range(3)
    ]
    mean = integrals[1] / integrals[0]
    return top + np.log(integrals[0]), mean, np.sqrt(integrals[2] / integrals[0] - mean**2)


@pytest.mark.parametrize(("b", "sigma"), [(1.0, 1.0), (0.05, 1.0), (10.0, 2.0)])
def test_one_predictor_by_quadrature(b, sigma):
    data = one_predictor()
    model = LASSO(b=b, sigma=sigma, intercept=False)
    evidence, mean, sd = quadrature(model, data)
    stats = model.statistics(data)
    assert np.isclose(model.log_evidence(stats), evidence, rtol=1e-9)
    assert np.isclose(model.posterior(stats)["w"].mean()[0], mean, rtol=1e-8)
    assert np.isclose(model.posterior(stats)["w"].std()[0], sd, rtol=1e-8)


def test_orthogonal_columns_are_one_predictor_each():
    data = orthogonal()
    model = LASSO(b=0.4, intercept=False)
    parts = [bz.read(LASSO, {"y": data["y"], "x": column}) for column in data["X"].T]
    posterior = model.posterior(model.statistics(data))["w"]
    singles = [model.posterior(model.statistics(part))["w"] for part in parts]
    assert np.allclose(posterior.mean(), [one.mean()[0] for one in singles], rtol=1e-9)
    # the evidence of all is that of none times the ratio that each column makes alone
    nothing = scipy.stats.norm(0, 1).logpdf(data["y"]).sum()
    ratios = [model.log_evidence(model.statistics(part)) - nothing for part in parts]
    assert np.isclose(model.log_evidence(model.statistics(data)), nothing + sum(ratios), rtol=1e-10)


def test_the_exact_method_where_there_is_a_closed_form_and_where_not():
    data = orthogonal()
    model = replace(LASSO.weak(data), b=0.5)
    tree = bz.fit(model, data, "exact", seed=1)
    assert tree.attrs["status"] == "ok"
    with pytest.raises(bz.NumericalError, match="no closed form: the columns are not orthogonal"):
        bz.fit(LASSO.weak(DIABETES), DIABETES, "exact")
    with pytest.raises(bz.NumericalError, match="no closed form: the noise is unknown"):
        bz.fit(replace(model, learn_sigma=True), data, "exact")


@pytest.mark.parametrize("mixture", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nuts_on_both_declarations_is_exact(mixture):
    data = orthogonal()
    model = replace(LASSO.weak(data), b=0.5, scale_mixture=mixture)
    tree = bz.fit(model, data, "nuts", seed=1)
    exact = replace(model, scale_mixture=False)
    posterior = exact.posterior(exact.statistics(data))
    assert tree.attrs["status"] == "ok"
    assert largest_z({"w": tree["posterior"]["w"].to_numpy()}, posterior) < MAX_Z
    wrong = replace(exact, b=0.35)  # a prior a third narrower is seen
    assert largest_z({"w": tree["posterior"]["w"].to_numpy()}, wrong.posterior(wrong.statistics(data))) > MAX_Z


@pytest.mark.slow
@pytest.mark.parametrize(("mixture", "learn_sigma"), [pytest.param(True, True, marks=pytest.mark.slow), (False, True)])
def test_every_declaration_is_consistent(mixture, learn_sigma):
    model = LASSO(b=0.7, sigma=1.3, s0=8.0, a0=2.5, b0=1.7, scale_mixture=mixture, learn_sigma=learn_sigma)
    data = bz.read(model, model.simulate(np.random.default_rng(2), 10)[1])
    closed = not mixture and not learn_sigma
    for identity in applicable(LASSO, closed):
        if mixture and identity.function in ("map_is_the_maximum", "mle_is_the_maximum"):
            continue  # it has none
        if identity.function != "simulator":
            check = run_identity(identity, Case(model, data))
            assert check.passed, str(check)


def test_a_scale_mixture_has_no_mode():
    model = replace(LASSO.weak(DIABETES), scale_mixture=True)
    with pytest.raises(bz.NumericalError, match="no mode: the density of a scale mixture is unbounded"):
        bz.fit(model, DIABETES, "map")
    with pytest.raises(bz.NumericalError, match="the likelihood does not depend on tau2"):
        bz.fit(model, DIABETES, "mle")


def test_probability_of_sign_from_draws():
    data = one_predictor(slope=0.3)
    model = replace(LASSO.weak(data), b=0.3, sigma=1.0)
    exact, drawn = (bz.fit(model, data, method, seed=1) for method in ("exact", "nuts"))
    (right, _), (found, error) = probability_positive(exact, "w"), probability_positive(drawn, "w")
    assert 0.5 < right[1] < 0.99
    assert abs(found[1] - right[1]) < 4.4 * error[1]
    assert abs(found[1] - (1 - right[1])) > 4.4 * error[1]


def test_an_exact_fit_predicts_by_its_draws():
    data = orthogonal()
    model = replace(LASSO.weak(data), b=0.5)
    tree = bz.fit(model, data, "exact", seed=1)
    row = {name: [0.5] for name in data["feature"]}
    frame = bz.predict(tree, row)
    posterior = model.posterior(model.statistics(data))["w"]
    weights = np.concatenate([[1.0], 0.5 - np.array(model.center)])
    assert abs(frame["mean"].iloc[0] - weights @ posterior.mean()) < 4.4 * frame["mcse_mean"].iloc[0]
    sd = np.sqrt(model.sigma**2 + np.sum(np.square(weights * posterior.std())))
    assert np.isclose(frame["sd"].iloc[0], sd, rtol=0.02)
