# %% [markdown]
# # Mixtures: how many kinds, and which is which
#
# A mixture says that rows come from K clusters and does not say which row from which. Three things then go wrong that
# do not with other models: a likelihood without maximum, labels that mean nothing, and a K that the data may not
# tell. This page meets all three, on eruptions of Old Faithful and velocities of galaxies.

# %%
import json

import arviz as az
import matplotlib.pyplot as plt
import pandas as pd

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]
DRAWS = 1000  # of each of four chains

Mixture = bz.find("gaussian_mixture")
faithful = bz.example(Mixture, "faithful")

# %% [markdown]
# ## Maximum likelihood has no maximum
#
# A component that sits on one row and shrinks has a likelihood without bound. "The best of many restarts" would
# sooner or later report it. `mle` refuses such climbs, counts them, and says how many of the others reached the best.
# Here are the speeds of 82 galaxies, with two to five components:

# %%
galaxies = bz.example(Mixture, "galaxies")
climbs = {K: json.loads(bz.fit(Mixture(K=K), galaxies, "mle", seed=1).attrs["facts"]) for K in range(2, 6)}
climbs = pd.DataFrame(climbs).T[["restarts", "degenerate", "reached_the_best", "log_likelihood"]]
climbs.rename_axis("components")

# %% tags=["hide-cell"]
assert climbs["degenerate"].iloc[0] == 0
assert climbs["degenerate"].iloc[-1] > 0

# %% [markdown]
# With a prior on the covariances there is a maximum. Two components, by EM, by variational Bayes, and by NUTS on the
# density with the assignments summed out:

# %%
model = Mixture.weak_with(faithful, {"K": 2})
fits = {method: bz.fit(model, faithful, method, seed=1) for method in ("map", "vb")}
fits["nuts"] = bz.fit(model, faithful, "nuts", seed=1, draws=DRAWS)
table = bz.compare(fits.values())
of_means = table[table["parameter"].str.startswith(("weights", "means"))]
of_means.pivot(index="parameter", columns="fit", values=["mean", "sd", "mcse_mean"]).dropna(axis=1, how="all")

# %% tags=["hide-cell"]
assert (table["status"] == "ok").all()
found = of_means.pivot(index="parameter", columns="fit", values="mean")
spread = of_means[of_means["fit"] == "nuts"].set_index("parameter")["sd"]
assert (((found["vb"] - found["nuts"]) / spread).abs() < 0.25).all()
assert (((found["map"] - found["nuts"]) / spread).abs() < 0.25).all()

# %% [markdown]
# ## Labels mean nothing
#
# Component 1 could as well be called 2: the posterior has 2! equal modes. A chain that visits both has means that
# agree and mean nothing; a chain that visits one looks well and is only half of it. So convergence is judged on
# quantities that do not depend on labels, and labels are put in one order afterwards. The draws as they came are kept
# in `unaligned`. The mean weight of each component in each chain:

# %%
groups = {"as they came": "unaligned", "aligned": "posterior"}
means = {name: fits["nuts"][group]["weights"].mean("draw").to_pandas() for name, group in groups.items()}
pd.concat(means, axis=1)

# %%
_ = az.plot_trace_dist(fits["nuts"], var_names=["weights"])

# %% [markdown]
# Which row belongs to which component is then a probability, with the expected number of mistakes and a Monte Carlo
# error.

# %%
rows = bz.assign(fits["nuts"])
print(f"expected number of rows with a wrong label: {rows.attrs['expected_errors']:.2f} of {len(rows)}")
assert rows.attrs["expected_errors"] < 5

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
points = axes.scatter(*faithful["Y"].T, c=rows["p[1]"], cmap="coolwarm", s=18, edgecolors="0.3", linewidths=0.3)
axes.set(xlabel="eruption, minutes", ylabel="waiting for the next, minutes")
_ = figure.colorbar(points, label="probability of component 1")

# %% [markdown]
# ## How many?
#
# The evidence of a mixture is a sum over all assignments. For one component it is exact; for more, importance
# sampling estimates it with an error, and it is withheld where its weights say that the error cannot be trusted. All
# candidates have the same prior for each component: log evidences of several K judge that prior too.

# %%
candidates = bz.components(Mixture.weak_with(faithful, {"K": 1}), range(1, 4))
chosen = bz.select(candidates, faithful, loo=False).set_index("model")
chosen[["log_evidence", "evidence_se", "evidence_from", "elbo", "bic"]]

# %% tags=["hide-cell"]
assert chosen["log_evidence"].idxmax() == "K=2"
assert (chosen["elbo"] <= chosen["log_evidence"] + 4 * chosen["evidence_se"] + 1e-9).all()  # of K = 1 they are equal

# %%
bz.plot_select(chosen.reset_index())

# %% [markdown]
# Old Faithful has two kinds of eruptions. The speeds of 82 galaxies are a harder case: from the same few lines the
# evidence of one and two components is far behind, and between three and four it does not decide.

# %%
speeds = bz.select(bz.components(Mixture.weak_with(galaxies, {"K": 1}), range(1, 5)), galaxies, loo=False)
speeds = speeds.set_index("model")
speeds[["log_evidence", "evidence_se", "evidence_from", "elbo", "bic"]]

# %%
three = speeds.loc["K=3", "log_evidence"]
assert three - speeds.loc["K=2", "log_evidence"] > 3
assert three - speeds.loc["K=1", "log_evidence"] > 10
assert abs(three - speeds.loc["K=4", "log_evidence"]) < 3

# %% [markdown]
# ## A density without a number of components
#
# `dp_mixture` is not told how many clusters there are: endlessly many are possible, and few hold rows. Clusters have no
# labels. What is known is how many hold rows, which rows are together, which is alone, and the density. Of few rows the
# answer is a sum over every way to put them into clusters; of more, `"gibbs"` samples them.

# %%
Clusters = bz.find("dp_mixture")
doses = bz.read(Clusters, {"dose": [1.0, 1.2, 1.1, 4.8, 5.0, 5.1, 9.9]})
without_number = bz.fit(Clusters.weak(doses), doses, "enumerate", seed=1)
answer = bz.clusters(without_number)
answer.number.round(3).T

# %%
answer.rows.round(2)

# %%
bz.plot_clusters(without_number)

# %% [markdown]
# The number of clusters grows with the rows even where all are of one kind: it is no estimate of a number of groups in
# nature.

# %% tags=["hide-cell"]
assert answer.groups.tolist() == [1, 1, 1, 2, 2, 2, 3]
assert answer.number["probability"].idxmax() == 3
assert answer.rows["alone"].argmax() == 6
