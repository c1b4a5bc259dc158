# %% [markdown]
# # Regression: ridge, lasso, and what a point estimate hides
#
# Ten measurements of 442 patients, and how far their diabetes had progressed a year later (Efron, Hastie, Johnstone
# and Tibshirani 2004): the data on which the lasso is usually shown. Here ridge and lasso are what they are to a
# Bayesian, the modes of two posteriors, and one sees what the rest of these posteriors says.

# %%
import arviz as az
import numpy as np

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]
DRAWS = 400  # of each of four chains: the fewest that the gate takes

Ridge = bz.find("ridge")
data = bz.example(Ridge, "diabetes")
print(Ridge.weak(data))

# %% [markdown]
# ## How strong a penalty? The evidence says
#
# Ridge regression is the mode under weights that are Gaussian with standard deviation `tau` on standardized columns.
# Its evidence is in closed form, so `tau` and the noise `sigma` can be chosen where it is largest:

# %%
chosen = bz.empirical_bayes(Ridge.weak(data), data, over=["tau", "sigma"])
print(chosen)

# %% [markdown]
# MacKay's fixed-point iteration (1992; Bishop, PRML, equations 3.91 to 3.95) is an independent way to the same place.
# Of each weight it takes the share of the prior variance that the data remove; the sum `gamma` counts the weights that
# the data determine. The square of `tau` is then the sum of squared weights over `gamma`, and the square of `sigma` the
# sum of squared errors over the rows that no weight uses up. Both sides depend on `tau` and `sigma`, so it is repeated:

# %%
scale = np.asarray(Ridge.weak(data).scale)


def mackay(model):
    """Return the model with the next tau and sigma, and the number of weights that the data determine."""
    stats = model.statistics(data)
    w = model.posterior(stats)["w"]
    gamma = np.sum(1 - (w.std()[1:] * scale / model.tau) ** 2)
    errors = data["y"] - model.design(data) @ w.mean()
    unused = len(data["y"]) - model.figures(stats)["effective_parameters"]  # the intercept is used up too
    tau, sigma = np.sqrt(np.sum((w.mean()[1:] * scale) ** 2) / gamma), np.sqrt(np.sum(errors**2) / unused)
    return model.replaced(tau=tau, sigma=sigma), gamma


fixed_point = Ridge.weak(data)
for _ in range(200):
    fixed_point, gamma = mackay(fixed_point)
print(f"tau {fixed_point.tau:.6g}, sigma {fixed_point.sigma:.6g}: the data determine {gamma:.2f} of ten weights")

# %%
ridge = chosen.model
assert chosen.status == "ok"
assert np.allclose([fixed_point.tau, fixed_point.sigma], [ridge.tau, ridge.sigma], rtol=1e-6)
assert 8 < gamma < 9
assert chosen.log_evidence > Ridge.weak(data).log_evidence(ridge.statistics(data)) + 10

# %% [markdown]
# The mode is what a library of ridge regression returns with a penalty of (sigma / tau)^2. The posterior around it is
# exact:

# %%
exact = bz.fit(ridge, data, "exact", seed=1)
bz.compare([exact])[["parameter", "mean", "sd", "q025", "q975", "kind"]].set_index("parameter")

# %% [markdown]
# Weights are in the units of the columns. Those of `s1` and `s2`, total and low-density cholesterol, are each
# uncertain, but not independently so: the two columns are nearly the same, and the data determine their sum. A table
# of intervals does not show it; draws do.

# %%
_ = az.plot_pair(exact, var_names=["w"], coords={"term": ["s1", "s2"]})

# %%
w = exact["posterior"]["w"]
correlation = np.corrcoef(w.sel(term="s1").to_numpy().ravel(), w.sel(term="s2").to_numpy().ravel())[0, 1]
print(f"correlation of the weights of s1 and s2: {correlation:.2f}, from {w.sel(term='s1').size} independent draws")
assert correlation < -0.8

# %% [markdown]
# ## The lasso sets weights to zero. Does the posterior?
#
# Under Laplace priors of scale `b` the mode is scikit-learn's Lasso. As `b` grows, one weight after another leaves
# zero:

# %%
Lasso = bz.find("bayesian_lasso")
lasso = Lasso.weak_with(data, {"b": ridge.tau / np.sqrt(2), "sigma": ridge.sigma})  # the same prior variance as above
bz.plot_lasso_path(bz.lasso_path(lasso, data))

# %%
mode = bz.fit(lasso, data, "map", seed=1)
full = bz.fit(lasso, data, "nuts", seed=1, draws=DRAWS)
both = bz.compare([mode, full]).pivot(index="parameter", columns="fit")
report = both[["mean", "sd", "q025", "q975", "mcse_mean", "p_positive", "p_positive_mcse"]].dropna(axis=1, how="all")
report.round(3)

# %% [markdown]
# The mode has weights that are exactly zero. The posterior gives that point no probability at all: each weight has an
# interval, and for some of those at zero it is as wide as for the others. `p_positive` is the probability that the
# weight is positive, with its Monte Carlo error; it is what the data say of the sign. "Zero" was a property of the
# mode.

# %%
zeros = report.index[report["mean", "map"] == 0]
print("zero at the mode:", ", ".join(zeros))
assert len(zeros) >= 1
assert (report.loc[zeros, ("sd", "nuts")] > 0).all()
assert report.loc[zeros, ("p_positive", "nuts")].between(0.05, 0.95).all()  # nothing is known of their sign

# %%
_ = az.plot_forest(full, var_names=["w"], coords={"term": ["age", "bmi", "bp", "s1", "s2", "s3", "s6"]})

# %% [markdown]
# ## Which predicts better?
#
# By leave-one-out prediction there is nothing between them: the difference is smaller than its own standard error.
# Ridge's is exact, the lasso's by Pareto-smoothed importance sampling of the draws, with its Monte Carlo error.

# %%
table = bz.select({"ridge": ridge, "lasso": full}, data).set_index("model")
table[["loo", "loo_mcse", "loo_from", "loo_difference", "loo_difference_se"]]

# %% tags=["hide-cell"]
assert abs(table["loo_difference"].min()) < 3 * table["loo_difference_se"].max()

# %% [markdown]
# ## Does a straight line do?
#
# Residuals of each patient, predicted from all others, against what the model promises: the band holds the whole line
# of points with the probability stated.

# %%
bz.plot_residuals(exact)
