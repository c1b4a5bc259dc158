"""Pictures of several fits: only comparable fits are drawn together, and captions name what is left out or withheld."""

import itertools
import json

import arviz_stats
import matplotlib.colors
import numpy as np
import pytest
import xarray as xr

import bayeszoo as bz
from bayeszoo.answers.checks import leave_out as score
from bayeszoo.comparison.compare import compare, names_of
from bayeszoo.foundation.gate import k_hat_limit
from bayeszoo.inference.labels.align import permute
from bayeszoo.plots import drawable
from bayeszoo.plots import fits as plots
from bayeszoo.report import checks, densities
from bayeszoo.report.blocks import Choice, Folded, Picture, Skipped
from bayeszoo.results import matched as matched_module
from bayeszoo.results.quantities import free_of_labels, labels
from bayeszoo.results.stored import Fit
from tests.refusals import raises

COINS = [1, 0, 1, 1, 0, 1, 1, 1]
BETA = bz.find("beta_bernoulli")
pytestmark = pytest.mark.usefixtures("closed")
FLAT, SHARP = "beta_bernoulli(a=1, b=1)", "beta_bernoulli(a=50, b=5)"


def called(tree, method, **attrs):
    """The same draws, as if another method had given them."""
    kind = {"nuts": "sampled", "advi": "approximate", "map": "point estimate"}.get(method, tree.attrs["kind"])
    other = tree.copy()
    other.attrs |= {"method": method, "kind": kind, **attrs}
    return other


def held(tree):
    return called(tree, tree.attrs["method"], status="failed")


def coins(a, b, method):
    """A fixture: the fit of the tosses with a prior Beta(a, b)."""
    return pytest.fixture(scope="module")(lambda: bz.fit(BETA(a, b), COINS, method, seed=1))


flat, flat_mode = coins(1, 1, "exact"), coins(1, 1, "map")
sharp, sharp_mode = coins(50, 5, "exact"), coins(50, 5, "map")


@pytest.fixture(scope="module")
def mixture():
    model = bz.find("gaussian_mixture")
    data = bz.example(model)
    return bz.fit(model.weak(data), data, "vb", seed=1)


@pytest.fixture(scope="module")
def turned(mixture):
    """The same fit, its two components in the other order."""
    draws = {name: values.to_numpy() for name, values in mixture["posterior"].data_vars.items()}
    moved = permute(Fit(mixture).model, draws, np.tile([1, 0], (*draws["weights"].shape[:2], 1)))
    advi, posterior = called(mixture, "advi"), mixture["posterior"].to_dataset()
    advi["posterior"] = xr.DataTree(posterior.assign({k: (posterior[k].dims, v) for k, v in moved.items()}))
    return advi


@pytest.fixture(scope="module")
def long():
    """Of seven variables, whose covariance has 49 entries."""
    model, rng = bz.find("normal_inverse_wishart"), np.random.default_rng(0)
    data = bz.read(model, {f"x{i:02}": rng.normal(size=30) for i in range(7)})
    return bz.fit(model.weak(data), data, "exact", seed=1, draws=50)


def legend(collection):
    return [text.get_text() for text in collection.viz["figure"].item().legends[0].get_texts()]


def curves(collection):
    """The lines that are drawn, by colour."""
    lines = [line for axes in collection.viz["figure"].item().axes for line in axes.lines]
    return {matplotlib.colors.to_hex(line.get_color()): line for line in lines}


def captions(blocks):
    """The words of all pictures, by what they are of."""
    words = {}
    for block in blocks:
        match block:
            case Picture():
                words[block.alt] = block.caption
            case Skipped():
                words[block.part] = block.reason
            case Choice():
                words |= captions(itertools.chain.from_iterable(block.options.values()))
            case Folded():
                words |= captions(block.blocks)
    return words


def test_components_are_numbered_alike_in_every_picture(mixture, turned):
    first = next(label for label in labels(Fit(mixture)) if label.startswith("means[1"))
    for picture in (plots.forest([mixture, turned], [first]), plots.shrinkage(turned, mixture, [first])):
        trunks = picture.viz["trunk"]["value"]
        assert np.allclose(*(trunks.sel(model=name).item().get_xdata() for name in ("vb", "advi")))
    alone = np.sort(next(iter(curves(plots.posterior(mixture, [first])).values())).get_xdata())
    both = [line.get_xdata() for line in curves(plots.posterior([mixture, turned], [first], mode=False)).values()]
    assert [np.allclose(np.sort(x), alone) for x in both] == [True, True]


