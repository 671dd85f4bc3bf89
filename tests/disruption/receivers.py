"""Two receivers of the same messages: one behind a link that can be broken, one beside it.

Both are told of one rule, of a metric by group, so that each change of the load is as many
messages as it has groups. What the one beside gets is what the one behind must get as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from account import read_log
from alerts_job import SECRET, Receiver
from disruption.alarm import ENDS_S
from disruption.checker import RECOVERY_S
from disruption.faults import bites
from disruption.proxy import Conditions, Proxy
from disruption.rig import PACE, Rig, promised_s
from disruption.scene import PATIENCE_S, Scene, await_new_result
from load import GROUPS, TYPE
from weir import names
from weir.clock import SystemClock

# The rule and its metric; the channels; the link.
NAME, FAR, NEAR, LINK = "told", "far", "near", "alerts-receiver"
METRIC = f"""
kind: metric
name: {NAME}
events: {{type: {TYPE}}}
by: [data.group]
aggregates: [count]
resolution: 1s
keep: {{1s: 6h}}
allowed_lateness: 3s
"""
RULE = f"""
kind: rule
name: {NAME}
metric: {NAME}
aggregate: count
by: [group]
window: {{length: 5s, step: 1s}}
above: 3
recover: 1
message: "the load flows"
route: {{channels: [{NEAR}, {FAR}]}}
"""
# By so much a channel that hangs may delay another.
DELAY_S = promised_s(5.0)
# A call is given up after ten seconds, which is then recorded and read.
SAID_S = 30.0 * PACE
# Of a share of the replies: fewer were not a link that loses them.
LEAST_LOST = 3
MOST_CHANGES = 12


@dataclass
class Pair:
    """Both receivers, and the stack that tells them.

    Attributes:
        here: The stack.
        near: Who is called directly.
        far: Who is called through the link.
        link: The link.
    """

    here: Scene
    near: Receiver
    far: Receiver
    link: Proxy

    def end(self) -> None:
        """Pause the load; return when each group's alert has ended, as `near` and the API say."""
        self.here.load.pause()
        self._await_all(firing=0)

    def begin(self) -> None:
        """Let the load flow; return when an alert of each group fires for good, as both say."""
        self.here.load.resume()
        self._await_all(firing=GROUPS)

    def has_heard(self, *, firing: bool) -> bool:
        """Return whether the last word to `near` on each group is that it fires for good, or not.

        Of what fires another word may follow until it is confirmed; none does of what has ended.
        """
        last = {one["labels"]["group"]: one for one in list(self.near.bodies)}
        wanted = ("firing", "confirmed") if firing else ("resolved",)
        return len(last) == GROUPS and all(
            one["kind"] in wanted and (not firing or one["verdict"] == "confirmed")
            for one in last.values()
        )

    def _await_all(self, firing: int) -> None:
        rig, what = self.here.rig, f"{firing} of {GROUPS} groups that fire"
        rig.wait_until(
            lambda: self.has_heard(firing=firing > 0), f"{what} at the receiver {NEAR}", ENDS_S
        )
        rig.wait_until(lambda: is_evaluated(rig, firing), f"{what} in the API", SAID_S)


@contextmanager
def two_receivers() -> Iterator[tuple[Receiver, Receiver]]:
    """Yield two receivers; they listen until the block ends."""
    with closing(Receiver()) as near, closing(Receiver()) as far:
        yield near, far


def begin_pair(here: Scene, near: Receiver, far: Receiver) -> Pair:
    """Define the rule and its channels; return when both have been told of every group."""
    rig, target = here.rig, urlsplit(far.url)
    link = Proxy((str(target.hostname), target.port or 0), seed=rig.seed)
    rig.links[LINK] = link
    (rig.home.secrets / "test_hook").write_text(SECRET)
    through = target._replace(netloc=f"{target.hostname}:{link.port}").geturl()
    rig.define("metric", NAME, METRIC)
    for name, url in ((NEAR, near.url), (FAR, through)):
        hook = f'{{url: "{url}", secret: "secret://test_hook"}}'
        text = f"kind: channel\nname: {name}\nwebhook: {hook}\nfollow: all\n"
        rig.define("channel", name, text)
    rig.define("rule", NAME, RULE)
    pair = Pair(here, near, far, link)
    here.load.resume()
    rig.wait_until(lambda: pair.has_heard(firing=True), "an alert of each group", PATIENCE_S)
    await_delivered(pair)
    return pair


