"""The `weir` command against a real dashboard with its Kafka and its Redis."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from weir_cli.__main__ import main
from weir_local.services import probe
from weir_local.testing import TestStack


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestStack]:
    """Return a dashboard with its Kafka and its Redis; nothing else runs."""
    stack = TestStack(tmp_path_factory.mktemp("cli"))
    try:
        stack.start(("dashboard",))
        # The first key is stored a moment after the dashboard serves.
        port, bearer = stack.home.ports["dashboard"], {"Authorization": f"Bearer {stack.key}"}
        stack.wait_until(lambda: probe(port, "/api/v1/status", headers=bearer) == 200, "the key")
        yield stack
    finally:
        stack.stop()


@dataclass
class Command:
    """Runs `weir`, mostly on files of one test."""

    folder: Path
    url: str
    key: str

    def write(self, name: str, text: str) -> Path:
        """Write a file of definitions."""
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, *words: str | Path) -> subprocess.Popen[str]:
        """Start `weir apply` with what is in the folder, or with other words."""
        return self.begin("apply", *(words or ("-f", self.folder)))

    def begin(
        self, *words: str | Path, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        """Start any command."""
        environment = {**os.environ, "WEIR_DASHBOARD_URL": self.url, "WEIR_API_KEY": self.key}
        # Where it is set Python writes all at once by itself, and hides what we leave unwritten.
        environment.pop("PYTHONUNBUFFERED", None)
        return subprocess.Popen(  # noqa: S603  the command is ours
            [sys.executable, "-m", "weir_cli", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
        )

    def run(self, *words: str | Path, code: int = 0) -> str:
        """Run `weir apply`; assert its exit code and return what it wrote."""
        written, errors = self.do("apply", *(words or ("-f", self.folder)), code=code)
        return written or errors

    def do(self, *words: str | Path, code: int = 0) -> tuple[str, str]:
        """Run any command in this process; assert its exit code, return what it wrote.

        A process of its own takes a second to start, and there are many.
        """
        known = {"WEIR_DASHBOARD_URL": self.url, "WEIR_API_KEY": self.key}
        written, errors = io.StringIO(), io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(written),
            contextlib.redirect_stderr(errors),
        ):
            for name, value in known.items():
                patch.setenv(name, value)
            try:
                ended = main([str(word) for word in words])
            except SystemExit as said:  # the parser's own way
                ended = int(said.code or 0)
        assert ended == code, written.getvalue() + errors.getvalue()
        return written.getvalue(), errors.getvalue()


def finish(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    """Wait for the command; assert its exit code and return what it wrote."""
    written, errors = process.communicate(timeout=120)
    assert process.returncode == code, f"{written or ''}{errors or ''}"
    return written, errors


@pytest.fixture
def weir(installation: TestStack, tmp_path: Path) -> Command:
    """Return the command, with a folder of this test's own."""
    return Command(tmp_path, installation.dashboard_url, installation.key)
