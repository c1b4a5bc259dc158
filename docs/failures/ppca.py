"""Columns in different units.

What breaks: The noise is alike in all columns, so the model depends on their units. Ozone in parts per billion varies
by tens, wind in miles an hour by three: the factors are those of the columns with large numbers, and wind is taken
for noise or fitted to the last digit.

How it looks: The fit passes its gate. In other units the loadings are not the same loadings in other units: here the
share of the variance of wind that the factor explains goes from a thousandth to nearly a half.

What to do: Bring columns to a common scale before the fit when their units have nothing to do with each other, and
say that you did.
"""

import numpy as np

import bayeszoo as bz

Ppca = bz.find("ppca")
Y = bz.example(Ppca, "airquality")["Y"]
whole = Y[~np.isnan(Y).any(axis=1)]
names, explained = ["Ozone", "Solar.R", "Wind", "Temp"], {}
for what, rows in (("as they are", whole), ("divided by their sd", whole / whole.std(axis=0))):
    data = bz.read(Ppca, rows)
    at = bz.fit(Ppca.weak_with(data, {"q": 1}), data, "mle", seed=1)["posterior"].isel(chain=0, draw=0)
    signal = np.square(at["loadings"].to_numpy()).sum(axis=1)
    explained[what] = signal / (signal + at["variance"].item())
    print(what, dict(zip(names, explained[what].round(3).tolist(), strict=True)))

wind = [shares[2] for shares in explained.values()]
assert wind[0] < 0.1
assert wind[1] > 0.3
