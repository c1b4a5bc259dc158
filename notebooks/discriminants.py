# %% [markdown]
# # Discriminants
#
# Where classes are Gaussian clouds, the best boundary between them is known. This page goes from Fisher's line of 1936
# to what else the textbooks draw between classes: the perpendicular bisector, least squares on indicators and what they
# mask, one line for each class against the rest, and the widest margin.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVC

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]

# %% [markdown]
# ## Fisher's direction
#
# Of two classes with one covariance, the direction Sigma^-1 (mu_1 - mu_2) separates the means the most, in units of the
# spread within classes. Fisher measured it by hand on 100 flowers of *Iris setosa* and *Iris versicolor*.

# %%
Discriminant, Softmax = bz.find("gaussian_discriminant"), bz.find("softmax_regression")
iris = bz.example(Discriminant)


def of_classes(data, classes):
    """Return the rows of some of the classes."""
    kept = np.isin(data["y"], classes)
    codes = np.searchsorted(classes, data["y"][kept])
    rows = {"y": codes, "reals": data["reals"][kept], "real": data["real"], "class": data["class"][classes]}
    return bz.read(Discriminant, rows)


two = of_classes(iris, [0, 1])
estimate = bz.fit(Discriminant(covariance="tied"), two, "mle")
direction = estimate["derived"]["direction"].to_numpy().ravel()
pd.DataFrame({"ours": direction / direction[0], "Fisher 1936": [1, 5.9037, -7.1299, -10.1036]}, index=two["real"])

# %% tags=["hide-cell"]
np.testing.assert_allclose(direction / direction[0], [1, 5.9037, -7.1299, -10.1036], rtol=3e-5)

# %% [markdown]
# The estimate is a number; the posterior says how sure it is.

# %%
model = Discriminant.weak(two).replaced(covariance="tied")
posterior = bz.fit(model, two, "exact", seed=1)
draws = posterior["derived"]["direction"].to_numpy().reshape(-1, 4)
ratios = draws[:, 1:] / draws[:, :1]
pd.DataFrame(
    np.quantile(ratios, [0.025, 0.5, 0.975], axis=0), index=["2.5%", "median", "97.5%"], columns=two["real"][1:]
)

# %% [markdown]
# Ratios to the first coefficient are wide: it is near zero in some draws. The decision is not: what a row is given to
# hardly depends on it.
#
# ## Three species
#
# Of K classes with one covariance, all that decides lies in K - 1 discriminant coordinates. The boundaries are straight
# lines in their plane; the pale ones are of 50 draws from the posterior.

# %%
tied = bz.fit(Discriminant.weak(iris).replaced(covariance="tied"), iris, "exact", seed=1)
bz.plot_discriminants(tied)
plt.show()

# %% [markdown]
# Three of 150 flowers are on the wrong side, also when each is left out. The class given the features of this model is
# a softmax of linear functions, as `softmax_regression` has it. That model does not say how the features are
# distributed, and needs more rows for the same certainty; where the features are no Gaussian clouds it does not
# mislead. Here it is at the mode of its weights, and sees the rows that it was fitted to.

# %%
flowers = bz.example(Softmax, "iris")
soft = bz.fit(Softmax.weak(flowers), flowers, "map", seed=1)
errors = {}
for name, tree in {"gaussian_discriminant, tied": tied, "softmax_regression": soft}.items():
    frame = bz.classify(tree, leave_one_out=tree is tied)
    errors[name] = int((frame["decision"] != frame["observed"]).sum())
errors

# %% tags=["hide-cell"]
assert errors["gaussian_discriminant, tied"] == 3
assert errors["softmax_regression"] <= 4

# %% [markdown]
# ## The perpendicular bisector
#
# With one variance in all directions, the same in both classes, and even shares, the boundary of two classes is the
# perpendicular bisector of their means: what is nearer to a mean belongs to it. The second species is shrunk about its
# mean here, so that both spread alike.

# %%
centre = two["reals"][two["y"] == 1].mean(axis=0)
spreads = [two["reals"][two["y"] == k].var(axis=0).sum() for k in (0, 1)]
shrunk = centre + (two["reals"] - centre) * (spreads[0] / spreads[1]) ** 0.5
alike = {**two.arrays, "reals": np.where(two["y"][:, None] == 1, shrunk, two["reals"])}
spherical = bz.fit(Discriminant(covariance="spherical", alpha=1e9), alike, "mle")
means = spherical["posterior"]["means"].to_numpy()[0, 0]
spread = spherical["posterior"]["covariances"].to_numpy()[0, 0]
grid = np.random.default_rng(0).normal(means.mean(axis=0), 2.0, (400, 4))
nearer = np.argmin(((grid[:, None] - means) ** 2).sum(axis=2), axis=1)
decided = bz.classify(spherical, dict(zip(two["real"], grid.T, strict=True)))["decision"].to_numpy()
spread, np.mean(decided == two["class"][nearer])

# %% tags=["hide-cell"]
assert (decided == two["class"][nearer]).all()

