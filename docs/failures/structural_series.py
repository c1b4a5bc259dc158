"""Seasons that grow with the level.

What breaks: The effects of seasons are added to the level. Where they are a share of it, as of numbers of passengers
that double, they grow, and constant effects are too large for the first years and too small for the last.

How it looks: The summers of the last years lie above the forecast, and its winters below.

What to do: take logarithms, whose effects are shares; or let the season move, `--set "variances=level + season"`.
"""

from pathlib import Path

import numpy as np

import bayeszoo as bz
from bayeszoo import models

Series = bz.find("structural_series")
passengers = np.genfromtxt(Path(models.__file__).parent / "data" / "airline.csv", delimiter=",", names=True, dtype=None)
errors = {}
for column in ("passengers", "log_passengers"):
    y = passengers[column].astype(float)
    data = bz.read(Series, {"y": y[:132]})
    ahead = bz.forecast(bz.fit(Series.weak(data), data, "map", seed=1), 12)
    means = ahead["mean"] if column == "passengers" else np.exp(ahead["mean"])
    errors[column] = float(np.sqrt(np.mean((means - passengers["passengers"][132:]) ** 2)))
    print(f"{column}: forecasts of 1960 are off by {errors[column]:.0f} thousand")
assert errors["log_passengers"] < 0.6 * errors["passengers"]
