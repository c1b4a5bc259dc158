"""Speed of Gaussian mixtures as ratios to scikit-learn, both sides in one run, interleaved, medians. Never a test.

One BLAS thread: on a busy machine scikit-learn's wait for each other, which would flatter us many times over.
"""

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pymc as pm
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

import bayeszoo as bz
from bayeszoo.compile.density import Density
from bayeszoo.foundation.process.threads import one_thread
from bayeszoo.inference.engine.maxima import Search
from bayeszoo.inference.methods import em
from bayeszoo.likelihoods.inverse_wishart import InverseWishart, ScaledNormal
from bayeszoo.likelihoods.loops.gaussian_mixture import gaussian_e_step
from bayeszoo.likelihoods.ops.gaussian_mixture import gaussian_mixture_log_likelihood
from benchmarks.run import gradients, versus


def steps() -> None:
    """Compare a mixture's gradient, priors and transforms in it, and its E-step with scikit-learn's iteration of EM."""
    weights, covariances = np.array([0.2, 0.3, 0.5]), np.array([[[1.0, 0.3], [0.3, 0.5]]] * 3)
    means, rng = np.array([[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0]]), np.random.default_rng(0)
    for rows in (10**3, 10**4, 10**5):
        labels, calls = rng.choice(3, rows, p=weights), 10**5 // rows
        Y = means[labels] + rng.multivariate_normal(np.zeros(2), covariances[0], rows)
        peer = GaussianMixture(3, weights_init=weights, means_init=means, precisions_init=np.linalg.inv(covariances))
        peer._initialize_parameters(Y, np.random.RandomState(0))  # the weights above, without its k-means
        iterate = partial(repeat, calls, partial(em_iteration, peer, Y))
        e_steps = partial(repeat, calls, partial(gaussian_e_step, weights, means, covariances, Y))
        title = f"Gaussian mixture, N = {rows:.0e} / scikit-learn's EM iterations"
        versus(f"{calls} gradients, {title}", gradients(Density(mixture_of(Y)), calls), iterate, "<= 0.2")
        versus(f"{calls} E-steps, {title}", e_steps, iterate, "<= 0.2")
        both = repeat_em(Y, weights, means, covariances, calls)
        versus(f"{calls} E- and M-steps, {title}", both, iterate, "<= 0.2")


def sticks(rows: int) -> None:
    """Compare steps of variational Bayes of a Dirichlet process, and Gibbs sweeps, with scikit-learn's iterations."""
    Y, calls, rng = some_rows("separated", rows, 2), 10**4 // rows, np.random.default_rng(0)
    data = {"Y": Y, "column": np.array(["a", "b"])}
    model = bz.find("dp_mixture").weak(data)
    peer = BayesianGaussianMixture(n_components=model.K, random_state=0)
    peer._check_parameters(Y)
    peer._initialize_parameters(Y, np.random.RandomState(0))
    q, chain = model.vb_start(data, rng), model.gibbs(data, rng)
    iterate = partial(repeat, calls, partial(em_iteration, peer, Y))
    title = f"a Dirichlet process, {model.K} sticks, N = {rows:.0e} / scikit-learn's iterations of VB"
    step = partial(repeat, calls, lambda: model.vb_m_step(model.vb_e_step(q, data).stats))
    versus(f"{calls} steps of VB, {title}", step, iterate, "<= 1")
    versus(f"{calls} Gibbs sweeps, {title}", partial(repeat, calls, partial(chain.sweep, 1)), iterate, "none")


def some_rows(kind: str, rows: int, columns: int) -> np.ndarray:
    """Return rows (N, D) of three components, whose covariances differ, or are the identity."""
    rng = np.random.default_rng(1)
    scale = {"separated": 8.0, "overlapping": 0.7}.get(kind, 1.5 if columns == 2 else 1.0)
    means, factors = scale * rng.normal(size=(3, columns)), np.array([np.eye(columns)] * 3)
    if kind == "unlike":
        factors = factors + rng.normal(size=factors.shape) / np.sqrt(columns)
    labels, z = rng.choice(3, rows), rng.normal(size=(rows, columns))
    return means[labels] + np.einsum("nij,nj->ni", factors[labels], z)


def climbs(kind: str, rows: int, columns: int) -> None:
    """Compare a whole maximum of a mixture's likelihood, 20 starts, with scikit-learn's 10 by its defaults."""
    Y = some_rows(kind, rows, columns)
    data = {"Y": Y, "column": np.array([f"x{j}" for j in range(columns)])}
    model = bz.find("gaussian_mixture").weak_with(data, {"K": 3})
    peer = GaussianMixture(3, n_init=10, random_state=1)

    def climbed() -> Search:
        return em.climbs(model, data, np.random.default_rng(1), flat=True)

    title = f"maximum of {kind} components, N = {rows:.0e}, D = {columns} / scikit-learn, n_init = 10"
    versus(title, climbed, partial(peer.fit, Y), "<= 0.3")
    search = climbed()
    gain = search.best.objective - peer.score(Y) * rows
    print(f"    {gain:.2f} nats higher than scikit-learn's, reached by {search.reached} of {len(search.climbs)} climbs")


def repeat_em(Y: np.ndarray, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, calls: int) -> Any:
    """Return a function that makes as many iterations of EM for the MLE, each from the same point."""
    model, data = bz.find("gaussian_mixture")(K=3), {"Y": Y, "column": np.array(["a", "b"])}
    at = {"weights": weights, "means": means, "covariances": covariances}
    return partial(repeat, calls, lambda: model.m_step(model.e_step(at, data).stats, flat=True))


def mixture_of(Y: np.ndarray) -> pm.Model:
    """Declare a mixture of three Gaussians on its compiled likelihood."""
    size = Y.shape[1]
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", pm.Data("alpha", np.ones(3)))
        covariances = InverseWishart("covariances", np.full(3, size + 2.0), np.tile(np.eye(size), (3, 1, 1)))
        means = ScaledNormal("means", np.zeros(size), 0.1, covariances, count=3)
        pm.Potential("Y", gaussian_mixture_log_likelihood(weights, means, covariances, pm.Data("Y_data", Y)))
    return model


def em_iteration(peer: GaussianMixture, Y: np.ndarray) -> None:
    """Do what scikit-learn does in each iteration, without its test of convergence."""
    peer._m_step(Y, peer._e_step(Y)[1])


def repeat(calls: int, action: Callable[[], object]) -> None:
    """Call many times."""
    for _ in range(calls):
        action()


def main() -> None:
    """Run all comparisons."""
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of climbs of scikit-learn's that are not at their ends
        steps()
        for rows in (10**2, 10**3, 10**4):
            sticks(rows)
        for rows, columns in product((10**3, 10**4, 10**5), (2, 10)):
            climbs("unlike", rows, columns)
        for kind, rows in product(("separated", "overlapping"), (10**3, 10**4)):
            climbs(kind, rows, 2)


if __name__ == "__main__":
    main()
