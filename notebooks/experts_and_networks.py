# %% [markdown]
# # Experts and networks: one curve by two lines and a gate, by hidden units, by a process, and in steps
#
# An engine that burns ethanol leaves nitrogen oxides `NOx` (Brinkman 1981): they rise with the equivalence ratio `E` of
# air and fuel up to about .93, and fall above it. Three models are told nothing of that. A mixture of experts has two
# lines and a gate that switches between them, a neural network has three soft steps, and a Gaussian process has a
# kernel.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import bayeszoo as bz

# %matplotlib inline
# %config InlineBackend.figure_formats = ["svg"]

# %%
DRAWS = 400  # of each of four chains: the fewest that the gate takes
Experts, Network, Process = map(bz.find, ("mixture_of_experts", "neural_network", "gaussian_process"))
rows = bz.example(Experts)
fits = {
    "experts": bz.fit(Experts.weak(rows), rows, "nuts", seed=1, draws=DRAWS),
    "network": bz.fit(Network.weak(rows), rows, "nuts", seed=1, draws=DRAWS),
    "process": bz.fit(Process.weak(rows), rows, "map", seed=1),
}
places = {"E": np.linspace(0.55, 1.25, 57)}
curves = {name: bz.predict(tree, places) for name, tree in fits.items()}

# %%
figure, axes = plt.subplots(figsize=(7, 3.6))
axes.scatter(rows["X"][:, 0], rows["y"], s=8, color="0.6")
for name, curve in curves.items():
    axes.plot(places["E"], curve["mean"], label=name)
axes.set(xlabel="equivalence ratio", ylabel="NOx")
axes.legend()
plt.show()

# %% [markdown]
# The three agree where there are rows. They differ at the top, where experts have a corner that the gate rounds off.

# %%
means = pd.DataFrame({name: curve["mean"] for name, curve in curves.items()})
means.iloc[::8].round(2).assign(E=places["E"][::8].round(2))

# %% tags=["hide-cell"]
assert np.max(np.abs(means["network"] - means["process"])) < 0.5
assert np.max(np.abs(means["experts"] - means["process"])) < 1.0

# %% [markdown]
# ## What may be read, and what not
#
# The experts have parameters that mean something: the slope of each line, and where the gate switches, which is where
# the log odds of the two are 0. The units of a network have no order and no sign: 48 modes are alike, draws of single
# weights are not shown, and the gate of the fit judges the function.

# %%
gate = fits["experts"]["posterior"]["gate"].to_numpy()[..., 0].reshape(-1, 2)
switch = Experts.weak(rows).center[0] - gate[:, 0] / gate[:, 1]
np.quantile(switch, [0.025, 0.5, 0.975]).round(3).tolist()

# %% [markdown]
# ## The same curve in steps
#
# A regression tree is told nothing of a curve either. It cuts the equivalence ratio in two, and the parts again, and is
# constant on each part. Where it is cut is not known: the exact answer sums over all trees of at most five cuts on the
# way to a leaf. The average over trees bends, where each of them jumps.

# %%
Tree = bz.find("regression_tree")
tree = bz.fit(Tree.weak(rows), rows, "exact", seed=1)
bz.plot_function(tree)
plt.show()

# %% [markdown]
# One tree explains little: the most probable of all has a small probability. What many trees agree on is how often the
# curve is cut, and about where.

# %%
answer = bz.steps(tree)
print(answer.drawing)
print("probability of this tree:", round(answer.tree_probability[0], 4))

# %%
answer.leaves.query("probability > .02").round(3).T

# %% [markdown]
# A smooth curve is no sum of few steps, and the evidence says so: it prefers the process, and both to a line.

# %%
Line = bz.find("linear_regression")
line = bz.fit(Line.weak(rows), rows, "exact", seed=1)
process = bz.fit(Process.weak(rows), rows, "exact", seed=1)
evidence = {name: bz.facts(fit)["log_evidence"] for name, fit in (("tree", tree), ("line", line), ("process", process))}
pd.Series(evidence).round(1)

# %% tags=["hide-cell"]
assert evidence["process"] > evidence["tree"] + 5 > evidence["line"] + 5
assert answer.tree_probability[0] < 0.2
in_steps = bz.function_values(tree, places)["mean"]
assert np.max(np.abs(in_steps.to_numpy() - means["process"].to_numpy())[8:-8]) < 1.0

# %% [markdown]
# The gate of each fit has passed: of the network it has judged the function.

# %%
{name: tree.attrs["status"] for name, tree in fits.items()}

# %% tags=["hide-cell"]
assert all(tree.attrs["status"] == "ok" for tree in fits.values())
assert 0.85 < np.median(switch) < 1.0
