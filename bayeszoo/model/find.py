"""Discovery of models: files in ``bayeszoo.models``, installed entry points of that group, and files named by users."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from difflib import get_close_matches
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol, cast

from bayeszoo.errors import Caution, InputError, NumericalError
from bayeszoo.model.base import Model, fields_of
from bayeszoo.model.other_names import called
from bayeszoo.model.outer.over import OVER, kind_over
from bayeszoo.model.outer.over_fields import OverFields

GROUP = "bayeszoo.models"  # the package of the zoo's models, and the entry-point group of plug-ins
_IN_FILE = re.compile(r"(.+\.py)(?::(\w*))?")


class OwnFile(NamedTuple):
    """A user's model: the name of its file, its class, and the SHA-256 of the text that was run."""

    file: str
    kind: str
    digest: str

    def is_named(self, word: str) -> bool:
        """Say whether a word of a command names this file and class, in any folder."""
        place = _IN_FILE.fullmatch(word)
        return place is not None and (Path(place[1]).name, place[2]) == (self.file, self.kind)


def names_a_file(word: str) -> bool:
    """Say whether a word of a command names a file that would be run."""
    return _IN_FILE.fullmatch(word) is not None


_FILES: dict[type[Model], OwnFile] = {}
"""The file of each class that was loaded from a file."""
_USERS: list[User] = []
"""The user of the command line; empty in Python."""
_PLUG_IN = "plug-in"
"""The key of plug-in names in the list of named files, where files have their digests as keys."""
_LENT: list[type[Model]] = []
"""Classes that the user passed for the model of a fit, the latest last."""


def builtin_names() -> list[str]:
    """Return the names of the models in our own package, sorted; none is imported."""
    package = importlib.import_module(GROUP)
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg)


def plugins() -> dict[str, EntryPoint]:
    """Return installed plug-ins by name; none is imported, because a plug-in can run any code."""
    by_name: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        if point.name in by_name or point.name in builtin_names():
            raise InputError(f"two installed models are called {point.name!r}", "duplicate_name", hint="uninstall one")
        by_name[point.name] = point
    return by_name


def names() -> list[str]:
    """Return the names of all available models, sorted."""
    return sorted([*builtin_names(), *plugins()])


def find(name: str) -> type[Model]:
    """Return the class of a model.

    Parameters
    ----------
    name : str
        The name of a model of the zoo or of an installed plug-in; or a file and a class in it, such as
        ``"path/to/my_model.py:MyModel"``. The file is run, as ``python my_model.py`` would run it, and again when its
        text has changed. It can import installed packages, and no other file of its folder.

    Raises
    ------
    InputError
        When there is no such model, its file cannot be run or does not define the class, or the class lacks a step.
    """
    if not isinstance(name, str):
        raise InputError(f"a model's name is needed, got {name!r}", "not_a_model", hint="see `bayeszoo list`")
    if place := _IN_FILE.fullmatch(name):
        if not place[2]:
            raise InputError(f"{place[1]} is a file: name its class", "class_not_named", hint=f"write {place[1]}:CLASS")
        model = _in_file(Path(place[1]), place[2])
        _remember(_FILES[model].digest, str(Path(place[1]).resolve()))
        return model
    model = by_name(name)
    if name not in builtin_names():
        _remember(_PLUG_IN, name)
    return model


@cache
def by_name(name: str) -> type[Model]:
    """Return the class of a model of the zoo or of a plug-in."""
    if name in builtin_names():
        return _only_model(name)
    if name in plugins():
        return _checked(_load(plugins()[name]), name)
    raise InputError(f"there is no model called {name!r}", "unknown_model", hint=_instead(name))


def _instead(name: str) -> str:
    """Suggest a model for a name that does not exist."""
    if answers := called(name, names()):
        return f"for {answers[0].name}: {answers[0].answer}"
    close = get_close_matches(name, names(), n=1)
    return f"did you mean {close[0]!r}?" if close else "see `bayeszoo find WORDS` and `bayeszoo list`"


class Reference(NamedTuple):
    """A reference by which another process rebuilds a model."""

    name: str
    own: OwnFile | None
    fields: dict[str, Any]

    @classmethod
    def of(cls, model: Model) -> Reference:
        """Refer to a model."""
        return cls(model.name, own_file(type(model)), fields_of(model))

    def model(self) -> Model:
        """Rebuild the model; the referring process has already loaded its class."""
        is_named = self.own is None and not self.name.startswith(OVER)
        kind = by_name(self.name) if is_named else find_again(self.name, self.own)
        return kind(**self.fields)

    def is_of(self, model: Model) -> bool:
        """Say whether it refers to a model of the same class."""
        try:
            return type(self.model()) is type(model)
        except InputError:
            return False


