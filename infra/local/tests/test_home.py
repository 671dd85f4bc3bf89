"""A stack's folder: ports, secrets, the env file, what should run."""

from __future__ import annotations

import re
import socket
import stat
from pathlib import Path

import pytest
from weir_local import ports
from weir_local.home import Home
from weir_local.process import PartError


def test_ports_are_steps_above_the_base() -> None:
    """The ports are those of docs/interfaces.md, section 8."""
    known = Home(Path("/nowhere"), 9000).ports
    assert (known["ingest"], known["dashboard"], known["panes ops"]) == (9000, 9001, 9004)
    assert (known["kafka"], known["kafka controller"], known["redis"]) == (9005, 9006, 9007)


@pytest.mark.parametrize("asked", ["80", "65501", "many"])
def test_a_bad_port_base_is_refused(tmp_path: Path, asked: str) -> None:
    """A base outside the usable range is refused, with what came."""
    with pytest.raises(PartError, match=f'must be a number from 1024 to 65500, got "{asked}"'):
        Home.from_environment({"WEIR_HOME": str(tmp_path), "WEIR_PORT_BASE": asked})


def test_secrets_are_made_once_and_private(tmp_path: Path) -> None:
    """The key stays the same over starts, has its form, and only its owner reads it."""
    home = Home(tmp_path / "home")
    home.prepare()
    key = home.api_key()
    home.prepare()
    assert home.api_key() == key
    assert re.fullmatch(r"wk_[a-z0-9]{8}_[\w-]{32,}", key)
    assert stat.S_IMODE(home.secrets.stat().st_mode) == 0o700
    for path in home.secrets.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_env_file_is_private(tmp_path: Path) -> None:
    """The env file holds the values and is readable by its owner only, also when rewritten."""
    home = Home(tmp_path)
    home.prepare()
    for value in ("one", "two"):
        home.write_env({"WEIR_API_KEY": value})
        assert home.env_file.read_text() == f"WEIR_API_KEY={value}\n"
        assert stat.S_IMODE(home.env_file.stat().st_mode) == 0o600


def test_a_running_stack_keeps_its_ports(tmp_path: Path) -> None:
    """What runs is found without its port base; another base is refused at a start only."""
    home = Home(tmp_path, 9100)
    home.prepare()
    home.want(["kafka"])
    assert Home.from_environment({"WEIR_HOME": str(tmp_path)}).port_base == 9100
    other = {"WEIR_HOME": str(tmp_path), "WEIR_PORT_BASE": "9200"}
    with pytest.raises(PartError, match="runs on ports from 9100, asked for 9200"):
        Home.from_environment(other, starting=True)
    assert Home.from_environment(other).port_base == 9100
    home.want([])
    assert Home.from_environment(other).port_base == 9200


def test_a_port_in_use_is_not_free() -> None:
    """A port is free until something listens there, and who listens is named."""
    with socket.socket() as server:
        server.bind((ports.HOST, 0))
        port = server.getsockname()[1]
        server.listen()
        assert not ports.is_free(port)
        assert ports.answers(port)
        assert "pid" in ports.listener(port)
    assert ports.is_free(port)
    assert not ports.answers(port)


def test_free_ports_are_nobodys_yet() -> None:
    """None comes twice, none is where a stack or the system looks, none is taken."""
    drawn = [ports.free_port() for _ in range(20)]
    with socket.socket() as server:
        server.bind((ports.HOST, drawn[0]))
        server.listen()
        later = [ports.free_port() for _ in ports.SINGLE[::16]]
    assert len(set(drawn)) == len(drawn)
    assert drawn[0] not in later
    assert drawn[1] in later
    assert all(port in ports.SINGLE for port in (*drawn, *later))
    assert ports.STACKS[-1] + 10 <= ports.SINGLE[0]
