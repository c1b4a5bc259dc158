"""An exposure that was forgotten: what is only larger looks as if it were worse.

What breaks: Counts are of the time, or the number of people, over which they were taken. Without it a feature that goes
with that size takes its effect.

How it looks: The fit passes its gate, and the feature has a rate ratio far from 1. Where the size itself is among the
features, a note asks whether it is the exposure.

What to do: Give the column with `--exposure`. The rates are then of one unit of it.
"""

import numpy as np

import bayeszoo as bz

rng = np.random.default_rng(1)
Poisson = bz.find("poisson_regression")
crowded = rng.standard_normal(100)
people = 1000 * np.exp(crowded + 0.3 * rng.standard_normal(100))
table = {"crowded": crowded, "people": people, "accidents": rng.poisson(0.01 * people)}
counts = bz.read(Poisson, table, target="accidents", features=["crowded"])
rates = bz.read(Poisson, table, target="accidents", features=["crowded"], exposure="people")
ratios = [
    float(np.exp(bz.fit(Poisson.weak(data), data, "map", seed=1).posterior["w"][0, 0, 1])) for data in (counts, rates)
]
print(f"rate ratio of crowded, of counts: {ratios[0]:.2f}")
print(f"rate ratio of crowded, of counts per person: {ratios[1]:.2f}")
assert ratios[0] > 2
assert abs(ratios[1] - 1) < 0.1
