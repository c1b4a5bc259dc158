# %% [markdown]
# # Classes
#
# A classifier says what class a row is of. A probabilistic one says how probable each class is, and leaves what to
# decide to what mistakes cost. This page looks at three of them, `logistic_regression`, `probit_regression` and
# `softmax_regression`: how they are related, what it changes to integrate over the weights, and what the perceptron is
# a special case of.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import Perceptron

import bayeszoo as bz

DRAWS = 400  # of each of four chains: the fewest that the gate takes
# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]

# %% [markdown]
# ## Logit and probit: two scales of one answer
#
# Finney saw whether the vessels of a finger contracted after a breath, by how much air was breathed and how fast.
# The logistic model's weights are log odds, those of the probit standard deviations of normal noise. A logistic noise
# has a standard deviation of 1.8, and the estimates of maximum likelihood differ by about that factor; the
# probabilities hardly differ at all.

# %%
Logistic, Probit = bz.find("logistic_regression"), bz.find("probit_regression")
breaths = bz.example(Probit)
estimates = {model.name: bz.fit(model(), breaths, "mle", seed=1) for model in (Logistic, Probit)}
weights = pd.DataFrame({name: tree.posterior["w"].to_series().to_numpy() for name, tree in estimates.items()})
weights.index = ["(intercept)", *breaths["feature"]]
weights["ratio"] = weights["logistic_regression"] / weights["probit_regression"]
weights.round(3)

# %%
chances = {name: bz.classify(tree)["p[1]"].to_numpy() for name, tree in estimates.items()}
apart = np.abs(chances["logistic_regression"] - chances["probit_regression"])
pd.Series(apart).describe()[["mean", "max"]].round(4)

# %% tags=["hide-cell"]
np.testing.assert_allclose(weights["logistic_regression"], [-2.875, 5.179, 4.562], atol=1e-3)
assert weights["ratio"].between(1.8, 1.95).all()
assert apart.max() < 0.05

# %% [markdown]
# Where they do differ is far out. The log density of a row on the wrong side falls in a straight line under the
# logistic model, and with the square of its distance under the probit, which one wrong label therefore bends.
#
# ## Softmax: more than two classes
#
# With K classes each has weights of its own, and only their differences matter. With two classes and symmetric coding
# the difference of two weights N(0, tau^2) is N(0, 2 tau^2), and the model is logistic regression with that prior.

# %%
Softmax = bz.find("softmax_regression")
both = bz.fit(Softmax(tau=1.0, s0=3.0), {"X": breaths["X"], "y": breaths["y"]}, "map", seed=1)
one = bz.fit(Logistic(tau=2**0.5, s0=3 * 2**0.5), breaths, "map", seed=1)
contrast, single = both["derived"]["contrast"].to_numpy().ravel(), one.posterior["w"].to_numpy().ravel()
pd.DataFrame({"softmax, contrast": contrast, "logistic, w": single}, index=weights.index).round(6)

# %% tags=["hide-cell"]
np.testing.assert_allclose(contrast, single, atol=1e-9)

# %% [markdown]
# What alligators eat depends on their lake and size. Against fish, a small alligator's odds of invertebrates are 4.3
# times those of a large one in the same lake (Agresti 2007, section 6.1). A fit to all 219 knows its own rows
# better than others, so each is judged by what the other 218 say of it. Under a wider prior some of them move the
# weights so much that draws of the whole fit cannot tell, and `classify` withholds these.

# %%
food = bz.example(Softmax)
alligators = bz.fit(Softmax(tau=1.0, s0=3.0), food, "nuts", draws=DRAWS, seed=1)
known, left_out = bz.classify(alligators), bz.classify(alligators, leave_one_out=True)
names = {
    "share of wrong decisions": "loss_of_one",
    "log score": "log_score_of_one",
    "Brier score": "brier_score_of_one",
}
scores = {title: {"fitted": known.attrs[key], "left out": left_out.attrs[key]} for title, key in names.items()}
pd.DataFrame(scores).T.round(3)

# %%
bz.plot_calibration(left_out, bins=5)
plt.show()

