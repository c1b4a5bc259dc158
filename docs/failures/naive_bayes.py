"""Features that depend on each other.

What breaks: Naive Bayes takes features to be independent given the class. Copies of a feature, or features that say
nearly the same, are then counted as often as they occur: the log odds that they give are added up.

How it looks: Probabilities near 0 and 1 that do not come true. The share of right decisions barely changes, so that
only calibration and the log score of rows left out show it.

What to do: Look at `bayeszoo classify FIT --leave-one-out`. Leave copies out, or take a model that knows how features
vary together: gaussian_discriminant, or logistic_regression and softmax_regression, which model the class alone.
"""

import numpy as np

import bayeszoo as bz

NaiveBayes = bz.find("naive_bayes")
rng = np.random.default_rng(0)
y = rng.integers(0, 2, 400)
x = rng.normal(y, 1.5)  # the only feature that tells anything
scores, far = {}, {}
for copies in (1, 8):
    features = {f"x{j}": x + rng.normal(0, 0.05, 400) for j in range(copies)}
    data = bz.read(NaiveBayes, {"kind": np.array(["a", "b"])[y], **features}, target="kind")
    table = bz.classify(bz.fit(NaiveBayes.weak(data), data, "exact"), leave_one_out=True)
    calibration = bz.calibration(table)
    far[copies] = np.average(
        np.abs(calibration["share"] - calibration["mean_probability"]), weights=calibration["trials"]
    )
    scores[copies] = table.attrs["log_score_of_one"]
    print(
        f"{copies} columns: log score {scores[copies]:.3f}, wrong {table.attrs['loss_of_one']:.3f}, "
        f"probabilities off by {far[copies]:.3f}"
    )

assert scores[8] < scores[1] - 0.2
assert far[8] > 3 * far[1]