def silence(pair: Pair, ways: frozenset[str], silence_s: float) -> None:
    """Have the link lose all for some time, while alerts end and begin; assert what must hold.

    The other receiver is told in time, numbers and rules go on, the API says what is wrong;
    afterwards nothing is missing.
    """
    rig, link, clock = pair.here.rig, pair.link, SystemClock()
    since_ms, until_s = clock.now_ms(), clock.monotonic_s() + silence_s
    first, lost, carried = len(pair.near.bodies), link.swallowed, len(pair.far.bodies)
    link.now = Conditions(swallowed=ways)
    while clock.monotonic_s() < until_s:
        pair.end()
        await_told(pair, "no answer within 10 s", since_ms)
        pair.begin()
        await_new_result(rig, SAID_S)
    assert_in_time(pair, first)
    bites(link.swallowed > lost, f"bytes lost on {LINK}")
    came = len(pair.far.bodies) - carried
    if "up" in ways:
        bites(came == 0, f"a link that carries nothing, but {came} messages")
    else:
        bites(came, "messages that came, and whose answers did not")
    heal(pair, f"silent {sorted(ways)}")


def lose_replies(pair: Pair, share: float) -> None:
    """Have the link lose some of the replies; assert that all is delivered while it does."""
    link, first = pair.link, len(pair.near.bodies)
    lost, changes = link.lost, 0
    link.now = Conditions(lose_share=share)
    while link.lost < lost + LEAST_LOST and changes < MOST_CHANGES:
        pair.end()
        pair.begin()
        changes += 1
    bites(link.lost >= lost + LEAST_LOST, f"lost replies on {LINK}")
    assert_in_time(pair, first)
    await_delivered(pair)
    heal(pair, f"{link.lost - lost} replies lost")


def tear(pair: Pair) -> None:
    """Reset every call on the link until that is told; assert what must hold."""
    rig, link, first = pair.here.rig, pair.link, len(pair.near.bodies)
    since_ms, torn = SystemClock().now_ms(), 0
    # Slow enough for a call to be met while it is under way.
    link.now = Conditions(delay_s=0.5)
    pair.here.load.pause()

    def is_told() -> bool:
        nonlocal torn
        torn += link.reset()
        return pair.has_heard(firing=False) and is_failing(pair, "the call broke off", since_ms)

    rig.wait_until(is_told, f"what is wrong with the channel {FAR}", ENDS_S)
    bites(torn, f"connections reset on {LINK}")
    link.heal()
    pair.begin()
    assert_in_time(pair, first)
    heal(pair, f"{torn} connections reset")


def heal(pair: Pair, what: str) -> None:
    """Heal the link; return when nothing is missing, and say how often what came."""
    pair.link.heal()
    await_delivered(pair)
    twice = len(pair.far.bodies) - len({one["id"] for one in pair.far.bodies})
    print(f"{what}: {len(pair.near.bodies)} messages, {twice} of them again")  # noqa: T201


def await_told(pair: Pair, why: str, since_ms: int) -> None:
    """Return once the API says what is wrong with the far channel, and of the near one nothing.

    An alert that could not be told to it says so, too.
    """
    rig = pair.here.rig
    what = f"what is wrong with the channel {FAR}"
    rig.wait_until(lambda: is_failing(pair, why, since_ms), what, SAID_S)
    rig.wait_until(lambda: is_said_of_an_alert(rig, why, since_ms), f"{what} at its alert", SAID_S)