# %% tags=["hide-cell"]
by_likelihood = bz.fit(Softmax(coding="reference"), food, "mle", seed=1)
ratios = by_likelihood["derived"]["odds_ratio"].sel(pair="invertebrate / fish", slope="size[small]")
assert abs(float(ratios.item()) - 4.298) < 1e-3
assert left_out.attrs["rows_withheld"] == 0
assert left_out.attrs["log_score_of_one"] < known.attrs["log_score_of_one"]

# %% [markdown]
# ## Integrated, or plugged in
#
# On the morning of the Challenger's last flight it was 31 degrees F, 22 degrees colder than at any launch before. The
# mode of the weights, plugged in, is nearly sure that an O-ring will be in distress. The posterior holds other slopes
# as well, and the probability averaged over these is nearer to a half, the more so the further out the row is.

# %%
flights = bz.example(Logistic, "challenger")
model = Logistic.weak(flights)
fits = {method: bz.fit(model, flights, method, seed=1) for method in ("exact", "map", "mle")}
cold = {"temperature": [31.0, 45.0, 60.0, 75.0, 90.0]}
table = pd.DataFrame({name: bz.classify(tree, cold)["p[1]"].to_numpy() for name, tree in fits.items()})
table.set_index(pd.Index(cold["temperature"], name="temperature")).round(4)

# %% tags=["hide-cell"]
assert (table.loc[0, ["map", "mle"]] > table.loc[0, "exact"]).all()
assert (table.loc[4, ["map", "mle"]] < table.loc[4, "exact"]).all()

# %% [markdown]
# Which of them is right? If weights are drawn from the prior and rows from the weights, the integrated probabilities
# are: of all rows with a probability of 0.9, nine in ten have the class. Plugged-in ones claim too much. Sixty data
# sets of six rows, with 200 further rows each:

# %%
rng, prior = np.random.default_rng(1), Logistic(intercept=False, tau=2.0)
claims = {"exact": [], "map": []}
for _ in range(60):
    w, X = 2.0 * rng.standard_normal(2), rng.standard_normal((206, 2))
    y = rng.binomial(1, expit(X @ w))
    for method, rows in claims.items():
        tree = bz.fit(prior, (X[:6], y[:6]), method, seed=1)
        p = bz.classify(tree, X[6:])["p[1]"].to_numpy()
        rows.append(np.column_stack([np.maximum(p, 1 - p), np.where(p > 0.5, y[6:], 1 - y[6:])]))
claims = {method: np.concatenate(rows) for method, rows in claims.items()}
bins = np.linspace(0.5, 1, 6)
said = {
    method: pd.DataFrame(rows, columns=["claimed", "came true"]).groupby(pd.cut(rows[:, 0], bins)).mean()
    for method, rows in claims.items()
}
pd.concat(said, axis=1).round(3)

# %% tags=["hide-cell"]
highest = {method: frame.iloc[-1] for method, frame in said.items()}
assert abs(highest["exact"]["claimed"] - highest["exact"]["came true"]) < 0.02
assert highest["map"]["claimed"] - highest["map"]["came true"] > 0.03

# %% [markdown]
# ## What to decide
#
# A launch with distress may cost a hundred times a launch that is put off for nothing; a closer look costs a little
# less than putting it off. The decision of least expected loss is not that of the most probable class.

# %%
plans = {"temperature": [45.0, 60.0, 66.0, 70.0, 81.0, 95.0]}
costs = {
    "mistakes alike": bz.classify(fits["exact"], plans),
    "distress 100 times": bz.classify(fits["exact"], plans, loss=[[0, 1], [100, 0]]),
    "... with a closer look": bz.classify(fits["exact"], plans, loss=[[0, 1], [100, 0]], reject=0.8),
}
choices = pd.DataFrame({name: frame["decision"].to_numpy() for name, frame in costs.items()})
choices.insert(0, "p", costs["mistakes alike"]["p[1]"].to_numpy())
choices.set_index(pd.Index(plans["temperature"], name="temperature")).round(3)

# %% tags=["hide-cell"]
assert choices["mistakes alike"].tolist() == ["1", "1", *["0"] * 4]
assert choices["distress 100 times"].iloc[:4].tolist() == ["1"] * 4
assert "reject" in choices["... with a closer look"].tolist()

