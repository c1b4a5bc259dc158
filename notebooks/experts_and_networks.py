# %% [markdown]
# # Experts and networks: one curve by two lines and a gate, by hidden units, and by a process
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
# The gate of each fit has passed: of the network it has judged the function.

# %%
{name: tree.attrs["status"] for name, tree in fits.items()}

# %% tags=["hide-cell"]
assert all(tree.attrs["status"] == "ok" for tree in fits.values())
assert 0.85 < np.median(switch) < 1.0
