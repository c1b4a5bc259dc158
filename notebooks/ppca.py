# %% [markdown]
# # Probabilistic PCA: flowers, and air with gaps
#
# Principal component analysis turns columns into a few directions. As a probability model it also says how certain
# these are, how many there are, and what a missing number may have been. This page fits it to the irises, where its
# maximum is the PCA that everybody knows, and to air quality in New York, where a quarter of the days lack a
# measurement.

# %%
import numpy as np
import pandas as pd

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]
DRAWS = 400  # of each of four chains: the fewest that the gate takes

Ppca = bz.find("ppca")
iris = bz.example(Ppca, "iris")
model = Ppca.weak_with(iris, {"q": 2})
print(model)

# %% [markdown]
# ## Its maximum is PCA
#
# The maximum of the likelihood is in closed form: the largest eigenvalues of the covariance are the factors', and the
# noise is the mean of the others (Tipping and Bishop 1999). With numpy's eigenvalues, of the covariance with divisor
# N:

# %%
mle = bz.fit(model, iris, "mle", seed=1)["posterior"].isel(chain=0, draw=0)
eigenvalues = np.linalg.eigvalsh(np.cov(iris["Y"].T, bias=True))[::-1]
W = mle["loadings"].to_numpy()
ours = np.linalg.eigvalsh(W @ W.T + mle["variance"].item() * np.eye(4))[::-1]
pd.DataFrame({"covariance of the data": eigenvalues, "of the fit": ours}, index=range(1, 5)).rename_axis("eigenvalue")

# %% tags=["hide-cell"]
assert np.allclose(ours[:2], eigenvalues[:2])
assert np.isclose(mle["variance"].item(), eigenvalues[2:].mean())

# %% [markdown]
# ## How certain?
#
# The data say nothing of a rotation of the factors, so a sampler that is left to itself wanders among rotations. Here
# the loadings are sampled in a form that has only one, and drawn along the principal axes afterwards. Points are
# flowers, with one standard deviation of their factors; pale points are the arrow heads of single draws.

# %%
fit = bz.fit(model, iris, "nuts", seed=1, draws=DRAWS)
species = np.repeat(["setosa", "versicolor", "virginica"], 50)
bz.plot_biplot(fit, groups=species)

# %%
print("status:", fit.attrs["status"])
axes = bz.project(fit)
first = axes.xs(1, level="factor")["mean"].to_numpy()
assert fit.attrs["status"] == "ok"
assert max(first[:50]) < min(first[50:]) or min(first[:50]) > max(first[50:])  # setosa lies apart, told of no species

# %% [markdown]
# ## How many factors?
#
# The eigenvalues with their intervals, beside those of the sample:

# %%
bz.plot_scree(fit)

# %% [markdown]
# Cross-validation plugs in the maximum of the likelihood for each fold; BIC counts parameters. Both prefer three
# factors, the most that four columns can have: what two factors leave over is not alike in all directions, as the
# scree shows.

# %%
chosen = bz.select({f"q={q}": Ppca.weak_with(iris, {"q": q}) for q in (1, 2, 3)}, iris).set_index("model")
chosen[["log_likelihood", "bic", "kfold", "kfold_difference", "kfold_difference_se", "kfold_from"]]

# %% tags=["hide-cell"]
assert chosen["kfold"].idxmax() == chosen["bic"].idxmin() == "q=3"

# %% [markdown]
# Bayesian PCA is given a precision for each factor, and a large one switches the factor off.

# %%
Relevance = bz.find("bayesian_pca")
relevant = bz.fit(Relevance.weak_with(iris, {"q": 3}), iris, "nuts", seed=1, draws=DRAWS)
print("status:", relevant.attrs["status"])
bz.plot_ard(relevant)

# %% tags=["hide-cell"]
assert relevant.attrs["status"] == "ok"

# %% [markdown]
# Variational Bayes of the same model is quick, and here its numbers are withheld, one by one: it takes loadings and
# factors for independent, and draws weighed to the posterior say that each is too far from it.

# %%
quick = bz.fit(Relevance.weak_with(iris, {"q": 3}), iris, "vb", seed=1)
noise = bz.summarize(quick)["variance"]
print("status:", quick.attrs["status"], "- variance:", noise["mean"], "-", noise["withheld"]["mean"])
assert quick.attrs["status"] == "caution"
assert np.isnan(noise["mean"])

# %% [markdown]
# ## Numbers that are missing
#
# From May to September 1973 ozone was not measured on 37 days and sunshine not on 7. Rows with gaps are kept: what is
# missing is integrated out of the likelihood, exactly, and nothing is filled in.

# %%
air = bz.example(Ppca, "airquality")
gaps = bz.fit(Ppca.weak_with(air, {"q": 2}), air, "nuts", seed=1, draws=DRAWS)
for note in air.notes:
    print(note)
table = bz.reconstruct(gaps)
predicted = table[table["what"] == "predicted"]
predicted.drop(columns=["observed", "what"]).head(6)

# %% tags=["hide-cell"]
assert gaps.attrs["status"] == "ok"
assert len(predicted) == 44

# %% [markdown]
# Each prediction is of the number itself, noise and all, with a Monte Carlo error of its mean. Are the intervals
# right? Hide ozone on every fifth day on which it is known, fit without it, and look:

# %%
known = np.flatnonzero(~np.isnan(air["Y"][:, 0]))[::5]
hidden = pd.DataFrame(air["Y"], columns=["Ozone", "Solar.R", "Wind", "Temp"])
truth = hidden["Ozone"].iloc[known].to_numpy()
hidden.loc[known, "Ozone"] = np.nan
data = bz.read(Ppca, hidden, missing="mask")
blind = bz.reconstruct(bz.fit(Ppca.weak_with(data, {"q": 2}), data, "nuts", seed=2, draws=DRAWS))
guess = blind.xs("Ozone", level="column").loc[known + 1]
inside = np.mean((guess["q025"] <= truth) & (truth <= guess["q975"]))
error, spread = np.sqrt(np.mean((guess["mean"] - truth) ** 2)), np.std(truth)
print(f"{inside:.0%} of {len(known)} hidden values are in their 95% intervals")
print(f"root mean square error {error:.1f}, standard deviation of the values {spread:.1f}")
assert 0.75 <= inside <= 1
assert error < spread

# %% [markdown]
# The intervals hold about what they promise. But look at days 5 and 25 above, whose mean is negative: a Gaussian does
# not know that there is no negative ozone.

# %%
below = (predicted.xs("Ozone", level="column")["q025"] < 0).mean()
print(f"{below:.0%} of the intervals for missing ozone reach below 0")
assert below > 0.2
