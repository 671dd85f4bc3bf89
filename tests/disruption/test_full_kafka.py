"""Kafka's disk is full: nothing is taken, nothing that was is lost, nothing is mended by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from disruption.checker import RECOVERY_S
from disruption.faults import bites, broken, needs, root, with_mutant
from disruption.rig import INTERRUPTED, promised_s
from disruption.scene import PATIENCE_S, await_new_result
from disruption.small_disk import fill, small_disk

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

# As long as ingest waits for a confirmation before it answers 503.
ANSWER_S = promised_s(5.0)
NO_ROOM = "No space left on device"


@with_mutant("unconfirmed_is_taken")
def test_the_disk_of_kafka_is_full(tmp_path: Path, seed: int, mutant: str) -> None:
    """The broker ends, clients are told 503 in time; with room, and started again, it goes on.

    Whoever keeps the broker starts it again, as the keeper of a laptop or Kubernetes does.
    """
    needs(root_to_mount_a_small_disk=root)
    folder = tmp_path / "kafka"
    with (
        small_disk(folder, "128m"),
        broken(tmp_path, seed, mutant, part="ingest", errors=(INTERRUPTED, "cannot_go_on")) as here,
    ):
        rig, load = here.rig, here.load
        here.more(200)
        await_new_result(rig)
        filler, told = fill(folder), len(load.refusals)
        rig.await_end("kafka", PATIENCE_S)
        taken = load.acknowledged
        bites(NO_ROOM in rig.log("kafka"), f"{NO_ROOM} in Kafka's log")
        rig.wait_until(
            lambda: load.acknowledged > taken or len(load.refusals) > told + 3,
            "answers",
            PATIENCE_S,
        )
        assert load.acknowledged == taken, "nothing may be taken while Kafka has no room"
        refused = load.refusals[told:]
        assert {one.status for one in refused} == {503}
        assert all(1 <= int(one.retry_after) <= 5 for one in refused)
        assert max(one.took_s for one in refused) <= ANSWER_S
        filler.unlink()
        rig.restart("kafka")
        rig.revive()
        await_new_result(rig, RECOVERY_S)
