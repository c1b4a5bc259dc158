"""Parzen windows and nearest neighbours against scikit-learn, quadrature, sums by hand, and published figures."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
from sklearn.neighbors import KernelDensity, KNeighborsClassifier

import bayeszoo as bz
from bayeszoo.cli.app import main
from bayeszoo.errors import InputError
from tests.refusals import raises

RIPLEY = bz.find("gaussian_discriminant")


def galaxies():
    data = bz.example(bz.find("gaussian_mixture"), "galaxies")
    return next(values for values in data.values() if values.dtype == float) / 1000


def points(n=30, seed=1):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n)
    return pd.DataFrame({"class": y, "a": rng.normal(size=2 * n) + y, "b": 5 * rng.normal(size=2 * n)})


def kernels(rows, h):
    return KernelDensity(bandwidth=h).fit(np.reshape(rows, (len(rows), -1)))


def left_out(rows, h):
    rows = np.reshape(rows, (len(rows), -1))
    return sum(kernels(np.delete(rows, i, axis=0), h).score(rows[i : i + 1]) for i in range(len(rows)))


def test_bandwidth_of_the_galaxies():
    """The published maximum on a grid is h = .635 thousand km/s, with the score -209.75."""
    x = galaxies()
    density = bz.density(x).each["all"]
    assert density.bandwidth == pytest.approx(0.6323, abs=1e-4)
    assert density.score == pytest.approx(-209.7522, abs=1e-4)
    assert density.score == pytest.approx(left_out(x, density.bandwidth), abs=1e-9)
    assert all(left_out(x, density.bandwidth * f) < density.score for f in (0.97, 1.03))
    places = np.array([9.0, 20.0, 33.0])[:, None]
    assert density.at(places) == pytest.approx(kernels(x, density.bandwidth).score_samples(places), abs=1e-12)


def test_pseudo_posterior_by_quadrature():
    x = np.array([0.0, 0.4, 1.0, 3.0, 3.3, 4.5])
    row = bz.density(x).each["all"].row

    def weight(log_h, power=0):
        return np.exp(left_out(x, np.exp(log_h)) + power * log_h)

    mass, mean = (scipy.integrate.quad(weight, -4, 6, args=(power,), limit=200)[0] for power in (0, 1))
    below = scipy.integrate.quad(weight, -4, np.log(row["median"]))[0]
    assert row["pseudo_mean"] == pytest.approx(mean / mass, rel=2e-3)
    assert below / mass == pytest.approx(0.5, abs=2e-3)


def test_units_move_the_bandwidth_and_the_density():
    x = galaxies()
    one, other = bz.density(x), bz.density(1000 * x)
    assert other.each["all"].bandwidth == pytest.approx(1000 * one.each["all"].bandwidth, rel=1e-6)
    assert other.log_density([2e4]) == pytest.approx(one.log_density([20.0]) - np.log(1000), abs=1e-6)


def test_all_columns_of_a_table_are_taken_though_one_has_the_name_of_an_outcome(tmp_path):
    """`kmeans` and `density` took the column y alone, without a word."""
    file, table = tmp_path / "t.csv", points().rename(columns={"a": "x", "b": "y"})
    table[["x", "y"]].to_csv(file, index=False)
    for data in (table[["x", "y"]], file):
        assert bz.density(data).each["all"].rows.shape == (60, 2)
        assert bz.kmeans(data, seed=1).centres.shape == (2, 2)
    assert bz.kmeans(file, seed=1, column="x").centres.shape == (2, 1)
    with raises(InputError, "not_a_number"):  # the classes, which are left out by `columns`
        bz.kmeans(table.assign(**{"class": ["a", "b"] * 30}), seed=1)
    assert bz.kmeans(table, seed=1, columns=["x", "y"]).centres.shape == (2, 2)


def test_the_classes_of_new_rows_are_printed_and_the_picture_is_drawn(tmp_path, capsys):
    file, picture = tmp_path / "t.csv", tmp_path / "p.png"
    points().to_csv(file, index=False)
    for verb in ("density", "knn"):
        with pytest.raises(SystemExit) as stop:
            main([verb, str(file), "--class", "class", "--new", str(file), "--plot", str(picture), "--overwrite"])
        assert stop.value.code == 0
        assert "decision" in capsys.readouterr().out
        assert picture.stat().st_size > 1000


def test_several_columns_in_standard_deviations():
    frame = points().drop(columns="class")
    answer = bz.density(frame, columns=["a", "b"])
    z = (frame - frame.mean()) / frame.std()
    expected = (
        kernels(z.to_numpy(), answer.each["all"].bandwidth).score_samples(z.to_numpy()) - np.log(frame.std()).sum()
    )
    assert answer.log_density(frame.to_numpy()) == pytest.approx(expected, abs=1e-10)


def test_classes_by_their_densities_and_errors_by_leaving_rows_out():
    frame = points()
    answer = bz.density(frame, target="class", standardize=False)
    X, y = frame[["a", "b"]].to_numpy(), frame["class"].to_numpy()
    h = [density.bandwidth for density in answer.each.values()]
    joint = np.column_stack([kernels(X[y == k], h[k]).score_samples(X) for k in (0, 1)]) + np.log(0.5)
    p = answer.classify(frame.drop(columns="class"))[["p[0]", "p[1]"]].to_numpy()
    assert p == pytest.approx(scipy.special.softmax(joint, axis=1), abs=1e-10)
    wrong = 0
    for i in range(len(y)):
        own = np.arange(len(y)) != i
        scores = [kernels(X[own & (y == k)], h[k]).score_samples(X[i : i + 1])[0] for k in (0, 1)]
        wrong += int(np.argmax(scores) != y[i])
    assert answer.errors == wrong


def test_rows_that_all_have_an_equal_one_are_refused_with_their_number():
    with raises(InputError, "too_few_rows", "6"):
        bz.density([1.0, 1.0, 2.0, 2.0, 5.0, 5.0])
    assert bz.density([1.0, 1.0, 2.0, 2.0, 5.0]).each["all"].bandwidth > 0.1
    with raises(InputError, "wrong_columns"):
        bz.density([1.0, 1.0])
    with raises(InputError, "too_large", "3001"):
        bz.density(np.arange(3001.0))


def test_neighbours_and_densities_of_ripleys_points():
    """With flat priors on 1..100 and 0..15: E k = 54 and E beta = 5.0, and 8.4% of the test points are misplaced.

    By the windows of each class 9.3%: a figure of our own, that of scikit-learn's densities at these bandwidths.
    """
    data = bz.example(RIPLEY, "ripley")
    train = pd.DataFrame(data["reals"] if "reals" in data else data["X"], columns=["xs", "ys"])
    train["class"] = np.array(data["class"])[data["c"] if "c" in data else data["y"]]
    answer = bz.knn(train, target="class", standardize=False)
    assert answer.summary["mean"].to_numpy() == pytest.approx([53.89, 5.003], abs=0.01)
    test = pd.read_csv(Path(__file__).parents[1] / "models" / "data" / "ripley_test.csv")
    new, right = test.drop(columns="class"), test["class"].to_numpy()
    assert np.sum(answer.classify(new)["decision"].astype(int).to_numpy() != right) == 84
    windows = bz.density(train, target="class", standardize=False)
    heights = []
    for label in ("0", "1"):
        rows = train.loc[train["class"] == label, ["xs", "ys"]].to_numpy()
        heights.append(np.log(len(rows)) + kernels(rows, windows.each[label].bandwidth).score_samples(new.to_numpy()))
    decided = windows.classify(new)["decision"].astype(int).to_numpy()
    assert (decided == np.argmax(heights, axis=0)).all()
    assert np.sum(decided != right) == 93


def test_neighbours_by_hand():
    frame = points(8)
    answer = bz.knn(frame, target="class", most=3, most_beta=4.0, standardize=False)
    X, y = frame[["a", "b"]].to_numpy(), frame["class"].to_numpy()
    scores = np.zeros((3, len(answer.betas)))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        for k in (1, 2, 3):
            machine = KNeighborsClassifier(k).fit(X[others], y[others])
            share = machine.predict_proba(X[i : i + 1])[0]
            scores[k - 1] += answer.betas * share[y[i]] - np.logaddexp(*np.outer(share, answer.betas))
    assert answer.weights == pytest.approx(scipy.special.softmax(scores), abs=1e-12)
    new = np.array([[0.5, 0.0], [2.0, 1.0]])
    p = 0.0
    for k in (1, 2, 3):
        share = KNeighborsClassifier(k).fit(X, y).predict_proba(new)
        p += sum(w * scipy.special.softmax(b * share, axis=1) for w, b in zip(answer.weights[k - 1], answer.betas))  # noqa: B905
    got = answer.classify(pd.DataFrame(new, columns=["a", "b"]))
    assert got[["p[0]", "p[1]"]].to_numpy() == pytest.approx(p, abs=1e-12)


def test_equal_rows_are_never_their_own_neighbours():
    frame = pd.DataFrame({"y": ["a", "b"] * 6, "x": [1.0] * 6 + [2.0] * 6})
    answer = bz.knn(frame, target="y", most=4, standardize=False)
    assert answer.weights.sum() == pytest.approx(1.0)
    assert answer.summary.loc["beta", "mean"] < 7.5


def test_pictures_are_drawn():
    assert len(bz.plot_density(bz.density([1.0, 2.0, 4.0])).axes) == 2
    assert len(bz.plot_density(bz.density(points(), target="class")).axes) == 1
    assert len(bz.plot_neighbours(bz.knn(points(), target="class", most=5)).axes) == 2


def said(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        main([*map(str, words)])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_commands_answer_as_the_functions_do(tmp_path, capsys):
    table, new, edges = (tmp_path / name for name in ("rows.csv", "new.csv", "edges.csv"))
    frame = points(12)
    frame.to_csv(table, index=False)
    frame.drop(columns="class").head(3).to_csv(new, index=False)
    for verb, answer in (("density", bz.density(frame, target="class")), ("knn", bz.knn(frame, target="class"))):
        told = json.loads(said(capsys, verb, table, "--class", "class", "--new", new, "--json"))
        expected = answer.classify(frame.drop(columns="class").head(3))
        assert [row["p[0]"] for row in told["rows"]] == pytest.approx(expected["p[0]"].tolist(), abs=1e-9)
        picture = tmp_path / f"{verb}.png"
        assert "pseudo-posterior" in said(capsys, verb, table, "--class", "class", "--plot", picture)
        assert picture.exists()
    clusters = json.loads(said(capsys, "kmeans", table, "--columns", "a,b", "-K", 3, "--seed", 1, "--json"))
    assert sum(row["rows"] for row in clusters["rows"]) == 24
    edges.write_text("source,target\na,b\nb,a\nc,a\n", encoding="utf-8")
    ranks = tmp_path / "ranks.csv"
    assert "179 steps" in said(capsys, "pagerank", edges, "-o", ranks)
    assert "after 1 step" in said(capsys, "pagerank", edges, "--start", ranks)


def test_k_means_next_to_a_mixture(tmp_path, capsys):
    table = tmp_path / "rows.csv"
    table.write_text("x\n" + "\n".join(map(str, [0, 1, 2, 3, 20, 21, 22.5, 23])) + "\n", encoding="utf-8")
    words = ("compare", "gaussian_mixture", table, "--methods", "map", "--baselines", "kmeans", "--seed", 1)
    told = json.loads(said(capsys, *words, "--json"))
    assert told["kmeans"] == {
        "objective": pytest.approx(10.6875),
        "rows": 8,
        "apart": {"map": 0},
        "compared": {"map": 8},
    }
    assert "map: 0 of 8 rows in another cluster" in said(capsys, *words)
    with pytest.raises(SystemExit) as ended:
        main(["compare", "beta_bernoulli", "--methods", "map", "--baselines", "kmeans"])
    assert ended.value.code == InputError.exit_code


def test_k_means_against_a_fit_has_as_many_clusters_as_it_has_components(tmp_path, capsys):
    table, fit = tmp_path / "rows.csv", tmp_path / "three.nc"
    rows = [0.0, 1, 2, 3, 20, 21, 22.5, 23, 50, 51, 52.5, 53]
    table.write_text("x\n" + "\n".join(map(str, rows)) + "\n", encoding="utf-8")
    bz.save(
        bz.fit(bz.find("gaussian_mixture")(K=3, m0=(26,), Psi0=((9,),)), np.array(rows)[:, None], "map", seed=1), fit
    )
    told = json.loads(said(capsys, "kmeans", table, "--against", fit, "--seed", 1, "--json"))
    assert (len(told["rows"]), told["apart"]) == (3, 0)
    told = json.loads(said(capsys, "kmeans", table, "--against", fit, "-K", 2, "--seed", 1, "--json"))
    assert (len(told["rows"]), told["apart"]) == (2, 4)


def test_a_constant_column_is_named():
    table = {"kind": [*"uuvv"], "x": [0.0, 1.0, 3.0, 4.0], "k": [5.0] * 4}
    for answer in (lambda: bz.density(table, columns="x,k"), lambda: bz.knn(table, target="kind", most=2)):
        with raises(InputError, "wrong_columns", "'k'"):
            answer()
    with raises(InputError, "wrong_columns", "'x'"):
        bz.density({"x": [1.0, 1.0]})


def test_a_column_of_groups_is_advised_as_classes_and_never_as_groups_of_a_fit():
    table = {"kind": [*"uuuvvv"], "x": [0.0, 1.0, 3.0, 4.0, 6.0, 9.0]}
    (note,) = bz.density(table, columns="x").data.notes
    assert "'u', 'v'" in note
    assert note.endswith("--class kind estimates a density for each class")
    assert set(bz.density(table, target="kind").each) == {"u", "v"}
    (note,) = bz.kmeans(table, K=2, columns="x", seed=1).data.notes
    assert "fit" not in note
