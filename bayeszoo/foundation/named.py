"""Types of mappings by name: data arrays, parameters, and documents."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]
"""The canonical arrays of a data set, or of new rows, by name."""

Params = Mapping[str, Any]
"""Parameters by name, at one point or with leading axes of draws."""

Simulated = tuple[dict[str, Any], dict[str, np.ndarray]]
"""Simulated parameters, and the arrays of a data set simulated given them."""

Document = dict[str, Any]
"""A JSON document, as commands print with ``--json`` and reports show."""

Options = dict[str, Any]
"""Options of reading by name, as `bayeszoo.read` takes them."""

Coords = dict[str, Any]
"""Labels along axes by name, as PyMC and xarray take them."""

Fields = dict[str, Any]
"""Values of the fields of a model by name."""

Statistics = Any
"""Sufficient statistics, of the type that a model chooses."""

RandomState = np.random.Generator | int | None
"""What SciPy's ``rvs`` takes as ``random_state``."""
