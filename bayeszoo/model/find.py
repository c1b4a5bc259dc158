"""Discovery: a file in ``bayeszoo.models`` is a model, and so is an installed entry point of that group."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from bayeszoo.errors import InputError
from bayeszoo.model.base import Model

GROUP = "bayeszoo.models"  # the package that holds our models, and the entry-point group of other people's


def builtin_names() -> list[str]:
    """Return the names of the models in our own package, sorted; none is imported."""
    package = importlib.import_module(GROUP)
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg)


def plugins() -> dict[str, EntryPoint]:
    """Return other people's installed models by name; none is imported, because a plug-in can do anything you can."""
    by_name: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        if point.name in by_name or point.name in builtin_names():
            raise InputError(f"two installed models are called {point.name!r}", hint="uninstall one of them")
        by_name[point.name] = point
    return by_name


def names() -> list[str]:
    """Return the names of all models at hand, sorted."""
    return sorted([*builtin_names(), *plugins()])


@cache
def find(name: str) -> type[Model]:
    """Return the class of the model called ``name``.

    Raises
    ------
    InputError
        When there is no such model, or its file does not define exactly the class that its name promises.
    """
    if not isinstance(name, str):
        raise InputError(f"a model's name is needed, got {name!r}", hint="see `bayeszoo list`")
    if name in builtin_names():
        return _only_model(name)
    if name in plugins():
        return _checked(_load(plugins()[name]), name)
    close = get_close_matches(name, names(), n=1)
    hint = f"did you mean {close[0]!r}?" if close else "see `bayeszoo list`"
    raise InputError(f"there is no model called {name!r}", hint=hint)


def _load(point: EntryPoint) -> object:
    try:
        return point.load()
    except Exception as error:  # it is other people's code: whatever it raises is about the plug-in
        hint = "ask its author, or uninstall it"
        raise InputError(f"the plug-in {point.name!r} cannot be imported: {error}", hint=hint) from error


def _only_model(name: str) -> type[Model]:
    module = importlib.import_module(f"{GROUP}.{name}")
    # asking a lazily loaded module for its __class__, as inspect.isclass does, would import PyMC
    classes = [value for value in vars(module).values() if issubclass(type(value), type)]
    models = [c for c in classes if issubclass(c, Model) and c.__module__ == module.__name__]
    if len(models) != 1:
        raise InputError(f"{name}.py defines {len(models)} models", hint="one file holds one model")
    return _checked(models[0], name)


def _checked(candidate: object, name: str) -> type[Model]:
    if not (inspect.isclass(candidate) and issubclass(candidate, Model)):
        raise InputError(f"the plug-in {name!r} is not a bayeszoo Model")
    if missing := sorted(candidate.__abstractmethods__):
        raise InputError(f"{candidate.__name__} lacks {', '.join(missing)}", hint="see CONTRACT.md")
    if candidate.name != name:
        raise InputError(f"{candidate.__name__} is called {candidate.name!r}, but is offered as {name!r}")
    return candidate
