# %% [markdown]
# # Partial pooling: eight schools and 71 groups of rats
#
# Each of many groups has few rows. Taken alone they scatter more than they differ; pooled they are all the same. A
# hierarchy lets the data say how alike the groups are, and each then borrows from the others as much as that warrants.
# Given the few numbers that the groups share all else has a closed form, so here the answers are exact.

# %%
import logging
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
from scipy import stats

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]
DRAWS = 400  # of each of four chains: the fewest that the gate takes

Means = bz.find("normal_means")
schools = bz.example(Means)
y, se = np.asarray(schools["y"]), np.asarray(schools["se"])
model = Means(m0=0, s0=5, t0=5)
print(model)

# %% [markdown]
# ## Raw, pooled, and in between
#
# Eight schools tried whether coaching raises a test score (Rubin 1981). The effect of each has an error of 10 points
# or so. What the schools share are `mu`, the mean of their effects, and `tau`, the standard deviation.

# %%
exact = bz.fit(model, schools, "exact", seed=1)
theta = exact["exact"]["theta"]
bz.compare([exact])[["parameter", "mean", "sd", "q025", "q975"]].set_index("parameter").round(2)

# %%
pooled = np.average(y, weights=se**-2.0)
partial = theta.sel(statistic="mean").to_numpy()
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
place = np.arange(len(y))
axes.errorbar(place - 0.1, y, 1.96 * se, fmt="o", color="0.6", label="each school by itself")
low, high = (theta.sel(statistic=name).to_numpy() for name in ("q025", "q975"))
axes.errorbar(place + 0.1, partial, [partial - low, high - partial], fmt="o", color="C0", label="learning from all")
axes.axhline(pooled, color="C3", linewidth=1, label="pooled")
axes.set_xticks(place, schools["group"])
axes.set_ylabel("effect, points")
_ = axes.legend()

# %% tags=["hide-cell"]
assert exact.attrs["status"] == "ok"
assert np.allclose(theta.sel(statistic="mean", group="A"), 6.2119, atol=1e-4)
assert np.isclose(float(exact["exact"]["tau"].sel(statistic="mean")), 3.5977, atol=1e-4)
assert np.ptp(partial) < np.ptp(y) / 8
assert np.all(high - low < 2 * 1.96 * se)

# %% [markdown]
# The schools keep their order but hardly their distances: the measured effects, from -3 to 28, become 3.6 to 6.3. Each
# interval is narrower than that of the school alone. All of it hangs on `tau`, and that is far from sure: given `tau`
# the estimates go from pooled to raw.

# %%
taus = np.linspace(0, 30, 61)[1:]
at_tau = model.posterior_given({"mu": np.full(60, pooled), "tau": taus}, schools)["theta"].mean()
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(taus, at_tau)
axes.set_xlabel("tau, points")
axes.set_ylabel("effect given tau, points")
_ = axes.set_title("how much the schools learn from each other")

# %%
quantiles = exact["exact"]["tau"].sel(statistic=["q025", "median", "q975"]).to_numpy()
print("tau:", quantiles.round(2))
assert np.max(np.abs(at_tau[0] - pooled)) < 0.2
assert np.max(np.abs(at_tau[-1] - y)) < 7

# %% [markdown]
# ## A ninth school
#
# Draws of an exact fit are independent. A school that was not yet there has an effect of Normal(`mu`, `tau`), so one
# draw of it for each draw of these two is its predictive distribution. It is wider than that of `mu`: schools differ.

# %%
rng = np.random.default_rng(1)
shared = exact["posterior"]
mu, tau = (shared[name].to_numpy().ravel() for name in ("mu", "tau"))
ninth = rng.normal(mu, tau)
error = ninth.std() / np.sqrt(ninth.size)
print(f"a ninth school: {ninth.mean():.2f} +- {error:.2f}, sd {ninth.std():.1f} against {mu.std():.1f} of mu")
print(f"it gains with probability {np.mean(ninth > 0):.2f} +- {np.std(ninth > 0) / np.sqrt(ninth.size):.2f}")
assert ninth.std() > 1.2 * mu.std()

