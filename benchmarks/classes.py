"""Models of classes against scikit-learn's, in one run: ``python -m benchmarks.classes``.

Fits take rows in memory, and probabilities are for new rows; each figure is the least of several times, and ratios are
ours over theirs.
"""

import time
from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import CategoricalNB, MultinomialNB

import bayeszoo as bz

REPEATS = 3


def seconds(call: Callable[[], object]) -> float:
    """Return the least of several times."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def line(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    """Print both times, and their ratio."""
    own, other = seconds(ours), seconds(theirs)
    print(f"{name:55s} {own:8.3f} s {other:8.3f} s {own / other:8.2f}")


def levels(rows: int, features: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return classes, codes of features within each, and rows of the model: four levels a feature."""
    y, codes = rng.integers(0, 3, rows), rng.integers(0, 4, (rows, features))
    names = np.array([f"f{j:02d}" for j in range(features)])
    axes = {"feature": names, "level": np.array([f"{name}={v}" for name in names for v in "abcd"])}
    empty = {"counts": np.empty((rows, 0)), "reals": np.empty((rows, 0))}
    none = {"count": np.array([], dtype=str), "real": np.array([], dtype=str)}
    places = codes + 4 * np.arange(features)
    return y, codes, {"y": y, "levels": places, **empty, **axes, **none, "class": np.array(list("abc"))}


def naive_bayes(rng: np.random.Generator) -> None:
    """Compare 1e6 rows of 20 features of levels, and the classes of 1e5 new rows."""
    y, codes, rows = levels(1_000_000, 20, rng)
    _, new_codes, new = levels(100_000, 20, rng)
    model, theirs = bz.find("naive_bayes")(), CategoricalNB(alpha=1.0, min_categories=4)
    line(
        "naive_bayes, 1e6 x 20 levels, fit",
        lambda: model.posterior(model.statistics(rows)),
        lambda: theirs.fit(codes, y),
    )
    stats, _ = model.statistics(rows), theirs.fit(codes, y)
    line(
        "naive_bayes, probabilities of 1e5 rows",
        lambda: model.predictive(stats, new).mean(),
        lambda: theirs.predict_proba(new_codes),
    )
    gap = np.max(np.abs(model.predictive(stats, new).mean() - theirs.predict_proba(new_codes)))
    print(f"{'largest difference of a probability':55s} {gap:8.1e}")


def discriminants(rng: np.random.Generator) -> None:
    """Compare 1e5 rows of 20 numbers."""
    y = rng.integers(0, 3, 100_000)
    X = rng.normal(y[:, None] * 0.3, 1.0, (100_000, 20))
    names = np.array([f"x{j:02d}" for j in range(20)])
    rows = {"y": y, "reals": X, "real": names, "class": np.array(list("abc"))}
    for kind, theirs in (("tied", LinearDiscriminantAnalysis()), ("full", QuadraticDiscriminantAnalysis())):
        model = bz.find("gaussian_discriminant").weak(rows).replaced(covariance=kind)
        line(
            f"gaussian_discriminant {kind}, 1e5 x 20, fit",
            lambda model=model: model.mle(model.statistics(rows)),
            lambda theirs=theirs: theirs.fit(X, y),
        )
        stats = model.statistics(rows)
        line(
            f"gaussian_discriminant {kind}, exact probabilities",
            lambda model=model, stats=stats: model.predictive(stats, rows).mean(),
            lambda theirs=theirs: theirs.predict_proba(X),
        )


def text(rng: np.random.Generator) -> None:
    """Compare 20,000 documents over 5,000 words, about 70 distinct ones in each, theirs with the zeros and without."""
    y, words = rng.integers(0, 3, 20_000), np.arange(1, 5001)
    shares = rng.gamma(1.0, 1.0, (3, 5000)) / words
    counts = np.empty((20_000, 5000))
    for k, own in enumerate(shares):
        counts[y == k] = rng.multinomial(rng.poisson(100, np.sum(y == k)), own / own.sum())
    held = sparse.csr_array(counts)
    labels = {"word": np.array([f"w{v}" for v in words]), "class": np.array(list("abc"))}
    cells = {"counts": held.data, "doc": np.repeat(np.arange(len(y)), np.diff(held.indptr)), "term": held.indices}
    rows = {"y": y, "length": counts.sum(axis=1), **cells, **labels}
    model = bz.find("naive_bayes_text")()
    stats = model.statistics(rows)
    for how, table in (("zeros held", counts), ("sparse", held)):
        theirs = MultinomialNB()
        line(
            f"naive_bayes_text, 2e4 x 5e3, fit; theirs {how}",
            lambda: model.posterior(model.statistics(rows)),
            lambda theirs=theirs, table=table: theirs.fit(table, y),
        )
        line(
            f"naive_bayes_text, probabilities; theirs {how}",
            lambda: model.predictive(stats, rows).mean(),
            lambda theirs=theirs, table=table: theirs.predict_proba(table),
        )
    for kind in ("poisson", "negative_binomial"):
        own = model.replaced(counts=kind)
        line(
            f"naive_bayes_text {kind}, fit; theirs sparse",
            lambda own=own: own.statistics(rows),
            lambda: theirs.fit(held, y),
        )
        known = own.statistics(rows)
        line(
            f"naive_bayes_text {kind}, probabilities",
            lambda own=own, known=known: own.predictive(known, rows).mean(),
            lambda: theirs.predict_proba(held),
        )


if __name__ == "__main__":
    print(f"{'':55s} {'ours':>10s} {'theirs':>10s} {'ratio':>8s}")
    generator = np.random.default_rng(0)
    naive_bayes(generator)
    discriminants(generator)
    text(generator)
