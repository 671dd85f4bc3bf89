"""Writes the descriptions of the API: `python -m weir_dashboard.openapi FOLDER`.

`openapi.json` and `asyncapi.json` are kept in the repository; a test compares them
with what the models say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from weir_dashboard.app import routed
from weir_dashboard.live.asyncapi import asyncapi


def described() -> dict[str, dict[str, Any]]:
    """Return the descriptions by file name."""
    app: FastAPI = routed()
    return {"openapi.json": app.openapi(), "asyncapi.json": asyncapi()}


def main() -> None:
    """Write the descriptions into a folder."""
    folder = Path(sys.argv[1])
    for name, description in described().items():
        text = json.dumps(description, indent=2, ensure_ascii=False, sort_keys=True)
        (folder / name).write_text(text + "\n")


if __name__ == "__main__":
    main()
