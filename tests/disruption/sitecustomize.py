"""Read by every Python process that has this folder on `PYTHONPATH`, before anything else."""

from __future__ import annotations

import importlib
import os

if os.environ.get("WEIR_MUTANT"):
    importlib.import_module("weir_faults.mutation").install(os.environ["WEIR_MUTANT"])
