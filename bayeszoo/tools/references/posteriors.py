"""Posteriors whose answer is known, in posteriordb's layout: exact evidence and moments, independent draws, the model.

Magnusson et al. 2025, posteriordb: Testing, Benchmarking and Developing Bayesian Inference Algorithms.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayeszoo.data.read import Data, example, read
from bayeszoo.errors import InputError, NumericalError
from bayeszoo.fit import fit
from bayeszoo.foundation import diagnostics
from bayeszoo.foundation.process import writing
from bayeszoo.foundation.streams import stream
from bayeszoo.inference.methods.enumeration import Enumeration
from bayeszoo.model import find as zoo
from bayeszoo.model.base import Model
from bayeszoo.model.capabilities import ClosedForm, Enumerable, is_integrated
from bayeszoo.results.figures import facts
from bayeszoo.results.stored import dumps
from bayeszoo.results.summary import summarize
from bayeszoo.tools.references.code import code
from bayeszoo.tools.references.stan_program import stan_data, stan_program

CHAINS, DRAWS = 10, 1000
"""posteriordb's shape of reference draws."""
MOST_NUMBERS = 150
"""Numbers of a draw up to which a posterior is a reference: each has ten thousand draws."""
FEW = (8, 12)
"""Rows, or words, of the references with latent components: all their assignments are summed over."""
SEED = 1
STATISTICS = ("mean", "sd", "q025", "median", "q975")


@dataclass(frozen=True, eq=False)
class Reference:
    """A posterior whose answer is known."""

    name: str
    """The names of data and model, as posteriordb has them: ``eight_schools-normal_means``."""
    model: Model
    data: Data
    draws: Mapping[str, np.ndarray]
    """Independent draws of each parameter, shape (10, 1000, ...); of exchangeable components with labels at random."""
    log_evidence: float
    """The log evidence of the ordered data in nats, exact to rounding or to the grid."""
    derivation: str
    """How the answer is known: in closed form, by quadrature, or as a sum over all assignments."""
    summary: Mapping[str, Mapping[str, np.ndarray]]
    """Exact ``mean``, ``sd``, ``q025``, ``median`` and ``q975`` of each parameter; empty of enumerated posteriors."""
    keywords: tuple[str, ...]

    def checks(self) -> dict[str, bool | None]:
        """Return posteriordb's checks of reference draws; None of those that are about Hamiltonian Monte Carlo."""
        values = [_flat(v) for v in self.draws.values()]
        moving = [v[..., np.ptp(v, axis=(0, 1)) > 0] for v in values]
        r_hat = max(float(diagnostics.r_hat(v).max(initial=0.0)) for v in moving)
        ess = np.concatenate([np.ravel(diagnostics.ess(v, kind)) for v in moving for kind in ("bulk", "tail")])
        total = CHAINS * DRAWS
        return {
            "ndraws_is_10k": all(v.shape[:2] == (CHAINS, DRAWS) for v in values),
            "nchains_is_gte_4": CHAINS >= 4,
            "ess_within_bounds": bool((np.abs(ess / total - 1) < 0.2).all()),
            "r_hat_below_1_01": r_hat < 1.01,
            "efmi_above_0_2": None,
            "no_divergences": None,
        }


def references(names: Collection[str] | None = None) -> Iterator[Reference]:
    """Yield the posteriors whose answer is known: of each model on each of its data sets, or the first rows of these.

    Parameters
    ----------
    names : collection of str, optional
        Those that are wanted, by default all. Names are known at once, and an answer is computed when it is asked for.

    Raises
    ------
    InputError
        When a name is not known.
    """
    known = dict(_known())
    if unknown := [name for name in names or () if name not in known]:
        raise InputError(f"there is no reference {unknown[0]!r}", "unknown_name", hint=f"such as {next(iter(known))}")
    for name in known if names is None else names:
        if (reference := _computed(name, *known[name])) is not None:
            yield reference


def names() -> list[str]:
    """Return the names of all references; those without an exact answer for their data are passed over later."""
    return [name for name, _ in _known()]


def _known() -> Iterator[tuple[str, tuple[type[Model], str, int]]]:
    """Yield names with the model, its data set, and how many latent variables of it; 0 for all data."""
    for kind in map(zoo.find, zoo.builtin_names()):
        for item in kind.examples:
            if issubclass(kind, ClosedForm) or is_integrated(kind):
                yield f"{item.name}-{kind.name}", (kind, item.name, 0)
            elif issubclass(kind, Enumerable):
                for few in FEW:
                    yield f"{item.name}_{few}-{kind.name}", (kind, item.name, few)


def _computed(name: str, kind: type[Model], data_set: str, few: int) -> Reference | None:
    """Return a reference; None where there is no exact answer for these data, or a draw has many numbers."""
    rows = example(kind, data_set)
    try:
        return _enumerated(name, kind, rows, few) if few else _exact(name, kind.weak(rows), rows)
    except NumericalError:
        return None
    except InputError as error:
        if error.code in ("no_closed_form", "too_many_parameters", "too_large"):
            return None
        raise


def _exact(name: str, model: Model, rows: Data) -> Reference | None:
    tree = fit(model, rows, "exact", seed=SEED, chains=CHAINS, draws=DRAWS, groups=[])
    draws = {str(key): v.transpose("chain", "draw", ...).to_numpy() for key, v in tree["posterior"].data_vars.items()}
    if _numbers(draws) > MOST_NUMBERS:
        return None
    table = {
        key: {s: np.asarray(row[s]) for s in STATISTICS if row[s] is not None} for key, row in summarize(tree).items()
    }
    evidence = facts(tree)["log_evidence"]
    return Reference(name, model, rows, draws, evidence, tree.attrs["sampler"], table, ("exact",))


