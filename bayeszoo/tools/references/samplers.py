"""Samplers of other libraries under one interface: from a log density with its gradient to chains of draws.

Each takes the arguments of a `Sampler` of the benchmark, runs four chains (emcee: an ensemble of walkers) from one
point with the library's defaults, and returns draws after warm-up, (chain, draw, D). The calls of a NUTS step are not
known in advance: each of the four chains has a hundredth of the budget as steps of warm-up, and as many draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from bayeszoo.errors import InputError
from bayeszoo.foundation.numerics.optimize import Gradient

type Sampler = Callable[[Gradient, int, np.ndarray, int, int], Any]
"""Takes a function of a point that returns log density and gradient, the dimension, a starting point, a seed and a
budget of calls; returns draws (draw, D) or (chain, draw, D), or a pair of draws and log evidence."""
CHAINS = 4
CALLS_PER_DRAW = 100
"""Calls for one draw of each chain: four steps of warm-up and four of sampling, of about twelve calls each."""


def sampler_named(name: str) -> Sampler:
    """Return the adapter of a library: one of ``blackjax``, ``emcee``, ``numpyro``, ``nutpie`` and ``pymc``.

    Raises
    ------
    InputError
        When the name is not one of these, or the library is not installed.
    """
    if name not in SAMPLERS:
        raise InputError(
            f"there is no sampler {name!r}", "unknown_name", hint=f"take one of {', '.join(sorted(SAMPLERS))}"
        )
    try:
        import_module(name)
    except ImportError:
        raise InputError(f"{name} is not installed", "not_installed", hint=f"pip install {name}") from None
    return SAMPLERS[name]


def _nutpie(log_density: Gradient, dim: int, init: np.ndarray, seed: int, budget: int) -> np.ndarray:
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    def same(seed1: object, seed2: object, chain: int) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        return lambda x: {"x": np.array(x)}

    names: Any = (["float64"], [(dim,)], ["x"])
    model = from_pyfunc(
        dim, lambda: log_density, same, *names, make_initial_point_fn=lambda seed: np.array(init, dtype=np.float64)
    )
    length = _length(budget)
    tree = nutpie.sample(
        model, draws=length, tune=length, chains=CHAINS, cores=1, seed=seed, progress_bar=False, save_warmup=False
    )
    return np.asarray(tree["posterior"]["x"])


def _pymc(log_density: Gradient, dim: int, init: np.ndarray, seed: int, budget: int) -> np.ndarray:
    import pymc as pm
    import pytensor

    with pytensor.config.change_flags(mode="FAST_COMPILE"), pm.Model():
        x = pm.Flat("x", shape=dim, initval=init)
        pm.Potential("height", _as_operation(log_density)(x)[0])
        length = _length(budget)
        step = pm.NUTS()
        tree = pm.sample(
            length, tune=length, chains=CHAINS, cores=1, step=step, random_seed=seed, progressbar=False,
            compute_convergence_checks=False, init="adapt_diag",
        )  # fmt: skip
    return np.asarray(tree["posterior"]["x"])


def _as_operation(log_density: Gradient) -> Any:
    """Return a PyTensor operation from a point to its log density and gradient."""
    import pytensor.tensor as pt
    from pytensor.graph import Apply, Op

    class LogDensity(Op):
        """A Python function with its gradient."""

        def make_node(self, x: Any) -> Apply:
            return Apply(self, [pt.as_tensor_variable(x)], [pt.dscalar(), pt.dvector()])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            value, gradient = log_density(inputs[0])
            outputs[0][0], outputs[1][0] = np.asarray(value, dtype=np.float64), np.asarray(gradient)

        def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
            return [cotangents[0] * outputs[1]]

    return LogDensity()


def _numpyro(log_density: Gradient, dim: int, init: np.ndarray, seed: int, budget: int) -> np.ndarray:
    import jax
    from numpyro.infer import MCMC, NUTS

    with _doubles():
        density, length = _in_jax(log_density, dim), _length(budget)
        chains = MCMC(
            NUTS(potential_fn=lambda x: -density(x)), num_warmup=length, num_samples=length, num_chains=CHAINS,
            chain_method="sequential", progress_bar=False,
        )  # fmt: skip
        chains.run(jax.random.key(seed), init_params=jax.numpy.tile(init, (CHAINS, 1)))
        return np.asarray(chains.get_samples(group_by_chain=True))


def _blackjax(log_density: Gradient, dim: int, init: np.ndarray, seed: int, budget: int) -> np.ndarray:
    import blackjax
    import jax

    with _doubles():
        density, length = _in_jax(log_density, dim), _length(budget)

        def chain(key: Any) -> Any:
            warm, run = jax.random.split(key)
            warmup = blackjax.window_adaptation(blackjax.nuts, density)
            (state, tuned), _ = warmup.run(warm, jax.numpy.asarray(init), length)
            step = blackjax.nuts(density, **tuned).step

            def after(state: Any, key: Any) -> tuple[Any, Any]:
                state, _ = step(key, state)
                return state, state.position

            return jax.lax.scan(after, state, jax.random.split(run, length))[1]

        keys = jax.random.split(jax.random.key(seed), CHAINS)
        return np.stack([np.asarray(jax.jit(chain)(key)) for key in keys])


@contextmanager
def _doubles() -> Iterator[None]:
    """Make JAX compute in double precision, also in its threads, which `jax.enable_x64` does not reach."""
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def _in_jax(log_density: Gradient, dim: int) -> Any:
    """Return a Python function with its gradient as a function that JAX can compile and differentiate."""
    import jax

    height, slope = (jax.ShapeDtypeStruct(shape, np.dtype("float64")) for shape in ((), (dim,)))

    def computed(x: Any) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = log_density(np.asarray(x))
        return np.asarray(value, dtype=np.float64), np.asarray(gradient, dtype=np.float64)

    def value_and_gradient(x: Any) -> Any:
        return jax.pure_callback(computed, (height, slope), x, vmap_method="sequential")

    @jax.custom_vjp
    def density(x: Any) -> Any:
        return value_and_gradient(x)[0]

    density.defvjp(value_and_gradient, lambda gradient, outer: (outer * gradient,))
    return density


def _emcee(log_density: Gradient, dim: int, init: np.ndarray, seed: int, budget: int) -> np.ndarray:
    import emcee

    walkers = max(32, 2 * dim + 2)
    rng = np.random.default_rng(seed)
    ensemble = emcee.EnsembleSampler(walkers, dim, lambda x: log_density(x)[0])
    ensemble.random_state = np.random.RandomState(rng.integers(2**32)).get_state()  # the type that emcee takes
    steps = max(budget // walkers, 8)
    ensemble.run_mcmc(init + 0.1 * rng.normal(size=(walkers, dim)), steps)
    return np.swapaxes(ensemble.get_chain(discard=steps // 4), 0, 1)


def _length(budget: int) -> int:
    return max(budget // CALLS_PER_DRAW, 100)


SAMPLERS: dict[str, Sampler] = {
    "blackjax": _blackjax,
    "emcee": _emcee,
    "numpyro": _numpyro,
    "nutpie": _nutpie,
    "pymc": _pymc,
}
"""Adapters by the name of the library."""
