"""D17 of RELIABILITY 3: a network that loses packets, for all parts at once.

What a single link can do, silence and resets among it, is in `test_faults_of_stores.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from disruption.faults import bites, broken, needs, root
from disruption.network import await_sockets, ip_tool, iptables, losing, own_network, sockets
from disruption.rig import INTERRUPTED
from disruption.scene import PATIENCE_S, await_new_result
from weir.clock import SystemClock

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(1800)]

SHARE, IMPACT_S = 0.2, 60.0
# TCP sends again what was lost: fewer were not a lossy network.
LEAST_LOST = 500


def test_every_fifth_packet_is_lost(tmp_path: Path, seed: int) -> None:
    """D17: events are taken and counted meanwhile, if slowly; afterwards all is as before."""
    needs(root_to_make_a_network=root, iptables=iptables, ip=ip_tool)
    with own_network(), broken(tmp_path, seed, "", errors=(INTERRUPTED,)) as here:
        rig, clock = here.rig, SystemClock()
        here.more(200)
        await_new_result(rig)
        before, until_s = sockets(rig), clock.monotonic_s() + IMPACT_S
        acknowledged = here.load.acknowledged
        with losing(SHARE) as dropped:
            rig.wait_until(lambda: clock.monotonic_s() > until_s, "the loss", 2 * IMPACT_S)
            bites(here.load.acknowledged > acknowledged, "events that were taken meanwhile")
            await_new_result(rig, PATIENCE_S)
            lost = dropped()
        bites(lost > LEAST_LOST, "lost packets")
        print(f"{lost} packets were lost")  # noqa: T201
        rig.revive()
        await_new_result(rig)
        await_sockets(rig, before)
