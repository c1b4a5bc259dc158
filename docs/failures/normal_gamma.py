"""Two outliers.

What breaks: Newcomb's -44 and -2 among 64 measurements between 16 and 40. A normal distribution can explain them only
by a large variance and a lower mean.

How it looks: Every method agrees with the closed form, up to its error. The predictive p-value of the minimum is 1.

What to do: `student_t`, whose tails leave room; not the deletion of rows.
"""

import bayeszoo as bz

Normal = bz.find("normal_gamma")
newcomb = bz.example(Normal, "newcomb")
tree = bz.fit(Normal.weak(newcomb), newcomb, "exact", seed=1)
checks = bz.predictive_check(tree, ["mean", "minimum", "skewness"], seed=1)
print(checks[["observed", "q025", "q975", "p_value", "mcse"]].round(3).to_string())
student = bz.find("student_t")
modes = {
    name: bz.fit(kind.weak(newcomb), newcomb, "map", seed=1) for name, kind in (("normal", Normal), ("t", student))
}
print({name: round(float(tree["posterior"]["mu"].item()), 2) for name, tree in modes.items()}, "is mu at the modes")

assert checks.loc["minimum", "p_value"] > 0.99
