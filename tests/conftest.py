"""Settings that must stand before PyTensor and Matplotlib are imported, by the tests and by what they start."""

import os
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "pytensor"

os.environ.setdefault("MPLBACKEND", "agg")
flags = os.environ.get("PYTENSOR_FLAGS", "")
if "base_compiledir" not in flags:  # compiled models are kept between runs, as in the Makefile
    os.environ["PYTENSOR_FLAGS"] = ",".join(
        filter(None, [flags, f"base_compiledir={CACHE}", f"generated_src_dir={CACHE / 'src'}"])
    )
