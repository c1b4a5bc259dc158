"""Fits that somebody has changed on purpose: attributes of any kind, arrays of any shape, digests made anew."""

import json
import random
import string
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import bayeszoo as bz
from bayeszoo.data.read import Data
from bayeszoo.results import files

RUN = "__import__('builtins').open('canary', 'w')"
"""What makes a file when anybody runs it as Python; `SHELL` when it is run by a shell."""
SHELL = "x; touch canary; `touch canary`; $(touch canary)"
EVIL = f'"""A model."""\n{RUN}\n'
TEXTS = [
    *("", " ", "x", "0", "-1", "nan", "NaN", "Infinity", "null", "true", "{}", "[]", '"x"', "[[]]", '{"": 1}', "{"),
    *("evil.py:Evil", "../evil.py:Evil", "evil", "/etc/passwd", "../../x", RUN, SHELL, f"y ~ I({RUN})"),
    *("<script>alert(1)</script>", "\x1b[2J\x1b]0;x\x07", "a\nb\r\nc\t", "\u202etxt.exe", "\ud83d\ude00", "\u0000"),
    *("e\u0301" * 99, "9" * 5000, "1e999"),
    *("[" * 100_000, '{"a":' * 5000, "x" * 20_000_000, "[" + "0," * 100_000 + "0]"),
]
VALUES = [
    *(None, True, False, 0, 1, -1, 2**63, -(2**70), 10**400, 0.5, -0.5, 1e308, float("nan"), float("inf"), "inf"),
    *([], {}, [[]], [None], {"": None}, [1, "a", None], {"a": {"b": {"c": [1]}}}, [[[[[[1]]]]]]),
    *(["x"] * 3000, list(range(3000))),
    *TEXTS[:-4],
]
NUMPY = [np.int64(-1), np.uint8(7), np.float64("nan"), np.float64(1e300), np.arange(3), np.zeros((2, 2))]
NUMPY += [np.array(["a", "b"])]


def forged(tree, rng):
    """Return a copy of a fit with one attribute changed, and say which and how."""
    tree = tree.copy()
    nodes = [node for node in tree.subtree if node.attrs]
    node = nodes[0] if rng.random() < 0.8 else rng.choice(nodes)
    name = rng.choice([*node.attrs])
    text = node.attrs[name]
    kind = rng.randrange(6)
    attrs = dict(node.attrs)
    if kind == 0:
        del attrs[name]
    elif kind == 1:
        attrs[name] = rng.choice(NUMPY)
    elif kind == 2 and isinstance(text, str) and text:
        attrs[name] = _misspelled(text, rng)
    elif isinstance(text, str) and text[:1] in "{[" and kind != 3:
        value = json.loads(text)
        attrs[name] = json.dumps(_changed(value, rng))
    else:
        attrs[name] = rng.choice(TEXTS)
    node.attrs = attrs
    shown = attrs.get(name, "<left out>")
    return tree, f"{node.path} {name} = {str(shown)[:200]!r}"


CELLS = [float("nan"), float("inf"), -1, 0, 0.5, 1e308, 2**62, True, "x", "\x1b[2J", ""]
TYPES = ["U5", "i1", "u1", "f2", "f4", "f8", "i8", "bool"]


def reshaped(tree, rng, group="", name="", how=""):
    """Return a copy of a fit with one array changed, and the digest of its data made anew; and say which and how."""
    tree = tree.copy()
    chosen = rng.choice([node for node in tree.subtree if node.to_dataset(inherit=False).variables])
    node = tree[group] if group else chosen
    data, how = node.to_dataset(inherit=False), how or rng.choice([*ARRAYS])
    name = name or rng.choice([*map(str, data.variables)])
    try:
        node.dataset = ARRAYS[how](data, name, rng)
    except (ValueError, TypeError, LookupError, OverflowError, Warning):  # no array is so, and no file holds it
        return reshaped(tree, rng)
    if how == "no group" and node.parent is not None:
        node.orphan()
    if "data_digest" in tree.attrs and rng.random() < 0.8:
        groups = [tree[group].to_dataset() for group in ("observed_data", "constant_data") if group in tree.children]
        tree.attrs["data_digest"] = Data({k: v.to_numpy() for each in groups for k, v in each.data_vars.items()}).digest
    return tree, f"{node.path} {name}: {how}"


def _with(data, name, values, dims=None):
    """Put other values in the place of a variable."""
    dims = data.variables[name].dims if dims is None else dims
    return data.drop_vars(name).assign({name: (dims, values)})


def _cell(data, name, rng):
    values = data.variables[name].to_numpy().astype(object)
    values[tuple(rng.randrange(size) for size in values.shape)] = value = rng.choice(CELLS)
    return _with(data, name, values.astype(str) if isinstance(value, str) else values.astype(float))


def _along(data, name, places):
    """Take places along the first axis of a variable, of all that have it."""
    dims = data.variables[name].dims
    return data.isel({dims[-1]: places}) if dims else data.drop_vars(name)


def _axes(data, name, values):
    return _with(data, name, values, [f"{name}_{i}_" for i in range(np.ndim(values))])


