"""Regression trees against scikit-learn, in one run: ``python -m benchmarks.partitions``.

A peer grows one tree, greedily, or many; ours is the sum over all trees with their posterior, which no peer has. So the
times are of different answers, and errors of the mean against the truth are printed with them. Each time is the least
of several, and the ratio ours over theirs.
"""

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import bayeszoo as bz
from benchmarks.classes import line

ROWS, NEW = 100, 200
POINT = {"sigma2": np.ones(1)}


def case(name: str, features: int) -> None:
    """Compare the sum over all trees at one noise with one tree, an exact fit with a forest, and the errors of all."""
    Tree, rng = bz.find("regression_tree"), np.random.default_rng(1)
    truth = lambda X: 3.0 * ((X[:, 0] > 0.3) & (X[:, -1] < 0.7))  # noqa: E731
    X, new = rng.uniform(size=(ROWS, features)), rng.uniform(size=(NEW, features))
    y = truth(X) + rng.normal(size=ROWS)
    names = [f"x{j + 1}" for j in range(features)]
    data = bz.read(Tree, dict(zip(names, X.T, strict=True)) | {"y": y}, target="y")
    model = Tree.weak(data)
    peers = {
        "tree": DecisionTreeRegressor(min_samples_leaf=5, random_state=0),
        "forest": RandomForestRegressor(random_state=0),
        "gradient boosting": GradientBoostingRegressor(random_state=0),
    }
    for each in peers.values():
        each.fit(X, y)
    line(
        f"{name}: one noise, against one tree", lambda: model.log_marginal(POINT, data), lambda: peers["tree"].fit(X, y)
    )
    fit = lambda: bz.fit(model, data, "exact", seed=1, groups=())  # noqa: E731
    line(f"{name}: exact fit, against a forest", fit, lambda: peers["forest"].fit(X, y))
    tree, places = fit(), {**data, "X": new, "y": np.zeros(NEW)}
    points = {"sigma2": np.ravel(tree["posterior"]["sigma2"])[::40]}
    means = {"exact": model.function(points, data, places).mean().mean(axis=0)}
    means |= {by: each.predict(new) for by, each in peers.items()}
    print({by: round(float(np.sqrt(np.mean((mean - truth(new)) ** 2))), 3) for by, mean in means.items()})


def main() -> None:
    """Compare trees of one feature of any depth, and of three features cut twice."""
    case("one feature", 1)
    case("three features", 3)


if __name__ == "__main__":
    main()
