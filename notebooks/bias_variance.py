# %% [markdown]
# # Bias and variance: what a prior costs, and what it saves
#
# A prior pulls estimates away from the data. Over many training sets that makes predictions wrong on average, which is
# bias, and makes them depend less on the training set at hand, which is less variance. For squared loss the two and
# the noise add up to the expected error of a prediction (Hastie, Tibshirani and Friedman 2009, section 7.3; Bishop,
# *PRML*, section 3.2). Here they are measured by simulation, for ridge regression on polynomials of degree 9.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]
REPEATS, SIGMA, DEGREE = 300, 0.3, 9
Ridge = bz.find("ridge")
rng = np.random.default_rng(1)
x, new = np.linspace(-1, 1, 20), np.linspace(-1, 1, 50)


def truth(x):
    """Return the mean outcome at x."""
    return np.sin(3 * x)


# %% [markdown]
# ## Many training sets
#
# The twenty points stay, the outcomes are new in each set. All models are fitted to the same sets, so that their
# differences are not noise. The posterior mean of ridge regression is in closed form, and three hundred fits take a
# second.

# %%
training = truth(x) + SIGMA * rng.standard_normal((REPEATS, len(x)))
test = truth(new) + SIGMA * rng.standard_normal((REPEATS, len(new)))
labels = {"feature": np.array(["x"])}


def predictions(model):
    """Return the posterior mean at the new points after each training set, shape (REPEATS, points)."""
    sets = (model.statistics({"X": x[:, None], "y": y, **labels}) for y in training)
    return np.array([model.predictive(stats, {"X": new[:, None], **labels}).mean() for stats in sets])


# %% [markdown]
# ## Parts that add up
#
# The squared error of the mean prediction exceeds the squared bias by the variance divided by the number of sets,
# which is taken off. The last two columns are the error at new outcomes, which nobody told about bias and variance,
# and its Monte Carlo standard error.


# %%
def decomposition(predicted):
    """Split the mean squared error over test points."""
    variance = predicted.var(axis=0, ddof=1).mean()
    bias2 = np.square(predicted.mean(axis=0) - truth(new)).mean() - variance / REPEATS
    errors = np.square(test - predicted).mean(axis=1)
    return {
        "bias2": bias2,
        "variance": variance,
        "expected_error": bias2 + variance + SIGMA**2,
        "test_error": errors.mean(),
        "mcse": errors.std(ddof=1) / np.sqrt(REPEATS),
    }


taus = np.geomspace(0.01, 100, 9)
models = {tau: Ridge(tau=tau, sigma=SIGMA, s0=10.0, degree=DEGREE) for tau in taus}
table = pd.DataFrame({tau: decomposition(predictions(model)) for tau, model in models.items()}).T
table.rename_axis("tau").round(4)

# %% tags=["hide-cell"]
assert (abs(table["test_error"] - table["expected_error"]) < 4.4 * table["mcse"]).all()
design, points = (np.vander(values, DEGREE + 1, increasing=True) for values in (x, new))
for tau, row in table.iterrows():
    penalty = np.diag([(SIGMA / 10.0) ** 2] + [(SIGMA / tau) ** 2] * DEGREE)
    smoother = points @ np.linalg.solve(design.T @ design + penalty, design.T)  # predictions are this times y
    assert np.isclose(row["bias2"], np.square(smoother @ truth(x) - truth(new)).mean(), atol=0.003, rtol=0.05)
    assert np.isclose(row["variance"], SIGMA**2 * np.square(smoother).sum(axis=1).mean(), rtol=0.15)

# %% [markdown]
# ## The trade
#
# A narrow prior, to the left, makes all training sets predict nearly the same, and all of them wrongly. A wide one
# lets each follow its own noise. The least expected error lies between.

# %%
figure, axis = plt.subplots(layout="constrained")
for name in ("bias2", "variance", "expected_error"):
    axis.plot(taus, table[name], marker="o", label=name)
axis.errorbar(taus, table["test_error"], 2 * table["mcse"], fmt="x", color="gray", label="test_error, 2 mcse")
axis.set(xscale="log", yscale="log", xlabel="tau: prior standard deviation of the weights", ylabel="squared error")
_ = axis.legend()

# %% [markdown]
# ## Chosen without a test set
#
# Nobody knows the truth of real data. The evidence of one training set tells where to look all the same: the prior
# that makes it largest has an expected error near the least of the table.

# %%
chosen = [
    bz.empirical_bayes(models[taus[4]], bz.read(Ridge, (x[:, None], y)), over="tau", starts=2) for y in training[:3]
]
print("tau chosen by the evidence of three sets:", ", ".join(f"{found.model.tau:.2g}" for found in chosen))

# %%
best = table["expected_error"].idxmin()
at_chosen = decomposition(predictions(chosen[0].model))["expected_error"]
print(f"expected error {table.loc[best, 'expected_error']:.4f} at tau = {best:.2g}, {at_chosen:.4f} as chosen")

# %% tags=["hide-cell"]
assert all(found.status == "ok" for found in chosen)
assert taus[0] < best < taus[-1]
assert (np.diff(table["bias2"]) < 0.001).all()
assert (np.diff(table["variance"]) > 0).all()
assert at_chosen < 1.1 * table["expected_error"].min()
