"""The log density of a declared model over one flat vector, compiled once and shared by every method.

Why not the libraries' own entry points: nutpie compiles a fresh numba wrapper in every process (3.5 s warm for a model
that samples in 0.1 s), while the function compiled here, and its callbacks for nutpie, come from PyTensor's disk cache
(0.2 s). From Python the jitted function is called directly, without PyTensor's wrapper
(1.6 us instead of 5 us a call).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph import clone_replace

from bayeszoo.compile.fallback import function_of, is_out_of_range
from bayeszoo.compile.function import Function, without_c
from bayeszoo.errors import InputError, NoAddress
from bayeszoo.foundation.numerics.optimize import Gradient

if TYPE_CHECKING:
    import pymc as pm

    from bayeszoo.compile.native import Native


def improper(model: pm.Model) -> list[str]:
    """Name the free variables with a prior `pm.Flat` or `pm.HalfFlat`; other improper priors are not detected."""
    import pymc as pm

    flat = pm.Flat.rv_type, pm.HalfFlat.rv_type
    return [variable.name for variable in model.free_RVs if isinstance(variable.owner.op, flat)]


def no_evidence(model: pm.Model) -> str | None:
    """Return why a model has no evidence; None if it has one."""
    flat = improper(model)
    return f"log evidence is undefined under a flat prior ({', '.join(flat)})" if flat else None


def strict() -> Any:
    """Return a context in which numba keeps the order of additions in the code.

    Otherwise a freshly compiled function and the same one from the disk cache may differ in the last bit.
    """
    return pytensor.config.change_flags(numba__fastmath=False)


def untraced() -> Any:
    """Return a decorator that turns off PyTensor's traces of where operations were created, a tenth of the time."""
    return pytensor.config.change_flags(traceback__limit=0)


class Heights(NamedTuple):
    """Log densities at a point, in nats.

    ``joint`` includes the Jacobian of the transforms; the one of the constrained parameters is ``prior + likelihood``.
    """

    joint: float
    prior: float
    likelihood: float

    @property
    def constrained(self) -> float:
        """Log joint density of the constrained parameters, without the Jacobian."""
        return self.prior + self.likelihood


