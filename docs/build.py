"""Put the site together: the pages, what is made of the zoo, and the notebooks as they were run; then run Sphinx.

python docs/build.py [--quick] [FOLDER]

Everything is written below FOLDER, by default `build`: pictures and outputs of the failure cards are kept there, and
made again when what they come from is newer. `--quick` fits nothing: notebooks as they are written, no pictures, no
outputs.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import execute
import gallery
import nbformat
from sphinx.cmd.build import build_main

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def newer(made: Path, *sources: Path) -> bool:
    """Say whether a file exists and is newer than all that it was made from."""
    return made.exists() and all(made.stat().st_mtime >= source.stat().st_mtime for source in sources)


def stage(folder: Path) -> Path:
    """Copy the pages that are written by hand, with the contract, which one of them includes."""
    staged = folder / "docs"
    if staged.exists():
        shutil.rmtree(staged)
    ignore = shutil.ignore_patterns("__pycache__", "*.py")
    shutil.copytree(DOCS, staged, ignore=ignore)
    contract = (ROOT / "CONTRACT.md").read_text(encoding="utf-8")
    (staged / "CONTRACT.md").write_text(gallery.linked(contract), encoding="utf-8")
    shutil.copy(DOCS / "conf.py", staged)
    shutil.copy(ROOT / "models" / "other_names.csv", staged / "guide")
    return staged


def notebooks(staged: Path, folder: Path, quick: bool) -> None:
    """Put every notebook beside the pages, with its outputs where it has been run, and a page that lists them."""
    target = staged / "notebooks"
    target.mkdir()
    for script in gallery.NOTEBOOKS:
        executed = folder / "notebooks" / f"{script.stem}.ipynb"
        if executed.exists() and not quick:
            shutil.copy(executed, target)
        else:
            nbformat.write(execute.read(script), target / executed.name)
    (target / "index.md").write_text(gallery.notebooks_page(), encoding="utf-8")


def output(script: Path, folder: Path) -> str:
    """Return what a failure card's twin prints, from the last run where that is newer than the script."""
    kept = folder / "failures" / f"{script.stem}.txt"
    if not newer(kept, script):
        kept.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "COLUMNS": "100"},
        )
        if done.returncode:
            raise SystemExit(f"{script} failed:\n{done.stderr}")
        kept.write_text(done.stdout, encoding="utf-8")
    return kept.read_text(encoding="utf-8")


def models(staged: Path, folder: Path, quick: bool) -> None:
    """Write a page for every model of the zoo, its pictures, and the gallery."""
    target, kept = staged / "models", folder / "pictures"
    target.mkdir()
    kept.mkdir(parents=True, exist_ok=True)
    for name in gallery.names():
        file = ROOT / "models" / f"{name}.py"
        shutil.copy(file, target)
        for kind, draw in gallery.PICTURES.items():
            picture = kept / f"{name}_{kind}.svg"
            if not quick and not newer(picture, file, DOCS / "gallery.py"):
                print(f"{name}: {kind}", flush=True)
                draw(name, picture)
            if picture.exists():
                shutil.copy(picture, target)
        script = DOCS / "failures" / f"{name}.py"
        printed = output(script, folder) if script.exists() and not quick else ""
        page = gallery.model_page(name, script, printed, [one.name for one in target.glob(f"{name}_*.svg")])
        (target / f"{name}.md").write_text(page, encoding="utf-8")
    (target / "index.md").write_text(gallery.models_page(target), encoding="utf-8")


def main() -> int:
    """Build the site and return Sphinx's exit code; its warnings are errors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", default=ROOT / "build", type=Path)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    staged = stage(given.folder)
    models(staged, given.folder, given.quick)
    notebooks(staged, given.folder, given.quick)
    (staged / "api.md").write_text(gallery.api_page(), encoding="utf-8")
    return build_main(["-W", "--keep-going", "-q", "-b", "html", str(staged), str(given.folder / "site")])


if __name__ == "__main__":
    sys.exit(main())
