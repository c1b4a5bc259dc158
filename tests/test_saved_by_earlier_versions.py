"""Fits saved by version 0.1 are read and answer: two such files are shipped."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import bayeszoo as bz

SAVED = Path(__file__).parent / "saved"


def test_an_exact_fit_is_asked_as_a_new_one():
    tree = bz.load(SAVED / "coin_0_1.nc")
    law = stats.beta(2 + 4, 1 + 3)
    assert tree.attrs["status"] == "ok"
    assert str(bz.view(tree).model) == "beta_bernoulli(a=2, b=1)"
    assert float(bz.summarize(tree)["theta"]["mean"]) == pytest.approx(law.mean(), rel=1e-12)
    new = bz.fit(bz.find("beta_bernoulli")(a=2, b=1), [1, 0, 1, 1, 0, 0, 1], "exact", seed=1, groups=[])
    assert bz.facts(tree)["log_evidence"] == pytest.approx(bz.facts(new)["log_evidence"], abs=1e-9)
    assert bz.predict(tree, 3)["mean"].to_numpy() == pytest.approx([law.mean()] * 3)


@pytest.mark.slow  # it compiles the loops of a mixture
def test_a_mode_of_components_is_asked_as_a_new_one(tmp_path):
    tree = bz.load(SAVED / "mixture_0_1.nc")
    assert bz.assign(tree)["component"].tolist() == [2, 2, 2, 1, 1, 1, 1]
    means = bz.summarize(tree)["means"]["mean"]
    assert means.shape == (2, 1)
    again = bz.load(bz.save(tree, tmp_path / "again.nc"))  # what was read can be saved
    np.testing.assert_array_equal(bz.summarize(again)["means"]["mean"], means)


def test_the_version_is_the_same_everywhere():
    root = Path(__file__).parents[1]
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"version: {version}\n" in (root / "CITATION.cff").read_text(encoding="utf-8")
    newest = re.search(r"^## (.*)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] in (version, "Unreleased")
