"""Columns that say the same.

What breaks: A column twice, once in Fahrenheit. The data determine a sum of two weights, and nothing of their
difference.

How it looks: Each weight is uncertain; their sum is sharp. `bz.identified` names the combinations that the data
identify, and a fit's notes say it.

What to do: Leave one column out, or report the sum. Predictions are sound either way.
"""

import numpy as np

import bayeszoo as bz

Ridge = bz.find("ridge")
temperature = np.array([10.0, 15.0, 18.0, 21.0, 25.0, 30.0, 32.0])
table = {"ozone": [12.0, 20, 21, 30, 41, 60, 62], "celsius": temperature, "fahrenheit": 32 + 1.8 * temperature}
data = bz.read(Ridge, table, target="ozone")
model = Ridge.weak_with(data, {"sigma": 4.0})
tree = bz.fit(model, data, "exact", seed=1)
print(bz.compare([tree])[["parameter", "mean", "sd"]].round(3).to_string(index=False))
print(bz.identified(model, data).round(3).to_string())
w = tree["posterior"]["w"].to_numpy().reshape(-1, 3)
total = w[:, 1] + 1.8 * w[:, 2]
print(f"celsius + 1.8 fahrenheit: {total.mean():.3f} +- {total.std():.3f}, from {len(total)} draws")

assert total.std() < 0.2 * w[:, 1].std()