def is_failing(pair: Pair, why: str, since_ms: int) -> bool:
    """Return whether the API says since when, and why, the far channel fails; near does not."""
    near, far = channels(pair.here.rig)
    assert near["failing_ms"] is None, f"no channel may fail for another: {near}"
    return (
        (far["failing_ms"] or 0) > since_ms
        and far["outcome"] == "failed"
        and why in far["why"]
        and far["waiting"] > 0
    )


def is_said_of_an_alert(rig: Rig, why: str, since_ms: int) -> bool:
    """Return whether an alert that has changed since then says what became of its message.

    Not the newest: a receiver that is away is called by one message at a time.
    """
    newest = rig.api("GET", f"/alerts?rule={NAME}").body["items"]
    ids = [one["id"] for one in newest if one["at_ms"] > since_ms]
    return any(
        (happened["kind"], happened["channel"]) == ("failed", FAR)
        and happened["at_ms"] > since_ms
        and why in (happened["why"] or "")
        for one in ids
        for happened in rig.api("GET", f"/alerts/{one}").body["happened"]
    )


def await_delivered(pair: Pair) -> None:
    """Return once the far receiver has every message that the near one has, and none is due.

    Raises:
        AssertionError: If a message is another one, or one of an alert overtook another.
    """
    rig = pair.here.rig

    def is_all() -> bool:
        near, far = channels(rig)
        told = {one["id"] for one in list(pair.near.bodies)}
        return (
            told == {one["id"] for one in list(pair.far.bodies)}
            and near["waiting"] == far["waiting"] == 0
            and far["failing_ms"] is None
        )

    rig.wait_until(is_all, f"every message at the receiver {FAR}", RECOVERY_S)
    near, far = of_alerts(pair.near), of_alerts(pair.far)
    assert near == far, f"both must be told the same, in its order: {near} and {far}"


def of_alerts(receiver: Receiver) -> dict[str, list[dict[str, Any]]]:
    """Return what a receiver was told, by dedup key, in order; a message that came again once.

    Raises:
        AssertionError: If one that came again was another than before.
    """
    first: dict[str, dict[str, Any]] = {}
    for body in list(receiver.bodies):
        known = first.setdefault(body["id"], body)
        assert body == known, f"a message must be the same again, was {known}, is {body}"
    found: dict[str, list[dict[str, Any]]] = {}
    for body in first.values():
        found.setdefault(body["dedup_key"], []).append(body)
    return found


def assert_in_time(pair: Pair, first: int) -> None:
    """Assert that the near receiver had each message soon after it was recorded.

    Args:
        pair: Both receivers.
        first: The first message that is looked at.
    """
    recorded = recorded_ms(pair.here.rig)
    came = zip(pair.near.bodies[first:], pair.near.at_ms[first:], strict=False)
    slowest_s = max((at_ms - recorded[body["id"]]) / 1000 for body, at_ms in came)
    assert slowest_s < DELAY_S, f"a channel must delay no other, a message took {slowest_s} s"


def recorded_ms(rig: Rig) -> dict[str, int]:
    """Return when each message was recorded, by its id, as the log of alerts says."""
    looks = [
        look
        for record in read_log(rig.kafka_bootstrap, names.ALERTS)
        if (look := json.loads(record.value or b"{}")).get("record") == "look"
    ]
    return {
        message["notification"]["id"]: look["at_ms"]
        for look in looks
        for message in look.get("messages", ())
    }


def is_evaluated(rig: Rig, firing: int) -> bool:
    """Return whether the rule is well, and as many of its groups fire, as the API says."""
    rule = rig.api("GET", f"/rules/{NAME}").body
    return (rule["health"], rule["firing"]) == ("ok", firing)


def channels(rig: Rig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the API says of the channels: near, far."""
    found = {one["name"]: one for one in rig.api("GET", "/channels").body["items"]}
    return found[NEAR], found[FAR]
