"""A noise that is not the same everywhere.

What breaks: Rows whose noise changes with the feature. The model has one sigma: where the noise is small the band is
too wide, where it is large too narrow. And far beyond the rows the function is the prior, whatever the rows say.

How it looks: The band of new rows before the impact is as wide as during it, and holds every row there; the residuals
of the first rows are all tiny.

What to do: Fit the ranges apart, or transform the outcome; judge the band where it matters, not on average. Do not
predict further from the rows than a length.
"""

import numpy as np

import bayeszoo as bz

Process = bz.find("gaussian_process")
data = bz.example(Process)
tree = bz.fit(Process.weak(data), data, "exact", seed=1)
rows = bz.predict(tree, data)
covered = (rows["observed"] > rows["q025"]) & (rows["observed"] < rows["q975"])
early = data["X"][:, 0] < 13
share = rows["observed"][early].std() / rows["sd"][early].mean()
print(f"{covered[early].mean():.0%} of {early.sum()} rows before the impact are in their 95% intervals")
print(f"their spread is {share:.2f} of what the model says; during it, {covered[~early].mean():.0%} are covered")
far = bz.predict(tree, {"milliseconds": np.array([57.0, 70.0, 100.0])})
print("width of the 95% interval at 57, 70 and 100 ms:", (far["q975"] - far["q025"]).round().tolist())

assert covered[early].all()
assert share < 0.2
assert far["sd"].iloc[2] > 2 * far["sd"].iloc[0]
