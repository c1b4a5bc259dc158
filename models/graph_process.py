r"""Labels on a graph: yes/no labels of nodes, whose log odds vary smoothly along the edges.

    f   ~ N(m0, amplitude^2 C)                     C the correlations by K = expm(-spread L) or (I + spread L)^-1
    y_n ~ Bernoulli(1 / (1 + exp(-f(node_n))))     n = 1..N, of the nodes whose label is told

L is the Laplacian of the graph, degrees less weights: K is the heat that flows from node to node in a time, or a
Gaussian Markov field. With a field of large spread the function at the other nodes is the harmonic one, the average of
its neighbours. Kondor and Lafferty 2002; Smola and Kondor 2003; Zhu, Ghahramani and Lafferty 2003; Zachary 1977.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bayeszoo.data.inputs import Edges
from bayeszoo.errors import InputError
from bayeszoo.families.latent_functions.graphs import Graph
from bayeszoo.families.latent_functions.model import LatentFunction
from bayeszoo.model import Example, positive
from bayeszoo.model.types import Arrays, Simulated
from bayeszoo.model.views import View

KERNELS = ("diffusion", "laplacian")


@dataclass(frozen=True)
class GraphProcess(LatentFunction):
    """Labels of some nodes of a graph, whose log odds are a Gaussian process on its nodes.

    Parameters
    ----------
    spread : float
        How far along the edges nodes are alike, > 0: the time of the diffusion, or the s of the field.
    kernel : str
        ``diffusion``, expm(-spread L), or ``laplacian``, (I + spread L)^-1; either is scaled to correlations.
    """

    spread: float = positive(1.0, "spread", kw_only=True)
    kernel: str = field(default="diffusion", kw_only=True)

    inputs = Edges("y")
    examples = (
        Example(
            "karate.csv",
            "friendships of 34 members of a karate club, and the factions of the instructor, 1, and the president, 34",
            "Zachary 1977",
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel not in KERNELS:
            raise InputError(f"{self.kernel!r} is no kernel of graphs", "unknown_name", hint=" or ".join(KERNELS))

    @classmethod
    def weak(cls, data: Arrays) -> GraphProcess:
        """Take the spread so that heat goes along about one edge of a node of average degree."""
        degree = 2 * float(np.sum(data["weight"])) / len(data["node"])
        return cls(spread=1 / degree if degree else 1.0)

    def views(self) -> frozenset[View]:
        """Show the graph, and no curve: nodes have no place on an axis."""
        return super().views() - {View.FUNCTION} | {View.NODES}

    def names_of_rows(self, data: Arrays) -> np.ndarray:
        """Return the names of the nodes told."""
        return np.asarray(data["node"][data["place"]])

    def covariance(self, first: Arrays, second: Arrays) -> np.ndarray:
        """Return the correlations (n, m) of the function at the nodes of two data sets."""
        every = Graph.of(first).correlations(self.kernel, float(self.spread))
        return every[np.ix_(first["place"], second["place"])]

    def variances(self, data: Arrays) -> np.ndarray:
        """Return ones."""
        return np.ones(self.inputs.size(data))

    def remarks(self, stats: None, data: Arrays) -> tuple[str, ...]:
        """Say which nodes no label reaches."""
        alone = Graph.of(data).unreached(data["place"])
        if not len(alone):
            return ()
        names = ", ".join(map(str, data["node"][alone[:5]])) + ", ..." * (len(alone) > 5)
        few = f"{len(alone)} nodes are in parts of the graph without a label" if len(alone) > 1 else "1 node is alone"
        return (f"{few}, where the prior decides: {names}",)

    def simulate(self, rng: np.random.Generator, size: int = 20) -> Simulated:
        """Draw a ring with chords at random, of half as many nodes again, a function on it, and labels."""
        graph = Graph.drawn(rng, size + size // 2)
        told = np.sort(rng.permutation(len(graph["node"]))[:size])
        return self.simulated(rng, {**graph, "place": told})
