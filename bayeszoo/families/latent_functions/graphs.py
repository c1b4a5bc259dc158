"""Graphs as matrices: the Laplacian, its kernels by eigenvectors, and connected components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from bayeszoo.errors import InputError
from bayeszoo.foundation.named import Arrays

MOST_NODES = 3000
"""Most nodes of a graph whose Laplacian is decomposed: 72 MB, and some seconds."""


@dataclass(frozen=True)
class Graph:
    """An undirected graph: ends of its edges as codes of nodes, and their weights."""

    nodes: int
    first: tuple[int, ...]
    second: tuple[int, ...]
    weight: tuple[float, ...]

    @classmethod
    def of(cls, data: Arrays) -> Graph:
        """Return the graph of data; refuse a graph that is too large to decompose."""
        if (count := len(data["node"])) > MOST_NODES:
            problem = f"{count:,} nodes need a matrix of {8e-6 * count * count:,.0f} MB and {count:,}^3 operations"
            raise InputError(problem, "too_many_rows", hint="give the part of the graph about the labels")
        return cls(count, *(tuple(data[name].tolist()) for name in ("first", "second", "weight")))

    def adjacency(self) -> scipy.sparse.csr_array:
        """Return the weights of the edges, in both directions, (nodes, nodes)."""
        ends = np.array([[*self.first, *self.second], [*self.second, *self.first]], dtype=np.int64)
        return scipy.sparse.csr_array((np.tile(self.weight, 2), ends), shape=(self.nodes, self.nodes))

    def laplacian(self) -> np.ndarray:
        """Return the Laplacian, degrees minus weights, (nodes, nodes)."""
        weights = self.adjacency().toarray()
        return np.asarray(np.diag(weights.sum(axis=1)) - weights)

    @lru_cache(maxsize=2)  # noqa: B019 - few graphs are kept
    def _spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues and eigenvectors of the Laplacian."""
        values, vectors = np.linalg.eigh(self.laplacian())
        return values, vectors

    @lru_cache(maxsize=2)  # noqa: B019 - few graphs are kept
    def correlations(self, kernel: str, spread: float) -> np.ndarray:
        """Return the kernel ``diffusion`` or ``laplacian`` of the graph, scaled to 1 on the diagonal."""
        values, vectors = self._spectrum()
        flows = spread * np.maximum(values, 0.0)
        kernel_values = np.exp(-flows) if kernel == "diffusion" else 1 / (1 + flows)
        covariance = (vectors * kernel_values) @ vectors.T
        root = np.sqrt(np.diag(covariance))
        scaled = covariance / np.outer(root, root)
        return np.asarray(np.where(self._together(), (scaled + scaled.T) / 2, 0.0))

    def _together(self) -> np.ndarray:
        """Mark pairs of nodes in one connected component, (nodes, nodes): other pairs are independent."""
        parts = self._parts()
        return np.asarray(parts[:, None] == parts)

    def _parts(self) -> np.ndarray:
        return np.asarray(scipy.sparse.csgraph.connected_components(self.adjacency(), directed=False)[1])

    def unreached(self, told: np.ndarray) -> np.ndarray:
        """Return the nodes without a path to any node in ``told``."""
        parts = self._parts()
        return np.flatnonzero(~np.isin(parts, parts[told]))

    @classmethod
    def drawn(cls, rng: np.random.Generator, nodes: int) -> dict[str, np.ndarray]:
        """Draw the arrays of a ring with random chords, half as many as nodes, and random weights."""
        ring = np.column_stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes])
        ends = np.sort(np.vstack([ring, rng.integers(0, nodes, (nodes // 2, 2))]), axis=1)
        ends = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
        names = np.array([f"n{i + 1}" for i in range(nodes)], dtype=str)
        return {"first": ends[:, 0], "second": ends[:, 1], "weight": rng.uniform(0.5, 2.0, len(ends)), "node": names}
