# %% [markdown]
# # Functions: from kernel ridge to a Gaussian process, and when its interval lies
#
# A dummy's head is accelerated as a motorcycle hits a wall (Silverman 1985). Kernel ridge regression draws a curve
# through the 133 rows and says nothing of its error. A Gaussian process has the same curve as its mean, with an
# interval. This page shows that they are the same, what the interval is good for, and two ways in which it lies.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]

# %%
Process = bz.find("gaussian_process")
crash = bz.example(Process)
best = bz.fit(Process.weak(crash), crash, "mle", seed=1)
point = {name: best["posterior"][name].item() for name in ("amplitude", "length", "sigma")}
{name: round(value, 2) for name, value in point.items()}

# %% [markdown]
# These three numbers maximize the evidence: function values lie within about `amplitude` of their mean, places nearer
# than `length` milliseconds have values that are alike, and rows lie within about `sigma` of the function. Kernel ridge
# with penalty `sigma^2 / amplitude^2` and a Gaussian kernel of that length gives the same curve.

# %%
times = np.linspace(3, 57, 10)
ridge = KernelRidge(
    alpha=(point["sigma"] / point["amplitude"]) ** 2, kernel="rbf", gamma=1 / (2 * point["length"] ** 2)
)
mean = crash["y"].mean()
curve = mean + ridge.fit(crash["X"], crash["y"] - mean).predict(times[:, None])
values = bz.function_values(best, {"milliseconds": times})
float(np.max(np.abs(values["mean"] - curve)))

# %% tags=["hide-cell"]
assert np.max(np.abs(values["mean"] - curve)) < 1e-6

# %% [markdown]
# ## Three numbers that are not known
#
# The estimate takes the three numbers as if they were known. Integrated over instead, exactly, the amplitude turns out
# to be known within a factor of three, and the interval of the function is a little wider.

# %%
known = bz.fit(Process.weak(crash), crash, "exact", seed=1)
known["exact"].to_dataset().to_dataframe().loc[["mean", "q025", "q975"]].round(2)

# %%
averaged = bz.function_values(known, {"milliseconds": times})
(averaged["sd"] / values["sd"]).round(2).tolist()

# %% tags=["hide-cell"]
exact = known["exact"]
assert exact["amplitude"].sel(statistic="q975") > 3 * exact["amplitude"].sel(statistic="q025")
assert np.mean(averaged["sd"]) > 0.99 * np.mean(values["sd"])

# %%
bz.plot_function(known)
plt.show()

# %% [markdown]
# ## The first lie: one noise for all rows
#
# The light band holds 95% of the rows on average. Before the impact, at about 13 ms, it is far too wide, as the model
# has one `sigma` for all times: the rows there differ by a few g, and the band by ninety.

# %%
rows = bz.predict(best, crash)
is_before = crash["X"][:, 0] < 13
covered = (rows["observed"] > rows["q025"]) & (rows["observed"] < rows["q975"])
spread = rows["observed"][is_before].std()
print(
    f"before the impact {covered[is_before].mean():.0%} of rows are in the band, later {covered[~is_before].mean():.0%}"
)
print(f"before the impact the rows have an sd of {spread:.1f} g, and the model says {rows['sd'][is_before].mean():.1f}")

# %% tags=["hide-cell"]
assert covered[is_before].all()
assert 0.9 < covered[~is_before].mean() < 0.98
assert spread < 0.1 * rows["sd"][is_before].mean()

# %% [markdown]
# ## The second lie: a function that is not so smooth
#
# The interval rests on the kernel. A random walk is far rougher than any function of the kernel `rbf`. Between rows a
# smooth function is sure of itself, and a rough one is not.

# %%
rng = np.random.default_rng(2)
walk = np.cumsum(rng.normal(0, 0.15, 401))
at, seen = np.linspace(0, 10, 401), np.arange(0, 401, 10)
data = bz.read(Process, {"x": at[seen], "y": walk[seen] + rng.normal(0, 0.05, len(seen))})
shares, heights = {}, {}
for kernel in ("rbf", "matern12"):
    tree = bz.fit(Process.weak(data).replaced(kernel=kernel), data, "map", seed=1)
    function = bz.function_values(tree, {"x": at})
    inside = (walk > function["q025"]) & (walk < function["q975"])
    shares[kernel], heights[kernel] = float(inside.mean()), bz.facts(tree)["log_likelihood"]
