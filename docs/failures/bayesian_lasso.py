"""Zeros of the mode taken for zeros of the posterior.

What breaks: At the mode some weights are exactly 0. The posterior gives that value no probability: it is a property
of the corner of the prior's density, and a different `b` sets other weights to 0.

How it looks: The mode's zeros come with a certificate, and are right. Beside them the posterior's standard deviation
is as wide as that of other weights, and the probability that the weight is positive is near a half.

What to do: Read `p_positive` of a fit by draws. To choose columns, compare models (`bz.select(bz.subsets(...))`).
"""

import bayeszoo as bz

Lasso = bz.find("bayesian_lasso")
data = bz.example(Lasso, "diabetes")
model = Lasso.weak_with(data, {"b": 10.0, "sigma": 54.0})
fits = [bz.fit(model, data, method, seed=1) for method in ("map", "nuts")]
table = bz.compare(fits).pivot(index="parameter", columns="fit", values=["mean", "sd", "p_positive", "p_positive_mcse"])
zero = table[table["mean", "map"] == 0].dropna(axis=1)
print(zero.round(3).to_string())
modes = bz.lasso_path(model, data, b=[1.0, 3.0, 10.0]).drop(columns=["alpha", "violation"])
print("zeros of the mode at b = 1, 3, 10:", (modes == 0).sum(axis=1).tolist())

assert len(zero)
assert zero["p_positive", "nuts"].between(0.05, 0.95).all()
