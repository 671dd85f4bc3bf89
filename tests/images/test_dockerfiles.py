"""The three Dockerfiles: what they are built from, who they run as, what they tell."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from weir_analytics.alerts.settings import Settings as AlertsSettings
from weir_analytics.settings import Settings as AnalyticsSettings
from weir_dashboard.settings import Settings as DashboardSettings
from weir_ingest.settings import Settings as IngestSettings

from .dockerfiles import (
    ROOT,
    SERVICES,
    context_sources,
    environment,
    instructions,
    is_in_context,
    last_stage,
    path_of,
)

HADOLINT = Path(sys.executable).parent / "hadolint"
SETTINGS = (IngestSettings, AnalyticsSettings, AlertsSettings, DashboardSettings)


def rest(service: str, word: str) -> list[str]:
    """Return what follows a word in the last stage."""
    return [one.rest for one in last_stage(service) if one.word == word]


def test_each_service_has_an_image() -> None:
    """Whatever lies in services/ with code of its own can be deployed."""
    folders = {path.parent.name for path in (ROOT / "services").glob("*/pyproject.toml")}
    assert folders == set(SERVICES)
    assert all(path_of(service).is_file() for service in SERVICES)


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    """Return what hadolint says of a file."""
    command = [str(HADOLINT), "--no-color", "--config", str(ROOT / ".hadolint.yaml"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


@pytest.mark.parametrize("service", SERVICES)
def test_hadolint_finds_nothing(service: str) -> None:
    """Not even a remark."""
    done = lint(path_of(service))
    assert (done.returncode, done.stdout) == (0, "")


def test_hadolint_can_find_something(tmp_path: Path) -> None:
    """A base without a version, and a shell as entrypoint, are found."""
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM debian\nENTRYPOINT python -m weir_ingest\n")
    done = lint(bad)
    assert done.returncode == 1
    assert "DL3006" in done.stdout
    assert "DL3025" in done.stdout


def test_all_stand_on_one_base() -> None:
    """One distribution for all, named by digest; nothing is built from another by tag."""
    bases: dict[str, set[str]] = {}
    for service in SERVICES:
        for one in instructions(service):
            if one.word == "ARG" and "_IMAGE=" in one.rest:
                name, _, image = one.rest.partition("=")
                assert re.fullmatch(r"docker\.io/[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image)
                bases.setdefault(name, set()).add(image)
            if one.word == "FROM":
                assert one.rest.startswith("${")
    assert {name: len(images) for name, images in bases.items()} == {
        "BASE_IMAGE": 1,
        "NODE_IMAGE": 1,
    }
    assert "debian:12-slim@" in next(iter(bases["BASE_IMAGE"]))


@pytest.mark.parametrize("service", SERVICES)
def test_it_runs_as_nobody_in_particular(service: str) -> None:
    """By number, so that a cluster can see that it is not root; with a line in /etc/passwd.

    Without that line the JVM stops where Hadoop asks who it is.
    """
    assert rest(service, "USER") == ["10001:10001"]
    (run,) = rest(service, "RUN")
    assert "useradd --uid 10001 --gid 10001" in run
    assert environment(service)["HOME"] == "/tmp"  # noqa: S108  the one place that can be written


@pytest.mark.parametrize("service", SERVICES)
def test_it_starts_without_a_shell(service: str) -> None:
    """The entrypoint is a list of words; probes are the cluster's, not the image's."""
    (entrypoint,) = rest(service, "ENTRYPOINT")
    words = json.loads(entrypoint)
    assert words[0] == ("tini" if service == "analytics" else "python")
    assert not {"sh", "bash"} & set(words)
    assert rest(service, "HEALTHCHECK") == []


@pytest.mark.parametrize("service", SERVICES)
def test_no_installer_is_left(service: str) -> None:
    """What installs packages is gone before what was installed is copied on."""
    run = [one.rest for one in instructions(service) if "uninstall" in one.rest]
    assert len(run) == 1
    assert "uninstall -y setuptools wheel pip" in run[0]
    assert "--no-compile" in run[0]
    assert "compileall -q --invalidation-mode unchecked-hash" in run[0]
    installs = [one.rest for one in instructions(service) if "-r services/" in one.rest]
    assert len(installs) == 2
    assert all("--require-hashes" in one for one in installs)


def test_what_it_sets_are_settings() -> None:
    """Each variable that an image sets is one that its code reads, and ports are exposed."""
    known = {
        f"{kind.model_config.get('env_prefix')}{field.upper()}"
        for kind in SETTINGS
        for field in kind.model_fields
    }
    for service in SERVICES:
        variables = environment(service)
        mine = {name for name in variables if name.startswith("WEIR_")}
        assert mine
        assert mine <= known
        ports = {variables[name] for name in mine if name.endswith("PORT")}
        assert set(rest(service, "EXPOSE")[0].split()) == ports
        assert {variables[name] for name in mine if name.endswith("_HOST")} == {"0.0.0.0"}  # noqa: S104


@pytest.mark.parametrize("service", SERVICES)
def test_what_it_copies_is_let_through(service: str) -> None:
    """Each source is in the checkout, and the list of what a build may see has it."""
    for source in context_sources(service):
        path = ROOT / source
        assert path.exists(), source
        files = [path] if path.is_file() else [*path.rglob("*.py"), *path.glob("p*.*")]
        files = [file for file in files if not {"tests", "node_modules"} & set(file.parts)]
        assert files
        assert all(is_in_context(str(file.relative_to(ROOT))) for file in files), source


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".weir/secrets/hash_key",
        ".venv/bin/python",
        ".tools/jars/kafka/kafka.jar",
        "data/web-access.log.gz",
        "infra/local/weir_local/up.py",
        "services/ingest/tests/test_topics.py",
        "services/ingest/weir_ingest/__pycache__/app.cpython-311.pyc",
        "services/dashboard/web/node_modules/vite/package.json",
        "services/dashboard/web/dist/index.html",
    ],
)
def test_state_secrets_and_tests_stay_out(path: str) -> None:
    """What no image needs never gets to the builder."""
    assert not is_in_context(path)
