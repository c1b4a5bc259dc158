"""What libraries do when they are loaded, and no command needs: a sixth of the time of an exact answer.

Of the process of a command alone: ``import bayeszoo`` changes nothing of theirs.
"""

from __future__ import annotations

import inspect
import sys
from importlib.util import LazyLoader, find_spec, module_from_spec

import numpy as np


def load_less() -> None:
    """Load none of it in this process."""
    _leave_docstrings()
    _leave_tests()


def _leave_docstrings() -> None:
    """Let SciPy find no docstrings of its functions: it writes a table of array libraries into each."""
    getdoc = inspect.getdoc

    def of_others(object: object) -> str | None:
        is_scipy = isinstance(object, np.ufunc) or str(getattr(object, "__module__", "")).startswith("scipy.")
        return None if is_scipy else getdoc(object)

    inspect.getdoc = of_others


def _leave_tests() -> None:
    """Let NumPy's tools for tests and for Fortran wait until they are used: SciPy looks at all that NumPy has."""
    for name in ("testing", "f2py"):
        spec = find_spec(f"numpy.{name}")
        if spec is None or spec.loader is None or spec.name in sys.modules:
            continue
        spec.loader = LazyLoader(spec.loader)
        sys.modules[spec.name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        setattr(np, name, module)
