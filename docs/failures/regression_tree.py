"""A smooth function, which has no steps.

What breaks: An outcome that rises along a line. A step function needs many cuts to follow it, none of which is anywhere
in particular: the first cut is uncertain, and the trees predict worse than a line with two numbers.

How it looks: No first cut is probable, the most probable tree has a small probability, and `bayeszoo select` prefers
`linear_regression`. Beyond the rows the function stays at its last step, with a band that does not widen.

What to do: Compare the evidence with `linear_regression` and `gaussian_process`. Believe a cut where it and its
neighbours are probable together; predict by the average over all trees, never by one of them, and not beyond the rows.
"""

import numpy as np

import bayeszoo as bz

Tree, Line = bz.find("regression_tree"), bz.find("linear_regression")
rng = np.random.default_rng(1)
x = np.sort(rng.uniform(0, 10, 60))
rows = {"x": x, "y": 2 * x + rng.normal(size=60)}
tree, line = (bz.fit(M.weak(bz.read(M, rows)), bz.read(M, rows), "exact", seed=1) for M in (Tree, Line))
evidence = [bz.facts(fit)["log_evidence"] for fit in (tree, line)]
print(f"log evidence: {evidence[0]:.1f} of the tree, {evidence[1]:.1f} of the line")
new = {"x": np.linspace(0.2, 9.8, 40)}
errors = [np.sqrt(np.mean((bz.predict(fit, new)["mean"] - 2 * new["x"]) ** 2)) for fit in (tree, line)]
print(f"error of the mean: {errors[0]:.2f} of the tree, {errors[1]:.2f} of the line; the noise has sd 1")
beyond = bz.predict(tree, {"x": [10.0, 15.0]})
print("beyond the rows the tree says", beyond["mean"].round(1).tolist(), "where the line is at 20 and 30")

assert evidence[1] > evidence[0] + 10
assert errors[0] > 2 * errors[1]
assert abs(beyond["mean"].iloc[1] - beyond["mean"].iloc[0]) < 1
