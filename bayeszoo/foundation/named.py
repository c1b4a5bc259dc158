"""Mappings from names to arrays: the two that every step of a model takes or returns."""

from collections.abc import Mapping
from typing import Any

Arrays = Mapping[str, Any]
"""The canonical arrays of a data set, or of new rows, by name."""

Params = Mapping[str, Any]
"""Parameters by name, of one point or with an axis of draws before their own axes."""
