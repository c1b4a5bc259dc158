# %% [markdown]
# # What did the seat-belt law change? An intervention in a series that moves by itself
#
# From February 1983 drivers in Great Britain had to wear seat belts (Harvey and Durbin 1986). Numbers of drivers killed
# or seriously injured also have seasons, a level that drifts, and fall when petrol is dear. A comparison of the months
# before and after takes all of that for the law's; a structural series keeps it apart.

# %%
import matplotlib.pyplot as plt
import numpy as np

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]

# %%
Series = bz.find("structural_series")
belts = bz.example(Series, "seat_belts")
petrol, law = belts["X"].T
months = np.eye(12)[np.arange(len(law)) % 12]
design = np.column_stack([petrol, law, months])
squares = np.linalg.inv(design.T @ design)
least = squares @ design.T @ belts["y"]
rest = belts["y"] - design @ least
errors = np.sqrt(np.diag(squares) * np.sum(rest**2) / (len(law) - 14))
{"petrol": (least[0], errors[0]), "law": (least[1], errors[1]), "next residual": np.corrcoef(rest[1:], rest[:-1])[0, 1]}

# %% [markdown]
# Least squares with a column for each month say that the law saved 18%, with a standard error of 2%, and that petrol
# has an elasticity of -.45 with an error of .06. But a residual has a correlation of .49 with the next one: the errors
# are those of rows that are independent, and are too small.

# %%
fit = bz.fit(Series.weak(belts), belts, "exact", seed=1)
w = bz.summarize(fit, ["w"])["w"]
change = {name: 100 * np.expm1(w[name][1]) for name in ("mean", "q025", "q975")}
{name: round(float(value), 1) for name, value in change.items()}, w["mean"].round(3), (w["sd"] / errors[:2]).round(1)

# %% [markdown]
# With a level that moves the law saved 21% (13% to 29%), and the elasticity is -.27 (-.48 to -.05): their standard
# deviations are two to two and a half times the errors of least squares.

# %% tags=["hide-cell"]
assert np.allclose(least[:2], [-0.452, -0.197], atol=1e-3)
assert -24 < change["mean"] < -18
assert change["q975"] < -12
assert np.all(w["sd"] > 1.8 * errors[:2])

# %% [markdown]
# ## Is it the law, or a level that moves?
#
# A level that jumps could explain the fall by itself. The evidence weighs both: with the two features it is six nats, a
# factor of 400, above that of the same series without, whose level has to take larger steps.

# %%
plain = bz.example(Series, "drivers")
without = bz.fit(Series.weak(plain), plain, "exact", seed=1)
evidence = [tree["exact"].attrs["log_evidence"] for tree in (fit, without)]
steps = [float(bz.summarize(tree, ["q"])["q"]["mean"]) for tree in (fit, without)]
evidence, steps

# %% tags=["hide-cell"]
assert 5.5 < evidence[0] - evidence[1] < 6.5
assert steps[0] < 0.7 * steps[1]

# %% [markdown]
# ## Where the level was, and what comes next
#
# The level is that of months without the law at the average price: it falls slowly, and the step of 1983 is in the
# panel of the features.

# %%
bz.plot_levels(fit)
plt.show()

# %% [markdown]
# Rows to come need their features. What if petrol gets dearer by a tenth, and what if the law fell?

# %%
cases = {"as now": (petrol[-1], 1), "dearer": (petrol[-1] + np.log(1.1), 1), "no law": (petrol[-1], 0)}
january = {name: bz.predict(fit, {"log_petrol": [x], "law": [y]}).iloc[0] for name, (x, y) in cases.items()}
{name: [round(float(np.exp(row[at]))) for at in ("median", "q025", "q975")] for name, row in january.items()}

# %% tags=["hide-cell"]
assert january["no law"]["mean"] > january["as now"]["mean"] > january["dearer"]["mean"]
