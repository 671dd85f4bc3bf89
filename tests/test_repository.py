"""What must hold for the repository as a whole: locks, sizes, names, the make targets."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest
from weir.definitions.check import check
from weir_local.checks import FAULTS

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "services/dashboard/web"
MAX_LINES = 600
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "manager", "util", "helper"}
CODE = {".py", ".ts", ".tsx", ".css", ".sh", ".mjs", ".js"}


@cache
def tracked() -> tuple[Path, ...]:
    """Return every file that git knows and that is there."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)  # noqa: S607  the git and make of PATH
    names = [name for name in done.stdout.decode().split("\0") if name]
    return tuple(ROOT / name for name in names if (ROOT / name).is_file())


def text_of(path: Path) -> str:
    """Return a file's text; empty for one that is no text."""
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""


def test_requirements_are_locked_by_hash() -> None:
    """Every package has exact version and SHA-256, and no line names an index."""
    text = (ROOT / "requirements.txt").read_text()
    entries = re.split(r"\n(?=[a-z0-9])", text)
    assert len(entries) > 50
    for entry in entries:
        assert re.match(r"[a-z0-9][a-z0-9._-]*==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text


def test_wanted_packages_are_locked() -> None:
    """Each package that requirements.in wants is in requirements.txt."""
    wanted = re.findall(r"^([a-z0-9][\w.-]*)", (ROOT / "requirements.in").read_text(), re.M)
    locked = set(re.findall(r"^([a-z0-9][\w.-]*)==", (ROOT / "requirements.txt").read_text(), re.M))
    assert {name.lower().replace(".", "-") for name in wanted} <= locked


def test_node_lock_names_no_address() -> None:
    """The Node lock has a hash for each package and no download address."""
    lock = json.loads((WEB / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert [name for name, entry in packages.items() if "integrity" not in entry] == []


def test_node_lock_fits_its_package() -> None:
    """The Node lock was made from this very package.json."""
    package = json.loads((WEB / "package.json").read_text())
    root = json.loads((WEB / "package-lock.json").read_text())["packages"][""]
    for kind in ("dependencies", "devDependencies"):
        assert root.get(kind, {}) == package.get(kind, {})


def test_every_jar_is_locked_by_hash() -> None:
    """The jars' lock gives a SHA-256 for the broker and the four connector jars."""
    lines = (ROOT / "infra/local/jars.lock").read_text().splitlines()
    entries = [line for line in lines if not line.startswith("#")]
    for entry in entries:
        assert re.fullmatch(r"[0-9a-f]{64}  (kafka|spark)/[\w.-]+\.jar", entry), entry
    assert sum("  spark/" in entry for entry in entries) == 4
    assert any("  kafka/kafka_2.13-" in entry for entry in entries)


@pytest.mark.parametrize("suffix", sorted(CODE))
def test_no_file_is_too_long(suffix: str) -> None:
    """No source file that people write has more than 600 lines; `.d.ts` are generated."""
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked()
        if path.suffix == suffix
        and not path.name.endswith(".d.ts")
        and (lines := len(text_of(path).splitlines())) > MAX_LINES
    }
    assert long == {}


def test_no_file_has_a_name_that_says_nothing() -> None:
    """No module is called utils, helpers, common, misc or manager."""
    bad = [path for path in tracked() if path.suffix in CODE and path.stem in FORBIDDEN_NAMES]
    assert bad == []


def test_nothing_is_left_to_do() -> None:
    """No line of code is marked as unfinished."""
    mark = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    bad = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.suffix in CODE and path != Path(__file__)
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if mark.search(line)
    ]
    assert bad == []


def make_targets() -> set[str]:
    """Return every target that `make help` lists."""
    text = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^([a-z-]+):.*## ", text, re.M))


def test_readme_names_every_target() -> None:
    """The README's table of commands and the Makefile have the same targets."""
    readme = (ROOT / "README.md").read_text()
    table = set(re.findall(r"^\| `make ([a-z-]+)", readme, re.M))
    assert table == make_targets() - {"help", "setup"}


def test_help_lists_the_targets() -> None:
    """`make` alone prints one line for each target."""
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607
    assert set(re.findall(r"make ([a-z-]+)", done.stdout)) == make_targets()
    listed = re.search(r"\.PHONY:((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text())
    assert listed is not None
    assert set(re.findall(r"[a-z-]+", listed[1])) == make_targets()


def test_every_disruption_test_has_a_target() -> None:
    """What `make test` leaves out is collected by `make test-disruption`, wherever it lies."""
    mark = re.compile(r"pytest\.mark\.disruption\b")
    marked = [p for p in tracked() if p.name.startswith("test_") and mark.search(text_of(p))]
    assert len(marked) >= 2
    # Where no file is named pytest looks into these; to collect all of them takes half a minute.
    looked_at = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    within = [ROOT / path for path in looked_at["ini_options"]["testpaths"]]
    assert [p for p in marked if not any(p.is_relative_to(path) for path in within)] == []
    collected = "".join(
        subprocess.run(  # noqa: S603
            [*one.command, "--numprocesses=0", "--collect-only", "--verbosity=-1", *marked],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for stage in FAULTS
        for one in stage.checks
    )
    assert [p for p in marked if f"{p.relative_to(ROOT)}::" not in collected] == []


@pytest.mark.parametrize("target", ["down", "status", "logs", "link", "reset"])
def test_stopping_and_looking_need_no_set_up(target: str, tmp_path: Path) -> None:
    """These targets only use an environment that is there, and say so where there is none."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    # Within `make test` it would say which folder it enters.
    command = ["make", "--no-print-directory", target, "PYTHON=false"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert "this checkout must be set up for that" in done.stderr
    assert "run `make setup`" in done.stderr
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.startswith(f"-m weir_local {target}")


def test_ci_draws_repeatable_examples(tmp_path: Path) -> None:
    """What CI runs sets CI, by which conftest.py chooses the examples, and keeps the exit code."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\necho "CI=$CI $*"\nexit 3\n')
    make.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(  # noqa: S603
        [tmp_path / ".ci/run"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "CI=1 --no-print-directory test\n"
    assert done.returncode == 3


def test_contributing_names_files_that_are_there() -> None:
    """Each file or folder that CONTRIBUTING.md sends one to exists."""
    named = set(re.findall(r"`([\w.]+/[\w./-]+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    services = [ROOT / "services" / name for name in ("ingest", "analytics", "dashboard")]
    inside = (ROOT, ROOT / "libs/weir", *services, services[-1] / "weir_dashboard")
    assert len(named) >= 15
    assert [n for n in named if not any((folder / n).exists() for folder in inside)] == []


def test_links_between_documents_hold() -> None:
    """A relative link in a document leads to a file that is there."""
    broken = []
    for path in tracked():
        if path.suffix != ".md":
            continue
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text_of(path)):
            if "://" not in target and not (path.parent / target).exists():
                broken.append(f"{path.relative_to(ROOT)} -> {target}")
    assert broken == []


def test_the_metric_of_the_design_is_accepted() -> None:
    """The example that a reader copies from docs/design.md passes the check."""
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/design.md").read_text(), re.S)
    assert [check(None, None, block).model.name for block in blocks] == ["checkout_latency"]


def test_documents_name_files_that_are_there() -> None:
    """A module that docs/design.md names with its folder exists."""
    text = (ROOT / "docs/design.md").read_text()
    engine = ROOT / "services/analytics/weir_analytics"
    named = set(re.findall(r"`(panes/\w+\.py)`", text))
    assert named
    assert [name for name in named if not (engine / name).exists()] == []


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("INGEST", "ingest"),
        ("RELIABILITY", "reliability"),
        ("DASHBOARD", "api"),
        ("DESIGN", "design"),
    ],
)
def test_a_cited_section_is_there(word: str, page: str) -> None:
    """Code that cites a section by number cites one that docs/ has."""
    text = (ROOT / f"docs/{page}.md").read_text()
    sections = set(re.findall(r"^#+ (\d(?:\.\d+)?)[. ]", text, re.M))
    # A section of numbered rules: "1.4" is the fourth of section 1.
    for whole in re.split(r"^(?=## )", text, flags=re.M):
        if (head := re.match(r"## (\d)\.", whole)) and f"{head[1]}.1" not in sections:
            sections |= {f"{head[1]}.{n}" for n in re.findall(r"^(\d+)\. ", whole, re.M)}
    cited = {
        (number, str(path.relative_to(ROOT)))
        for path in tracked()
        if path.suffix in CODE | {".md"} and path != Path(__file__)
        for numbers in re.findall(
            rf"\b{word} (\d(?:\.\d+)?(?:(?:, | and )\d\.\d+)*)", text_of(path)
        )
        for number in re.findall(r"\d(?:\.\d+)?", numbers)
    }
    assert cited
    assert {one for one in cited if one[0] not in sections} == set()


def test_decisions_are_listed() -> None:
    """Every decision note is named in the index, and the index names no other."""
    folder = ROOT / "docs/decisions"
    index = set(re.findall(r"\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text()))
    assert index == {path.name for path in folder.glob("[0-9]*.md")}