class Density:
    """A PyMC model, whose free variables are continuous, as functions of a flat unconstrained point of shape (size,).

    ``mode`` is PyTensor's: "NUMBA", which is fast to run, or "FAST_COMPILE", which is fast to compile. If PyTensor
    must compile functions instead of bayeszoo's loops, ``say`` is called once, and ``fallback`` is PyTensor's mode.
    """

    fallback = ""

    def __init__(self, model: pm.Model, mode: str = "NUMBA", say: Callable[[str], object] = str) -> None:
        if discrete := [v.name for v in model.free_RVs if v.dtype.startswith(("int", "uint", "bool"))]:
            self._refuse(discrete)
        self.model, self._mode, self._say = model, mode, say
        with without_c():
            self._start = model.initial_point()
        self.size = sum(int(np.size(value)) for value in self._start.values())
        self._flat = pt.vector("flat", shape=(self.size,), dtype="float64")

    def _refuse(self, discrete: list[str]) -> None:
        raise InputError(
            f"{', '.join(discrete)}: discrete variables have no gradient", "discrete_variables", hint="sum them out"
        )

    @cached_property
    def _parts(self) -> dict[Any, Any]:
        """Map each value variable to its slice of the flat vector."""
        parts, start = {}, 0
        for variable in self.model.value_vars:
            shape = np.shape(self._start[variable.name])
            size = int(np.prod(shape))
            parts[variable] = self._flat[start : start + size].reshape(shape).astype(variable.dtype)
            start += size
        return parts

    @untraced()
    def _compile(self, outputs: Iterable[object]) -> Function:
        with strict():
            function = function_of(self._flat, clone_replace(list(outputs), self._parts), self.start, self._mode)
        if function.instead and not self.fallback:
            self.fallback = function.mode
            self._say(f"loops cannot be compiled ({function.instead}): using PyTensor's slower function")
        return function

    def gradient_of(self, log_density: object) -> Gradient:
        """Compile a log density of the model, and its gradient, as a function of the flat point."""
        return self._without_errors(self._with_gradient(log_density))

    def _with_gradient(self, log_density: object) -> Function:
        gradients = self._gradients(log_density)
        return self._compile([log_density, pt.concatenate([g.ravel() for g in gradients])])

    def _without_errors(self, function: Function) -> Gradient:
        def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
            try:
                value, gradient = function(x)
            except ValueError as error:
                if not is_out_of_range(error):  # such as a scale that underflows
                    raise
                return -np.inf, np.full(len(x), np.nan)
            return float(value), np.ascontiguousarray(gradient)  # a single part may be a strided view

        return value_and_gradient

    def _gradients(self, log_density: object) -> list[Any]:
        return list(pt.grad(log_density, self.model.value_vars, disconnected_inputs="ignore"))

    @cached_property
    def joint(self) -> Gradient:
        """Log joint density of the *unconstrained* coordinates: the Jacobian of the transforms is included."""
        return self._without_errors(self._joint)

    @cached_property
    @untraced()
    def _joint(self) -> Function:
        return self._with_gradient(self.model.logp(jacobian=True))

    @cached_property
    def native(self) -> Native:
        """The log joint density of the unconstrained coordinates, and `constrain`, as nutpie calls them.

        Raises `NoAddress` if they have no address in memory.
        """
        functions = self._joint, self._constrain, self.joint
        expanded = sum(int(np.prod(shape)) for shape in self.shapes.values())
        try:
            from bayeszoo.compile.native import Native

            return Native(*functions, self.size, expanded)
        except Exception as error:  # internals of another version may fail in any way: PyMC's sampler serves
            raise NoAddress(f"no native density, {type(error).__name__}: {error}") from error

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each reported variable."""
        return {name: np.shape(value) for name, value in self.constrain(self.start).items()}

    @cached_property
    def constrained_joint(self) -> Gradient:
        """Log joint density of the *constrained* parameters (no Jacobian), with its unconstrained gradient."""
        return self.gradient_of(self.model.logp(jacobian=False))

    @cached_property
    def likelihood(self) -> Gradient:
        """Log likelihood alone: observed variables and potentials, without the prior."""
        terms = [*self.model.observed_RVs, *self.model.potentials]
        return self.gradient_of(self.model.logp(vars=terms, jacobian=False))

    @cached_property
    def heights(self) -> Callable[[np.ndarray], Heights]:
        """Log densities at a flat point, without gradients, which take most of the time to compile."""
        prior = self.model.logp(vars=self.model.free_RVs, jacobian=False)
        likelihood = self.model.logp(vars=[*self.model.observed_RVs, *self.model.potentials], jacobian=False)
        function = self._compile([self.model.logp(jacobian=True), prior, likelihood])

        def heights(x: np.ndarray) -> Heights:
            try:
                return Heights(*map(float, function(x)))
            except ValueError as error:
                if not is_out_of_range(error):
                    raise
                return Heights(-np.inf, -np.inf, -np.inf)

        return heights

    @property
    def start(self) -> np.ndarray:
        """The model's initial point, shape (D,)."""
        return self._flatten(self._start)

    def _flatten(self, point: Mapping[str, np.ndarray]) -> np.ndarray:
        values = [np.ravel(point[variable.name]) for variable in self.model.value_vars]
        return np.concatenate(values).astype(np.float64)

    @property
    def names(self) -> list[str]:
        """Parameters and deterministics that a posterior contains, in order of declaration."""
        return [variable.name for variable in self._reported]

    def moving(self, posterior: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return draws without constants: parameters with one possible value, and entries fixed by their transform.

        Arrays have the shape (chain, draw, ...). The weight of a single component is constant: no sampler moves it.
        """
        varying = dict(posterior)
        for variable in self.model.free_RVs:
            name, is_fixed = variable.name, getattr(self.model.rvs_to_transforms[variable], "fixed", None)
            if np.size(self._start[self.model.rvs_to_values[variable].name]) == 0:
                del varying[name]
            elif is_fixed is not None and name in varying:
                varying[name] = varying.pop(name)[:, :, ~is_fixed]
        return varying

    @property
    def _reported(self) -> list[Any]:
        return [*self.model.free_RVs, *self.model.deterministics]

    @cached_property
    def _constrain(self) -> Function:
        return self._compile(self.model.replace_rvs_by_values(self._reported))

    def constrain(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Map flat points, shape (..., D), to the model's parameters, each of shape (..., *parameter shape)."""
        if np.ndim(points) == 1:
            point = self._constrain(np.ascontiguousarray(points, dtype=np.float64))
            return {name: np.array(value) for name, value in zip(self.names, point, strict=True)}
        rows = np.ascontiguousarray(points, dtype=np.float64).reshape(-1, self.size)
        values = [[np.array(v) for v in self._constrain(row)] for row in rows]
        stacked = [np.stack(column) for column in zip(*values, strict=True)]
        return {
            name: column.reshape((*np.shape(points)[:-1], *column.shape[1:]))
            for name, column in zip(self.names, stacked, strict=True)
        }

    @cached_property
    def _unconstrain(self) -> Callable[..., Any]:
        inputs, outputs = [], []
        for variable in self.model.free_RVs:
            value, transform = variable.type(), self.model.rvs_to_transforms[variable]
            inputs.append(value)
            outputs.append(value if transform is None else transform.forward(value, *variable.owner.inputs))
        # a transform may need values of other parameters, not draws of them
        values = dict(zip(self.model.free_RVs, inputs, strict=True))
        outputs = clone_replace(outputs, values)
        with without_c():
            return pytensor.function(inputs, outputs, mode="FAST_COMPILE", on_unused_input="ignore")

    def unconstrain(self, params: Mapping[str, Any]) -> np.ndarray:
        """Map the model's parameters to the flat point, shape (D,)."""
        values = [np.asarray(params[variable.name], dtype=variable.dtype) for variable in self.model.free_RVs]
        return np.concatenate([np.ravel(value) for value in self._unconstrain(*values)])

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Names of the axes of each reported variable that has any."""
        dims = self.model.named_vars_to_dims
        return {name: tuple(dims[name]) for name in self.names if name in dims}

    @property
    def coords(self) -> dict[str, Any]:
        """Labels along the named axes of the reported variables."""
        used = {dim for dims in self.dims.values() for dim in dims}
        return {name: values for name, values in self.model.coords.items() if name in used and values is not None}
