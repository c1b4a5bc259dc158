"""Run a notebook kept as a percent script, and write it with its outputs.

python docs/execute.py notebooks/conjugate.py build/notebooks/conjugate.ipynb
"""

import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

SECONDS_PER_CELL = 3600


def read(script: str | Path) -> nbformat.NotebookNode:
    """Read a percent script as a notebook of Python."""
    notebook = jupytext.read(script)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def main(script: str, target: str) -> None:
    """Run every cell in an empty folder; the first that raises stops it, and nothing is written."""
    notebook = read(script)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS_PER_CELL, kernel_name="python3", resources=resources).execute()
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
