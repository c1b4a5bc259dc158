# %% [markdown]
# # MAP or full Bayes?
#
# The mode of the posterior is quick to find, and often it is all that anybody looks at. This page asks what is lost.
# Four times the same data are given to both: where it does not matter, where the mode promises too much, where it
# lies on an edge, and where it depends on how the question was written down.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]

# %% [markdown]
# ## Many rows, one parameter: no difference
#
# Bortkiewicz counted 196 deaths by horse kick in 280 corps-years. The mode of the rate is a fourteenth of a standard
# deviation from its mean, and predicts each count as well.

# %%
Deaths = bz.find("gamma_poisson")
table = bz.compare(Deaths(), methods=["exact", "map", "nuts"], seed=1).set_index("fit")
table[["mean", "sd", "mcse_mean", "error_sd", "loo_score", "loo_mcse", "seconds", "kind"]]

# %% tags=["hide-cell"]
assert abs(table.loc["map", "error_sd"]) < 0.1
assert abs(table.loc["map", "loo_score"] - table.loc["exact", "loo_score"]) < 1e-3

# %% [markdown]
# ## Few rows: the mode promises too much
#
# Michelson measured the speed of light in five series of twenty. Given two, four or ten measurements of a series, a
# model with unknown mean and precision predicts the others of it by an interval of 95%. Plugging the mode into the
# normal distribution leaves out that mean and precision are themselves uncertain. How many of the measurements are in
# the intervals?

# %%
Normal = bz.find("normal_gamma")
speeds = bz.example(bz.find("gaussian_mean"), "michelson")["y"].reshape(5, 20)
prior = Normal(mu0=850, kappa0=0.01, alpha0=0.5, beta0=3000)


def share_inside(method, size):
    """Return the share of the measurements that are in 95% intervals from ``size`` others of their series."""
    inside = []
    for series in speeds:
        for first in range(0, 20, size):
            given, others = series[first : first + size], np.delete(series, range(first, first + size))
            interval = bz.predict(bz.fit(prior, given, method, seed=1), 1).iloc[0]
            inside.append(np.mean((interval["q025"] <= others) & (others <= interval["q975"])))
    return np.mean(inside)


covered = {
    f"{size} measurements": {method: share_inside(method, size) for method in ("map", "exact")} for size in (2, 4, 10)
}
covered = pd.DataFrame(covered).T.rename_axis("given")
covered.round(3)

# %% tags=["hide-cell"]
assert (covered["map"] < covered["exact"]).all()
assert covered.loc["2 measurements", "map"] < 0.85 < covered.loc["2 measurements", "exact"]

# %% [markdown]
# Of two measurements the mode's 95% intervals hold four in five of the others; the full posterior's hold what they
# promise. With ten measurements the two agree. That both are then below 95% is no fault of either way of fitting: the
# series have drift and outliers, which the normal distribution does not know. Averaging over a posterior cannot mend
# a wrong model.
#
# ## No success yet: the mode lies on the edge
#
# Twenty trials, none succeeded. Under a uniform prior the mode of the probability is 0: the event cannot happen. If
# it does, the plugged-in prediction has lost infinitely many nats.

# %%
Success = bz.find("beta_bernoulli")
trials = {"y": [0] * 20}
edge = {method: bz.fit(Success(a=1, b=1), trials, method, seed=1) for method in ("map", "exact")}
after = pd.DataFrame({name: bz.predict(tree, {"y": [1]}).iloc[0] for name, tree in edge.items()}).T
after[["mean", "log_score"]].rename(columns={"mean": "P(success)", "log_score": "log density of a success"})

# %% tags=["hide-cell"]
assert after.loc["map", "mean"] == 0
assert after.loc["map", "log_score"] == -np.inf
assert np.isclose(after.loc["exact", "mean"], 1 / 22)  # Laplace's rule of succession

# %% [markdown]
# With a prior that is unbounded at 0 there is not even a mode, and none is reported:

# %%
try:
    bz.fit(Success(a=0.5, b=0.5), trials, "map", seed=1)
except bz.NumericalError as reason:
    print("withheld:", reason)
    no_mode = True
assert no_mode

# %% [markdown]
# ## The mode depends on how the question is written
#
# How far do Cavendish's measurements of the Earth's density scatter? Of the first five, the most probable precision
# is one number, the most probable standard deviation another, and they do not belong together. Quantiles do: the
# median standard deviation is that of the median precision.

# %%
earth = bz.example(Normal, "cavendish")["y"][:5]
precision = Normal.weak({"y": earth}).posterior(Normal.weak({"y": earth}).statistics({"y": earth}))["lam"]
sigma = np.linspace(0.05, 1.2, 4001)
densities = {  # of one posterior, in three scales, each drawn over the standard deviation that belongs to it
    "precision": precision.pdf(sigma**-2),
    "log precision": precision.pdf(sigma**-2) * sigma**-2,
    "standard deviation": precision.pdf(sigma**-2) * 2 * sigma**-3,
}
modes = pd.Series({name: sigma[np.argmax(values)] for name, values in densities.items()}, name="sigma at the mode")
modes["median, in any"] = precision.ppf(0.5) ** -0.5
modes.round(4).to_frame()

# %% tags=["hide-cell"]
assert modes["precision"] > 1.1 * modes["standard deviation"] or modes["precision"] < 0.9 * modes["standard deviation"]
halves = np.sum(densities["standard deviation"][sigma <= modes["median, in any"]]) * (sigma[1] - sigma[0])
assert np.isclose(halves, 0.5, atol=0.01)

# %%
figure, axes = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
for name, values in densities.items():
    axes.plot(sigma, values / values.max(), label=f"density of the {name}")
axes.axvline(modes["median, in any"], color="0.3", ls=":", label="median")
axes.set(xlabel="standard deviation", ylabel="relative to its mode")
_ = axes.legend()

# %% [markdown]
# bayeszoo takes the mode of `map` in the model's own parameters, without a Jacobian, and says so; `laplace` puts its
# Gaussian at the mode in unconstrained space. Their numbers differ for this reason, and neither is wrong.
#
# ## So
#
# The mode will do where there are many rows for each parameter and it lies inside its space. It is no summary of
# uncertainty, no basis of a prediction from few rows, and not the same thing in another parametrization. Where a
# model is conjugate, the full answer costs less than the mode: look at the `seconds` of the first table.
