"""The commands on the whole stack: up, status, down, and up again after every kind of end."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from equality import assert_equal_to_recount, await_load, begin
from weir_local import ports
from weir_local.home import Home
from weir_local.keeper import keeper_part, notes_path
from weir_local.process import Part
from weir_local.services import probe
from weir_local.stack import CORE, Stack
from weir_local.testing import TestStack, free_port_base
from weir_local.up import JOINED
from weir_local.waiting import wait_until

UP_TIMEOUT_S = 400
DEMO_TIMEOUT_S = 60
pytestmark = pytest.mark.stack


@dataclass(frozen=True)
class Commands:
    """Runs `python -m weir_local` on a home of its own."""

    home: Home

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(  # noqa: S603
            [sys.executable, "-m", "weir_local", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=UP_TIMEOUT_S,
            check=False,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment that points at the home."""
        base = str(self.home.port_base)
        return {**os.environ, "WEIR_HOME": str(self.home.folder), "WEIR_PORT_BASE": base}

    @property
    def parts(self) -> dict[str, Part]:
        """Return every process of the stack, the keeper too."""
        return {**Stack(self.home).parts, "keeper": keeper_part(self.home)}


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """Return the commands on a home that is stopped afterwards."""
    commands = Commands(Home(tmp_path / "home", free_port_base()))
    yield commands
    commands.home.want([])
    for part in (commands.parts["keeper"], *commands.parts.values()):
        part.kill()


