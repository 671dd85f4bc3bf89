"""What the first release decided of a record is decided for ever, in whatever way it is counted.

The checks that refuse a record whole are part of what a log means: were they others in a later
release, a rebuild would find other numbers than were shown, and a repetition of a record that is
no event any more would count. So they are fixed here record by record. A release that must decide
otherwise says from which offsets on, as horizons do (RELIABILITY 2.1), and adds a file of its own;
these stay.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import astuple
from weir.event import TIME_END
from weir.problems import Reason
from weir_analytics.panes.arrow_plan import ArrowPlan, make_plan
from weir_analytics.panes.batch import PROPERTY
from weir_analytics.panes.decode import classify
from weir_analytics.panes.dispose import dispose
from weir_analytics.panes.kinds import DISPOSITIONS
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.versions import Version

from .drawn_log import SHARDS, Counting
from .log_frames import HORIZONS, NOW_MS, Record, batch_of, log_of
from .test_plan import metric

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A line is a record, in order: an event without an id is named by its offset.
FILE = Path(__file__).with_name("first_release_checks.jsonl")
KNOWN: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text().splitlines()]
MINUTE_MS = 60_000
COUNTED = Counted(Version(1, "acme", "m", ((10, 3_600),)), metric(value="data.x"))


def value_of(known: dict[str, Any]) -> bytes | None:
    """Return the bytes of a record; what is said to be longer has blanks behind its brace."""
    if known["value"] is None:
        return None
    text: str = known["value"]
    value = text.encode("latin-1")
    length: int = known.get("length", len(value))
    return value[:1] + b" " * (length - len(value)) + value[1:]


def record_of(at: int, known: dict[str, Any]) -> Record:
    """Return a record as the log holds it, received in a minute of its own."""
    headers = [(name, text.encode()) for name, text in known["headers"].items()]
    return value_of(known), headers, NOW_MS + at * MINUTE_MS


LOG = [record_of(at, known) for at, known in enumerate(KNOWN)]


def test_each_check_is_fixed() -> None:
    """Of each reason for which a record of another producer is refused there is an example."""
    reasons = {known["reason"] for known in KNOWN}
    assert reasons >= {
        *(Reason.NOT_AN_EVENT, Reason.TOO_DEEP, Reason.ID_INVALID, Reason.TIME_INVALID),
        *(Reason.ATTRIBUTE_INVALID, Reason.INVALID_UNICODE, Reason.EVENT_TOO_LARGE),
    }
    told = Counter(known["is"] for known in KNOWN)
    assert told.most_common(1)[0][1] == 1


@pytest.mark.spark
def test_whose_event_it_is_and_why_it_is_none(spark: SparkSession, tmp_path: Path) -> None:
    """Identity, time and reason of each record that is not taken as it stands."""
    batch = batch_of(tmp_path, len(LOG), copies="none")
    spark.sparkContext.setLocalProperty(PROPERTY, batch.to_json())
    rows = dispose(classify(log_of(spark, LOG))).collect()

    found = {row.offset: (row.reason, None if row.value is None else _placed(row)) for row in rows}
    for at, known in enumerate(KNOWN):
        reason, places = found[at]
        assert places == known["places"], known["is"]
        # What only looks like an event is found out later, and has one reason.
        assert reason == (known["reason"] if places is None else None), known["is"]


def _placed(row: Any) -> str:
    return bytes(row.value)[:TIME_END].decode("latin-1")


@pytest.mark.spark
@pytest.mark.redis
def test_what_becomes_of_each(spark: SparkSession, redis_url: str, tmp_path: Path) -> None:
    """The ledger's word for each record."""
    plan = make_plan([COUNTED], (HORIZONS,), shards=SHARDS)
    assert isinstance(plan, ArrowPlan)
    counting = Counting(spark, redis_url, tmp_path, plan, [LOG])
    counting.at_once()
    (outcome,) = counting.outcomes

    found = {(row.minute_ms - NOW_MS) // MINUTE_MS: astuple(row)[3:] for row in outcome.ledger}
    for at, known in enumerate(KNOWN):
        account = found.get(at, (0,) * len(DISPOSITIONS))
        told = [name for name, n in zip(DISPOSITIONS, account, strict=True) for _ in range(n)]
        assert told == known["becomes"], known["is"]
    forged = sum(known["becomes"] == ["quarantined"] for known in KNOWN)
    assert sum(outcome.reasons.values()) == forged
