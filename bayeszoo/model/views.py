"""Parts of the page about a fit beyond its parameters: a model names them, and higher storeys draw them."""

from __future__ import annotations

from enum import StrEnum


class View(StrEnum):
    """A part of the page about a fit. The first screen is the first of `FIRST_SCREENS` that the model has."""

    TOPICS = "topics"
    GROUPS = "groups"
    STATES = "states"
    LEVELS = "levels"
    SLOPES = "slopes"
    FUNCTION = "function"
    NODES = "nodes"
    FACTORS = "factors"
    CLUSTERS = "clusters"
    COMPONENTS = "components"
    CLASSES = "classes"
    DISCRIMINANTS = "discriminants"
    PATH = "path"


FIRST_SCREENS = (
    View.TOPICS,
    View.GROUPS,
    View.STATES,
    View.LEVELS,
    View.SLOPES,
    View.FUNCTION,
    View.NODES,
    View.FACTORS,
    View.CLUSTERS,
    View.COMPONENTS,
)