def test_up_status_down(commands: Commands) -> None:
    """`up` ends with all ready and told, a second one joins; what is killed comes back.

    The keeper starts a part again; a third `up` mends what ended with the keeper. `down` leaves
    no process and no port.
    """
    home = commands.home
    up = commands.run("up", "--detach")
    assert up.returncode == 0, up.stderr
    assert f"http://127.0.0.1:{home.ports['dashboard']}/login#once=" in up.stdout
    assert stat.S_IMODE(home.env_file.stat().st_mode) == 0o600
    assert f"WEIR_API_KEY={home.api_key()}" in home.env_file.read_text()

    rows = commands.run("status").stdout.splitlines()[1:]
    for row in rows[: len(CORE)]:
        assert "  yes  " in row, row

    before = running(commands)
    second = subprocess.Popen(
        [sys.executable, "-m", "weir_local", "up"],
        env=commands.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert second.stdout is not None
    told = "".join(iter(second.stdout.readline, JOINED))
    assert "Weir runs already" in told
    second.send_signal(signal.SIGINT)
    rest, _ = second.communicate(timeout=60)
    assert (second.returncode, "left running" in rest) == (0, True)
    assert running(commands) == before

    assert_kept(commands)
    assert_mended(commands)

    assert commands.run("down").returncode == 0
    assert running(commands) == []
    assert [port for port in home.ports.by_use.values() if not ports.is_free(port)] == []
    link = commands.run("link")
    assert (link.returncode, "run `make up`" in link.stderr) == (1, True)


def assert_kept(commands: Commands) -> None:
    """End a part: the keeper starts it again, and says so."""
    ingest = commands.parts["ingest"]
    first = ingest.pid()
    ingest.send(signal.SIGKILL)
    ops = commands.home.ports["ingest ops"]
    wait_until(
        lambda: ingest.pid() not in (None, first) and probe(ops, "/readyz") == 200,
        timeout_s=30,
        what="a new ingest",
    )
    notes = notes_path(commands.home).read_text()
    assert "ingest has ended" in notes
    assert "ingest was started again" in notes


def assert_mended(commands: Commands) -> None:
    """End the dashboard and the keeper: it is told what to do, and `up` does it."""
    for name in ("keeper", "dashboard"):
        commands.parts[name].send(signal.SIGKILL)
    wait_until(lambda: "dashboard" not in running(commands), timeout_s=10, what="its end")
    assert "what ends now is not started again. Run `make up`." in commands.run("status").stdout
    link = commands.run("link")
    assert (link.returncode, "has ended, as has its keeper" in link.stderr) == (1, True)
    mended = commands.run("up", "--detach").stdout
    assert "started now, because it did not run: dashboard\n" in mended
    assert "Run `make up`" not in commands.run("status").stdout


@pytest.mark.timeout(900)
def test_no_end_changes_a_number(commands: Commands) -> None:
    """Ctrl-C, kill -9 of all and `down`, each under load: `up` goes on, equal to the recount."""
    with foreground(commands) as up:
        client = TestStack(commands.home.folder, commands.home.port_base)
        load = begin(client, seed=1)
        with load:
            await_load(client, load, 500)
            assert ctrl_c(up).endswith(f"state is kept in {commands.home.folder}\n")
            assert running(commands) == []
            assert commands.run("up", "--detach").returncode == 0
            await_load(client, load, load.acknowledged + 500)
            for end in (kill_all, stop_all):
                end(commands)
                again = commands.run("up", "--detach")
                assert again.returncode == 0, again.stderr
                await_load(client, load, load.acknowledged + 500)
    assert commands.run("status").stdout.count("  yes  ") == len(CORE)
    assert_equal_to_recount(client, load)
    client.close()


@contextmanager
def foreground(commands: Commands) -> Iterator[subprocess.Popen[str]]:
    """Run `up` in the foreground, ready."""
    with subprocess.Popen(
        [sys.executable, "-m", "weir_local", "up"],
        env=commands.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as up:
        assert up.stdout is not None
        for line in up.stdout:
            if line.startswith("Ctrl-C stops"):
                break
        yield up


def ctrl_c(up: subprocess.Popen[str]) -> str:
    """Press Ctrl-C; return what was said then."""
    assert up.stdout is not None
    up.send_signal(signal.SIGINT)
    said = up.stdout.read()
    assert up.wait(60) == 0
    return said


def kill_all(commands: Commands) -> None:
    """End every process of the stack at once, the keeper first."""
    for name in ("keeper", *CORE):
        commands.parts[name].send(signal.SIGKILL)
    wait_until(lambda: not running(commands), timeout_s=10, what="the end of all")


def stop_all(commands: Commands) -> None:
    """Run `down`."""
    assert commands.run("down").returncode == 0
    assert running(commands) == []


def running(commands: Commands) -> list[str]:
    """Return the names of the parts that run."""
    return [name for name, part in commands.parts.items() if part.pid()]


@pytest.mark.timeout(900)
def test_the_demo_shows_an_hour(commands: Commands) -> None:
    """`demo` ends ready: the boards draw an hour and this machine, the printed line works."""
    demo = commands.run("demo", "--detach")
    assert demo.returncode == 0, demo.stderr
    assert "/login?to=/b/web#once=" in demo.stdout

    printed = re.search(r"^Try +(curl .*?)\n\n?Scripts", demo.stdout, re.M | re.S)
    assert printed is not None
    tried = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", printed[1]], capture_output=True, text=True, check=True, timeout=60
    )
    assert '"accepted":1' in tried.stdout

    client = TestStack(commands.home.folder, commands.home.port_base)
    for board, kind, last, fewest in (
        ("web", "chart", "1h", 50),
        ("web", "number", "2m", 1),
        ("web", "top", "2m", 1),
        ("machine", "chart", "2m", 1),
    ):
        for tile in tiles(client, board, kind):
            client.wait_until(
                lambda tile=tile, last=last, fewest=fewest: drawn(client, tile, last) >= fewest,  # type: ignore[misc]
                f"{last} of {tile['title']}",
                DEMO_TIMEOUT_S,
            )
    client.close()
    stop_all(commands)


def tiles(client: TestStack, board: str, kind: str) -> list[dict[str, Any]]:
    """Return the tiles of a kind on a board."""
    parsed = client.api("GET", f"/definitions/board/{board}").body["parsed"]
    found = [tile for tile in parsed["tiles"] if tile["type"] == kind]
    assert found
    return found


def drawn(client: TestStack, tile: dict[str, Any], last: str) -> int:
    """Return at how many minutes of a span a tile's query has events."""
    query = {
        "metric": tile["metric"],
        "aggregate": (tile.get("aggregates") or [tile["aggregate"]])[0],
        "window": tile.get("window") or {"kind": "tumbling", "length": "1m"},
        "range": {"last": last},
        "step": "1m",
        "by": tile.get("by") or [],
        "limit": {"top": 10, "other": True},
    }
    counts = zip(*(series["count"] for series in client.query(query)["series"]), strict=True)
    return sum(any(of_minute) for of_minute in counts)


def test_a_taken_port_is_told(commands: Commands) -> None:
    """A taken port is told with its use, its holder and the setting; nothing is left running."""
    port = commands.home.ports["dashboard"]
    with socket.socket() as holder:
        holder.bind((ports.HOST, port))
        holder.listen()
        up = commands.run("up", "--detach")
    assert up.returncode == 1
    assert f"port {port} (dashboard) must be free" in up.stderr
    assert f"pid {os.getpid()}" in up.stderr
    assert "WEIR_PORT_BASE=" in up.stderr
    assert running(commands) == []
