"""One wrong label far out, which bends the whole line.

What breaks: Under normal noise the log density of a row on the wrong side falls with the square of its distance. One
row whose label is wrong, and whose features leave no doubt, then costs more than all others together, and the weights
shrink until it is no longer impossible: the other rows are told badly.

How it looks: The fit passes its gate, as the mode is the mode. But with the one label changed back, or with the row
left out, the slope is a multiple of what it was. Logistic regression, whose log density falls in a straight line, is
moved far less by the same row.

What to do: Look at the residuals, where such a row stands out, and at its source. Fit `logistic_regression` to the
same table; where the two differ in what they say of the rows in the middle, single rows far out decide.
"""

import numpy as np

import bayeszoo as bz

rng = np.random.default_rng(1)
x = np.append(rng.standard_normal(200), 6.0)
right = (x + 0.5 * rng.standard_normal(201) > 0).astype(int)
wrong = np.append(right[:-1], 0)

Probit, Logistic = bz.find("probit_regression"), bz.find("logistic_regression")


def slope(model, y):
    """Return the slope of the quantile or of the log odds at the mode."""
    tree = bz.fit(model(), (x[:, None], y), "map", seed=1)
    return float(tree.posterior["w"].to_numpy()[0, 0, 1])


kept = {model.__name__: slope(model, wrong) / slope(model, right) for model in (Probit, Logistic)}
print("slope with one wrong label far out, as a share of that with the right one")
for model, share in kept.items():
    print(f"{model:20s} {share:5.2f}")

assert kept["ProbitRegression"] < 0.6
assert kept["ProbitRegression"] < 0.8 * kept["LogisticRegression"]
