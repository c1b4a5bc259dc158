"""A prior of thousandths on categories that never occur.

What breaks: Under a Dirichlet prior with `alpha = 0.001` the share of a category without a count is as likely below
1e-300 as above. In unconstrained space, where samplers walk, its posterior has a tail that is hundreds of units long.

How it looks: The mean and the median of the share differ by three hundred orders of magnitude. No standard deviation
describes that.

What to do: Use the closed form, which has no such trouble. If you do not believe that a category is impossible, say
so: `alpha = 1` or `0.5`.
"""

import bayeszoo as bz

Shares, poll = bz.find("dirichlet_multinomial"), {"vote": ["bush"] * 727 + ["dukakis"] * 583 + ["other"] * 137}
for alpha in (1.0, 1e-3):
    model = Shares(alpha=(alpha,) * 4)
    data = bz.read(model, {"vote": ["bush", "dukakis", "other", "none"], "count": [727, 583, 137, 0]}, count="count")
    none = list(data["category"]).index("none")
    share = model.posterior(model.statistics(data))["p"]
    print(f"alpha = {alpha:g}: mean {share.mean()[none]:.2g}, median {share.ppf(0.5)[none]:.2g}, exact")

assert share.ppf(0.5)[none] < 1e-100 < share.mean()[none]
