"""Random variables of PyMC models as the calls that declare them."""

from __future__ import annotations

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Constant

from bayeszoo.compile.script.expressions import Term, Writer

BY_SCALE = "1 / "
"""Prefix of arguments whose inverse is the operation's input."""
CALLS: dict[str, tuple[str, ...]] = {
    "NormalRV": ("Normal", "mu", "sigma"),
    "HalfNormalRV": ("HalfNormal", "", "sigma"),
    "CauchyRV": ("Cauchy", "alpha", "beta"),
    "HalfCauchyRV": ("HalfCauchy", "", "beta"),
    "LaplaceRV": ("Laplace", "mu", "b"),
    "LogisticRV": ("Logistic", "mu", "s"),
    "LogNormalRV": ("LogNormal", "mu", "sigma"),
    "StudentTRV": ("StudentT", "nu", "mu", "sigma"),
    "UniformRV": ("Uniform", "lower", "upper"),
    "ParetoRV": ("Pareto", "alpha", "m"),
    "BetaRV": ("Beta", "alpha", "beta"),
    "GammaRV": ("Gamma", "alpha", "1 / beta"),
    "InvGammaRV": ("InverseGamma", "alpha", "beta"),
    "ExponentialRV": ("Exponential", "scale"),
    "GumbelRV": ("Gumbel", "mu", "beta"),
    "VonMisesRV": ("VonMises", "mu", "kappa"),
    "TriangularRV": ("Triangular", "lower", "c", "upper"),
    "BernoulliRV": ("Bernoulli", "p"),
    "BinomialRV": ("Binomial", "n", "p"),
    "BetaBinomialRV": ("BetaBinomial", "n", "alpha", "beta"),
    "PoissonRV": ("Poisson", "mu"),
    "NegBinomialRV": ("NegativeBinomial", "n", "p"),
    "GeometricRV": ("Geometric", "p"),
    "CategoricalRV": ("Categorical", "p"),
    "DirichletRV": ("Dirichlet", "a"),
    "MultinomialRV": ("Multinomial", "n", "p"),
    "MvNormalRV": ("MvNormal", "mu", "cov"),
    "ZeroSumNormalRV": ("ZeroSumNormal", "sigma"),
}
"""Distributions written by PyMC's name: the name, and the arguments for the inputs of the operation."""


def arguments(variable: Term, writer: Writer) -> tuple[str, list[str]] | None:
    """Return PyMC's name of a random variable's distribution and its arguments; None if it must be spelled out."""
    op, inputs = variable.owner.op, variable.owner.inputs
    kind = type(op).__name__
    if kind in CALLS:
        name, *names = CALLS[kind]
        numbers = op.dist_params(variable.owner)
        return name, [_argument(*pair, writer) for pair in zip(names, numbers, strict=False) if pair[0]]
    if kind == "MixtureRV":
        _, weights, *components = inputs
        laws = [_unnamed(component, writer) for component in components]
        if None not in laws:
            components_text = str(laws[0]) if len(laws) == 1 else f"[{', '.join(map(str, laws))}]"
            return "Mixture", [f"w={writer.text(weights)}", f"comp_dists={components_text}"]
    if kind == "TruncatedRV" and type(op.base_rv_op).__name__ in CALLS:
        *base, lower, upper = inputs
        law = _unnamed(op.base_rv_op.make_node(*base).outputs[1], writer)
        ends = {"lower": lower, "upper": upper}
        return "Truncated", [
            str(law),
            *(f"{key}={writer.text(end)}" for key, end in ends.items() if not _is_infinite(end)),
        ]
    return None


def _unnamed(variable: Term, writer: Writer) -> str | None:
    call = arguments(variable, writer)
    return call and f"pm.{call[0]}.dist({', '.join(call[1])})"


def _is_infinite(end: Term) -> bool:
    return isinstance(end, Constant) and bool(np.isinf(end.data))


def _argument(name: str, number: Term, writer: Writer) -> str:
    while number not in writer.known and number.owner is not None and number.owner.op == pt.second:
        number = number.owner.inputs[1]  # PyMC fills the shape of another argument itself
    if not name.startswith(BY_SCALE):
        return f"{name}={writer.argument(number)}"
    owner = number.owner
    inverse = owner.inputs[0] if owner and owner.op == pt.reciprocal else 1 / number
    return f"{name.removeprefix(BY_SCALE)}={writer.argument(inverse)}"


def parameters(variable: Term) -> list[Term]:
    """Return the parameters of a distribution, without random generators and sizes."""
    op, inputs = variable.owner.op, variable.owner.inputs
    if hasattr(op, "dist_params"):
        return list(op.dist_params(variable.owner))
    return [v for v in inputs if isinstance(v.type, pt.TensorType)]
