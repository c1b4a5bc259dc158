"""What a hostile user has found to be wrong with status ok stays mended."""

import numpy as np
import pandas as pd
import pytest

import bayeszoo as bz
from bayeszoo.errors import InputError

BetaBernoulli, GaussianMean = map(bz.find, ("beta_bernoulli", "gaussian_mean"))

YES_NO = {"won": ["yes", "no", "yes", "yes"]}


@pytest.fixture(scope="module")
def coin():
    return bz.fit(BetaBernoulli(), bz.read(BetaBernoulli, YES_NO, positive="yes"), method="exact", seed=1)


# What a fit was read with is what new rows are read with


@pytest.mark.parametrize("options", [{}, {"positive": "yes"}])
def test_labels_of_new_rows_mean_what_they_mean_in_the_fit(coin, options):
    for rows, observed in ((["no"], [0]), (["no", "yes"], [0, 1]), ([0, 1], [0, 1])):
        if options and rows == [0, 1]:
            continue
        frame = bz.predict(coin, {"won": rows}, **options)
        assert frame["observed"].tolist() == observed
        assert frame["log_score"].to_numpy() == pytest.approx(np.log([[2 / 6, 4 / 6][one] for one in observed]))


@pytest.mark.parametrize(
    ("rows", "positive"), [(["no"], "no"), (["no", "yes"], "no"), (["maybe", "yes"], "yes"), (["ja", "nein"], "ja")]
)
def test_labels_of_new_rows_that_mean_something_else_are_refused(coin, rows, positive):
    with pytest.raises(InputError, match="but before 'no' is 0 and 'yes' is 1; use --positive yes"):
        bz.predict(coin, {"won": rows}, positive=positive)
    with pytest.raises(InputError, match="but before 'no' is 0 and 'yes' is 1; use --positive yes"):
        bz.predict(coin, bz.read(BetaBernoulli, {"won": rows}, positive=positive))


def test_a_saved_fit_knows_its_labels_and_the_column(coin, tmp_path):
    bz.save(coin, tmp_path / "coin.nc")
    frame = bz.predict(bz.load(tmp_path / "coin.nc"), {"won": ["no", "no"], "y": [1, 1]})
    assert frame["observed"].tolist() == [0, 0]


def test_batches_of_opposite_labels_are_not_pooled():
    batches = [([1, 0, 1], {}), (["no", "yes"], {"positive": "yes"}), (["yes"], {"positive": "yes"})]
    model = BetaBernoulli()
    for batch, options in batches:
        model = bz.update(model, batch, **options)
    assert str(model) == str(BetaBernoulli(a=5, b=3))
    for batch, label in ((["no", "yes"], "no"), (["no"], "no"), (["yes", "maybe"], "yes"), ([0, 1], "0")):
        with pytest.raises(InputError, match="in these rows"):
            bz.update(model, batch, positive=label)
    assert str(bz.update(model, [0, 1])) == str(BetaBernoulli(a=6, b=4))


# Rows are called by their numbers in the file


def test_rows_keep_the_numbers_that_they_have_in_the_file(tmp_path):
    values = np.array([0.1, np.nan, -0.2, 9.0, np.nan, 0.4])
    pd.DataFrame({"y": values}).to_csv(tmp_path / "y.csv", index=False)
    data = bz.read(GaussianMean, tmp_path / "y.csv", missing="drop")
    tree = bz.fit(GaussianMean(), data, method="exact", seed=1)
    bz.save(tree, tmp_path / "y.nc")
    for one in (tree, bz.load(tmp_path / "y.nc")):
        frame = bz.residuals(one)
        assert frame.index.tolist() == [1, 3, 4, 6]
        assert frame["normal_score"].abs().idxmax() == 4
        assert bz.predict(one, tmp_path / "y.csv", missing="drop").index.tolist() == [1, 3, 4, 6]
    assert tree["log_likelihood"]["row"].to_numpy().tolist() == [1, 3, 4, 6]
