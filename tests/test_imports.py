"""Who may import whom: the core nobody, the readers the core, and no service another.

Read from the source by AST, so that an import inside a function counts too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "weir": ROOT / "libs/weir/weir",
    "weir_reading": ROOT / "libs/reading/weir_reading",
    "weir_service": ROOT / "libs/service/weir_service",
    "weir_ingest": ROOT / "services/ingest/weir_ingest",
    "weir_analytics": ROOT / "services/analytics/weir_analytics",
    "weir_dashboard": ROOT / "services/dashboard/weir_dashboard",
    "weir_cli": ROOT / "cli/weir_cli",
    "weir_local": ROOT / "infra/local/weir_local",
}
SERVICES = ("weir_ingest", "weir_analytics", "weir_dashboard")
# What does I/O, or would tie the core to one way of running.
NOT_IN_CORE = {
    "aiokafka",
    "asyncio",
    "confluent_kafka",
    "fastapi",
    "glob",
    "http",
    "httpx",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "pyspark",
    "redis",
    "requests",
    "select",
    "shutil",
    "socket",
    "sqlite3",
    "ssl",
    "starlette",
    "subprocess",
    "tempfile",
    "threading",
    "urllib.request",
    "uvicorn",
    "websockets",
}
CLOCK = ROOT / "libs/weir/weir/clock.py"
WALL_CLOCKS = {
    ("time", "time"),
    ("time", "time_ns"),
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
}


def sources(package: str) -> list[Path]:
    """Return every Python file of a package."""
    return sorted(PACKAGES[package].rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and full name of everything that a file imports from elsewhere."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def begins(name: str, module: str) -> bool:
    """Return whether an imported name is a module or lies in it."""
    return name == module or name.startswith(f"{module}.")


def offences(path: Path, forbidden: set[str]) -> list[str]:
    """Return a line for each import of something forbidden."""
    return [
        f"{path}:{line} imports {name}"
        for line, name in imports(path)
        if any(begins(name, module) for module in forbidden)
    ]


def test_core_does_no_io() -> None:
    """`weir` imports nothing that opens a socket, a file store or an event loop."""
    assert sources("weir")
    assert [text for path in sources("weir") for text in offences(path, NOT_IN_CORE)] == []


def test_core_opens_no_file() -> None:
    """`weir` does not call `open`: what it needs comes in as an argument."""
    calls = [
        f"{path}:{node.lineno}"
        for path in sources("weir")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    assert calls == []


@pytest.mark.parametrize("package", ["weir", "weir_reading", "weir_service", "weir_cli", *SERVICES])
def test_nobody_imports_a_service(package: str) -> None:
    """The core imports nothing; libraries and command only the core; no service another."""
    allowed = {"weir": set[str](), "weir_reading": {"weir"}, "weir_service": {"weir"}}
    allowed["weir_cli"] = {"weir"}
    libraries = {"weir", "weir_reading", "weir_service"}
    forbidden = set(PACKAGES) - {package} - allowed.get(package, libraries)
    assert [text for path in sources(package) for text in offences(path, forbidden)] == []


def test_local_stack_imports_no_service() -> None:
    """The local stack starts the services as programs; it does not reach into them."""
    found = [text for path in sources("weir_local") for text in offences(path, set(SERVICES))]
    assert found == []


def clock_readings(path: Path) -> list[str]:
    """Return a line for each look at a wall clock, under whatever name it was imported."""
    tree = ast.parse(path.read_text())
    aliases = {
        alias.asname: alias.name.rpartition(".")[2]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    found = [
        f"{path}:{line} imports {name}"
        for line, name in imports(path)
        if name.startswith("time.") and tuple(name.rsplit(".", 1)) in WALL_CLOCKS
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            owner = aliases.get(owner, owner)
            if (owner, node.attr) in WALL_CLOCKS:
                found.append(f"{path}:{node.lineno} reads {owner}.{node.attr}")
    return found


@pytest.mark.parametrize("package", list(PACKAGES))
def test_only_the_clock_reads_the_time(package: str) -> None:
    """`time.time`, `datetime.now` and their like stand in `weir/clock.py` only."""
    paths = [path for path in sources(package) if path != CLOCK]
    assert [text for path in paths for text in clock_readings(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.time()",
        "from time import time\n",
        "from time import time_ns as now\n",
        "import time as t\nt.time()",
        "from datetime import datetime\ndatetime.now()",
        "from datetime import datetime as dt\ndt.utcnow()",
        "import datetime\ndatetime.date.today()",
    ],
)
def test_the_clock_rule_can_fail(text: str, tmp_path: Path) -> None:
    """A look at the clock is found under any name; one at the monotonic clock is none."""
    path = tmp_path / "bad.py"
    path.write_text(text)
    assert len(clock_readings(path)) == 1
    path.write_text("from time import monotonic\nimport time\ntime.monotonic()\n")
    assert clock_readings(path) == []


def test_recount_shares_no_code() -> None:
    """The recount that checks Weir's numbers imports nothing of Weir."""
    paths = [ROOT / "tests" / name for name in ("recount.py", "account.py")]
    imported = [name for path in paths for _line, name in imports(path)]
    assert "account.read_log" in imported
    found = [name for name in imported if name.startswith("weir")]
    assert found == []


def test_the_rule_can_fail(tmp_path: Path) -> None:
    """An import inside a function, or of a part of a module, is found."""
    path = tmp_path / "bad.py"
    path.write_text("def f():\n    from urllib import request\n    import redis.asyncio\n")
    assert len(offences(path, NOT_IN_CORE)) == 2
