"""The message of a rule before it is stored, filled with what it sees now."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from weir import names
from weir.rows import Row
from weir_local.waiting import wait_until
from weir_reading.parts import OF_TENANTS

from .test_alerts import put_rule, rule_text

if TYPE_CHECKING:
    from .conftest import Engine, Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture
def counted(engine: Engine, metric: tuple[str, int]) -> str:
    """Return a metric of which 7 events came from eu and 3 from us in the newest minute."""
    name, vid = metric
    now_s = int(time.time()) // 60 * 60
    engine.commit({(vid, 10, now_s - 10): {"=eu": Row(7), "=us": Row(3)}}, through_ms=now_s * 1000)
    return name


def previewed(running: Running, metric: str, **members: Any) -> dict[str, Any]:
    """Return the message of a rule that is not stored."""
    text = rule_text("many_orders", metric, **members)
    with running.client() as client:
        answer = client.post("/rules/preview", json={"rule": text})
    found: dict[str, Any] = answer.json()
    return found


def test_the_message_of_the_worst_group_now(running: Running, counted: str) -> None:
    """Its title, and the rule's own words filled in; whether it would be beyond is told."""
    message = "{value} in {region}, limit {limit}"
    found = previewed(running, counted, message=message)
    assert found["title"] == "Many orders: count 7 > 10 in eu"
    assert found["text"].splitlines()[0] == "7 in eu, limit 10"
    assert (found["by"], found["value"], found["beyond"]) == ({"region": "eu"}, 7, False)
    assert previewed(running, counted, above=5)["beyond"] is True


def test_the_worst_is_the_least_below(running: Running, counted: str) -> None:
    """Which group is worst depends on the side of the limit."""
    found = previewed(running, counted, above=None, below=5)
    assert found["title"] == "Many orders: count 3 < 5 in us"
    assert (found["value"], found["beyond"]) == (3, True)


def test_a_message_without_a_value(running: Running, counted: str) -> None:
    """Where no event came the message is shown all the same."""
    found = previewed(running, counted, where="region = 'nowhere'")
    assert found["title"] == "Many orders: count - > 10 in (none)"
    assert (found["value"], found["beyond"]) == (None, False)


def test_a_rule_on_weir_itself_speaks_of_its_worst_reading(running: Running) -> None:
    """The alerts job reads it; before the rule is stored there is no reading."""
    text = json.dumps(
        {"kind": "rule", "name": "channels_fail", "metric": "weir.channel", "above": 60}
    )
    before = {"rule": text.replace("channels_fail", "not_stored")}
    stored = put_rule(running, "channels_fail", text)
    told = {"readings": {str(stored["vid"]): [[["hook"], 90.0], [["other"], 0.0]]}}
    beat = {"at_ms": int(time.time() * 1000), "detail": {OF_TENANTS: told}}
    running.redis.set(names.part_key("alerts", "preview"), json.dumps(beat), px=8_000)
    with running.client() as client:

        def message(asked: dict[str, str]) -> dict[str, Any]:
            return client.post("/rules/preview", json=asked).json()  # type: ignore[no-any-return]

        wait_until(lambda: message({"rule": text})["beyond"], timeout_s=5, what="the reading")
        found, unknown = message({"rule": text}), message(before)
    assert found["title"] == "Channels fail: messages fail since 1m30s > 1m in hook"
    assert found["by"] == {"channel": "hook"}
    assert found["value"] == found["low"] == found["high"] == 90
    assert (unknown["value"], unknown["beyond"]) == (None, False)


def test_only_a_rule_has_a_message(running: Running) -> None:
    """A draft that is wrong is refused as everywhere."""
    wrong = json.dumps({"kind": "rule", "name": "wrong"})
    with running.client() as client:
        unknown = client.post("/rules/preview", json={"rule": rule_text("r", "nobody_has_it")})
        refused = client.post("/rules/preview", json={"rule": wrong})
    assert (unknown.status_code, "one that is served" in unknown.text) == (404, True)
    assert refused.status_code == 422
