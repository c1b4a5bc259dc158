"""Pictures of fits: what is drawn is what the fit and the closed form say."""

import re
import warnings

import matplotlib.colors
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import xarray as xr
from arviz_plots import PlotCollection
from matplotlib.figure import Figure

import bayeszoo as bz
from bayeszoo.distributions.averages.integrated import InnerMarginal
from bayeszoo.plots import fits as plots
from bayeszoo.plots import style as pictures
from bayeszoo.results.quantities import draws_of, exact_densities, labels, modes
from bayeszoo.results.stored import Fit
from tests.refusals import raises

pytestmark = pytest.mark.usefixtures("closed")


def lines(collection, visual):
    """The lines of one visual by quantity, as drawn."""
    found = collection.viz[visual]["value"]
    return {str(label): found.sel(quantity=label).item() for label in found["quantity"].to_numpy()}


def test_scalars_are_labelled_as_in_the_table(exact):
    assert labels(Fit(exact)) == ["mu", "lam", "sigma"]
    found = draws_of(Fit(exact), ["sigma", "mu"])["value"]
    assert found.dims == ("chain", "draw", "quantity")
    assert np.array_equal(found.sel(quantity="mu"), exact["posterior"]["mu"])
    assert np.array_equal(found.sel(quantity="sigma"), exact["derived"]["sigma"])


def test_exact_densities_are_those_of_scipy_and_of_matrices_entry_by_entry(nuts):
    curve = exact_densities(Fit(nuts), ["theta"])["value"].sel(quantity="theta")
    x, density = curve.sel(plot_axis="x"), curve.sel(plot_axis="y")
    assert np.allclose(density, scipy.stats.beta(8, 5).pdf(x), rtol=2e-3, atol=1e-4)
    model = bz.find("normal_inverse_wishart")
    tree = bz.fit(model.weak(bz.example(model)), method="exact", seed=1)
    chosen = [label for label in labels(Fit(tree)) if label.startswith("mu")]
    found = exact_densities(Fit(tree), chosen)["value"]
    for label, mean in zip(chosen, tree["exact"]["mu"].sel(statistic="mean").to_numpy().ravel(), strict=True):
        x, density = found.sel(quantity=label).to_numpy()
        assert abs(x[np.argmax(density)] - mean) < (x[-1] - x[0]) / 100


def test_exact_densities_over_a_grid_are_computed_of_the_entries_that_are_drawn_alone(monkeypatch):
    groups = {"successes": np.arange(40) % 7, "trials": np.full(40, 9)}
    tree = bz.fit(bz.find("beta_binomial")(), groups, "exact", seed=1, groups=())
    whole, numbers = Fit(tree).posterior["theta"], []
    mixed = InnerMarginal._mixed
    counted = lambda self, law, x: numbers.append(np.size(x)) or mixed(self, law, x)  # noqa: E731
    monkeypatch.setattr(InnerMarginal, "_mixed", counted)
    curves = exact_densities(Fit(tree), ["mean", "theta[3]", "theta[40]"])["value"]
    assert sum(numbers) < 2 * 400  # two entries of forty, 241 points and some steps to each end
    for label, entry in (("theta[3]", 2), ("theta[40]", 39)):
        x, density = curves.sel(quantity=label).to_numpy()
        edges = np.array([x[50], x[120], x[200]])
        below = whole.cdf(np.broadcast_to(edges[:, None], (3, 40)))[:, entry]
        between = [scipy.integrate.simpson(density[a : b + 1], x=x[a : b + 1]) for a, b in ((50, 120), (120, 200))]
        assert np.allclose(np.diff(below), between, rtol=0, atol=2e-6)


def test_the_mode_is_that_of_the_joint_density(exact, at_mode):
    closed, found = (modes(Fit(tree), ["mu", "lam"])["value"].to_numpy() for tree in (exact, at_mode))
    assert np.array_equal(closed, found)
    assert np.array_equal(found, [at_mode["posterior"][name].item() for name in ("mu", "lam")])


def test_the_overlay_draws_the_exact_density_and_the_mode(exact, at_mode):
    collection = plots.posterior([exact, at_mode], ["mu", "sigma"])
    assert isinstance(collection, PlotCollection)
    curve = exact_densities(Fit(exact), ["mu", "sigma"])["value"]
    for label, line in lines(collection, "exact").items():
        assert np.array_equal(np.transpose(line.get_data()), curve.sel(quantity=label).to_numpy().T)
        assert line.get_linestyle() == "--"
    for label, line in lines(collection, "mode").items():
        assert set(line.get_xdata()) == {modes(Fit(at_mode), [label])["value"].item()}
    shown = [text.get_text() for text in collection.viz["figure"].item().legends[0].get_texts()]
    assert shown == ["draws of exact", "exact", "MAP"]


@pytest.mark.parametrize("draw", [plots.posterior, plots.overlay, plots.forest])
def test_one_fit_is_drawn_as_a_list_of_it_and_nothing_else_is_taken_for_fits(draw, exact):
    one, several = ([len(axes.lines) for axes in draw(fits).viz["figure"].item().axes] for fits in (exact, [exact]))
    assert one == several
    assert sum(one) > 0
    with raises(bz.InputError, "not_a_fit"):
        draw({"mine": exact})


