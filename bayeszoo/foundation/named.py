"""Mappings by name: arrays that the steps of a model take and return, and documents."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]
"""The canonical arrays of a data set, or of new rows, by name."""

Params = Mapping[str, Any]
"""Parameters by name, of one point or with an axis of draws before their own axes."""

Simulated = tuple[dict[str, Any], dict[str, np.ndarray]]
"""Parameters that were drawn, and the arrays of a data set that was drawn under them."""

Document = dict[str, Any]
"""A JSON document by names: what commands print with ``--json``, and what reports show."""
