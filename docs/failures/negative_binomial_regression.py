"""An exposure that is left out.

What breaks: Rows that were observed for longer have more events. Without the exposure that difference is taken for
overdispersion, or for an effect of whatever goes with it: here a feature is larger in larger wards, and the rate
itself depends on nothing.

How it looks: The fit passes its gate. phi is small, so that counts seem to vary far more than Poisson's, and a weight
whose true value is 0 is many standard errors from it. With the exposure phi is large, and the weight is about 0.

What to do: Give the column of how long or how much each row was observed with `--exposure`. A phi that is far smaller
than that of rows that were observed equally long asks for the reason; so does a weight of about 1 of a log of a size.
"""

import numpy as np

import bayeszoo as bz

Counts = bz.find("negative_binomial_regression")
rng = np.random.default_rng(1)
beds = np.exp(rng.normal(3, 1, 100))
share = np.log(beds) + rng.normal(0, 0.5, 100)
table = {"falls": rng.poisson(0.2 * beds), "share": share}
estimates = {}
for name, more in (("without the exposure", {}), ("with the exposure", {"exposure": beds})):
    data = bz.read(Counts, {**table, **more}, target="falls")
    tree = bz.fit(Counts.weak(data), data, "map", seed=1)
    estimates[name] = tree.posterior["w"].sel(term="share").item(), tree.posterior["phi"].item()
    print(f"{name:21s} weight {estimates[name][0]:6.3f}, phi {estimates[name][1]:6.2f}")

(wrong, few), (right, many) = estimates.values()
assert wrong > 0.5
assert abs(right) < 0.1
assert many > 3 * few