# %% [markdown]
# ## The perceptron and the Bayes point
#
# Rosenblatt's perceptron looks for any direction that separates the classes, and stops at the first that does. All such
# directions are the version space; in two dimensions it is an arc. Under a probit model whose prior is very wide, the
# noise does not matter: every direction is as probable as any other that separates, and none of the others is possible.
# The posterior is uniform on the arc, and its evidence is the share of the circle that the arc has. The centre of the
# version space is the Bayes point (Herbrich, Graepel and Campbell 2001).

# %%
rng = np.random.default_rng(7)
X, right = rng.standard_normal((14, 2)), np.array([1.0, 0.6])
X = X[np.abs(X @ right) > 0.25 * np.hypot(*right)]
y = (X @ right > 0).astype(int)
about = np.arctan2(right[1], right[0])
sides = np.angle(np.exp(1j * (np.arctan2(*((2 * y - 1)[:, None] * X).T[::-1]) - about)))
low, high = about + sides.max() - np.pi / 2, about + sides.min() + np.pi / 2
low, high

# %%
angles, evidences = {}, {}
for tau in (1.0, 10.0, 100.0):
    tree = bz.fit(Probit(intercept=False, tau=tau), (X, y), "exact", seed=1)
    w = tree.posterior["w"].to_numpy().reshape(-1, 2)
    angles[tau], evidences[tau] = np.arctan2(w[:, 1], w[:, 0]), tree["exact"].attrs["log_evidence"]
rows = {tau: [evidences[tau], a.mean(), a.std(), np.mean((low < a) & (a < high))] for tau, a in angles.items()}
rows["limit"] = [np.log((high - low) / (2 * np.pi)), (low + high) / 2, (high - low) / 12**0.5, 1.0]
limits = pd.DataFrame(rows, index=["log evidence", "mean angle", "its sd", "share inside"]).T.rename_axis("tau")
limits.round(4)

# %%
found = {}
for seed in range(20):
    machine = Perceptron(fit_intercept=False, tol=None, max_iter=1000, random_state=seed).fit(X, y)
    found[seed] = float(np.arctan2(*machine.coef_[0][::-1]))
perceptrons = np.array(list(found.values()))
figure, axes = plt.subplots(figsize=(6.4, 3))
axes.hist(angles[100.0], bins=40, density=True, color="0.8", label="posterior, tau = 100")
axes.hlines(1 / (high - low), low, high, color="C0", label="uniform on the version space")
axes.plot(perceptrons, np.full(len(perceptrons), 0.1), "k|", ms=12, label="perceptrons")
axes.axvline((low + high) / 2, color="C1", label="Bayes point")
axes.set(xlabel="angle of the direction", ylabel="density")
axes.legend(fontsize="small")
plt.show()

# %% tags=["hide-cell"]
assert abs(limits.loc[100.0, "log evidence"] - limits.loc["limit", "log evidence"]) < 2e-3
assert limits.loc[100.0, "share inside"] > 0.99 > limits.loc[1.0, "share inside"]
assert abs(limits.loc[100.0, "mean angle"] - limits.loc["limit", "mean angle"]) < 0.02
assert abs(limits.loc[100.0, "its sd"] / limits.loc["limit", "its sd"] - 1) < 0.05
assert ((low < perceptrons) & (perceptrons < high)).all()
assert np.ptp(perceptrons) > 0.1

# %% [markdown]
# Each perceptron is in the version space, somewhere: where depends on the order of the rows. None says how sure it is.
# The posterior does: the probability of a class of a new row is the share of the version space that votes for it.

# %%
new = np.column_stack([np.cos(np.arange(6)), np.sin(np.arange(6))])
chance = bz.classify(tree, new)["p[1]"].to_numpy()
every = np.linspace(low, high, 10_001)
votes = (new @ np.stack([np.cos(every), np.sin(every)]) > 0).mean(axis=1)
pd.DataFrame({"posterior": chance, "share of the version space": votes}).round(3)

# %% tags=["hide-cell"]
np.testing.assert_allclose(chance, votes, atol=0.02)
