"""Weights that the data know only up to what all classes share.

What breaks: With symmetric coding every class has weights, but the data see only their differences: a vector added to
the weights of all classes changes no probability. And a class that never occurs, or that a feature separates from
another, is pushed away for ever.

How it looks: `mle` refuses, and says which: that the coding is symmetric, or which class has no rows. Under a prior the
single weights of nuts are wide however many rows there are, as the prior alone knows their common part, while contrasts
of two classes narrow.

What to do: Read `contrast` and `odds_ratio`, not the weights of one class. Take `coding="reference"` for estimates of
maximum likelihood; the first class named by `--classes` is then the one that others are compared with.
"""

import numpy as np

import bayeszoo as bz

Softmax = bz.find("softmax_regression")
data = bz.example(Softmax)
few = bz.read(Softmax, {"y": list("aabab"), "x": [1.0, 2, 3, 4, 5]}, classes="a,b,c")
for table, coding in ((data, "symmetric"), (few, "reference")):
    try:
        bz.fit(Softmax(coding=coding), table, "mle", seed=1)
        refused = ""
    except bz.NumericalError as error:
        refused = str(error)
    print(refused)
    assert "coding=reference" in refused or "no row is of class c" in refused

many = bz.read(Softmax, {"y": np.repeat(data["class"][data["y"]], 50), "X": np.repeat(data["X"], 50, axis=0)})
for rows in (data, many):
    curvature = Softmax().concave(rows).joint(np.zeros(25)).curvature
    covariance = np.linalg.inv(curvature).reshape(5, 5, 5, 5)
    single = np.sqrt(covariance[0, 0, 0, 0])
    contrast = np.sqrt(covariance[0, 0, 0, 0] + covariance[1, 0, 1, 0] - 2 * covariance[0, 0, 1, 0])
    print(f"{len(rows['y']):6d} rows: sd of an intercept {single:.3f}, of a contrast of two {contrast:.3f} prior sd")
assert single > 5 * contrast
