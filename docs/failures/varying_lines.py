"""Lines that are parallel.

What breaks: Groups whose slopes are equal. Their least-squares slopes still differ by chance, and the likelihood is
highest at a small standard deviation of the slopes and a correlation of -1 or 1: at the edge, where there is no such
correlation.

How it looks: The maximum of the likelihood says that whoever starts higher rises less, without exception. The posterior
says that of the correlation next to nothing is known.

What to do: NUTS, which averages over all that the data leave open; and the interval of rho, not its best value.
"""

import numpy as np

import bayeszoo as bz

Lines = bz.find("varying_lines")
rng = np.random.default_rng(3)
group, x = np.repeat(np.arange(8), 10), np.tile(np.arange(10.0), 8)
y = 5 + rng.normal(0, 3, 8)[group] + 2 * x + rng.normal(0, 1, 80)
data = bz.read(Lines, {"y": y, "x": x, "group": group.astype(str)})
best = bz.fit(Lines, data, "mle", seed=1)["posterior"]
print({name: round(best[name].item(), 3) for name in ("sd_slope", "rho")}, "maximize the likelihood")
rho = bz.fit(Lines, data, "nuts", seed=1)["posterior"]["rho"]
low, high = np.quantile(rho, [0.025, 0.975])
print(f"NUTS: rho is between {low:.2f} and {high:.2f} with probability 0.95")

assert abs(best["rho"].item()) > 0.999
assert high - low > 1
