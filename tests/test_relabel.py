"""Labels in draws of any sampler: what was scrambled comes back, nothing else changes, and all is undone."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import bayeszoo as bz
from tests.refusals import raises

SHAPE, K = (4, 200), 3


def components(seed=0):
    """Draws of a hidden Markov model of three states far apart, without label switching."""
    rng = np.random.default_rng(seed)
    return {
        "weights": rng.dirichlet([40, 60, 20], size=SHAPE),
        "means": np.array([[0.0, 1.0], [5.0, 0.0], [-5.0, 2.0]]) + 0.3 * rng.normal(size=(*SHAPE, K, 2)),
        "transition": rng.dirichlet([30, 20, 10], size=(*SHAPE, K)),
        "scale": rng.gamma(3, size=SHAPE),
    }


def scrambled(values, seed=1):
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.broadcast_to(np.arange(K), (*SHAPE, K)), axis=-1)
    moved = dict(values)
    moved["weights"] = np.take_along_axis(values["weights"], orders, axis=2)
    moved["means"] = np.take_along_axis(values["means"], orders[..., None], axis=2)
    rows = np.take_along_axis(values["transition"], orders[..., None], axis=2)
    moved["transition"] = np.take_along_axis(rows, orders[:, :, None], axis=3)
    return moved


AXES = {"weights": ("state",), "means": ("state", "column"), "transition": ("state", "state_2")}


def tree_of(values, named=AXES):
    """Make a tree whose axes have these names, or ArviZ's own."""
    auto = {name: [f"{name}_dim_{i}" for i in range(v.ndim - 2)] for name, v in values.items()}
    dims = {name: ("chain", "draw", *named.get(name, auto[name])[: v.ndim - 2]) for name, v in values.items()}
    return xr.DataTree.from_dict({"posterior": xr.Dataset({name: (dims[name], v) for name, v in values.items()})})


def test_scrambled_labels_come_back_in_one_order_and_the_tree_as_it_was():
    values = components()
    tree = tree_of(scrambled(values))
    answer = bz.relabel(tree)
    assert answer.axes == {"weights": (0,), "means": (0,), "transition": (0, 1)}
    posterior = answer.tree["posterior"]
    order = [int(np.argmin(np.abs(posterior["means"].to_numpy()[0, 0, :, 0] - x))) for x in (0.0, 5.0, -5.0)]
    np.testing.assert_array_equal(posterior["means"].to_numpy()[:, :, order], values["means"])
    np.testing.assert_array_equal(posterior["weights"].to_numpy()[:, :, order], values["weights"])
    np.testing.assert_array_equal(posterior["transition"].to_numpy()[:, :, order][..., order], values["transition"])
    assert (answer.r_hat["after"] < 1.05).all()
    for name, draws in tree["posterior"].data_vars.items():
        np.testing.assert_array_equal(answer.undone()["posterior"][name], draws)


def test_signs_and_order_of_factors_come_back():
    rng = np.random.default_rng(0)
    loadings = np.array([[3.0, 0.1], [2.0, -1.0], [0.2, 1.5], [1.0, 1.0]]) + 0.1 * rng.normal(size=(*SHAPE, 4, 2))
    signs = rng.choice([-1.0, 1.0], size=(*SHAPE, 2))
    tree = tree_of({"loadings": (loadings * signs[:, :, None])[..., ::-1]})
    answer = bz.relabel(tree, {"loadings": 1}, signed=True)
    np.testing.assert_array_equal(answer.tree["posterior"]["loadings"], loadings)
    np.testing.assert_array_equal(answer.undone()["posterior"]["loadings"], tree["posterior"]["loadings"])


def mixture(different):
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.ones(K))
        means = pm.Normal("means", np.arange(3.0) if different else np.zeros(3), np.full(3, 4.0), shape=K)
        pm.NormalMixture("y", weights, means, np.float64(1), observed=np.linspace(-6.0, 6.0, 9))
    return model


def test_the_density_is_the_same_or_relabelling_is_refused():
    values = components()
    tree = tree_of({"weights": values["weights"], "means": values["means"][..., 0]})
    moved = tree_of({"weights": values["weights"][..., ::-1], "means": values["means"][..., ::-1, 0]})
    both = tree_of({n: np.concatenate([tree["posterior"][n], moved["posterior"][n]]) for n in ("weights", "means")})
    assert bz.relabel(both, model=mixture(different=False)).r_hat["after"].max() < 1.05
    with raises(bz.NumericalError, "not_exchangeable"):
        bz.relabel(both, model=mixture(different=True))


@pytest.mark.parametrize(
    ("axes", "code"),
    [({"nothing": 0}, "unknown_name"), ({"means": 2}, "wrong_shape"), ({"means": 1, "weights": 0}, "wrong_shape")],
)
def test_axes_that_cannot_be_are_refused(axes, code):
    with raises(bz.InputError, code):
        bz.relabel(tree_of(components()), axes)


def test_as_many_columns_as_components_are_not_taken_for_labels():
    """By their names; axes without names that are as long by chance are refused."""
    rng = np.random.default_rng(0)
    switched = rng.random(SHAPE) < 0.5
    values = {
        "weights": rng.dirichlet([50, 30], SHAPE),
        "means": np.array([[0.0, 10.0], [5.0, -3.0]]) + 0.1 * rng.normal(size=(*SHAPE, 2, 2)),
    }
    swapped = {n: np.where(switched.reshape(*SHAPE, *[1] * (v.ndim - 2)), v[:, :, ::-1], v) for n, v in values.items()}
    means = bz.relabel(tree_of(swapped)).tree["posterior"]["means"].mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(means[np.argsort(means[:, 0])], [[0, 10], [5, -3]], atol=0.05)
    with raises(bz.InputError, "ambiguous_labels", "means"):
        bz.relabel(tree_of(swapped, named={}))
    with raises(bz.InputError, "ambiguous_labels", "scale"):
        bz.relabel(tree_of({**swapped, "scale": rng.gamma(3, size=(*SHAPE, 2))}, AXES | {"scale": ("column",)}))


def test_a_matrix_of_transitions_without_names_is_refused():
    with raises(bz.InputError, "ambiguous_labels", "transition"):
        bz.relabel(tree_of(components(), named={}))
    with raises(bz.InputError, "ambiguous_labels", "transition"):
        bz.relabel(tree_of(components(), AXES | {"transition": ("state", "next")}))


def test_without_one_vector_of_probabilities_the_axes_must_be_told():
    with raises(bz.InputError, "ambiguous_labels"):
        bz.relabel(tree_of({"means": components()["means"]}))
