"""Groups of a fit hold a number for each row and draw: they are computed in blocks, with little further memory."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayeszoo as bz
from bayeszoo.results import arviz_groups

ROWS, DRAWS = 400, 4000


@pytest.fixture
def tree():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(ROWS, 3))
    frame = pd.DataFrame({"y": x.sum(axis=1) + rng.normal(size=ROWS), "a": x[:, 0], "b": x[:, 1], "c": x[:, 2]})
    return bz.fit(
        bz.find("linear_regression")(), bz.read(bz.find("linear_regression"), frame, target="y"), "exact", seed=1
    )


@pytest.mark.parametrize("group", ["log_likelihood", "posterior_predictive"])
def test_little_memory_is_needed_beside_the_group(tree, monkeypatch, group):
    del tree[group]
    monkeypatch.setattr(arviz_groups, "BLOCK", 2**14)
    tracemalloc.start()
    bz.extend(tree, [group])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tree[group]["y"].shape == (4, DRAWS // 4, ROWS)
    assert peak < 1.5 * 8 * ROWS * DRAWS


@pytest.mark.parametrize("block", [1, ROWS * 7, 2**22])
def test_each_number_is_that_of_its_row_and_draw(tree, monkeypatch, block):
    del tree["log_likelihood"]
    monkeypatch.setattr(arviz_groups, "BLOCK", block)
    few = tree.isel(draw=slice(30))
    w, sigma2 = (few["posterior"][name].to_numpy() for name in ("w", "sigma2"))
    means = w[..., :1] + w[..., 1:] @ few["constant_data"]["X"].to_numpy().T
    expected = stats.norm(means, sigma2[..., None] ** 0.5).logpdf(few["observed_data"]["y"].to_numpy())
    np.testing.assert_allclose(bz.extend(few, ["log_likelihood"])["log_likelihood"]["y"], expected, rtol=1e-10)
