# %% [markdown]
# # Conjugate models: an exact answer to hold samplers against
#
# Where the prior is conjugate to the likelihood, the posterior, the evidence and the predictive distribution are
# formulas. That is worth more than speed: with the right answer at hand one sees what each approximate method does.
# This page does so on the births of eighteenth-century Paris. Then it shows, on Simon Newcomb's measurements of
# light, that the exact posterior of a wrong model is exactly wrong, and how one would notice.

# %%
import arviz as az
import numpy as np

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]
DRAWS = 400  # of each of four chains: the fewest that the gate takes

# %% [markdown]
# ## More boys than girls
#
# From 1745 to 1770 there were 251,527 boys and 241,945 girls born in Paris. Laplace asked how probable it is that a
# birth is a boy's with a probability of one half or less (Gelman et al., *Bayesian Data Analysis*, section 2.4).
# Under a uniform prior the posterior is a Beta distribution, and its distribution function answers him.

# %%
Births = bz.find("beta_bernoulli")
births = bz.example(Births, "paris_births")
model = Births(a=1, b=1)
posterior = model.posterior(model.statistics(births))["theta"]
print(f"P(theta <= 1/2 | births) = {posterior.cdf(0.5):.3g}, exact")

# %% tags=["hide-cell"]
assert np.isclose(posterior.cdf(0.5), 1.146e-42, rtol=1e-3, atol=0)  # BDA3: 1.15e-42

# %% [markdown]
# ## Five methods, one truth
#
# `bz.compare` puts fits by several methods side by side. Where the model has a closed form, each estimate comes with
# its distance from it: `error_sd` in posterior standard deviations, and of draws `error_mcse` in their own Monte
# Carlo standard errors. A sampler that is right is off by a few of its own errors, whatever it estimates.

# %%
fits = {method: bz.fit(model, births, method, seed=1) for method in ("exact", "map", "laplace", "advi")}
fits["nuts"] = bz.fit(model, births, "nuts", seed=1, draws=DRAWS)
table = bz.compare(fits.values()).set_index("fit")
table[["kind", "mean", "sd", "mcse_mean", "error_sd", "error_mcse", "status"]]

# %% tags=["hide-cell"]
assert (table["status"] == "ok").all()
assert abs(table.loc["nuts", "error_mcse"]) < 4.4
assert abs(table.loc["map", "error_sd"]) < 0.01  # half a million births: mode and mean are one

# %% [markdown]
# With half a million rows nothing can go wrong, and nothing does. The draws are ArviZ's, so its pictures are too:

# %%
_ = az.plot_rank(fits["nuts"])

# %% [markdown]
# The log evidence is exact too, and Laplace's method and ADVI estimate or bound it. `evidence_gap` and `elbo_gap` are
# what is missing: a bound is never above the evidence by more than its own error.

# %%
table[["log_evidence", "evidence_gap", "elbo", "elbo_se", "elbo_gap"]].dropna(how="all")

# %% tags=["hide-cell"]
assert abs(table.loc["laplace", "evidence_gap"]) < 1e-3
assert (table["elbo_gap"].dropna() > -4 * table["elbo_se"].dropna()).all()

# %% [markdown]
# ## The posterior is the next prior
#
# Of 980 births with placenta previa 437 were girls. Told of the births in two halves or in one batch, the model says
# the same, because its statistics add up.

# %%
previa = bz.example(Births, "placenta_previa")
once = bz.update(Births(a=1, b=1), previa)
halves = bz.update(bz.update(Births(a=1, b=1), {"y": [1] * 200}), {"y": [1] * 237 + [0] * 543})
print(once, "and in two batches", halves)
assert once == halves

# %% [markdown]
# ## Exact, and wrong
#
# In 1882 Simon Newcomb measured 66 times how long light takes to travel 7,442 metres. The times are deviations from
# 24,800 nanoseconds. With mean and precision both unknown the posterior is normal-gamma, in closed form.

# %%
Normal = bz.find("normal_gamma")
newcomb = bz.example(Normal, "newcomb")
gaussian = bz.fit(Normal.weak(newcomb), newcomb, "exact", seed=1)
bz.compare([gaussian])[["parameter", "mean", "sd", "q025", "q975", "kind", "status"]]

# %% [markdown]
# Today's value is 33.0 on this scale (BDA3, section 3.2): outside the interval, of which no formula is to blame. The
# model is. Data sets that the fitted model makes do not look like Newcomb's, whose smallest value is -44.

# %%
checks = bz.predictive_check(gaussian, ["minimum", "mean", "skewness"], seed=1)
checks[["observed", "mean", "q025", "q975", "p_value", "mcse"]]

# %% tags=["hide-cell"]
assert checks.loc["minimum", "p_value"] > 0.99
assert 0.3 < checks.loc["mean", "p_value"] < 0.7  # what is fitted is fitted: the mean tells nothing

# %%
bz.plot_predictive_check(gaussian, ["minimum", "mean", "skewness"], seed=1)

# %% [markdown]
# ## A tail for the outliers
#
# `student_t` has the same mean and heavier tails: each measurement has a precision of its own. It has no closed form,
# so it is sampled. Two measurements no longer drag the mean down, and its standard deviation is half of what it was.

# %%
Student = bz.find("student_t")
heavy = bz.fit(Student.weak(newcomb), newcomb, "nuts", seed=1, draws=DRAWS)
both = bz.compare([gaussian, heavy])
both = both[both["parameter"] == "mu"]
both["model"] = both["model"].str.partition("(")[0]
both.set_index("model")[["mean", "sd", "mcse_mean", "loo_score", "loo_se", "loo_mcse", "status"]]

# %%
before, after = both["sd"]
assert after < 0.6 * before
assert both["loo_score"].iloc[1] - both["loo_score"].iloc[0] > 0.3  # nats for each measurement left out

# %% [markdown]
# `loo_score` is the mean log density of each measurement predicted from all others, in nats; with it are its standard
# error over measurements and, of draws, its Monte Carlo error. The difference is large against both. But four degrees
# of freedom are still not enough for -44:

# %%
checks = bz.predictive_check(heavy, ["minimum"], seed=1)
checks[["observed", "mean", "q025", "q975", "p_value", "mcse"]]

# %% [markdown]
# A model check says where a model fails. It does not say that what is left is true.
