"""The true value that was said to be known is wrong.

What breaks: `mu` is a field. What the measurements are off by on average is taken for scatter.

How it looks: The precision is too low, without a word: every check of the fit passes. A predictive check of the mean
fails.

What to do: Estimate the mean as well (`normal_gamma`).
"""

import bayeszoo as bz

Precision = bz.find("gaussian_precision")
speeds = bz.example(Precision, "michelson")["y"]
for mu in (734.5, 852.4):  # what is known today, and the mean of what Michelson measured
    tree = bz.fit(Precision(a=0.5, b=3000, mu=mu), speeds, "exact", seed=1)
    sigma = bz.compare([tree]).iloc[0]["mean"] ** -0.5
    check = bz.predictive_check(tree, ["mean"], seed=1).iloc[0]
    print(
        f"mu = {mu:g}: sigma at the mean precision {sigma:.1f}, exact; predictive p of the mean {check['p_value']:.3f}"
    )
    assert (min(check["p_value"], 1 - check["p_value"]) < 0.01) == (mu == 734.5)
