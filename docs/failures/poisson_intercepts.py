"""Counts that vary by themselves.

What breaks: Groups whose counts vary from row to row by more than Poisson's: an intercept a group takes up what differs
between groups, and nothing of what differs within them.

How it looks: The interval of a feature that varies within the groups is too short. Features without an effect seem to
have one.

What to do: `bayeszoo residuals` and `predictive_check` show the spread that is not explained. Name the rows
themselves as groups (an intercept for each row), or take negative_binomial_regression.
"""

import numpy as np

import bayeszoo as bz

Intercepts = bz.find("poisson_intercepts")
rng = np.random.default_rng(1)
group, x = np.repeat(np.arange(10), 20), rng.normal(size=200)
mean = np.exp(1.5 + rng.normal(0, 0.5, 10)[group])
rows = {"y": rng.poisson(mean * rng.gamma(1.0, 1.0, 200)), "x": x, "group": group.astype(str)}
by_group = bz.fit(Intercepts, rows, "nuts", seed=1)["posterior"]["w"][..., 1].std().item()
by_row = bz.fit(Intercepts, {**rows, "group": np.arange(200).astype(str)}, "nuts", seed=1)["posterior"]["w"][..., 1]
print(f"with an intercept for each group: sd of the weight of x {by_group:.3f}")
print(f"with an intercept for each row:   sd of the weight of x {by_row.std().item():.3f}")

assert by_row.std().item() > 1.5 * by_group