# %% [markdown]
# Where the classes spread differently the boundary is a sphere about the one that spreads less.
#
# ## Least squares on indicators
#
# A regression of 0/1 indicators of the classes, with the largest fitted value as the decision, looks harmless. Three
# classes in a row along a line show what it does: the fitted value of the middle class is flat, and never the largest.

# %%
rng = np.random.default_rng(1)
y = np.repeat([0, 1, 2], 100)
x = rng.normal(3.0 * y, 0.7)
indicators = np.eye(3)[y]
line = LinearRegression().fit(x[:, None], indicators)
by_least_squares = line.predict(x[:, None]).argmax(axis=1)
rows = pd.DataFrame({"y": np.array(list("abc"))[y], "x": x})
gaussian = bz.fit(Discriminant.weak(bz.read(Discriminant, rows)).replaced(covariance="tied"), rows, "exact", seed=1)
by_bayes = bz.classify(gaussian)["decision"].to_numpy()
wrong = {
    "least squares": np.mean(by_least_squares != y),
    "tied Gaussians": np.mean(by_bayes != np.array(list("abc"))[y]),
}
wrong["middle class by least squares"] = np.mean(by_least_squares == 1)
wrong

# %%
figure, axes = plt.subplots(figsize=(6.4, 3))
places = np.linspace(x.min(), x.max(), 200)
for k, values in enumerate(line.predict(places[:, None]).T):
    axes.plot(places, values, color=f"C{k}", label="abc"[k])
axes.plot(x, np.full(len(x), -0.1), "k|", ms=5)
axes.set(xlabel="x", ylabel="fitted indicator")
axes.legend(title="class")
plt.show()

# %% tags=["hide-cell"]
assert wrong["middle class by least squares"] < 0.05
assert wrong["least squares"] > 0.3
assert wrong["tied Gaussians"] < 0.05

# %% [markdown]
# ## One against the rest
#
# K lines, each of one class against all others, leave regions that no line claims, and regions that two claim. A model
# of all classes has one decision everywhere.

# %%
flat = iris["reals"][:, [2, 3]]
names = iris["real"][[2, 3]]
sides = []
for k in range(3):
    labels = np.where(iris["y"] == k, "this", "rest")
    one = bz.read(Discriminant, pd.DataFrame({"y": labels, names[0]: flat[:, 0], names[1]: flat[:, 1]}))
    tree = bz.fit(Discriminant.weak(one).replaced(covariance="tied"), one, "exact", seed=1)
    mesh = np.stack(np.meshgrid(np.linspace(0, 8, 80), np.linspace(0, 3, 80)), axis=-1).reshape(-1, 2)
    sides.append(bz.classify(tree, dict(zip(names, mesh.T, strict=True)))["decision"].to_numpy() == "this")
claimed = np.sum(sides, axis=0)
pd.Series(claimed).value_counts(normalize=True).sort_index().rename_axis("classes that claim a place").round(3)

# %% tags=["hide-cell"]
assert np.mean(claimed == 0) > 0.02
assert np.mean(claimed == 1) > 0.3

# %% [markdown]
# ## The widest margin
#
# Where a line separates two classes without an error, the widest margin is between the closest points of their convex
# hulls. A support vector machine finds the same line.

# %%
setosa, versicolor = (iris["reals"][iris["y"] == k][:, :2] for k in (0, 1))
versicolor = versicolor - np.array([0.0, 0.6])  # apart in these two columns
first, second = len(setosa), len(versicolor)


def distance(v):
    """Return the squared distance of a point of each hull, both given by shares of their rows."""
    return ((setosa.T @ v[:first] - versicolor.T @ v[first:]) ** 2).sum()


sums = [{"type": "eq", "fun": lambda v: v[:first].sum() - 1}, {"type": "eq", "fun": lambda v: v[first:].sum() - 1}]
start = np.r_[np.full(first, 1 / first), np.full(second, 1 / second)]
options = {"maxiter": 1000, "ftol": 1e-14}
shares = minimize(distance, start, bounds=[(0, 1)] * len(start), constraints=sums, method="SLSQP", options=options).x
ends = setosa.T @ shares[:first], versicolor.T @ shares[first:]
machine = SVC(kernel="linear", C=1e9, tol=1e-9).fit(
    np.vstack([setosa, versicolor]), np.repeat([1, -1], [first, second])
)
margins = {"closest points of the hulls": np.linalg.norm(ends[0] - ends[1])}
margins["2 / norm of the machine's weights"] = 2 / np.linalg.norm(machine.coef_)
margins

# %% tags=["hide-cell"]
np.testing.assert_allclose(*margins.values(), rtol=1e-4)
w = (ends[0] - ends[1]) / np.linalg.norm(ends[0] - ends[1])
assert abs(w @ machine.coef_[0]) / np.linalg.norm(machine.coef_) > 1 - 1e-6

# %% [markdown]
# The margin hangs on a few rows at the edge of the clouds, Fisher's line on the means and the covariance of all. Which
# is better depends on whether the clouds are what they look like.
