"""Sending by what a channel's definition says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from weir.alerts.messages import trial_message
from weir.alerts.records import Notification, Trial
from weir.clock import SystemClock
from weir.definitions.records import Edit, delete_record, put_record
from weir_analytics.alerts.channels import by_apprise, turns
from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.sender import Sender
from weir_analytics.alerts.channels.turns import FAILING, STEADY
from weir_analytics.alerts.settings import Settings
from weir_reading.catalog import Catalog
from weir_reading.follower import Record

UNREADABLE = Path("/proc/self/mem")
NOTE = trial_message(Trial(tenant="default", id="t", channel="c", by="ann"))
MESSAGE = msgspec.structs.replace(NOTE, kind="firing")


def sender(folder: Path, count: int = 1) -> Sender:
    """Return a sender that knows channels `c0`, `c1`, … by Apprise."""
    catalog = Catalog()
    records = []
    for n in range(count):
        text = json.dumps({"kind": "channel", "name": f"c{n}", "apprise": "secret://slow"})
        record = put_record(Edit("default", "channel", f"c{n}", None, "ann", 0), text)
        records.append(Record(n, record.key, record.value, 0))
    catalog.take(records)
    settings = Settings(
        kafka_bootstrap="127.0.0.1:9", redis_url="redis://127.0.0.1:9", secrets_dir=folder
    )
    return Sender(catalog, settings, SystemClock())


def send(one: Sender, *channels: str, note: Notification = NOTE) -> list[Answer]:
    """Send to channels at once."""

    async def together() -> list[Answer]:
        try:
            return await asyncio.gather(*(one.send("default", c, note) for c in channels))
        finally:
            await one.close()

    return asyncio.run(together())


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    """A channel, or its secret; both may come, so it is tried again."""
    found = send(sender(tmp_path), "c0", "c9")

    assert [one.why for one in found] == [
        "a secret that the channel names is missing",
        "there is no such channel",
    ]
    assert not any(one.final or one.delivered for one in found)


def test_what_is_due_for_a_deleted_channel_is_over(tmp_path: Path) -> None:
    """It is refused for good; one that cannot be read here is tried again."""
    one = sender(tmp_path)
    deleted = delete_record(Edit("default", "channel", "c0", 1, "ann", 0))
    later = put_record(
        Edit("default", "channel", "c1", None, "ann", 0),
        json.dumps({"kind": "channel", "name": "c1", "shape": "of a later release"}),
    )
    written = enumerate((deleted, later), start=1)
    one._catalog.take([Record(n, record.key, record.value, 0) for n, record in written])
    gone, unread = send(one, "c0", "c1")

    assert (gone.why, gone.final) == ("there is no such channel", True)
    assert (unread.why, unread.final) == ("its definition cannot be read by this release", False)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff\xfe", "must be text in UTF-8, and is none; write its file anew"),
        (b" \n", "is missing"),
        (None, "could not be read: Input/output error; see who may read its file"),
    ],
)
def test_a_secret_that_cannot_be_read(tmp_path: Path, content: bytes | None, why: str) -> None:
    """It is told as that, and tried again once somebody has mended it."""
    path = tmp_path / "slow"
    if content is not None:
        path.write_bytes(content)
    elif UNREADABLE.exists():
        # Rights do not stop who runs as root.
        path.symlink_to(UNREADABLE)
    else:
        pytest.skip("a file that nobody can read needs Linux")
    (found,) = send(sender(tmp_path), "c0")

    assert found.why == f"a secret that the channel names {why}"
    assert not found.final


def test_a_process_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without memory or descriptors for it: told, and tried again."""
    (tmp_path / "slow").write_text("json://127.0.0.1")
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    (found,) = send(sender(tmp_path), "c0")

    assert found.why == "its process could not be started: No such file or directory"
    assert not found.final


@pytest.mark.thorough
def test_processes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many channels at once take turns: each process has its memory."""
    # On a busy machine a process starts in seconds, and hangs for nobody.
    monkeypatch.setattr(turns, "HANGS_S", 60.0)
    (tmp_path / "slow").write_text("not a URL")
    running, most = 0, 0
    real = by_apprise.call

    async def counted(*args: object) -> Answer:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await real(*args)  # type: ignore[arg-type]
        finally:
            running -= 1

    monkeypatch.setattr(by_apprise, "call", counted)
    found = send(sender(tmp_path, 6), *(f"c{n}" for n in range(6)), note=MESSAGE)

    assert {one.why for one in found} == {"the secret holds no URL that Apprise reads"}
    assert STEADY <= most <= STEADY + FAILING
