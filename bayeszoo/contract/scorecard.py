"""Stored scorecards: the results of `bayeszoo check` for each model of the zoo, with date and versions.

A card lies in the folder ``scorecards`` next to the model's file. ``make scorecards`` makes them again.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bayeszoo.errors import InputError
from bayeszoo.foundation.gate import Check, passed
from bayeszoo.foundation.process.progress import Reporter
from bayeszoo.foundation.process.writing import write_text
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model, fields_of

FOLDER = "scorecards"
PACKAGES = ("bayeszoo", "pymc", "pytensor", "numpy", "scipy", "nutpie")
SOURCE, SAMPLER = "source", "sampler"  # labels of the checks that are not identities


@dataclass(frozen=True)
class Scorecard:
    """The results of a model's checks on one day."""

    model: str
    date: str  # UTC
    seed: int  # of the points, the simulated data and the chains
    versions: Mapping[str, str]
    file_digest: str  # SHA-256 of the statements of the model's file
    cases: tuple[Mapping[str, Any], ...]  # the data sets of the identities, and the model's fields on each
    checks: tuple[Check, ...]
    made_by: tuple[str, ...]  # the identity of each check, or "source" or "sampler"

    @property
    def passed(self) -> bool:
        """Whether there are checks and all of them passed."""
        return passed(self.checks)


def make(kind: type[Model], seed: int = 0, reporter: Reporter | None = None) -> Scorecard:
    """Check a model by every identity, and its sampler, on simulated data and on its real data."""
    from bayeszoo.contract.case import cases_of
    from bayeszoo.contract.check import applicable, check

    results = tuple(check(kind, seed=seed, reporter=reporter))
    identities = [identity.function for identity in applicable(kind)]
    sampled = sum(result.name.startswith(("NUTS", "Gibbs", "power")) for result in results)
    made_by = [SOURCE] * (len(results) - len(identities) - sampled) + identities + [SAMPLER] * sampled
    used = cases_of(kind, None, seed)
    simulated = len(used) - len(kind.examples)
    cases = [
        {
            "data": f"simulated {', '.join(result.data)}" if i < simulated else result.data.source,
            "rows": result.size,
            "digest": result.data.digest,
            "fields": fields_of(result.model),
        }
        for i, result in enumerate(used)
    ]
    date, versions = datetime.now(UTC).isoformat(timespec="minutes"), {name: version(name) for name in PACKAGES}
    return Scorecard(kind.name, date, seed, versions, file_digest(kind), tuple(cases), results, tuple(made_by))


def file_digest(kind: type[Model]) -> str:
    """Return the SHA-256 of the statements of a model's file: comments, docstrings and annotations do not count."""
    return hashlib.sha256(statements(Path(inspect.getfile(kind)).read_text(encoding="utf-8")).encode()).hexdigest()


def statements(source: str) -> str:
    """Return the statements of a module that run: no docstrings, annotations of functions, or imports for these."""
    tree = _Running().visit(ast.parse(source))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [name for name in node.names if (name.asname or name.name).split(".")[0] in used]
    tree.body = [node for node in tree.body if getattr(node, "names", True)]
    return ast.unparse(tree)


class _Running(ast.NodeTransformer):
    """Removes docstrings and the annotations of functions."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node


def folder_of(kind: type[Model]) -> Path:
    """Return the path of a model's card, next to its file."""
    return Path(inspect.getfile(kind)).with_name(FOLDER)


def save(cards: Iterable[Scorecard], folder: str | Path) -> list[Path]:
    """Write each card as ``MODEL.json``, also failed ones, so that no older card remains in their place."""
    Path(folder).mkdir(exist_ok=True)
    written = []
    for card in cards:
        path = Path(folder, f"{card.model}.json")
        entries = asdict(card) | {"checks": [asdict(check) | {"value": _written(check.value)} for check in card.checks]}
        document = json.dumps(entries, indent=1, allow_nan=False)
        write_text(f"{document}\n", path, overwrite=True)
        written.append(path)
    return written


def _written(value: float | None) -> float | str | None:
    """Return a figure for JSON, with infinities and NaN as text."""
    return value if value is None or math.isfinite(value) else str(value)


def load(name: str) -> Scorecard:
    """Read the stored card of a model; raise `InputError` if it has none."""
    path = folder_of(zoo.find(name)) / f"{name}.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{name} has no stored scorecard", "unknown_name", hint=f"`bayeszoo check {name}` runs its checks now"
        ) from None
    checks = tuple(
        Check(**entry | {"value": entry["value"] and float(entry["value"])}) for entry in document.pop("checks")
    )
    return Scorecard(
        **document | {"cases": tuple(document["cases"]), "checks": checks, "made_by": tuple(document["made_by"])}
    )


def is_current(card: Scorecard) -> bool:
    """Say whether a card is up to date with the model's file and the identities that apply."""
    from bayeszoo.contract.check import applicable

    kind = zoo.find(card.model)
    identities = [name for name in card.made_by if name not in (SOURCE, SAMPLER)]
    return card.file_digest == file_digest(kind) and identities == [identity.function for identity in applicable(kind)]