def test_what_was_numbered_together_is_not_numbered_again(mixture, turned, monkeypatch):
    once = matched_module.matched([Fit(mixture), Fit(turned)])
    monkeypatch.setattr(matched_module, "numbered_as", lambda *_: pytest.fail("numbered again"))
    assert matched_module.matched(once) is once
    plots.forest([fit.tree for fit in once], ["weights[1]"])
    with pytest.raises(pytest.fail.Exception):
        matched_module.matched([once[0], Fit(turned)])
    assert "numbered_together" not in mixture.attrs | turned.attrs


def test_fits_with_other_components_are_numbered_among_themselves(mixture, turned):
    data = Fit(mixture).observed
    three = bz.fit(type(Fit(mixture).model).weak_with(data, {"K": 3}), data, "map", seed=1)
    three = called(three, "nuts", status="ok")  # and so the best
    found = matched_module.matched([Fit(three), Fit(mixture), Fit(turned)])
    assert np.allclose(found[1].draws()["means"], found[2].draws()["means"])
    assert np.array_equal(found[0].draws()["means"], Fit(three).draws()["means"])


def test_of_different_priors_neither_exact_density_nor_mode_is_drawn(flat, sharp, flat_mode, sharp_mode):
    collection = plots.posterior([called(flat, "nuts"), called(sharp, "nuts"), sharp_mode])
    assert legend(collection) == [f"nuts {FLAT}", f"nuts {SHARP}"]
    assert len(curves(collection)) == 2
    collection = plots.posterior([called(flat, "nuts"), sharp_mode])
    assert legend(collection) == [f"nuts {FLAT}"]
    assert legend(plots.overlay([called(flat, "nuts"), flat, sharp_mode, flat_mode])) == ["nuts", "exact", "MAP"]
    assert legend(plots.overlay([flat, sharp])) == [f"exact {FLAT}", f"exact {SHARP}"]
    assert legend(plots.posterior([flat, flat_mode], exact=False)) == ["exact", "MAP"]
    assert legend(plots.posterior([flat, flat_mode], mode=False)) == ["draws of exact", "exact"]


def test_fits_of_one_method_have_names_and_colours_of_their_own(flat, sharp):
    nuts = called(flat, "nuts")
    assert names_of([Fit(nuts), Fit(nuts), Fit(flat)]) == ["nuts", "nuts (2)", "exact"]
    assert list(compare([flat, flat])["fit"].unique()) == ["exact", "exact (2)"]
    gibbs, advi, enumerated = (called(flat, method) for method in ("gibbs", "advi", "enumerate"))
    for trees in ([nuts, gibbs], [nuts, nuts, advi], [flat, sharp, enumerated]):
        assert len(set(drawable.colours([*map(Fit, trees)]))) == len(trees)
    assert drawable.colours([Fit(advi), Fit(nuts)]) == [drawable.COLOURS["advi"], drawable.COLOURS["nuts"]]


def test_approximations_are_held_only_against_nuts_of_their_own_model(flat, sharp):
    with raises(bz.InputError, "not_comparable", "advi", "50"):
        plots.shrinkage(called(sharp, "advi"), called(flat, "nuts"))
    words = captions(
        densities.section([Fit(called(flat, "nuts")), Fit(called(flat, "advi")), Fit(called(sharp, "advi"))])
    )
    assert "short intervals are overconfident" in words[f"advi {FLAT} against nuts {FLAT}"]
    assert words[f"advi {SHARP} against nuts"] == "no nuts of this model and prior"


def test_the_first_picture_is_of_the_fits_that_have_its_quantities():
    x = np.linspace(-1, 1, 12)
    table = {"x": x, "z": x**2, "y": 2 * x + np.sin(9 * x)}
    ridge, linear = bz.find("ridge"), bz.find("linear_regression")
    rows = [(kind, bz.read(kind, table, target="y")) for kind in (linear, ridge)]
    fits = [bz.fit(kind.weak(data), data, "exact", seed=1) for kind, data in rows]
    assert set(labels(Fit(fits[0]))) != set(labels(Fit(fits[1])))
    first = densities.hero([*map(Fit, fits)])
    assert isinstance(first, Picture)
    assert "Fits: exact linear_regression. Without exact ridge, which have other quantities." in first.caption


