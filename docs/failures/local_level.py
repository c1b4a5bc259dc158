"""A level that the likelihood says never moves.

What breaks: Of short series the maximum of the likelihood in q, the standard deviation of the level's steps, is often
at q = 0 exactly, also where the level moves (the pile-up problem: Shephard and Harvey 1990). A mode on the edge is a
mode, and no failure of the optimizer.

How it looks: `mle` and `map` give q = 0. Their level is the mean of all rows, and their forecast is as sure of rows far
ahead as of the next one.

What to do: `exact` or `nuts`, which average over q: intervals grow with the steps ahead.
"""

import numpy as np

import bayeszoo as bz

Level = bz.find("local_level")
rng = np.random.default_rng(3)
level = np.cumsum(0.25 * rng.standard_normal(30))
rows = {"y": level + rng.standard_normal(30)}
data = bz.read(Level, rows)
for method in ("mle", "exact"):
    tree = bz.fit(Level.weak(data), data, method, seed=1)
    sd = bz.forecast(tree, 20)["sd"]
    q = float(tree.posterior["q"].median())
    print(f"{method}: q {q:.2f} (0.25 in truth), sd of the next row {sd.iloc[0]:.2f}, of the 20th {sd.iloc[19]:.2f}")
    assert (sd.iloc[19] > 1.2 * sd.iloc[0]) == (method == "exact")