def test_what_cannot_be_drawn_is_refused(exact, at_mode, nuts):
    bad = nuts.copy()
    bad.attrs["status"] = "failed"
    for draw in (plots.posterior, plots.forest):
        with raises(bz.Untrustworthy, "withheld"):
            draw([bad])
    for call, message in (
        (lambda: draws_of(Fit(exact), ["nu"]), ("unknown_name", "quantity", "'nu'")),
        (lambda: plots.posterior([exact, nuts]), ("not_comparable",)),
        (lambda: plots.overlay([bad]), ("no_draws",)),
        *((lambda draw=draw: draw(exact), ("no_draws",)) for draw in (plots.trace, plots.rank, plots.ess)),
        (lambda: plots.energy(exact), ("no_draws",)),
        (lambda: plots.khat(at_mode), ("no_draws", "posterior")),
    ):
        with raises(bz.InputError, *message):
            call()


@pytest.mark.parametrize("draw", [plots.rank, plots.ess, plots.energy, plots.forest, plots.posterior, plots.khat])
def test_every_picture_of_a_sampler_is_a_plot_collection(nuts, draw):
    assert isinstance(draw(nuts), PlotCollection)


def test_traces_are_the_draws(nuts):
    collection = plots.trace(nuts)
    drawn = collection.viz["trace"]["value"].sel(quantity="theta", chain=2).item()
    assert np.array_equal(drawn.get_ydata(), nuts["posterior"]["theta"].sel(chain=2))
    (axes,) = [each for each in plots.energy(nuts).viz["figure"].item().axes if each.get_ylabel() == "Chain"]
    assert all(float(place).is_integer() for place in axes.get_yticks())  # chains are counted in whole numbers


def test_divergent_transitions_are_marked(exact):
    tree = exact.copy()
    tree.attrs["kind"] = "sampled"
    diverging = np.zeros(exact["posterior"]["mu"].shape, dtype=bool)
    diverging[0, 3] = True
    tree["sample_stats"] = xr.Dataset({"diverging": exact["posterior"]["mu"].copy(data=diverging)})
    collection = plots.pair(tree, ["mu", "lam"])
    red = matplotlib.colors.to_rgb(plots.MODE)
    marks = [art for panel in collection.viz["figure"].item().axes for art in panel.collections]
    points = [art.get_offsets().tolist() for art in marks if np.allclose(art.get_facecolor()[:, :3], red)]
    values = [float(tree["posterior"][name][0, 3]) for name in ("mu", "lam")]
    assert [point for some in points for point in some] == [values]


def test_shrinkage_shows_what_is_too_sure(exact):
    narrow = exact.copy(deep=True)
    mean = narrow["posterior"]["mu"].mean()
    narrow["posterior"]["mu"] = mean + 0.5 * (narrow["posterior"]["mu"] - mean)
    narrow.attrs["method"] = "advi"
    collection = plots.shrinkage(narrow, exact, ["mu"])
    assert collection.viz["trunk"]["value"]["quantity"].item() == "mu  (sd ratio 0.50)"
    twigs = collection.viz["twig"]["value"]
    wide, short = (np.ptp(twigs.sel(model=name).item().get_xdata()) for name in ("exact", "advi"))
    assert short == pytest.approx(0.5 * wide)


def test_user_text_is_no_formula_and_no_figure_stays_open():
    import matplotlib.pyplot as plt

    model, before = bz.find("normal_inverse_wishart"), plt.get_fignums()
    table = {"$x_1\N{CARROT}": [1.0, 2.0, 0.5, 1.5, 2.2], "\\frac{$": [0.1, 0.4, 0.9, 0.2, 0.3]}
    tree = bz.fit(model.weak(bz.read(model, table)), table, "exact", seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a character that no font has
        image = pictures.svg(lambda: plots.posterior(tree))
    assert image.startswith(b"<?xml")
    assert image == pictures.svg(lambda: plots.posterior(tree))
    assert plt.get_fignums() == before


def test_powers_of_ten_are_plain_numbers_and_coordinates_of_paths_alone_are_rounded():
    figure = Figure()
    axes = figure.subplots()
    axes.plot(np.geomspace(0.01, 100.0, 50), np.random.default_rng(0).normal(size=50))
    axes.set(xscale="log")
    image = pictures.svg(lambda: figure).decode()
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert {"0.01", "1", "100"} <= set(shown)
    assert not any("$" in text for text in shown)
    paths = re.findall(r' d="([^"]*)"', image)
    assert len(paths) > 10
    assert not any(re.search(r"\.\d{3}", path) for path in paths)
    assert re.search(r"translate\(\d+\.\d{3}", image)


def test_a_long_title_has_lines_no_wider_than_its_panel():
    figure = Figure()
    axes = figure.subplots()
    axes.set_title("w[share of households in the municipality, in per cent]")
    pictures.svg(lambda: figure)
    assert axes.get_title() == "w[share of households in the\nmunicipality, in per cent]"


def test_what_is_the_same_in_every_draw_has_no_pictures(exact):
    from bayeszoo.report.densities import section

    tree = exact.copy(deep=True)
    tree["posterior"]["lam"] = tree["posterior"]["lam"] * 0
    (densities,) = section([Fit(tree)])
    assert [block.alt for block in densities.blocks] == ["densities of mu, sigma"]


def test_long_names_leave_room_for_the_intervals():
    name = "a_name_of_a_measurement_in_kilograms_per_square_metre"
    table = {name: np.arange(6.0), "y": [0.1, 0.9, 2.2, 2.8, 4.1, 5.2]}
    tree = bz.fit(bz.find("linear_regression")(), table, "exact", seed=1)
    with pictures.styled():
        figure = plots.forest(tree).viz["figure"].item()
        figure.draw_without_rendering()
    names, intervals = figure.axes
    assert any(name in text.get_text() for text in names.texts)
    drawn = intervals.get_window_extent()
    assert max(text.get_window_extent().x1 for text in names.texts) <= drawn.x0
    assert drawn.width > 4 * figure.dpi
