"""A model in words: what ``bayeszoo list`` and ``bayeszoo show`` print."""

from __future__ import annotations

import sys
from dataclasses import Field, fields
from typing import Any, cast

from bayeszoo.fit import methods_for
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import capabilities
from bayeszoo.model.fields import Hyperparameter, hyperparameters, text


def in_brief(model: type[Model]) -> dict[str, Any]:
    """Return a model's name, first line, capabilities, methods and data sets."""
    return {
        "name": model.name,
        "about": notation(model).partition("\n")[0],
        "capabilities": list(capabilities(model)),
        "methods": methods_for(model),
        "data": [item.name for item in model.examples],
    }


def in_full(model: type[Model]) -> dict[str, Any]:
    """Return also its notation, fields, inputs, data and graph."""
    return {
        **in_brief(model),
        "notation": notation(model),
        "fields": [_field(f, hyperparameters(model)) for f in fields(cast(Any, model))],
        "inputs": model.inputs.describe(),
        "examples": {item.name: f"{item.about} ({item.source})" for item in model.examples},
        "graph": _graph(model),
    }


def _field(f: Field[Any], known: dict[str, Hyperparameter]) -> dict[str, Any]:
    """Return name, meaning and default, and the axes along which it may have an entry for each label."""
    about = known.get(f.name)
    along = f"; along {', '.join(about.axes)}" if about and about.axes else ""
    return {"field": f.name, "is": about.label + along if about else "", "default": text(f.default)}


def notation(model: type[Model]) -> str:
    """Return the docstring of the model's file: the model in ~ notation, and its sources."""
    return (sys.modules[model.__module__].__doc__ or "").strip()


def _graph(model: type[Model]) -> str:
    """Return the graph of the textbook declaration in Mermaid, which needs no program to be installed."""
    import numpy as np
    import pymc as pm

    instance = model()
    return str(pm.model_to_mermaid(instance.declare(instance.simulate(np.random.default_rng(0), 3)[1])))
