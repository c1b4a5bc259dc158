"""A published prior, and exposures in other units.

What breaks: The prior of `rate` that is published for the pumps is of thousands of hours: a tenth on average, and
hardly above ten. With exposures in hours it says the same of hours, where the data ask for about a thousand. `rate`
is the exposure that the other groups count for, so that prior forbids the groups to learn from each other.

How it looks: The fit passes its gate, as the posterior is that of the model. But hours give another answer than
thousands of hours. It is near what each pump says by itself, and pumps that failed once are moved the most.

What to do: Change the fields with the units, here `b2` by the factor 1000, or leave them out: the prior is then
scaled to the exposures, and other units give the same answer in other units.
"""

import numpy as np

import bayeszoo as bz

Groups = bz.find("gamma_poisson_groups")
pumps = bz.example(Groups)
thousands = {name: np.asarray(pumps[name]) for name in ("y", "exposure", "group")}
hours = {**thousands, "exposure": 1000 * thousands["exposure"]}


def failures(table, unit, **fields):
    """Return posterior means of the failures in a thousand hours."""
    data = bz.read(Groups, table)
    tree = bz.fit(Groups(**fields) if fields else Groups.weak(data), data, "exact", seed=1)
    return tree["exact"]["lam"].sel(statistic="mean").to_numpy() / unit


published = {"a0": 1.0, "b1": 0.1, "b2": 1.0}
rates = {
    "each pump by itself": thousands["y"] / thousands["exposure"],
    "published prior, 1000 hours": failures(thousands, 1, **published),
    "published prior, hours": failures(hours, 1e-3, **published),
    "scaled prior, 1000 hours": failures(thousands, 1),
    "scaled prior, hours": failures(hours, 1e-3),
}
print("failures in 1000 hours: pump      1      2      7     10")
for name, each in rates.items():
    print(f"{name:28s}", *(f"{each[pump - 1]:6.3f}" for pump in (1, 2, 7, 10)))

_, right, wrong, scaled, also = rates.values()
assert np.max(np.abs(wrong / right - 1)) > 0.2
assert np.max(np.abs(also / scaled - 1)) < 1e-6
