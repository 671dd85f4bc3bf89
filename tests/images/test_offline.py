"""The build without an engine, as far as it can be tried without root: how images are run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from weir_images import build
from weir_images.build import BuildError, check
from weir_images.run import INSIDE, SECRETS, Image, inside

CONFIG: dict[str, Any] = {
    "User": "10001:10001",
    "WorkingDir": "/tmp",  # noqa: S108  the container's own
    "Env": ["PATH=/opt/weir/bin:/usr/bin"],
    "Entrypoint": ["tini", "--"],
    "Cmd": ["python", "-m", "weir_analytics.panes"],
}


def test_a_process_gets_the_images_user_environment_and_words() -> None:
    """It starts without rights and without variables of this machine, by the image's words."""
    image = Image(Path("/files"), CONFIG, "it")
    command = image.command({"A": "b"}, {SECRETS: Path("/made")})
    before, _, after = " ".join(command).partition(" setpriv ")
    assert before.startswith("unshare --mount --pid --fork --kill-child")
    assert before.endswith(f"sh /files /made {SECRETS} --")
    assert after == (
        "--reuid=10001 --regid=10001 --clear-groups --no-new-privs --bounding-set=-all "
        "--inh-caps=-all env -i --chdir=/tmp PATH=/opt/weir/bin:/usr/bin A=b "
        "tini -- python -m weir_analytics.panes"
    )
    assert image.command({}, {}, ["id"])[-1] == "id"


def test_the_root_is_shut_before_anything_starts() -> None:
    """After the folders are mounted and before the process begins, it is made read-only."""
    lines = [line for line in INSIDE.splitlines() if line]
    assert lines.index('mount -o remount,bind,ro "$root"') < len(lines) - 1
    assert lines[-1].startswith("exec chroot ")


def test_an_image_of_another_user_is_refused() -> None:
    """Root, and a name that a cluster cannot check, do not start."""
    for user in ("", "root", "weir"):
        with pytest.raises(BuildError, match="an image must run as 10001:10001"):
            Image(Path("/files"), {**CONFIG, "User": user}, "it").command({}, {})


def test_settings_name_places_inside() -> None:
    """Folders of this machine become those of the container; the image's own are left to it."""
    local = {
        "WEIR_ANALYTICS_STATE_DIR": "/home/me/.weir/panes",
        "WEIR_ANALYTICS_JARS_DIR": "/home/me/.tools/jars",
        "WEIR_ANALYTICS_OPS_PORT": "27084",
        "PYTHONUNBUFFERED": "1",
    }
    assert inside(local) == {
        "WEIR_ANALYTICS_STATE_DIR": "/var/weir/state",
        "WEIR_ANALYTICS_OPS_PORT": "27084",
        "PYTHONUNBUFFERED": "1",
    }


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is not root is told what else there is; who is, which packages to install."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(BuildError, match="with one, use docker build"):
        check()
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(build, "NEEDED", ("weir-no-such-program",))
    with pytest.raises(BuildError, match="weir-no-such-program must be on PATH, found none"):
        check()