ARRAYS = {
    "no group": lambda data, name, rng: data,
    "left out": lambda data, name, rng: data.drop_vars(name),
    "renamed": lambda data, name, rng: data.rename({name: rng.choice(["x", "posterior", "\x1b", "y", "theta", "row"])}),
    "none": lambda data, name, rng: _along(data, name, []),
    "cut": lambda data, name, rng: _along(data, name, [0]),
    "twice": lambda data, name, rng: _along(data, name, [0, *range(data.sizes[data.variables[name].dims[-1]])]),
    "a cell": _cell,
    "full": lambda data, name, rng: _with(data, name, np.full(data.variables[name].shape, rng.choice(CELLS))),
    "type": lambda data, name, rng: _with(data, name, data.variables[name].to_numpy().astype(rng.choice(TYPES))),
    "one number": lambda data, name, rng: _axes(data, name, rng.choice(CELLS)),
    "flat": lambda data, name, rng: _axes(data, name, np.ravel(data.variables[name].to_numpy())),
    "turned": lambda data, name, rng: _axes(data, name, data.variables[name].to_numpy().T),
    "one more axis": lambda data, name, rng: _axes(data, name, data.variables[name].to_numpy()[None]),
    "one less axis": lambda data, name, rng: _axes(data, name, data.variables[name].to_numpy()[..., 0]),
    "shorter": lambda data, name, rng: _axes(data, name, data.variables[name].to_numpy()[..., :-1]),
}
"""Ways to change an array of a group."""


def _misspelled(text, rng):
    """Change some characters of a text."""
    letters = [*text]
    for _ in range(rng.randint(1, 4)):
        letters[rng.randrange(len(letters))] = rng.choice([*string.printable, "\u202e", "\x1b", "é", ""])
    return "".join(letters)


def _changed(value, rng):
    """Change one node of a JSON value, at any depth."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice([*value])
        how = rng.randrange(5)
        if how == 0:
            return {name: item for name, item in value.items() if name != key}
        if how == 1:
            return {rng.choice(TEXTS[:-4]) if name == key else name: item for name, item in value.items()}
        if how == 2:
            return {**value, rng.choice(["x", "formula", "coding", *TEXTS[:12]]): rng.choice(VALUES)}
        return {**value, key: _changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    return rng.choice(VALUES)


def write(tree, path):
    """Write a fit with the digests of what it holds now."""
    tree = tree.copy()
    tree.attrs[files.DIGEST] = json.dumps(files.digests(tree))
    path.write_bytes(tree.to_netcdf(engine=files.ENGINE))


ROWS = {"y": [1.0, 2, 4, 3, 5, 2, 4, 3], "a": [1.0, 2, 3, 5, 4, 7, 5, 3], "c": [*"uvuvvuuv"]}
FLIPS = {"y": [1, 0, 1, 1, 0, 1]}


def coin():
    return bz.fit(bz.find("beta_bernoulli")(), FLIPS, "exact", seed=1)


def formula():
    linear = bz.find("linear_regression")
    data = bz.read(linear, ROWS, formula="y ~ center(a) + C(c)")
    return bz.fit(linear.weak(data), data, "exact", seed=1)


def mixture():
    return bz.fit(bz.find("gaussian_mixture")(K=2), [*ROWS["y"], 9.0, 9.5, 9.2, 10.1], "em", seed=1)


def states():
    return bz.fit(bz.find("hmm_categorical")(K=2), list("aabbabab"), "map", seed=1)


def means():
    return bz.fit(bz.find("normal_means")(), None, "exact", seed=1)


def statistics():
    coin = bz.find("beta_bernoulli")()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "flips.csv").write_text("y\n1\n0\n1\n1\n")
        return bz.fit(coin, bz.accumulate(coin, Path(folder, "flips.csv")), "exact", seed=1)


def by():
    return bz.fit_by(bz.find("beta_bernoulli")(), {**FLIPS, "g": [*"aabbcc"]}, by="g", method="exact", seed=1)


FITS = {
    coin: ["predict", "residuals", "select", "report"],
    formula: ["predict", "contrasts", "residuals"],
    mixture: ["assign", "predict"],
    states: ["decode", "predict"],
    means: ["groups", "contrasts", "predict"],
    statistics: ["predict", "report"],
    by: ["contrasts", "predict", "report"],
}
"""Small fits of several kinds, and the commands that each may be asked by."""


@cache
def made(fit):
    tree = fit()
    for each in [tree, *(tree["fits"].children.values() if "fits" in tree.children else ())]:
        each.attrs |= {"command": "fit beta_bernoulli rows.csv --method exact", "prior": "weak"}
    return tree


def cases(count, seed, kinds=tuple(FITS), commands=None, changes=(forged, reshaped)):
    """Yield forged fits, what was changed in each, and a command to ask it by."""
    rng = random.Random(seed)
    for _ in range(count):
        fit = rng.choice(kinds)
        changed, what = rng.choice(changes)(made(fit), rng)
        yield changed, f"{fit.__name__}: {what}", rng.choice(commands or FITS[fit])
