# %% [markdown]
# # The dishonest casino: hidden Markov models
#
# A casino rolls a fair die, and now and then exchanges it for a loaded one that shows a six half of the time. Of 300
# rolls the numbers are known and the dice are not (Durbin, Eddy, Krogh and Mitchison 1998, section 3.2). The rolls
# that come with the zoo are simulated, so that the truth can be drawn beside what is inferred.

# %%
from importlib import resources

import numpy as np
import pandas as pd

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]
DRAWS = 400  # of each of four chains: the fewest that the gate takes

Chain = bz.find("hmm_categorical")
rolls = bz.example(Chain, "dice")
die = pd.read_csv(resources.files("bayeszoo.models.data") / "dice.csv")["die"].to_numpy()
print(f"{len(die)} rolls, {np.sum(die == 'loaded')} of them of the loaded die")

# %% [markdown]
# ## The dice are known: who is rolling?
#
# With all tables known nothing is fitted. `bz.decode` runs the filter, the smoother and Viterbi's algorithm.

# %%
TRANSITION = [[0.95, 0.05], [0.1, 0.9]]
EMISSION = [[1 / 6] * 6, [0.1] * 5 + [0.5]]
casino = Chain(initial=[1, 0], transition=TRANSITION, emission=EMISSION)
states = bz.decode(casino, rolls)
for name in ("log_likelihood", "viterbi_log_joint", "expected_errors"):
    print(f"{name}: {states.attrs[name]:.4f}, exact")

# %% [markdown]
# The probability of the loaded die, over the rolls where it truly was: the shaded ones. Below it is the most probable
# path as a whole.

# %%
bz.plot_states(casino, rolls, truth=die)

# %% [markdown]
# The smoother says how many rolls it expects to have wrong. That is a claim about its own errors, and here it can be
# checked: a calibrated model is wrong about as often as it says.

# %%
loaded = die == "loaded"
wrong = {name: int(np.sum((states[name].astype(str) == "2").to_numpy() != loaded)) for name in ("state", "viterbi")}
print(f"rolls with the wrong die: {wrong}; expected of `state`: {states.attrs['expected_errors']:.1f}")
assert abs(wrong["state"] - states.attrs["expected_errors"]) < 25
assert max(wrong.values()) < loaded.sum()  # better than never suspecting the casino

# %% [markdown]
# ## The dice are known, their exchange is not
#
# How often does the casino change dice? EM climbs to the maximum (Baum and Welch), NUTS samples around it, on the
# forward algorithm with the states summed out. They stand side by side in one table.

# %%
learner = Chain(initial=[1, 0], emission=EMISSION)
em = bz.fit(learner, rolls, "map", seed=1)
nuts = bz.fit(learner, rolls, "nuts", seed=1, draws=DRAWS)
table = bz.compare([em, nuts])
table.pivot(index="parameter", columns="fit", values=["mean", "sd", "q025", "q975", "mcse_mean"]).dropna(
    axis=1, how="all"
)

# %%
draws = table[table["fit"] == "nuts"].set_index("parameter")
truth = {f"transition[{i + 1}, {j + 1}]": TRANSITION[i][j] for i in range(2) for j in range(2)}
assert (table["status"] == "ok").all()
assert all(draws.loc[name, "q025"] < value < draws.loc[name, "q975"] for name, value in truth.items())

# %% [markdown]
# The mode is nearer to the truth than the mean, and by luck: the posterior is skewed, and 300 rolls leave much open.
# With draws the picture has a band, between the 5% and the 95% quantile of the probability.

# %%
bz.plot_states(nuts, truth=die)

# %% [markdown]
# ## Nothing is known
#
# EM finds two dice from the rolls alone, without a word of doubt:

# %%
free = bz.fit(Chain(K=2), rolls, "map", seed=1)
emission = free["posterior"]["emission"].isel(chain=0, draw=0).to_pandas()
emission.round(3)

# %% tags=["hide-cell"]
assert emission["6"].max() > 0.4  # one of them likes sixes

# %% [markdown]
# The draws say how much of that to believe. Their chains agree on everything that does not depend on labels, so the
# fit passes its gate; they do not agree on which rolls are of the second die, so nothing is said about single dice:

# %%
drawn = bz.fit(Chain(K=2), rolls, "nuts", seed=1, draws=DRAWS)
print("status:", drawn.attrs["status"])
try:
    bz.decode(drawn)
except bz.Untrustworthy as reason:
    print("decode:", reason)
    withheld = True
assert drawn.attrs["status"] == "ok"
assert withheld

# %% [markdown]
# What will be rolled next does not depend on labels, and is given with its Monte Carlo error:

# %%
following = bz.forecast(drawn, 3)
following.filter(regex=r"p\[").T

# %% tags=["hide-cell"]
assert np.allclose(following.filter(regex=r"^p\[").sum(axis=1), 1)

# %% [markdown]
# 300 rolls find a die that likes sixes. They do not find out what else it likes. EM's single answer looks the same
# whether the data determine it or not.
