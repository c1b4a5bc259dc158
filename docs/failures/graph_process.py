"""Labels that do not follow the edges.

What breaks: The model says that neighbours are alike. In a graph whose edges go between unlike nodes, as of buyers and
sellers, it has the sign wrong: the more neighbours of a kind are told, the surer it is of the wrong label.

How it looks: The fit passes its gate, as nothing is wrong with the computation. Held-out nodes are classified worse
than by a coin, and the evidence rises as the spread goes to 0, where nodes are independent.

What to do: Compare the evidence at the spread with that at almost none, and classify nodes that are held out. Join the
nodes that have a neighbour in common, and fit that graph.
"""

import networkx as nx
import numpy as np

import bayeszoo as bz

Process = bz.find("graph_process")
ladder = nx.grid_2d_graph(6, 6)
kind = {node: sum(node) % 2 for node in ladder}  # a chess board: every edge is between unlike nodes
names = {node: f"{node[0]},{node[1]}" for node in ladder}
graph = nx.relabel_nodes(ladder, names)
labels = {names[node]: kind[node] for node in ladder}
rng = np.random.default_rng(1)
told = {node: labels[node] for node in rng.permutation(sorted(graph))[:24].tolist()}
others = sorted(set(graph) - set(told))


def score(joined):
    """Return the log evidence at a spread and at almost none, and the share of other nodes that are right."""
    data = bz.read(Process, (joined, told))
    evidence = [Process(spread=spread).concave(data).laplace_evidence() for spread in (0.5, 1e-6)]
    tree = bz.fit(Process(spread=0.5), data, "map", seed=1)
    decided = bz.classify(tree, {"node": others})["decision"].astype(int).to_numpy()
    return evidence, np.mean(decided == [labels[node] for node in others])


(near, alone), share = score(graph)
print(f"by the edges: log evidence {near:.1f}, of independent nodes {alone:.1f}; {share:.0%} of the others are right")
two_steps = nx.Graph((a, c) for b in graph for a in graph[b] for c in graph[b] if a < c)
(joined, alone_again), share_joined = score(two_steps)
print(
    f"by common neighbours: log evidence {joined:.1f}, of independent nodes {alone_again:.1f}; {share_joined:.0%} right"
)

assert near < alone
assert share < 0.3
assert joined > alone_again
assert share_joined > 0.9