print({kernel: f"{share:.0%} of the walk is in the 95% band" for kernel, share in shares.items()})
print({kernel: f"log evidence {height:.1f} at the mode" for kernel, height in heights.items()})

# %% tags=["hide-cell"]
assert shares["rbf"] < 0.8 < shares["matern12"]
assert abs(heights["matern12"] - heights["rbf"]) < 3

# %% [markdown]
# The evidence of 41 rows hardly tells the two kernels apart, as none of them lies between the others. So a band is as
# good as what is known of the function beforehand: take a rougher kernel unless you know better, look at the residuals
# for noise that changes, and do not read a band beyond the rows, where it is the prior and nothing else.

# %%
far = bz.function_values(known, {"milliseconds": [57.0, 65.0, 100.0]})
far[["mean", "sd", "prior_share"]].round(2)

# %% tags=["hide-cell"]
assert far["prior_share"].iloc[0] < 0.2
assert far["prior_share"].iloc[2] > 0.99

# %% [markdown]
# ## How fast it rises
#
# The derivative of a Gaussian process is one too, so how fast the function rises at a place has an interval of its own.
# At 17 ms the head is being braked, at 28 ms it swings back, and at 21 ms the sign is not known.

# %%
slope = bz.function_values(known, {"milliseconds": [17.0, 21.0, 28.0]}, derivative="milliseconds")
slope[["mean", "q025", "q975"]].round(1)

# %% tags=["hide-cell"]
assert slope["q975"].iloc[0] < 0 < slope["q025"].iloc[2]
assert slope["q025"].iloc[1] < 0 < slope["q975"].iloc[1]

# %% [markdown]
# ## Yes and no
#
# Eight doses were given to some twenty animals each (made up for this page), and how many died rises and falls again.
# Logistic regression has log odds that are a line in the dose; in Gaussian process classification they are a function.
# The evidence prefers it by far: that of the line is exact, that of the function by Laplace's method, which is off by
# much less than they differ.

# %%
table = {"dose": [0, 0.5, 1, 1.5, 2, 3, 4, 6], "died": [3, 7, 11, 13, 19, 15, 12, 0]}
table["n"] = [20, 20, 25, 20, 22, 20, 20, 18]
columns = {"successes": "died", "trials": "n", "features": ["dose"]}
Line, Curve = bz.find("logistic_regression"), bz.find("gaussian_process_classification")
doses = bz.read(Curve, table, **columns)
line = bz.fit(Line, bz.read(Line, table, **columns), "exact", seed=1)
evidence = {"a line": bz.facts(line)["log_evidence"], "a function": Curve.weak(doses).concave(doses).laplace_evidence()}
{name: round(value, 1) for name, value in evidence.items()}

# %% [markdown]
# Amplitude and length of the function are fields of the model. With priors of their own they are sampled with it, so
# that probabilities are averages over them too.

# %%
unsure = bz.over(Curve.weak(doses), {"amplitude": "HalfNormal(3)", "length": "InvGamma(3, 4)"})
curve = bz.fit(unsure, doses, "gibbs", seed=1)
new = {"dose": [2.5, 5.0]}
died = {name: bz.classify(tree, new)["p[1]"].round(2).tolist() for name, tree in {"line": line, "curve": curve}.items()}
died

# %% tags=["hide-cell"]
assert evidence["a function"] > evidence["a line"] + 15
assert died["curve"][0] > 0.7 > 0.3 > died["curve"][1]
assert 0.4 < died["line"][0] < 0.6

# %%
bz.plot_function(curve)
plt.show()

# %% [markdown]
# ## Labels on a graph
#
# On the nodes of a graph a function is smooth where neighbours are alike. Of Zachary's karate club the sides of the two
# heads are told, 1 and 34, and those of all others follow. One of them joined the other side: person 9, of whom the
# graph says next to nothing.

# %%
Graph = bz.find("graph_process")
club = bz.fit(Graph, method="map", seed=1)
bz.plot_nodes(club)
plt.show()

# %% tags=["hide-cell"]
p = bz.classify(club, {"node": ["9", "33"]})["p[1]"]
assert abs(p.iloc[0] - 0.5) < 0.02 < p.iloc[1] - 0.5
