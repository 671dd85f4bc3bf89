"""docs/definitions.md tells receivers of webhooks what they get, and how they check it.

The message on the page is made again by the code that makes messages, and signed by the code
that signs them.
"""

from __future__ import annotations

import ast
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from alerts_job import SECRET
from standardwebhooks import Webhook
from weir.alerts.fold import Heard
from weir.alerts.machine import Point
from weir.alerts.messages import Watched, heartbeat_message, messages, trial_message
from weir.alerts.records import Message, Notification, Trial, dedup_key
from weir.alerts.step import Kind, Transition
from weir.definitions.check import check
from weir.definitions.rule import Rule
from weir.series import encode_series
from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.webhook import TIMEOUT_S, signed

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/definitions.md").read_text(encoding="utf-8")
PART = PAGE.partition("\n### What a webhook gets\n")[2].partition("\n## ")[0]
(EXAMPLE,) = re.findall(r"```json\n(.*?)```", PART, re.DOTALL)
(CHECK,) = re.findall(r"```python\n(.*?)```", PART, re.DOTALL)
SOURCES = ("libs/weir/weir/alerts", "services/analytics/weir_analytics/alerts")
GROUP = ("eu",)
FIRED = Transition(
    Kind.FIRING,
    at_ms=1_795_181_550_000,
    through_ms=1_795_181_550_400,
    key_ms=1_795_181_400_000,
    point=Point(1_795_181_550_000, "p", 11_402, 617.2, 592.0, 648.1),
)


def watched() -> Watched:
    """Return the rule of the page as it is watched, with one channel that follows everything."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    text = next(one for one in blocks if one.startswith("kind: rule\nname: slow_checkout\n"))
    rule = check(None, None, text).model
    assert isinstance(rule, Rule)
    return Watched(
        tenant="default",
        vid=4127,
        version=3,
        rule=rule,
        unit="ms",
        followers=frozenset(rule.route.channels),
        link="https://weir.example.com/alerts/",
    )


def sent(kind: Kind) -> list[Message]:
    """Return the messages of a transition, to somebody who was told that the alert fires."""
    rule = watched()
    key = dedup_key(rule.tenant, rule.vid, encode_series(GROUP), FIRED.key_ms or 0)
    heard = {key: Heard(list(rule.rule.route.channels), FIRED.through_ms)}
    return messages(rule, GROUP, [replace(FIRED, kind=kind)], heard)


def first_column(heading: str) -> list[str]:
    """Return what stands in backticks in the first column of a table."""
    body = PART.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in body.splitlines()[2:]]
    return re.findall(r"`([^`]+)`", " ".join(cells))


def test_the_example_is_what_is_sent() -> None:
    """Of the page's rule the code makes the page's message, member by member."""
    (message,) = messages(watched(), GROUP, [FIRED], {})
    body = msgspec.json.encode(message.notification)
    assert json.loads(EXAMPLE) == json.loads(body)
    assert list(json.loads(EXAMPLE)) == list(json.loads(body))
    assert msgspec.json.decode(EXAMPLE, type=Notification) == message.notification


def test_every_member_is_told() -> None:
    """Each member has its place in the table, in the order of the body, and there is no other."""
    assert first_column("member of a message") == list(Notification.__struct_fields__)


def test_every_kind_is_told() -> None:
    """Each kind that is sent has its row, and each row is of one that is sent."""
    trial = Trial(tenant="default", id="test_1", channel="oncall", by="key:1")
    beat = heartbeat_message("default", "oncall", 60_000, 0, 0)
    others = [beat.kind, trial_message(trial).kind]
    of_alerts = [kind.value for kind in Kind if sent(kind)]
    assert len(of_alerts) == 7
    assert sorted(first_column("kind of message")) == sorted(of_alerts + others)


def test_every_severity_is_told() -> None:
    """The row of the severity has all that a rule may have."""
    row = next(line for line in PART.splitlines() if line.startswith("| `severity` |"))
    severities = get_args(Rule.model_fields["severity"].annotation)
    assert len(severities) == 4
    assert set(severities) <= set(re.findall(r"`(\w+)`", row))


def test_every_reason_is_told() -> None:
    """Each reason that the page gives is written in the code, and those of ends are all told."""
    row = next(line for line in PART.splitlines() if line.startswith("| `reason` |"))
    told = set(re.findall(r"`(\w+ [^`]+)`", row))
    trees = [
        ast.parse(path.read_text(encoding="utf-8"))
        for source in SOURCES
        for path in (ROOT / source).rglob("*.py")
    ]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    written = {one.value for one in nodes if isinstance(one, ast.Constant)}
    assert told <= written
    ends = {str(text) for text in written if re.match(r"(the rule|it) was \w+$", str(text))}
    assert len(ends) == 4
    assert ends <= told


class TestCheck:
    @pytest.fixture
    def is_from_weir(self) -> Callable[..., bool]:
        """Return the page's function, as a receiver would copy it."""
        names: dict[str, Any] = {}
        exec(CHECK, names)  # noqa: S102  our own page
        check: Callable[..., bool] = names["is_from_weir"]
        return check

    @pytest.mark.parametrize("secret", [SECRET, f"whsec_{SECRET}"])
    def test_takes_what_the_product_signs(
        self, is_from_weir: Callable[..., bool], secret: str
    ) -> None:
        """A call is taken with either of its two secrets, as the libraries take it."""
        body, at_s = EXAMPLE.encode(), int(time.time())
        headers = signed("ntf_1", at_s, body, ["x" * 32, secret])
        assert is_from_weir(headers, body, secret)
        assert is_from_weir(headers, body, "x" * 32)
        assert Webhook(secret).verify(body, headers)

    def test_takes_nothing_else(self, is_from_weir: Callable[..., bool]) -> None:
        """Neither another body, another secret, another time nor an old call."""
        body, at_s = EXAMPLE.encode(), int(time.time())
        headers = signed("ntf_1", at_s, body, [SECRET])
        assert not is_from_weir(headers, body + b" ", SECRET)
        assert not is_from_weir(headers, body, "x" * 32)
        assert not is_from_weir(headers | {"webhook-id": "ntf_2"}, body, SECRET)
        assert not is_from_weir(headers | {"webhook-timestamp": str(at_s - 1)}, body, SECRET)
        assert not is_from_weir(headers | {"webhook-signature": "v1,é"}, body, SECRET)
        old = signed("ntf_1", at_s - 301, body, [SECRET])
        assert not is_from_weir(old, body, SECRET)


def test_what_an_answer_means() -> None:
    """Statuses are delivered, tried again or refused for good as the page says."""

    def outcome(status: int | None) -> str:
        answer = Answer(status, 0)
        return "delivered" if answer.delivered else "never" if answer.final else "again"

    assert {outcome(one) for one in (200, 204, 299)} == {"delivered"}
    assert {outcome(one) for one in (408, 429, 500, 503, 599, None)} == {"again"}
    assert {outcome(one) for one in (301, 308, 400, 401, 404, 410, 499)} == {"never"}
    assert f"ended after {TIMEOUT_S:g} s" in PART
