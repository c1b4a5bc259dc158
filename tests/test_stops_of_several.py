"""A stop between several fits: finished fits are kept, and missing ones are named."""

import pytest

import bayeszoo as bz
from bayeszoo.comparison import by, many
from bayeszoo.comparison.compare import STOPPED
from bayeszoo.errors import Interrupted
from bayeszoo.fit import uninterrupted
from tests.test_stops import stopping


def test_a_comparison_that_is_stopped_shows_the_fits_that_it_has(monkeypatch):
    model, rows = bz.find("normal_gamma")(), [1.2, 0.3, 2.2, 1.9]
    monkeypatch.setattr("bayeszoo.inference.methods.mode.run_map", stopping)
    monkeypatch.setattr("bayeszoo.inference.methods.mode.run_mle", lambda *_: pytest.fail("it went on"))
    frame = bz.compare(model, rows, ["exact", "map", "mle"], seed=1)
    assert frame["status"].tolist() == ["ok"] * 2 + [f"withheld: {STOPPED}"] * 2
    with pytest.raises(KeyboardInterrupt):
        bz.compare(model, rows, ["map", "exact"], seed=1)


def stopping_after(count, right, state):
    """Return a fit that is stopped when it is asked for once more than ``count`` times."""

    def fitted(*given, **options):
        state.append(1)
        if len(state) > count:
            raise KeyboardInterrupt
        return right(*given, **options)

    return fitted


TABLE = "y,site\n1.2,a\n0.3,a\n2.2,b\n1.9,b\n0.1,c\n0.7,c\n"


@pytest.mark.parametrize("count", [1, 2])
def test_groups_that_are_stopped_keep_the_fits_that_there_are(count, monkeypatch, run, tmp_path):
    (tmp_path / "sites.csv").write_text(TABLE)
    monkeypatch.setattr(by, "fit", stopping_after(count, by.fit, []))
    out = tmp_path / "sites.nc"
    command = ["fit", "normal_gamma", str(tmp_path / "sites.csv"), "--by", "site", "--method", "exact", "--seed", "1"]
    code, printed, err = run(*command, "-o", str(out))
    assert code == 130
    assert "without a fit" in err
    assert not out.exists()
    kept = bz.load(tmp_path / "sites.nc.partial")
    assert list(kept["fits"].children) == ["a", "b"][:count]
    assert "a" in printed


def test_many_data_sets_that_are_stopped_keep_the_fits_that_there_are(monkeypatch):
    monkeypatch.setattr(many, "fit", stopping_after(1, many.fit, []))
    data = {"north": [1.2, 0.9], "south": [3.1, 2.8], "east": [0.1, 0.3]}
    with pytest.warns(bz.Caution):
        tree = bz.fit_many(bz.find("gaussian_mean")(), data, "exact", seed=1, workers=1)
    assert list(tree["fits"].children) == ["north"]
    monkeypatch.setattr(many, "fit", stopping)
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        bz.fit_many(bz.find("gaussian_mean")(), data, "exact", seed=1, workers=1)


def test_what_builds_on_a_fit_that_was_stopped_is_stopped_too():
    tree = bz.fit(bz.find("beta_bernoulli")(), [1, 0, 1], "exact", seed=1, groups=[])
    assert uninterrupted(tree).tree is tree
    tree.attrs["status"] = "interrupted"
    with pytest.raises(bz.Interrupted):
        uninterrupted(tree)
