"""A PyMC model as a Python script that builds the same model on the same data, with PyMC alone."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
from pymc.distributions.transforms import _default_transform
from pymc.initial_point import make_initial_point_fn
from pytensor.graph import Constant
from pytensor.scalar import Cast

from bayeszoo.compile.function import without_c
from bayeszoo.compile.script.distributions import CALLS, arguments, parameters
from bayeszoo.compile.script.expressions import Term, Writer
from bayeszoo.compile.script.literals import WIDTH, Names, literal, quoted, text_of_array, tuple_of

INDENT = "    "
IMPORTS = "import arviz as az\nimport numpy as np\nimport pymc as pm\nimport pytensor.tensor as pt\n"
TAIL = """

if __name__ == "__main__":
    expected = {height:.12g}  # the log joint density of the original at the initial point
    height = float(model.compile_logp()(model.initial_point()))
    assert abs(height - expected) <= 1e-9 * max(1.0, abs(expected)), f"{{height}} is not {{expected}}"
    with model:
        tree = pm.sample(random_seed=1)
    print(az.summary(tree))
"""


class Script:
    """Collects the parts of a script while the variables of a model are written in order of declaration."""

    def __init__(self, model: pm.Model) -> None:
        self.model, self.names = model, Names()
        self.writer = Writer(self.names, {})
        self.definitions, self.body = list[str](), list[str]()

    @property
    def text(self) -> str:
        """The script without heading and main block."""
        for variable in self.model.named_vars.values():
            self._declare(variable)
        arrays = "".join(f"{name} = {text_of_array(array)}\n" for name, array in self.names.arrays.items())
        coords = self._coords()
        opening = f"with pm.Model({'coords=coords' if coords else ''}) as model:\n"
        model = f"{opening}{textwrap.indent('\n'.join(self.body), INDENT)}"
        return "\n\n\n".join([f"{self._imports()}{arrays}{coords}".rstrip(), *self.definitions, model])

    def _imports(self) -> str:
        transform = "from pymc.distributions.transforms import Transform\n"
        return IMPORTS + transform * any(definition.startswith("class") for definition in self.definitions) + "\n"

    def _coords(self) -> str:
        used = {dim for dims in self.model.named_vars_to_dims.values() for dim in dims}
        entries = [
            f"{INDENT}{quoted(dim)}: {_labels(values)},\n"
            for dim, values in self.model.coords.items()
            if dim in used and values is not None
        ]
        return f"coords = {{\n{''.join(entries)}}}\n" if entries else ""

    def _declare(self, variable: Term) -> None:
        call = self._call(variable)
        self.body += self.writer.lines
        self.writer.lines.clear()
        name = self.names.new(variable.name)
        self.writer.known[variable] = name
        self.body.append(f"{name} = {call}")

    def _call(self, variable: Term) -> str:
        model, name = self.model, quoted(variable.name)
        dims = model.named_vars_to_dims.get(variable.name)
        axes = [f"dims={tuple_of(map(quoted, dims))}"] if dims else []
        if variable in model.data_vars:
            return _joined("Data", name, literal(variable.get_value(), self.names, variable.name), *axes)
        if variable in model.deterministics:
            return _joined("Deterministic", name, self.writer.text(variable), *axes)
        if variable in model.potentials:
            return _joined("Potential", name, self.writer.text(variable), *axes)
        return self._random(variable, axes)

    def _random(self, variable: Term, axes: list[str]) -> str:
        call = arguments(variable, self.writer)
        kind, call_arguments = call or ("CustomDist", self._spelled_out(variable))
        if variable.type.ndim and not axes:
            with without_c():
                axes = [f"shape={tuple(int(n) for n in variable.shape.eval())}"]
        observed = variable in self.model.observed_RVs
        if observed:
            axes.append(f"observed={self._observed(variable)}")
        elif (transform := self.model.rvs_to_transforms[variable]) is not None:
            axes += self._transform(variable, transform)
        if not observed and call is None:
            axes.append(f"initval={literal(self._start[variable.name], self.names, f'{variable.name}_start')}")
        return _joined(kind, quoted(variable.name), *call_arguments, *axes)

    def _observed(self, variable: Term) -> str:
        """Return the observed data; PyMC itself casts them to the type of the variable."""
        values = self.model.rvs_to_values[variable]
        if values.owner is not None and isinstance(getattr(values.owner.op, "scalar_op", None), Cast):
            values = values.owner.inputs[0]
        return (
            literal(values.data, self.names, variable.name)
            if isinstance(values, Constant)
            else self.writer.text(values)
        )

    @property
    def _start(self) -> Mapping[str, np.ndarray]:
        with without_c():
            return make_initial_point_fn(model=self.model, return_transformed=False)(0)

    def _spelled_out(self, variable: Term) -> list[str]:
        """Write the log density as a function; return the arguments of a custom distribution."""
        depends_on = parameters(variable)
        fresh = {v: v.type(name=v.name) for v in depends_on}
        node = variable.owner.op.make_node(*(fresh.get(v, v) for v in variable.owner.inputs))
        value = variable.type()
        log_density = pm.logp(node.outputs[variable.owner.outputs.index(variable)], value)
        names = self.names.inner()
        named = {fresh[v]: names.new((v.name or "number").removeprefix(f"{variable.name}_")) for v in depends_on}
        inner = Writer(names, {value: "value", **named})
        name = self.names.new(f"{variable.name}_logp")
        self.definitions.append(
            _function(f"{name}(value{''.join(f', {n}' for n in named.values())})", inner, log_density)
        )
        signature = getattr(variable.owner.op, "signature", None)
        kind = [f"dtype={quoted(variable.dtype)}"] if variable.dtype != "float64" else []
        return [
            *map(self.writer.text, depends_on),
            f"logp={name}",
            *([f"signature={quoted(signature)}"] if signature else []),
            *kind,
        ]

    def _transform(self, variable: Term, transform: Any) -> list[str]:
        """Write the class of a transform that is not PyMC's default for the variable."""
        if type(transform) is type(_default_transform(variable.owner.op, variable)):
            return []
        name, value = self.names.new(f"{variable.name}Transform"), self.model.rvs_to_values[variable].type()
        depends_on = parameters(variable)
        fresh = {v: v.type(name=v.name) for v in depends_on}
        inputs = [fresh.get(v, v) for v in variable.owner.inputs]
        places = [
            variable.owner.inputs.index(v) if type(variable.owner.op).__name__ in CALLS else i
            for i, v in enumerate(depends_on, 2)
        ]
        named = {fresh[v]: f"inputs[{place}]" for place, v in zip(places, depends_on, strict=True)}
        steps = {"forward": variable.type(), "backward": value, "log_jac_det": value}
        methods = []
        for step, point in steps.items():
            inner = Writer(self.names.inner(), {point: "value", **named})
            methods.append(_function(f"{step}(self, value, *inputs)", inner, getattr(transform, step)(point, *inputs)))
        body = textwrap.indent("\n\n".join([f"name = {quoted(transform.name)}", *methods]), INDENT)
        self.definitions.append(f"class {name}(Transform):\n{body}")
        return [f"default_transform={name}()"]  # ``transform`` would be applied in addition to PyMC's default


def _function(head: str, writer: Writer, output: Any) -> str:
    result = writer.text(output)
    if isinstance(output, Constant):
        result = f"pt.as_tensor_variable({result})"
    return f"def {head}:\n{textwrap.indent('\n'.join([*writer.lines, f'return {result}']), INDENT)}"


def _joined(kind: str, *parts: str) -> str:
    text = f"pm.{kind}({', '.join(parts)})"
    if len(text) <= 100:
        return text
    return f"pm.{kind}(\n{textwrap.indent(''.join(f'{part},\n' for part in parts), INDENT)})"


def _labels(values: Term) -> str:
    labels = [value.item() if isinstance(value, np.generic) else value for value in values]
    if labels == list(range(len(labels))):
        return f"range({len(labels)})"
    return f"[{', '.join(quoted(v) if isinstance(v, str) else repr(v) for v in labels)}]"


def script(model: pm.Model, about: str, height: float) -> str:
    """Return a script of a model that samples its posterior when it is run.

    ``height`` is the log joint density at the initial point, which the script checks.
    """
    heading = "".join(f"# {line}\n" for line in textwrap.wrap(about, WIDTH))
    return f"{heading}\n{Script(model).text}\n{TAIL.format(height=height)}"
