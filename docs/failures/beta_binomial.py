"""Groups that are all alike.

What breaks: Three groups with the same share of successes. They say that their chances are close to each other, and
nothing of how close: the likelihood grows with `size` without end, to that of one chance for all.

How it looks: The MLE is refused, as there is none. In the exact posterior `size` has the tail of its prior, whose
mean is infinite: its mean and sd are withheld and shown as "-", its quantiles are not. The chances are sure.

What to do: Read quantiles of `size`, and the chances. A larger `shape` says before the data how near to each other
the chances may be. If one chance for all is what you believe, take `beta_bernoulli` of all trials.
"""

import math

import bayeszoo as bz

BetaBinomial = bz.find("beta_binomial")
alike = bz.read(BetaBinomial, {"successes": [5, 5, 5], "trials": [10, 10, 10], "group": ["a", "b", "c"]})
try:
    bz.fit(BetaBinomial(), alike, "mle", seed=1)
    refused = ""
except bz.NumericalError as error:
    refused = str(error)
print(refused)
tree = bz.fit(BetaBinomial(), alike, "exact", seed=1)
size = dict(zip(tree["exact"]["statistic"].to_numpy().tolist(), tree["exact"]["size"].to_numpy().tolist(), strict=True))
chance = tree["exact"]["theta"].sel(group="a").to_numpy()
print("size ", {name: round(value, 2) for name, value in size.items()})
print("theta", dict(zip(size, chance.round(3).tolist(), strict=True)))

assert "size runs off to inf" in refused
assert tree.attrs["status"] == "ok"
assert math.isnan(size["mean"])
assert size["q975"] > 100 * size["median"]
assert abs(chance[0] - 0.5) < 1e-6
