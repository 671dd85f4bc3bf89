"""What a commit tells of late events that changed lists of frequent texts."""

from __future__ import annotations

import itertools
from typing import Any

import datasketches as ds
import pytest
import redis
from weir.commit import Verdict
from weir.corrections import decode_texts
from weir.frequent import Moved, Texts
from weir.further import Further
from weir.rows import Row
from weir.series import OTHER, series_digest
from weir_analytics.panes import store
from weir_analytics.panes.commit_job import Limits, Part
from weir_analytics.panes.store import ShardStore

from .shard_scene import START_S, VID, job
from .test_store import outbox

pytestmark = pytest.mark.redis

LIMITS = {VID: Limits({60: 86_400}, max_series=2, sketched=("top",))}
# Two series that have rows of their own, and one that has none in a pane that they fill.
OWN = ("=a", "=b")
MORE = next(
    text
    for text in (f"={n}" for n in itertools.count())
    if series_digest(text) > max(map(series_digest, OWN))
)


def late(
    client: redis.Redis, shard: ShardStore, n: int, *series: str
) -> list[tuple[str, list[Moved]]]:
    """Commit a text n + 1 times for each series of a final pane; return what is told of texts."""
    sketch = ds.frequent_strings_sketch(5)
    sketch.update("x", n + 1)
    row = Row(n + 1, further=Further(top=Texts(n + 1, bytes(sketch.serialize()))))
    told: dict[str, Any] = {"limits": LIMITS, "final_through_ms": (START_S + 60) * 1000}
    parts = [Part(VID, 60, START_S, one, row) for one in series]
    assert shard.commit(job(n, n + 1, **told), parts).verdict is Verdict.OK
    return [(one.series, decode_texts(one.texts)) for one in outbox(client)[-1].corrections]


def test_rows_of_their_own_are_told(client: redis.Redis, shard: ShardStore) -> None:
    """Of the row of all others nothing is: other shards have one, too."""
    assert late(client, shard, 0, "=a") == [("=a", [Moved("x", (0, 0, 0), (1, 1, 1))])]
    assert late(client, shard, 1, *OWN, MORE) == [
        (OTHER, []),
        ("=a", [Moved("x", (1, 1, 1), (3, 3, 3))]),
        ("=b", [Moved("x", (0, 0, 0), (2, 2, 2))]),
    ]


def test_no_more_bytes_than_are_set(
    client: redis.Redis, shard: ShardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry of an outbox is one value in Redis; the next commit has one of its own."""
    monkeypatch.setattr(store, "TEXTS_BYTES", 1)
    assert late(client, shard, 0, *OWN) == [
        ("=a", [Moved("x", (0, 0, 0), (1, 1, 1))]),
        ("=b", []),
    ]
    assert late(client, shard, 1, "=b") == [("=b", [Moved("x", (1, 1, 1), (3, 3, 3))])]
