"""Outliers in the features.

What breaks: Student-t noise forgives a row whose outcome is far off. It does not forgive a feature that is: a row far
out on x pulls the line to itself, and then is no outlier.

How it looks: Residuals are small, that of the bad row among the smallest, and the posterior is narrow. What shows it
is the leave-one-out prediction: without the row the line is another one, so its Pareto k-hat is large or its score is
by far the lowest.

What to do: Look at the features before the fit; fit with and without the row.
"""

import numpy as np

import bayeszoo as bz

Line = bz.find("robust_regression")
rng = np.random.default_rng(0)
x = np.append(np.linspace(0, 10, 20), 60.0)  # 6.0, with the decimal point lost
y = np.append(1 + 2 * x[:20], 13.0) + rng.normal(0, 0.5, 21)
slopes = {}
for name, rows in (("all rows", slice(None)), ("without the last", slice(20))):
    data = bz.read(Line, {"x": x[rows], "y": y[rows]}, target="y")
    tree = bz.fit(Line.weak(data), data, "map", seed=1)
    slopes[name] = tree["posterior"]["w"].sel(term="x").item()
    print(f"{name}: slope {slopes[name]:.3f} at the mode")

assert abs(slopes["without the last"] - 2) < 0.1
assert abs(slopes["all rows"] - 2) > 0.5