def _enumerated(name: str, kind: type[Model], rows: Data, few: int) -> Reference | None:
    excerpt = read(kind, kind.weak(rows).excerpt(rows))
    some = read(kind, kind.weak(excerpt).shortened(excerpt, few))  # type: ignore[attr-defined]
    model = kind.weak(some)
    known = Enumeration.of(model, some)
    draws = known.draw((CHAINS, DRAWS), stream(SEED, "reference", name))
    if _numbers(draws) > MOST_NUMBERS:
        return None
    derivation = f"sum over {len(known.log_joint)} assignments"
    return Reference(name, model, some, draws, known.log_evidence, derivation, {}, ("exact", "multimodal"))


def _numbers(draws: Mapping[str, np.ndarray]) -> int:
    return sum(int(np.prod(v.shape[2:])) for v in draws.values())


def _flat(values: np.ndarray) -> np.ndarray:
    return values.reshape(*values.shape[:2], -1)


def export_references(folder: str | Path, names: Collection[str] | None = None, overwrite: bool = False) -> list[str]:
    """Write references in posteriordb's layout, which its package for Python reads.

    Each has the model as a PyMC script, and as a Stan program where there is one; its data as zipped JSON; 10,000
    independent draws as zipped JSON with posteriordb's checks; and under ``reference_posteriors/exact`` the evidence
    and the moments with how they are known.
    ``digests.json`` has the SHA-256 of each file.

    Parameters
    ----------
    folder : str or Path
        Where to write: a folder that does not exist, or is empty.
    names : collection of str, optional
        Names of references, by default all.
    overwrite : bool
        Whether files that are there are replaced.

    Returns
    -------
    list of str
        The names of the posteriors.
    """
    root = Path(folder)
    if root.exists() and (not root.is_dir() or any(root.iterdir())) and not overwrite:
        raise InputError(f"{folder} is not empty", "file_exists", hint="name another folder, or use --overwrite")
    written, digests = list[str](), dict[str, str]()
    for reference in references(names):
        for place, content in _files(reference).items():
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            writing.write_bytes(content, path, overwrite)
            digests[place] = hashlib.sha256(content).hexdigest()
        written.append(reference.name)
    writing.write_text(json.dumps(digests, indent=2) + "\n", root / "digests.json", overwrite)
    return written


def _files(reference: Reference) -> dict[str, bytes]:
    """Return the files of a posterior by their paths."""
    name, kind, draws = reference.name, reference.model, "reference_posteriors/draws"
    data_name = name.partition("-")[0]
    data = f"data/data/{name}.json"
    program = stan_program(type(kind))
    codes = {f"models/pymc/{name}.py": code(kind, reference.data)}
    codes |= {} if program is None else {f"models/stan/{name}.stan": program}
    arrays = {key: v.tolist() for key, v in reference.data.items()}
    arrays |= {} if program is None else stan_data(program, kind, reference.data)
    described: dict[str, Any] = {
        f"posteriors/{name}.json": {
            **{"name": name, "keywords": reference.keywords, "model_name": name, "data_name": name},
            **{"reference_posterior_name": name, "dimensions": _dimensions(reference), "added_by": "bayeszoo"},
        },
        f"models/info/{name}.info.json": {
            **{"name": name, "title": str(kind), "keywords": [kind.name], "added_by": "bayeszoo"},
            "model_implementations": {place.split("/")[1]: {"model_code": place} for place in codes},
        },
        f"data/info/{name}.info.json": {"name": name, "title": data_name, "keywords": [], "data_file": data},
        f"{draws}/info/{name}.info.json": {
            **{"name": name, "inference": {"method": "analytical", "method_arguments": {"how": reference.derivation}}},
            **{"checks_made": reference.checks(), "added_by": "bayeszoo", "versions": _versions()},
            "diagnostics": {"diagnostic_information": {"names": list(entries_of(reference.draws))}},
        },
        f"reference_posteriors/exact/{name}.json": {
            **{"name": name, "derivation": reference.derivation, "log_evidence": reference.log_evidence},
            **{"log_evidence_of": "the ordered data", "summary": reference.summary},
        },
    }
    files = {place: (dumps(value) + "\n").encode() for place, value in described.items()}
    chains = [{entry: v[chain].tolist() for entry, v in entries_of(reference.draws).items()} for chain in range(CHAINS)]
    return {
        **files,
        **{place: text.encode() for place, text in codes.items()},
        f"{data}.zip": _zipped(f"{name}.json", arrays),
        f"{draws}/draws/{name}.json.zip": _zipped(f"{name}.json", chains),
    }


def entries_of(draws: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the draws (chain, draw) of each number of the parameters, by its name in Stan: ``w[1]``."""
    entries = {}
    for name, values in draws.items():
        for place in np.ndindex(values.shape[2:]):
            label = f"{name}[{','.join(str(i + 1) for i in place)}]" if place else name
            entries[label] = values[(slice(None), slice(None), *place)]
    return entries


def _dimensions(reference: Reference) -> dict[str, int]:
    return {name: int(np.prod(values.shape[2:])) for name, values in reference.draws.items()}


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("bayeszoo", "numpy", "scipy", "pymc")}


def _zipped(name: str, content: object) -> bytes:
    """Return one JSON file as a ZIP, the same bytes whenever it is written."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), dumps(content), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
