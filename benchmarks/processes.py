"""Gaussian processes against scikit-learn, in one run: ``python -m benchmarks.processes``.

The log density of 1,000 rows given three numbers, with its gradient; each figure is the least of several times, and the
ratio ours over theirs.
"""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from bayeszoo.families.processes.kernels import Expression, Shape
from bayeszoo.families.processes.spectrum import Rows
from benchmarks.classes import line

ROWS = 1000


def main() -> None:
    """Compare the evidence with its gradient, and without."""
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(0, 30, ROWS))[:, None]
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=ROWS)
    kernel = kernels.ConstantKernel(1.0) * kernels.RBF(1.0) + kernels.WhiteKernel(0.1)
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    rows, theta = Rows(Expression.read("rbf", Shape()), X, y, 0.0), theirs.kernel_.theta
    point = {"amplitude": 1.0, "length": 1.0, "sigma": 0.1**0.5}
    line(
        f"log density of {ROWS} rows, with gradient",
        lambda: rows.slopes(point),
        lambda: theirs.log_marginal_likelihood(theta, eval_gradient=True),
    )
    line(
        f"log density of {ROWS} rows",
        lambda: rows.log_density(point),
        lambda: theirs.log_marginal_likelihood(theta, eval_gradient=False),
    )
    value, slopes = theirs.log_marginal_likelihood(theta, eval_gradient=True)
    print("difference of densities", abs(value - rows.log_density(point)))
    own = rows.slopes(point)
    in_logs = [point["amplitude"] * own["amplitude"] / 2, own["length"], point["sigma"] * own["sigma"] / 2]
    print("difference of gradients", np.max(np.abs(slopes - in_logs)))


if __name__ == "__main__":
    main()
