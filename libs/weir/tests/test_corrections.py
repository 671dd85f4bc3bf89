"""Records of `weir.corrections`: their JSON, their keys, and what is read out of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from weir.corrections import CorrectionRecord, Figures, added, decode, encode
from weir.further import Last

WRITTEN = (
    b'{"v":1,"epoch":7,"batch":88,"tenant":"shop","metric":"orders","version":3,"vid":41,'
    b'"res_s":10,"start_s":1800000000,"series":"=eu","was":{"n":262,"sum":9.5,"min":1.0,"max":4.0},'
    b'"now":{"n":318,"sum":12.0,"min":1.0,"max":4.0},"received_ms":1800001330000,'
    b'"final_ms":1800000070000,"sources":[["web",50],["app",6]],"sources_known":true}'
)


@dataclass
class Case:
    """One change of a row."""

    was: int | None
    now: int | None
    events: int


def record(**changes: Any) -> CorrectionRecord:
    """Return the record above with some members changed."""
    first = decode(WRITTEN)
    members = {name: getattr(first, name) for name in first.__struct_fields__}
    return CorrectionRecord(**members | changes)


def test_what_was_written_is_read() -> None:
    """A record of the first release is read for ever, byte for byte, and is a copy of itself."""
    found = decode(WRITTEN)

    assert encode(found) == WRITTEN[:-1] + b',"sources_exact":false,"shard":0,"texts":[]}'
    assert found.key == "7/88/41/10/1800000000/=eu"
    assert record(shard=3).key == found.key
    assert found.now == Figures(318, 12.0, 1.0, 4.0)
    assert found.sources == [("web", 50), ("app", 6)]
    assert (found.events, found.late_ms) == (56, 1_320_000)


def test_what_few_metrics_keep_is_told_of_them_alone() -> None:
    """A deviation and the newest value come back; of a count nothing is written."""
    last = Last(1_800_000_001_000, bytes(range(16)), -4.5)
    told = record(was=Figures(2), now=Figures(4, 12.0, 1.0, 5.0, 9.0, last))

    assert decode(encode(told)) == told
    assert b'"was":{"n":2},' in encode(told)
    assert told.now is not None
    assert told.now.stddev == 1.5
    assert told.was is not None
    assert told.was.stddev is None


def test_members_of_a_later_release_are_passed_over() -> None:
    """Readers of two releases live together."""
    assert decode(WRITTEN[:-1] + b',"later":[1]}') == decode(WRITTEN)


@pytest.mark.parametrize(
    "change",
    [{"epoch": 8}, {"batch": 1}, {"vid": 2}, {"res_s": 60}, {"start_s": 0}, {"series": ""}],
)
def test_only_copies_share_a_key(change: dict[str, Any]) -> None:
    """Another batch, version, pane or series is another correction; another instant is not."""
    assert record().key == record(received_ms=1, sources=[], sources_known=False).key
    assert record().key != record(**change).key


def test_each_shard_has_a_row_of_others_of_its_own() -> None:
    """What changed in the row `*` of one shard is no copy of what changed in another's."""
    keys = {record(series="*", shard=shard).key for shard in range(3)}
    assert len(keys) == 3
    assert record(series="*").key == "7/88/41/10/1800000000/*"


@pytest.mark.parametrize("case", [Case(None, 3, 3), Case(2, 5, 3), Case(4, None, -4)])
def test_events_are_what_the_row_gained(case: Case) -> None:
    """A row that is new, one that grew, and one that was merged into the row of the others."""
    was, now = (None if n is None else Figures(n) for n in (case.was, case.now))
    assert record(was=was, now=now).events == case.events


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (Figures(2, 3.0, 1.0, 2.0), Figures(1, -4.0, -4.0, -4.0), Figures(3, -1.0, -4.0, 2.0)),
        (Figures(2), Figures(1), Figures(3)),
        (
            Figures(1, 1.0, 1.0, 1.0, 0.0, Last(5, b"a", 1.0)),
            Figures(1, 3.0, 3.0, 3.0, 0.0, Last(5, b"b", 3.0)),
            Figures(2, 4.0, 1.0, 3.0, 2.0, Last(5, b"b", 3.0)),
        ),
        (Figures(2), None, Figures(2)),
        (None, None, None),
    ],
)
def test_rows_taken_as_one_add_up(
    one: Figures | None, other: Figures | None, both: Figures | None
) -> None:
    """With values, of a metric without them, and where one or both do not exist."""
    assert added(one, other) == both
    assert added(other, one) == both


@pytest.mark.parametrize("texts", [b"null", b'[["a"]]', b'[["a",[1,1],[2,2,2]]]', b"{}"])
def test_texts_that_cannot_be_told_are_found_when_they_are_read(texts: bytes) -> None:
    """A record that is kept is shown later, to many at once."""
    with pytest.raises(ValueError, match="Expected"):
        decode(WRITTEN[:-1] + b',"texts":' + texts + b"}")
