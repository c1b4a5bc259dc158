# %% [markdown]
# # The Nile: did its flow drift, or change once?
#
# The annual flow of the Nile at Aswan, 1871 to 1970, is lower at the end than at the beginning (Cobb 1978). Two models
# can say so. `hmm_gaussian` has two levels, and years in which the river changes from one to the other. `local_level`
# has a level that drifts a little every year. Both say what the flow was and what comes next; their evidences, of the
# same 100 numbers, say which is the better account.

# %%
import matplotlib.pyplot as plt
import numpy as np

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]

# %%
Level, Chain = bz.find("local_level"), bz.find("hmm_gaussian")
flow = bz.example(Level)
years = np.arange(1871, 1971)

# %% [markdown]
# ## A level that drifts
#
# The level takes a step of standard deviation `q` from each year to the next, and the flow of a year lies about it with
# standard deviation `r`. Given both the Kalman filter is exact, and the two numbers are integrated over.

# %%
drift = bz.fit(Level.weak(flow), flow, "exact", seed=1)
drift.posterior.to_dataset()[["q", "r"]].mean()

# %% tags=["hide-cell"]
exact = drift["exact"].sel(statistic="mean")
np.testing.assert_allclose([exact["q"], exact["r"]], [44.86, 121.88], rtol=1e-3)

# %%
bz.plot_levels(drift, steps=10)
plt.show()

# %% [markdown]
# The level falls from 1,100 to 850 within some years about 1898. What comes next is a forecast with intervals that
# grow: the level goes on drifting.

# %%
ahead = bz.forecast(drift, 10)
ahead.loc[[1, 10], ["mean", "sd", "q025", "q975"]].round(0)

# %% tags=["hide-cell"]
assert ahead["mean"].nunique() < 3  # a random walk goes nowhere on average
assert ahead["sd"].is_monotonic_increasing
assert 1.2 < ahead["sd"].iloc[9] / ahead["sd"].iloc[0] < 1.6

# %% [markdown]
# ## A change
#
# The hidden Markov model has two levels. Once it has changed, in 1899, the river stays; so does the forecast.

# %%
change = bz.fit(Chain.weak(flow), flow, "map", seed=1)
states = bz.decode(change)
first = years[np.flatnonzero(np.diff(states["viterbi"]))[0] + 1]
f"the lower level begins in {first}"

# %% tags=["hide-cell"]
assert first == 1899
assert (np.diff(states["viterbi"]) != 0).sum() == 1

# %%
bz.plot_states(change)
plt.show()

# %% [markdown]
# ## Which of them?
#
# The candidates, all with weakly informative priors scaled to the data: a level that drifts; two levels that come and
# go as they like; two levels that are sticky a priori; a change once and for good, whose tables are known; and one
# level for all years, which is `normal_gamma`'s model.

# %%
once = {"initial": [1.0, 0.0], "transition": [[0.99, 0.01], [0.0, 1.0]]}
candidates = {
    "drift": Level.weak(flow),
    "two levels": Chain.weak(flow),
    "sticky levels": Chain.weak_with(flow, {"sticky": 50.0}),
    "change once": Chain.weak_with(flow, once),
    "one level": Chain.weak_with(flow, {"K": 1}),
}
table = bz.select(candidates, flow, loo=False).set_index("model")
table[["log_evidence", "log_bayes_factor", "probability"]].round(3)

# %% tags=["hide-cell"]
evidence = table["log_evidence"]
np.testing.assert_allclose(evidence["drift"], -646.455, atol=1e-3)
np.testing.assert_allclose(evidence["change once"], -644.81, atol=0.1)
np.testing.assert_allclose(evidence["two levels"], -650.17, atol=0.1)
assert evidence.idxmax() == "change once"
assert evidence["drift"] > evidence["two levels"] + 3
assert evidence["one level"] < evidence["drift"] - 15

# %% [markdown]
# That nothing changed is out of the question: 15 nats. A change for good has about five times the evidence of drift,
# which is little: 100 years do not tell them apart. And what a hidden Markov model is allowed to do matters more than
# that: one whose levels may come and go at will, as if all transition probabilities were as likely, has a fortieth of
# the evidence of drift, for most of what it would foresee did not happen.
#
# The difference is in what comes next. If the river changed once, the next year is about 850 as any of the last
# seventy; if it drifts, the low years at the end count for more.

# %%
after = bz.forecast(change, 10)
{"drift": ahead["mean"].iloc[0].round(), "change": after["mean"].iloc[0].round()}

# %% tags=["hide-cell"]
assert ahead["mean"].iloc[0] < after["mean"].iloc[0] - 40
assert after["sd"].iloc[9] < ahead["sd"].iloc[9]
