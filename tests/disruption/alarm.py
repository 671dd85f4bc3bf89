"""The alarm of a scene, which fires while the load flows: settled, ended, evaluated."""

from __future__ import annotations

import json
from typing import Any

import redis
from disruption.checker import RECOVERY_S
from disruption.rig import PACE, Rig
from disruption.scene import PATIENCE_S, Scene
from weir import names
from weir.clock import SystemClock

ENDS_S = 90.0 * PACE
# The alarm's: with the load in the whole of one, none of before is left to be looked at.
WINDOW_MS = 5_000


def settle_alarm(here: Scene) -> int:
    """Wait until the alarm fires for good; return how many messages there were until then.

    The last word may be of before a pause of the load, with that on its end still to come: what
    came of the pause is known once rules are evaluated up to a window of after it, and told.
    """
    here.load.resume()
    await_evaluated(here.rig, SystemClock().now_ms() + WINDOW_MS)
    await_recorded(here.rig)
    here.rig.wait_until(lambda: is_firing(here), "the alarm", PATIENCE_S)
    return len(here.receiver.bodies)


def is_firing(here: Scene) -> bool:
    """Return whether the last word on the alarm is that it fires, for good."""
    last = here.receiver.bodies[-1:]
    return (
        bool(last)
        and last[0]["kind"] in ("firing", "confirmed")
        and (last[0]["verdict"] == "confirmed")
    )


def end_alarm(here: Scene) -> int:
    """Pause the load, wait until the alarm has ended; return how many messages there were."""
    settle_alarm(here)
    here.load.pause()
    here.rig.wait_until(
        lambda: here.receiver.bodies[-1]["kind"] == "resolved", "the end of the alarm", ENDS_S
    )
    return len(here.receiver.bodies)


def await_recorded(rig: Rig) -> None:
    """Return once the outcome of every message is in the log.

    A receiver has a message before that: who is killed in between sends it again.
    """
    now_ms = SystemClock().now_ms()

    def is_recorded() -> bool:
        beats = [beat for beat in beats_of(rig, "alerts") if beat["at_ms"] > now_ms]
        return any(beat["detail"].get("due") == 0 for beat in beats)

    rig.wait_until(is_recorded, "nothing that is due", RECOVERY_S)


def await_evaluated(rig: Rig, through_ms: int) -> None:
    """Return once rules were evaluated up to a time of the log."""

    def is_evaluated() -> bool:
        told = [beat["detail"].get("evaluated_ms") for beat in beats_of(rig, "alerts")]
        return any(one is not None and one > through_ms for one in told)

    rig.wait_until(is_evaluated, "rules evaluated after the step", RECOVERY_S)


def beats_of(rig: Rig, part: str) -> list[dict[str, Any]]:
    """Return the heartbeats of a part."""
    client: Any = redis.Redis.from_url(rig.redis_url)
    beats = [client.get(key) for key in client.keys(names.part_key(part, "*"))]
    client.close()
    return [json.loads(beat) for beat in beats if beat]