# Files


def own_file(model: type[Model]) -> OwnFile | None:
    """Return the file of a class, if it was loaded from a file that a user named."""
    if issubclass(model, OverFields) and (base_file := _FILES.get(model.of)):
        return base_file._replace(kind=model.__name__)
    return _FILES.get(model)


class User(Protocol):
    """A user at a terminal."""

    def ask(self, question: str) -> str:
        """Return the answer; empty if nobody can be asked."""
        ...

    def note(self, line: str) -> None:
        """Print a line."""
        ...


def with_user(user: User) -> None:
    """Tell this user which file a fit runs, and ask for files that were not named before."""
    _USERS[:] = [user]


def lend(model: type[Model]) -> None:
    """Use this class for fits whose model has its name."""
    _LENT.append(_complete(model, getattr(model, "__name__", "what was given")))


def find_again(name: str, file: OwnFile | None) -> type[Model]:
    """Return the class of a fit's model: from the zoo, or a plug-in or file that the user has named, now or earlier.

    A fit alone never runs code: it may come from anybody, and so may the file next to it.
    """
    if name.startswith(OVER) and (file is None or file.kind.startswith("Over")):
        base = file and file._replace(kind=file.kind.removeprefix("Over"))
        return kind_over(cast(Any, find_again(name.removeprefix(OVER), base)))
    if file is None:
        return _found_again_by_name(name)
    if loaded := [model for model, loaded_file in _FILES.items() if loaded_file == file]:
        return loaded[-1]
    places = [Path(place) for place in _named(file.digest)]
    for path in places:
        if path.is_file() and _digest_of(_text_of(path)) == file.digest:
            for user in _USERS:
                user.note(f"note: the model is {path}:{file.kind}, SHA-256 {file.digest[:12]}, which was named before")
            return _in_file(path, file.kind)
    state = f"is no longer, or no longer the same, at {places[0]}" if places else "has not been named here"
    return _lent(file) or _file_of_user(file, state)


def _found_again_by_name(name: str) -> type[Model]:
    if name in builtin_names():
        return by_name(name)
    if lent := [model for model in _LENT if model.name == name and own_file(model) is None]:
        return lent[-1]
    if name in plugins():
        if name in _named(_PLUG_IN):
            return by_name(name)
        hint = f"name it once: bayeszoo show {name}"
        raise InputError(
            f"the fit uses the plug-in {name!r}, which has not been named here", "unknown_model", hint=hint
        )
    hint = "in Python: bz.load(path, model=CLASS)"
    raise InputError(f"the fit uses {name!r}, which is not a model of the zoo", "unknown_model", hint=hint)


def _lent(file: OwnFile) -> type[Model] | None:
    """Return the latest class passed for a class of this name; None without one."""
    lent = next((model for model in reversed(_LENT) if model.__name__ == file.kind), None)
    if lent is not None:
        _say_if_changed(file, lent)
    return lent


@cache
def _say_if_changed(file: OwnFile, model: type[Model]) -> None:
    current = own_file(model)
    if current is None or current.digest != file.digest:
        digest = "a class without a file" if current is None else f"SHA-256 {current.digest[:12]}"
        problem = f"the fit was made by {file.kind} in {file.file}, SHA-256 {file.digest[:12]}, and read with {digest}"
        warnings.warn(f"{problem}: its numbers may belong to another model", Caution, stacklevel=4)


def _file_of_user(file: OwnFile, state: str) -> type[Model]:
    """Ask the user for the file of a class; if nobody can be asked, say how to name it."""
    problem = f"the fit uses {file.kind} in {file.file} (SHA-256 {file.digest[:12]}), which {state}"
    question = f"{problem}. Path of that file, which will be run, or Enter to stop: "
    if place := next((user.ask(question) for user in _USERS), ""):
        lend(find(place if _IN_FILE.fullmatch(place) and ".py:" in place else f"{place}:{file.kind}"))
        return cast(type[Model], _lent(file))
    hint = f"name the same file: --model-file FOLDER/{file.file}:{file.kind}, or bz.load(path, model={file.kind})"
    raise InputError(problem, "bad_model_file", hint=hint)