def test_what_is_withheld_and_drawn_all_the_same_is_said(flat):
    bad = held(called(flat, "advi"))
    assert legend(plots.shrinkage(bad, called(flat, "nuts"))) == ["nuts", "advi (withheld)"]
    words = captions(densities.section([Fit(called(flat, "nuts")), Fit(bad)]))
    assert "It is withheld (estimates are withheld: the gate did not pass" in words["advi against nuts"]
    reason = densities.hero([Fit(held(called(flat, "nuts"))), Fit(bad)]).reason
    assert reason.startswith("nuts: estimates are withheld")
    assert "; advi: estimates are withheld" in reason


@pytest.mark.slow
def test_quantities_without_a_standard_deviation_are_not_compared():
    model = bz.find("normal_gamma")(mu0=0.0, kappa0=1.0, alpha0=0.4, beta0=1.0)
    tree = bz.fit(model, [0.3], "exact", seed=1)
    assert np.isinf(tree["exact"]["mu"].sel(statistic="sd"))
    nuts, advi = called(tree, "nuts"), called(tree, "advi")
    shown = plots.shrinkage(advi, nuts, ["mu", "lam"]).viz["trunk"]["value"]["quantity"].to_numpy()
    assert [str(one).split()[0] for one in shown] == ["lam"]
    with raises(bz.InputError, "no_quantity", "quantity"):
        plots.shrinkage(advi, nuts, ["mu"])
    words = captions(densities.section([Fit(nuts), Fit(advi)]))["advi against nuts"]
    assert "Without those whose sd is 0 or not finite: mu" in words


@pytest.mark.usefixtures("unmeasured")
def test_a_constant_has_no_density_and_no_ratio_of_standard_deviations(flat):
    nuts = called(flat, "nuts").copy(deep=True)
    nuts["posterior"]["theta"] = nuts["posterior"]["theta"] * 0 + 1
    with raises(bz.InputError, "no_quantity", "quantity"):
        plots.shrinkage(called(flat, "advi"), nuts)
    model = bz.find("gaussian_mixture")
    data = bz.read(model, {"Y": np.random.default_rng(1).normal(size=(12, 1))})
    one = bz.fit(model.weak_with(data, {"K": 1}), data, "vb", seed=1)
    assert "weights[1]" in labels(Fit(one))
    assert "weights[1]" not in drawable.one_of_each(Fit(one))
    assert "weights[1]" not in plots.posterior(one).viz["dist"]["value"]["quantity"]


def test_a_mode_or_a_closed_form_that_is_withheld_is_not_drawn(flat, flat_mode):
    nuts = called(flat, "nuts")
    assert legend(plots.overlay([nuts, flat, held(flat_mode)])) == ["nuts", "exact"]
    assert legend(plots.overlay([nuts, held(flat), flat_mode])) == ["nuts", "MAP"]
    assert "The MAP is withheld" in densities.hero([Fit(nuts), Fit(held(flat_mode))]).caption
    assert "The exact density is withheld" in densities.hero([Fit(nuts), Fit(held(flat))]).caption
    words = captions(densities.section([Fit(nuts), Fit(held(flat)), Fit(held(flat_mode))]))["densities of theta"]
    assert "Dashed" not in words
    assert "Dotted" not in words


def test_of_a_failed_fit_the_pictures_are_of_what_failed(topics):
    tree = held(topics)
    tree.attrs["facts"] = json.dumps(json.loads(tree.attrs["facts"]) | {"components_withheld": ""})
    assert free_of_labels(Fit(tree)) == ("invariants",)
    drawn = plots.trace(tree).viz["trace"]["value"]["quantity"].to_numpy()
    assert set(drawn) <= set(labels(Fit(tree), ("invariants",)))
    assert plots.trace(tree, ["topics[1, ant]"]).viz["trace"]["value"]["quantity"].to_numpy() == ["topics[1, ant]"]


@pytest.mark.slow
def test_of_very_many_quantities_the_first_are_shown_and_it_is_said(long, monkeypatch):
    monkeypatch.setattr(densities, "_chosen", lambda *_: [])  # which take their time
    words = captions(densities.section([Fit(called(long, "nuts")), Fit(called(long, "advi"))]))
    assert words["intervals of Sigma"].endswith("The first 36 of 49.")
    total = len(labels(Fit(long)))
    assert f"The first 24 of {total} quantities." in words["advi against nuts"]


