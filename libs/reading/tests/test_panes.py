"""What a shard's mark says of what is read from it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from weir.batches import BatchRecord
from weir.commit import Mark
from weir_reading.panes import has_counted

RECORD = BatchRecord(
    epoch=3,
    batch=7,
    rev=8,
    shards=2,
    from_offsets={0: 10, 1: 5},
    to_offsets={0: 20, 1: 5},
    processed_through_ms=0,
    at_ms=0,
)


def mark(end: Mapping[int, int], epoch: int = 3) -> bytes:
    """Return a mark as it is stored."""
    at = Mark(epoch=epoch, batch=7, topic_id="t", end=dict(end), shards=2)
    return msgspec.json.encode(at)


@pytest.mark.parametrize(
    ("stored", "holds"),
    [
        pytest.param(mark({0: 20, 1: 5}), True, id="as far as the record"),
        pytest.param(mark({0: 31, 1: 5}), True, id="a batch ahead, which has no record yet"),
        pytest.param(mark({0: 20, 1: 5, 2: 4}), True, id="a partition that is new"),
        pytest.param(mark({0: 20, 1: 5}, epoch=2), True, id="not written since the epoch began"),
        pytest.param(mark({0: 20, 1: 5}, epoch=4), True, id="counted again up to there"),
        pytest.param(None, False, id="emptied"),
        pytest.param(mark({}), False, id="emptied, and to be counted again"),
        pytest.param(mark({0: 19, 1: 5}), False, id="put back from before"),
        pytest.param(mark({0: 20}), False, id="a partition not yet counted again"),
        pytest.param(mark({0: 12, 1: 5}, epoch=4), False, id="being counted again"),
    ],
)
def test_a_shard_holds_what_a_record_tells_of(stored: bytes | None, holds: bool) -> None:
    """By its offsets alone, whoever wrote them."""
    assert has_counted(stored, RECORD) is holds
