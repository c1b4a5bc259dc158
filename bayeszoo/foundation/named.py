"""Mappings from names to arrays: the two that every step of a model takes or returns."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]
"""The canonical arrays of a data set, or of new rows, by name."""

Params = Mapping[str, Any]
"""Parameters by name, of one point or with an axis of draws before their own axes."""

Simulated = tuple[dict[str, Any], dict[str, np.ndarray]]
"""Parameters that were drawn, and the arrays of a data set that was drawn under them."""
