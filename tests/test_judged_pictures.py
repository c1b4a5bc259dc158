"""Pictures of approximations whose parameters are withheld: what agrees with draws of the posterior is drawn."""

import numpy as np
import pytest

import bayeszoo as bz
from bayeszoo.answers.effects import effects
from bayeszoo.errors import Untrustworthy
from bayeszoo.plots.families.effects import explained
from bayeszoo.plots.families.factors import eigenvalues
from bayeszoo.results.stored import Fit
from tests.refusals import raises
from tests.test_judged import approximation, changed, moved, scaled, turn, with_narrow_means


@pytest.fixture(scope="module")
def line():
    x = np.linspace(-2, 2, 30)
    z = np.repeat([0.0, 1.0, 0.0], [5, 4, 21])
    y = 1 + 2 * x + 0.5 * np.random.default_rng(0).normal(size=30)
    return approximation("linear_regression", {"x": x, "z": z, "y": y}, center=0.0)


def test_effects_that_agree_are_those_of_the_posterior(line):
    frame = effects(Fit(line))
    w = line["reference_draws"]["w"].to_numpy().reshape(-1, 3)
    x, z = (line["constant_data"]["X"].to_numpy()[:, k].mean() for k in (0, 1))
    for (feature, value), row in frame.iterrows():
        place = [1.0, value if feature == "x" else x, value if feature == "z" else z]
        true = w @ place
        assert abs(row["mean"] - true.mean()) < 0.1 * true.std()
        assert abs(row["q975"] - np.quantile(true, 0.975)) < 0.4 * true.std()


def test_effects_that_the_wrong_weight_moves_are_left_out(line):
    frame = effects(Fit(moved(line, 0.2)))
    right = effects(Fit(line))
    assert frame.loc[("z", 1.0)].isna().all()
    assert frame.loc[("z", 0.0)].notna().all()
    same = frame["mean"].notna()
    assert same.sum() > 1
    assert (np.abs(frame["mean"] - right["mean"])[same] < 0.1).all()
    assert bz.plot_effects(moved(line, 0.2)).axes
    with raises(Untrustworthy, "withheld", "--method"):
        effects(Fit(scaled(line, w=3.0)))


def test_the_share_explained_is_judged(line):
    R2 = explained(Fit(line))["mean"]
    draws = {name: v.to_numpy().reshape(-1, *v.shape[2:]) for name, v in line["reference_draws"].items()}
    X = line["constant_data"]["X"].to_numpy()
    spread = np.var(draws["w"] @ np.c_[np.ones(len(X)), X].T, axis=1, ddof=1)
    assert pytest.approx((spread / (spread + draws["sigma2"])).mean(), abs=0.003) == R2
    with raises(Untrustworthy, "withheld", "R2"):
        explained(Fit(scaled(line, sigma2=2.0)))


@pytest.fixture(scope="module")
def factors():
    return with_narrow_means()


def drawn(figure):
    return figure.axes[0].containers[0].lines[0].get_ydata()


def test_eigenvalues_and_relevances_answer_whatever_the_rotation(factors):
    draws = factors["reference_draws"].to_dataset()
    W, variance = (draws[name].to_numpy().reshape(-1, *draws[name].shape[2:]) for name in ("loadings", "variance"))
    known = eigenvalues({"loadings": W, "variance": variance})
    covariance = W @ W.mT + variance[:, None, None] * np.eye(4)
    np.testing.assert_allclose(known, np.linalg.eigvalsh(covariance)[:, ::-1], rtol=1e-9)
    for tree in (factors, changed(factors, loadings=turn)):
        assert (np.abs(drawn(bz.plot_scree(tree)) - np.median(known, axis=0)) < 0.3 * known.std(axis=0)).all()
    alpha = np.sort(draws["alpha"].to_numpy().reshape(-1, 3), axis=1)
    assert (np.abs(drawn(bz.plot_ard(factors)) - np.median(alpha, axis=0)) < 0.3 * alpha.std(axis=0)).all()


def test_an_eigenvalue_that_is_off_is_left_out_alone(factors):
    def longer(loadings):
        u, s, v = np.linalg.svd(loadings, full_matrices=False)
        s[..., 0] *= 1.6
        return u * s[..., None, :] @ v

    values = drawn(bz.plot_scree(changed(factors, loadings=longer)))
    assert np.isnan(values).tolist() == [True, False, False, False]


def test_rows_and_columns_that_are_elsewhere_are_left_out_of_the_biplot(factors):
    def points(tree):
        figure = bz.plot_biplot(tree)
        return figure.axes[0].lines[0].get_xdata(), [
            text.get_text() for text in figure.axes[0].texts if text.get_text()
        ]

    x, names = points(factors)
    assert np.isfinite(x).any()
    assert names == list("abcd")

    def other_column(loadings):
        far = loadings.copy()
        far[..., 3, :] *= 1.05
        return far

    far, names = points(changed(factors, loadings=other_column))
    assert "d" not in names
    assert np.isfinite(far).any()
    with raises(Untrustworthy, "withheld"):
        bz.plot_biplot(changed(factors, loadings=lambda W: 3 * W[..., ::-1, :], variance=lambda v: 5 * v))