def _named_file() -> Path:
    """Return the path of the user's list of named files, with their digests, and named plug-ins."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "bayeszoo", "named_files")


def _named(key: str) -> list[str]:
    """Return the paths at which a text was named, or the named plug-ins, latest first."""
    if not _named_file().is_file():
        return []
    try:
        lines = _named_file().read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [line.partition(" ")[2] for line in reversed(lines) if line.startswith(f"{key} ")]


def _remember(key: str, value: str) -> None:
    """Add a line to the list of named files; if it cannot be written, the file must be named again."""
    if len(value.splitlines()) == 1 and value not in _named(key)[:1]:
        with suppress(OSError):
            _named_file().parent.mkdir(parents=True, exist_ok=True)
            if _named_file().exists() and not _named_file().is_file():
                return
            with _named_file().open("a", encoding="utf-8", errors="surrogateescape") as out:
                out.write(f"{key} {value}\n")


def _in_file(path: Path, kind: str) -> type[Model]:
    text, place = _text_of(path), str(path.resolve())
    module = _run(place, text)
    candidate = getattr(module, kind, None)
    if not inspect.isclass(candidate):
        classes = [name for name, value in vars(module).items() if _is_own(value, module)]
        hint = f"it defines {', '.join(classes)}" if classes else "it defines no model"
        raise InputError(f"{path.name} has no class {kind}", "unknown_name", hint=hint)
    model = _complete(candidate, f"{path.name}:{kind}")
    _FILES[model] = OwnFile(path.name, kind, _digest_of(text))
    return model


def _is_own(value: object, module: ModuleType) -> bool:
    """Say whether a value is a model class defined in this module."""
    if not issubclass(type(value), type):  # isinstance asks for __class__, which would import PyMC from a lazy module
        return False
    return issubclass(value, Model) and value.__module__ == module.__name__  # type: ignore[arg-type]


def _text_of(path: Path) -> str:
    if path.exists() and not path.is_file():  # reading a pipe would wait
        raise InputError(f"not a regular file: {path}", "no_such_file")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", "unreadable_file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text", "unreadable_file") from None


def _digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()  # a path may not be UTF-8


class _Loader(SourceFileLoader):
    """Runs the text whose digest was taken, and neither reads nor writes bytecode."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> Any:
        """Compile the text."""
        return self.source_to_code(self._text.encode(), self.path)


@cache
def _run(path: str, text: str) -> ModuleType:
    """Run a file, once for each version of its text."""
    name = f"bayeszoo_file_{_digest_of(f'{path}:{text}')[:16]}"
    loader = _Loader(name, path, text)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None  # it has a loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their annotations there
    with _blaming(path):
        loader.exec_module(module)
    return module


@contextmanager
def _blaming(path: str) -> Iterator[None]:
    """Turn any error of a user's file into one line that names the file."""
    try:
        yield
    except (InputError, NumericalError):
        raise
    except (Exception, SystemExit) as error:
        lines = [step.lineno for step in traceback.extract_tb(error.__traceback__) if step.filename == path]
        line = f", line {lines[-1]}" if lines else ""
        order = "put Model after its subclasses: class Coins(Observable), or (Observable, Model)"
        hint = order if "method resolution order" in str(error) else ""
        raise InputError(
            f"{Path(path).name}{line}: {type(error).__name__}: {error}", "bad_model_file", hint=hint
        ) from error


def blaming_its_file(model: type[Model]) -> AbstractContextManager[None]:
    """Return a context that turns errors of a user's model into one line that names its file."""
    return nullcontext() if own_file(model) is None else _blaming(inspect.getfile(model))


# The zoo and plug-ins


def _load(point: EntryPoint) -> object:
    try:
        return point.load()
    except Exception as error:  # foreign code may raise anything: the plug-in is refused
        hint = "ask its author, or uninstall it"
        raise InputError(
            f"the plug-in {point.name!r} cannot be imported: {error}", "bad_model_file", hint=hint
        ) from error


def _only_model(name: str) -> type[Model]:
    module = importlib.import_module(f"{GROUP}.{name}")
    models = [value for value in vars(module).values() if _is_own(value, module)]
    if len(models) != 1:
        raise InputError(f"{name}.py defines {len(models)} models", "bad_model_file", hint="one file holds one model")
    return _checked(models[0], name)


def _checked(candidate: object, name: str) -> type[Model]:
    model = _complete(candidate, f"the plug-in {name!r}")
    if model.name != name:
        raise InputError(f"{model.__name__} is called {model.name!r}, but is offered as {name!r}", "duplicate_name")
    return model


def _complete(candidate: object, name: str) -> type[Model]:
    """Return a class that is a model and has every step that its bases require."""
    if not (inspect.isclass(candidate) and issubclass(candidate, Model)):
        raise InputError(f"{name} is not a bayeszoo Model", "not_a_model", hint="derive it from bayeszoo.model.Model")
    if missing := sorted(candidate.__abstractmethods__):
        raise InputError(f"{candidate.__name__} lacks {', '.join(missing)}", "bad_model_file", hint="see CONTRACT.md")
    return candidate
