"""Speed of regressions with a link as ratios, both sides in one run, interleaved, medians. Never a test.

Peers: scikit-learn's newton-cholesky, a pass over the rows as NumPy writes it, and bambi on nutpie where that is
installed. Seconds are of the processor, so that other programs count little.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import scipy
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import bayeszoo as bz
from bayeszoo.foundation.numerics.newton import climb
from bayeszoo.likelihoods.loops.glm import LOG, LOGIT, PROBIT, glm_value_and_gradient

REPEATS = 7
FEATURES = 20
Logistic = bz.find("logistic_regression")
BAMBI = """
import sys, bambi, pandas as pd, arviz as az
table = pd.read_csv(sys.argv[1])
model = bambi.Model("y ~ " + " + ".join(table.columns[:-1]), table, family="bernoulli")
tree = model.fit(draws=1000, tune=1000, chains=4, random_seed=1, inference_method="nutpie", progressbar=False)
print(az.summary(tree))
"""


def rows(n: int, features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Simulate features and outcomes of 0 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, features))
    return X, rng.binomial(1, scipy.special.expit(0.5 + X @ rng.normal(0, 0.5, features)))


def interleaved(*actions: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Return the median processor seconds of each action, after a first run that is not counted."""
    seconds: list[list[float]] = [[] for _ in actions]
    for repeat in range(repeats + 1):
        for own, action in zip(seconds, actions, strict=True):
            start = time.process_time()
            action()
            if repeat:
                own.append(time.process_time() - start)
    return [median(own) for own in seconds]


def modes() -> None:
    """Compare the MAP of 1e5 rows with scikit-learn's."""
    X, y = rows(100_000, FEATURES)
    model, data = Logistic(tau=1.0, s0=1e4), bz.read(Logistic, {"X": X, "y": y})
    peer = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-8)

    def newton() -> object:
        likelihood = model.concave(data)
        return climb(likelihood.joint, likelihood.start())

    theirs, ours, whole = interleaved(lambda: peer.fit(X, y), newton, lambda: bz.fit(model, data, "map", seed=1))
    print(
        f"MAP of 1e5 x {FEATURES}: scikit-learn {theirs:.3f} s, Newton {ours:.3f}, whole fit {whole:.3f}; target <= 2x"
    )
    print(f"  ratios: Newton {ours / theirs:.2f}, whole fit {whole / theirs:.2f}")


def by_numpy(w: np.ndarray, X: np.ndarray, y: np.ndarray, size: np.ndarray, link: int) -> tuple[float, np.ndarray]:
    """Return log likelihood and gradient as a careful user of NumPy writes them."""
    eta = X @ w
    if link == LOGIT:
        return float(y @ eta - size @ np.logaddexp(0, eta)), X.T @ (y - size * scipy.special.expit(eta))
    if link == LOG:
        mean = size * np.exp(eta)
        value = y @ (eta + np.log(size)) - mean.sum() - scipy.special.gammaln(y + 1).sum()
        return float(value), X.T @ (y - mean)
    up, down = scipy.special.log_ndtr(eta), scipy.special.log_ndtr(-eta)
    log_density = -0.5 * eta**2 - 0.5 * np.log(2 * np.pi)
    slope = y * np.exp(log_density - up) - (size - y) * np.exp(log_density - down)
    return float(y @ up + (size - y) @ down), X.T @ slope


def gradients() -> None:
    """Compare the compiled value and gradient of each link with a pass by NumPy; the cost is linear in the rows."""
    for name, link in (("logit", LOGIT), ("log", LOG), ("probit", PROBIT)):
        for n in (1_000, 10_000, 100_000):
            (X, y), times = rows(n, FEATURES), 2_000_000 // n
            w, y, size = np.full(FEATURES, 0.05), y.astype(np.float64), np.ones(n)
            arguments = w, X, y, size, link
            np.testing.assert_allclose(
                glm_value_and_gradient(*arguments)[1], by_numpy(*arguments)[1], rtol=1e-9, atol=1e-8
            )
            ours, theirs = interleaved(
                lambda: [glm_value_and_gradient(*arguments) for _ in range(times)],  # noqa: B023
                lambda: [by_numpy(*arguments) for _ in range(times)],  # noqa: B023
                repeats=3,
            )
            each = ours / times * 1e9 / n
            print(
                f"gradient, {name:6s} n = {n:6d}: {each:5.0f} ns a row, ratio to NumPy {ours / theirs:.2f}; target <= 2"
            )


def of_process(*command: str) -> tuple[float, float]:
    """Return the wall and the processor seconds of a command."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def against_bambi() -> None:
    """Compare NUTS from the start of a process to printed diagnostics, caches warm."""
    if find_spec("bambi") is None:
        print("NUTS against bambi: not measured, as bambi is not installed")
        return
    X, y = rows(1_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        table, script = Path(folder, "rows.csv"), Path(folder, "peer.py")
        pd.DataFrame(X, columns=[f"x{j}" for j in range(5)]).assign(y=y).to_csv(table, index=False)
        script.write_text(BAMBI)
        mine = [str(Path(sys.executable).with_name("bayeszoo")), "fit", "logistic_regression", str(table)]
        mine += ["--target", "y", "--method", "nuts", "--seed", "1"]
        pairs = [(of_process(*mine), of_process(sys.executable, str(script), str(table))) for _ in range(4)][1:]
    for k, clock in enumerate(("wall", "processor")):
        ours, theirs = (median(side[k] for side in sides) for sides in zip(*pairs, strict=True))
        print(f"NUTS of 1,000 x 5, {clock}: {ours:.1f} s, bambi {theirs:.1f} s, ratio {ours / theirs:.2f}; target < 1")


if __name__ == "__main__":
    with threadpool_limits(1):
        modes()
        gradients()
        against_bambi()
