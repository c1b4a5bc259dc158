"""The standard deviation that was said to be known is wrong.

What breaks: `sigma` is a field: the model believes it. If it is a tenth of the truth, the posterior of the mean is
ten times too narrow.

How it looks: The interval is as exact as ever, and means at odds with it are many of its standard deviations away. A
predictive check of the standard deviation has a p-value of 0.

What to do: Let the data say it (`normal_gamma`), or choose it by the evidence (`bz.empirical_bayes(...,
over="sigma")`).
"""

import bayeszoo as bz

Speed = bz.find("gaussian_mean")
data = bz.example(Speed, "michelson")
for sigma in (8.0, 79.0):
    tree = bz.fit(Speed(m0=850, s0=100, sigma=sigma), data, "exact", seed=1)
    mu = bz.summarize(tree)["mu"]
    check = bz.predictive_check(tree, ["standard deviation"], seed=1).iloc[0]
    predictive = f"sd observed {check['observed']:.1f}, predictive p {check['p_value']:.3f}"
    print(f"sigma = {sigma:g}: mu has mean {mu['mean']:.1f} and sd {mu['sd']:.2f}, exact; {predictive}")
    assert (check["p_value"] < 0.01) == (sigma == 8.0)
print(bz.empirical_bayes(Speed(m0=850, s0=100, sigma=8), data, over="sigma"))
