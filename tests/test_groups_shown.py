"""Groups of a hierarchy on the terminal, in a picture and on a page, and the prediction of new ones by the command."""

import json

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.plots.families import pooling

TABLE = {"group": list("abcdef"), "successes": [1, 5, 3, 2, 4, 0], "trials": [9, 8, 30, 5, 7, 0]}


@pytest.fixture(scope="module")
def tree():
    M = bz.find("beta_binomial")
    return bz.fit(M(), bz.read(M, TABLE), "exact", seed=1)


@pytest.fixture
def saved(tree, tmp_path):
    return bz.save(tree, tmp_path / "fit.nc")


def test_the_command_prints_the_highest_groups_and_writes_all(run, tree, saved, tmp_path):
    frame, path = bz.group_estimates(tree), tmp_path / "groups.csv"
    code, out, err = run("groups", saved, "--top", 2, "-o", path, "--plot", tmp_path / "groups.png")
    assert (code, err) == (0, f"wrote {path}\nwrote {tmp_path / 'groups.png'}\n")
    assert max(map(len, out.splitlines())) <= 80
    highest = frame["mean"].sort_values(ascending=False).index[:2].tolist()
    lines = [line.split() for line in out.splitlines()]
    assert [line[0] for line in lines if line[:1] and line[0] in frame.index] == highest * 2
    assert f"Fully pooled: {15 / 59:.4g}" in out
    assert "The 2 highest of 6 groups; all of them: --json or -o." in out
    written = pd.read_csv(path, index_col="group")
    pd.testing.assert_frame_equal(written, frame, check_dtype=False, rtol=1e-12)


def test_the_document_has_every_group_with_the_name_of_the_parameter(run, saved):
    whole = json.loads(run("groups", saved, "--json", "--top", 1)[1])
    assert whole["quantity"] == "theta"
    assert [row["group"] for row in whole["rows"]] == TABLE["group"]
    assert whole["rows"][-1]["raw"] is None


def test_the_groups_of_a_model_without_are_refused_in_a_line(run, tmp_path):
    M = bz.find("gaussian_mean")
    path = bz.save(bz.fit(M(), {"y": [1.0, 2.0]}, "exact", seed=1), tmp_path / "mean.nc")
    assert run("groups", path) == (
        2,
        "",
        "error: gaussian_mean is no model of groups with one parameter each; fit one such as normal_means or "
        "beta_binomial; `contrasts` compares fits by group\n",
    )


def test_contrasts_of_one_fit_are_printed_with_what_they_are_against(run, tree, saved, tmp_path):
    code, out, err = run("contrasts", saved, "--plot", tmp_path / "contrasts.png")
    note = "note: each of the 6 groups is compared with c, the most precise (trials 30); --against takes another"
    assert (code, err.splitlines()) == (0, [note, f"wrote {tmp_path / 'contrasts.png'}"])
    assert out.startswith("beta_binomial, exact (exact)\nbest of 6 groups")
    assert "contrasts of theta\n" in out
    whole = json.loads(run("contrasts", saved, "--json", "--against", "a")[1])
    assert [row["group"] for row in whole["contrasts"]] == list("bcdef")
    expected = bz.contrasts(tree, against="a")["p_greater"]
    assert [row["p_greater"] for row in whole["contrasts"]] == expected.tolist()


def test_the_command_predicts_a_new_group_and_says_that_it_is_new(run, saved, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("group,trials\nc,10\nz,10\n")
    code, _, err = run("predict", saved, new)
    assert (code, err) == (0, "note: new groups, without rows in the fit: z\n")
    assert json.loads(run("predict", saved, new, "--json")[1])["new_groups"] == ["z"]


def drawn(figure):
    """Return partially pooled and raw points of the picture, as they stand in it."""
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    return {name: np.asarray(lines[name].get_ydata(), dtype=float) for name in ("partially pooled", "raw")}


def test_the_picture_has_the_estimates_in_order_of_what_is_known(tree):
    figure, frame = bz.plot_pooling(tree), bz.group_estimates(tree)
    order = ["f", "d", "e", "b", "a", "c"]
    names = [tick.get_text().split("\n") for tick in figure.axes[0].get_xticklabels()]
    assert names == [[name, str(frame.loc[name, "trials"])] for name in order]
    points = drawn(figure)
    np.testing.assert_array_equal(points["partially pooled"], frame.loc[order, "mean"])
    np.testing.assert_array_equal(points["raw"], frame.loc[order, "raw"])


def test_of_many_groups_the_best_known_are_drawn(tree, monkeypatch):
    monkeypatch.setattr(pooling, "MOST_GROUPS", 2)
    figure, frame = bz.plot_pooling(tree), bz.group_estimates(tree)
    np.testing.assert_array_equal(drawn(figure)["partially pooled"], frame.loc[["a", "c"], "mean"])
    assert figure.axes[0].get_xlabel().endswith("the 2 of 6 most precise groups")


def test_a_page_has_the_picture_and_the_ranks(tree, tmp_path, no_pictures):
    page = bz.report(tree, tmp_path / "page.html").read_text()
    assert 'alt="estimates of groups"' in page
    assert "partially pooled" in page
    assert "mean rank" in page


def test_groups_of_different_fits_are_not_compared_by_their_places():
    table = {"coach": list("xxxyyy"), "group": list("abcabd"), "successes": [1, 5, 3, 2, 4, 0], "trials": [9] * 6}
    tree = bz.fit_by(bz.find("beta_binomial")(), table, by="coach", method="map", seed=1)
    compared = bz.contrasts(tree)
    assert compared["quantity"].tolist() == ["mean", "size"]
    assert compared.attrs["withheld"] == ["theta: its labels differ between groups"]
    alike = bz.fit_by(bz.find("beta_binomial")(), {**table, "group": list("abcabc")}, by="coach", method="map", seed=1)
    assert bz.contrasts(alike)["quantity"].tolist() == ["mean", "size", "theta[a]", "theta[b]", "theta[c]"]