# %% [markdown]
# ## How to sample it, and how not
#
# The textbook's declaration has all effects as variables. In PyMC it makes a funnel: where `tau` is small all effects
# must be close to `mu`, and steps that suit the rest of the posterior are too long there.

# %%
logging.getLogger("pymc").setLevel(logging.CRITICAL)
options = {"draws": DRAWS, "chains": 4, "cores": 1, "random_seed": 1}
with warnings.catch_warnings(), model.declare(schools):
    warnings.simplefilter("ignore")
    centred = pm.sample(**options, progressbar=False, compute_convergence_checks=False)
marginal = bz.fit(model, schools, "nuts", seed=1, draws=DRAWS)
for name, tree in (("all effects", centred), ("effects integrated out", marginal)):
    least = float(np.quantile(tree["posterior"]["tau"], 0.025))
    print(f"{name}: {int(tree['sample_stats']['diverging'].sum())} divergences, 2.5% of tau below {least:.2f}")
print(f"exact: 2.5% of tau below {quantiles[0]:.2f}")

# %% tags=["hide-cell"]
assert centred["sample_stats"]["diverging"].sum() > 0
assert marginal["sample_stats"]["diverging"].sum() == 0
assert marginal.attrs["status"] == "ok"

# %% [markdown]
# Divergences mark where the first sampler does not go: among small `tau`. `bz.fit` integrates the effects out, samples
# the two numbers that are left, and draws the effects given them.
#
# ## Seventy-one groups of rats
#
# Each row is a group of rats that were given nothing, with the number that had a tumour (Tarone 1982). The groups
# differ in size. Small ones are drawn further to what all share.

# %%
Rats = bz.find("beta_binomial")
rats = bz.example(Rats)
tumours, count = np.asarray(rats["successes"]), np.asarray(rats["trials"])
fit = bz.fit(Rats(), rats, "exact", seed=1)
chances = fit["exact"]["theta"].sel(statistic="mean").to_numpy()
shrinkage = fit["posterior"]["size"].to_numpy().ravel()
share = [float(np.mean(shrinkage / (shrinkage + n))) for n in count]
figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
dots = axes.scatter(tumours / count, chances, c=count, cmap="viridis", s=20)
axes.plot([0, 0.4], [0, 0.4], color="0.7", linewidth=1)
axes.set_xlabel("share of rats with a tumour")
axes.set_ylabel("chance, learning from all")
_ = figure.colorbar(dots, label="rats of the group")

# %%
# Gelman et al., BDA3, section 5.3, have means of 2.4 and 14.3 from a grid that ends; without an end there are medians
alpha, beta = (float(fit["derived"][name].median()) for name in ("alpha", "beta"))
print(f"Beta({alpha:.1f}, {beta:.1f}); of a group of 20 rats {share[0]:.0%} is what all groups say")
print(f"group 71: 4 of 14 had one, {tumours[70] / count[70]:.3f} alone, {chances[70]:.4f} with the others")
assert (tumours[70], count[70]) == (4, 14)
assert np.isclose(chances[70], 0.21086, atol=1e-5)
assert abs(alpha - 2.22) < 0.1
assert abs(beta - 13.3) < 0.5
assert np.ptp(chances) < 0.7 * np.ptp(tumours / count)

# %% [markdown]
# ## A new group of rats
#
# The next twenty rats come from a group of their own: its chance is drawn from the Beta distribution of all groups, and
# the rats from that chance. One chance for all groups, of all rats together, would be too sure.

# %%
mean, size = (fit["posterior"][name].to_numpy().ravel() for name in ("mean", "size"))
new = rng.binomial(20, rng.beta(mean * size, (1 - mean) * size))
together = stats.betabinom(20, 1 + tumours.sum(), 1 + (count - tumours).sum())
print(f"tumours among 20 rats: {new.mean():.2f}, sd {new.std():.2f}; with one chance for all, sd {together.std():.2f}")
assert new.std() > 1.2 * together.std()

# %% [markdown]
# What the groups share decides how far each is moved, and the groups say it themselves. Groups that are not alike, as
# the arms of an experiment, are better fitted each by itself: `bz.fit_by`.