def test_fits_with_fewer_draws_are_drawn_too(flat):
    short = called(flat, "nuts").isel(draw=slice(0, 300))
    trunks = plots.forest([flat, short]).viz["trunk"]["value"]
    expected = np.quantile(short["posterior"]["theta"], [0.25, 0.75])
    assert np.allclose(trunks.sel(model="nuts").item().get_xdata(), expected)


@pytest.mark.parametrize(("draw", "fits"), [(plots.forest, 1), (plots.forest, 2), (plots.overlay, 1)])
def test_the_axis_and_the_legend_of_one_quantity_are_whole(flat, draw, fits, tmp_path):
    collection = draw([flat, called(flat, "nuts")][:fits])
    collection.savefig(tmp_path / "forest.png")
    figure = collection.viz["figure"].item()
    ticks = [label.get_window_extent() for label in figure.axes[-1].get_xticklabels() if label.get_text()]
    assert min(box.y0 for box in ticks) >= 0
    assert figure.axes[-1].get_window_extent().height > 20
    assert all(one.get_window_extent().y1 <= min(box.y0 for box in ticks) for one in figure.legends)


def test_long_chains_are_thinned_in_traces_and_ranks_alone(flat, monkeypatch):
    tree = called(bz.fit(BETA(1, 1), COINS, "exact", seed=1, draws=5000), "nuts")
    seen = {}
    for name in ("trace", "rank"):
        draw = getattr(plots, name)
        spy = lambda tree, *a, name=name, draw=draw, **o: seen.update({name: tree}) or draw(tree, *a, **o)  # noqa: E731
        monkeypatch.setattr(plots, name, spy)
    words = captions(densities.section([Fit(tree)]))
    sizes = {name: one["posterior"].sizes["draw"] for name, one in seen.items()}
    assert sizes == {"trace": 500, "rank": 500}
    kept = seen["trace"]["posterior"]["draw"].to_numpy()
    assert (kept[0], kept[-1], set(np.diff(kept))) == (0, 4999, {10, 11})
    assert all("; 500 of its 5000 draws, evenly spaced" in words[f"{what} of theta"] for what in ("traces", "ranks"))


@pytest.fixture(scope="module")
def outlier():
    """Correlated draws of a mean, and a row far from the others."""
    model = bz.find("gaussian_mean")(m0=0.0, s0=10.0, sigma=1.0)
    tree = called(bz.fit(model, [*np.linspace(-1, 1, 11), 6.5], "exact", seed=1), "nuts")
    order = np.sort(tree["posterior"]["mu"].to_numpy(), axis=1)
    tree["posterior"] = xr.DataTree(tree["posterior"].to_dataset().assign(mu=(("chain", "draw"), order)))
    return tree


@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")
def test_the_k_hats_drawn_are_those_of_the_score(outlier):
    points = plots.khat(outlier).viz["khat"].to_dataset()["pareto_k"].item().get_offsets()
    drawn = points[np.isfinite(np.asarray(points)).all(axis=1)]
    assert np.asarray(drawn)[:, 0].tolist() == list(range(1, 13))
    theirs = arviz_stats.loo(bz.extend(outlier.copy(), ["log_likelihood"]), pointwise=True).pareto_k
    assert np.allclose(np.asarray(drawn)[:, 1], theirs, rtol=1e-9)
    try:
        largest = score.psis(Fit(outlier).model, Fit(outlier).observed, Fit(outlier).draws()).k_hat
    except score.NoScore as error:
        largest = error.k_hat
    assert max(np.asarray(drawn)[:, 1]) == pytest.approx(largest, rel=1e-9)
    line, sizes = plots.khat(outlier).viz["hline_0"].to_dataset()["pareto_k"].item(), outlier["posterior"].sizes
    assert set(line.get_ydata()) == {k_hat_limit(sizes["chain"] * sizes["draw"])} == {0.7}


def test_rows_whose_residuals_are_withheld_are_counted(outlier):
    words = captions(
        [checks.leave_one_out({"nuts": (Fit(outlier), None)}), checks.draw_residuals(checks.residuals(outlier))]
    )
    assert "Withheld of 1 of 12 rows: k-hat above 0.5" in words["residuals"]
    assert "left out of nuts" in words["k-hat of each observation"]
