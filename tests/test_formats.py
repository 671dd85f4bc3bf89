"""What the first release has stored is read for ever; what a newer one stores is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from first_release import FILES, TOPICS, newer, redis_state
from weir import batches, corrections, names, rows
from weir.alerts import records
from weir.alerts.listing import Listing
from weir.alerts.step import Kind
from weir.batches import BatchRecord, LaneProgress, LedgerRow, Opening
from weir.commit import Fence, Mark, decode_fence, decode_mark
from weir.corrections import Figures
from weir.definitions.fold import Definitions
from weir.definitions.jobs import JobState
from weir.definitions.metric import Metric
from weir.formats import NewerFormatError
from weir.frequent import texts_union, top_of
from weir.further import Last
from weir.sets import opened, set_size
from weir.sketches import hll_estimate, kll_quantile
from weir_analytics.panes.commit_job import Correction, OutboxEntry, Pane, decode_entry
from weir_analytics.panes.runs import chain_before, read_run
from weir_analytics.panes.series_ids import LAST_FIELD, short_id
from weir_dashboard.auth import sessions

T_MS, START_S, SERIES = 1_800_000_000_000, 1_800_000_000, "=de"
DEFINITIONS_ID, EVENTS_ID = "xQ0bOZ1QRRyHzJt9Jm9m3g", "K2n0dV5bT1mJ8q0pQ3u6Yw"
HORIZON_MS = 86_400_000
STATE: dict[str, Any] = redis_state()
STREAM, OUTBOX = STATE[names.BATCHES], STATE[names.outbox_key(0)]
ROWS = STATE[names.pane_key(0, 3, 10, START_S)]

Text = tuple[str, Callable[[bytes], Any], bytes]
NEWEST = {"batch record": batches.VERSION}
"""What this release reads, where that is more than the first version."""
TEXTS: list[Text] = [
    ("fence", decode_fence, STATE[names.fence_key(0)]),
    ("mark", decode_mark, STATE[names.mark_key(0)]),
    ("outbox entry", decode_entry, OUTBOX[b"9"]),
    ("batch record", batches.decode, STREAM[b"1-0"]),
    ("batch record", batches.decode, STREAM[b"1-5"]),
    ("correction", corrections.decode, TOPICS[names.CORRECTIONS][0][1]),
    *(("record of weir.alerts", records.decode, text) for _, text in TOPICS[names.ALERTS]),
]


def folded() -> Definitions:
    """Return the definitions as all of their records say."""
    found = Definitions()
    for offset, record in enumerate(TOPICS[names.DEFINITIONS]):
        change = found.apply(offset, *record)
        assert change is not None
        assert change.applied, change
    return found


class TestTheFirstReleaseIsRead:
    def test_all_that_a_commit_changes_is_there(self) -> None:
        """A key that has no sample here is one of which nobody knows how it was."""
        keys = {key(0) for key in (names.fence_key, names.mark_key, names.token_key)}
        keys |= {names.outbox_key(0), names.pane_key(0, 3, 10, START_S), names.BATCHES}
        keys |= {names.ids_key(0, 3), names.names_key(0, 3), names.mark_key(0, "5")}
        assert keys <= STATE.keys()

    def test_fence_and_marks(self) -> None:
        """Who may write, and how far each lane has counted."""
        live = Mark(epoch=1, batch=4, topic_id=EVENTS_ID, end={0: 52, 1: 12}, shards=1)
        lane = Mark(epoch=1, batch=-1, topic_id=EVENTS_ID, end={0: 40, 1: 12}, shards=1)

        assert decode_fence(STATE[names.fence_key(0)]) == Fence(1, DEFINITIONS_ID)
        assert decode_mark(STATE[names.mark_key(0)]) == live
        assert decode_mark(STATE[names.mark_key(0, "5")]) == lane

    def test_outbox(self) -> None:
        """What a commit changed and corrected."""
        was, now = Figures(2, 30.0, 10.0, 20.0), Figures(3, 35.5, 5.5, 20.0)
        changed = [Correction(3, 10, START_S, SERIES, was, now)]

        assert decode_entry(OUTBOX[b"9"]) == OutboxEntry(9, 1, 4, [Pane(3, 10, START_S)], changed)

    def test_batch_records(self) -> None:
        """How an epoch begins, and what became of a batch."""
        opening, record = batches.decode(STREAM[b"1-0"]), batches.decode(STREAM[b"1-5"])

        assert opening == Opening(epoch=1, reason="start", at_ms=T_MS + 1)
        assert record == BatchRecord(
            epoch=1,
            batch=4,
            rev=5,
            shards=1,
            from_offsets={0: 45, 1: 12},
            to_offsets={0: 52, 1: 12},
            processed_through_ms=T_MS + 9_500,
            at_ms=T_MS + 9_700,
            received=6,
            ticks=1,
            ledger=[LedgerRow("shop", "web", T_MS, 4, 1, 1)],
            changed=[(3, 10, START_S, 0)],
            lanes=[LaneProgress(5, "backfill", 3, None, 40, 52, T_MS + 4)],
            takeovers=[3],
            fates=[(0, 47, "quarantined", "too_deep", [("orders", "value_missing")])],
            outbox={0: 9},
        )

    def test_corrections(self) -> None:
        """Under the key by which copies are known."""
        ((key, value),) = TOPICS[names.CORRECTIONS]
        found = corrections.decode(value)

        assert found.key.encode() == key
        assert (found.was, found.now) == (Figures(2, 30.0, 10.0, 20.0), Figures(3, 35.5, 5.5, 20.0))
        assert (found.late_ms, found.sources) == (120_000, [("web", 1)])

    def test_rows(self) -> None:
        """Every member that a row may have, and rows that have none of them."""
        full = rows.decode(ROWS[short_id(1)])

        assert (full.n, full.sum, full.min, full.max) == (3, 35.5, 5.5, 20.0)
        assert full.hll is not None
        assert hll_estimate(full.hll).value == 2
        assert full.kll is not None
        assert kll_quantile(full.kll, 0.5).value == 10.0
        assert rows.decode(ROWS[short_id(2)]) == rows.Row(1, 7.25, 7.25, 7.25)
        assert rows.decode(ROWS[b"\x00\x00"]) == rows.Row(70_000)

    def test_further_members(self) -> None:
        """What only some metrics keep."""
        members = rows.decode(ROWS[short_id(1)]).further

        assert members is not None
        assert members.spread == pytest.approx(110.1666667)
        assert members.last == Last(T_MS + 9_000, bytes(range(16)), 5.5)
        assert members.top is not None
        counted = top_of(texts_union([members.top]), 3).items
        assert [(one.text, one.events) for one in counted] == [("tea", 2), ("cup", 1)]
        assert members.theta is not None
        assert set_size(opened(members.theta)).value == 2

    def test_series(self) -> None:
        """A series by its short id, and the last id that was given."""
        ids, texts = STATE[names.ids_key(0, 3)], STATE[names.names_key(0, 3)]

        assert texts == {short_id(1): b"=de", short_id(2): b"=at"}
        assert ids[LAST_FIELD] == (2).to_bytes(4, "big")
        assert set(ids.values()) - {ids[LAST_FIELD]} == texts.keys()

    def test_definitions(self) -> None:
        """Versions, from where they count and serve, lanes, jobs, and who drives."""
        found = folded()
        second = found.get("shop", "metric", "orders")

        assert second is not None
        assert isinstance(second.metric, Metric)
        assert (second.vid, second.version, second.metric.unit) == (3, 2, "EUR")
        assert (found.fence(), found.epoch()) == (1, 1)
        assert found.activations[3].takeover is not None
        assert found.activations[3].takeover.offsets == {0: 52, 1: 12}
        assert found.activations[3].cut == {10: START_S}
        assert found.lanes[5].end == {0: 40, 1: 12}
        assert found.jobs[7].state is JobState.DONE
        assert found.newer.why is None

    def test_alerts(self) -> None:
        """One that fires, was told, and was taken on."""
        listing = Listing()
        for offset, (_, value) in enumerate(TOPICS[names.ALERTS]):
            listing.apply(offset, value)
        (alert,) = listing.alerts("shop")

        assert (alert.state, alert.confirmed, alert.group) == ("firing", True, ("de",))
        told = [one.kind for one in alert.happened]
        assert told == [Kind.FIRING, "failed", "delivered", "acknowledged"]
        assert alert.taken_on is not None
        assert listing.reader.newer.why is None

    def test_dedup_run(self, tmp_path: Path) -> None:
        """Which identities a partition has seen; it serves as long a horizon as it was kept for."""
        ((name, content),) = FILES.items()
        (tmp_path / name).write_bytes(content)
        found = read_run(tmp_path / name)

        assert (found.start, found.end, found.horizon_ms) == (40, 52, HORIZON_MS)
        assert found.received_end == T_MS + 9_500
        assert found.identities.high.tolist() == [1, 2]
        assert found.identities.received.tolist() == [T_MS + 9_000, T_MS + 9_500]

    def test_session(self) -> None:
        """Who is signed in."""
        found = sessions._read(STATE[names.session_key("ab" * 32)], "ab" * 32)

        assert found is not None
        assert (found.tenant, sorted(found.scopes)) == ("shop", ["read", "tail"])


@pytest.mark.parametrize(("what", "read", "text"), TEXTS)
class TestVersionsOfTexts:
    def test_a_newer_one_is_refused_with_a_reason(
        self, what: str, read: Callable[[bytes], Any], text: bytes
    ) -> None:
        """What was required, what came, and what to do; also where nothing else is as it was."""
        for written in (newer(text), b'{"v":3}'):
            with pytest.raises(
                NewerFormatError,
                match=f"^{what} must be of format version {NEWEST.get(what, 1)} or below, got 3: a "
                "newer release of Weir wrote it; run that release again, or a newer one$",
            ):
                read(written)

    def test_members_of_a_later_release_are_ignored(
        self, what: str, read: Callable[[bytes], Any], text: bytes
    ) -> None:
        """A member more is no new version."""
        assert what
        assert read(json.dumps(json.loads(text) | {"later": [1]}).encode()) == read(text)

    def test_one_without_a_version_is_of_the_first(
        self, what: str, read: Callable[[bytes], Any], text: bytes
    ) -> None:
        """As fences were, before there was any need of one."""
        assert what
        members = json.loads(text)
        del members["v"]
        assert read(json.dumps(members).encode()) == read(text)


class TestOtherVersions:
    @pytest.mark.parametrize("version", [2, 3])
    def test_rows(self, version: int) -> None:
        """The version of a row is two bits."""
        packed = bytes((ROWS[short_id(1)][0] & 0x3F | version << 6,)) + ROWS[short_id(1)][1:]
        with pytest.raises(NewerFormatError, match=f"packed row must .* below, got {version}: a n"):
            rows.decode(packed)

    @pytest.mark.parametrize("offset", range(len(TOPICS[names.DEFINITIONS])))
    def test_definitions(self, offset: int) -> None:
        """Whatever record of ours it is, the fold says that it is not all that is in force."""
        found = Definitions()
        for at, (key, value) in enumerate(TOPICS[names.DEFINITIONS]):
            found.apply(at, key, newer(value) if at == offset else value)

        with pytest.raises(
            NewerFormatError, match=f"^record {offset} of weir.definitions must be .* got 3: a new"
        ):
            found.newer.check()

    def test_a_run_of_dedup_is_deleted_and_made_again(self, tmp_path: Path) -> None:
        """It is a cache of the log: without it the log is read."""
        ((name, content),) = FILES.items()
        (tmp_path / name).write_bytes(content)
        assert chain_before(tmp_path, 52, 10_000) is not None
        (tmp_path / name).write_bytes(content.replace(b"WEIRRUN2", b"WEIRRUN4"))

        assert chain_before(tmp_path, 52, 10_000) is None
        assert list(tmp_path.iterdir()) == []

    def test_a_session_has_ended(self) -> None:
        """Whoever comes with it signs in again."""
        assert sessions._read(newer(STATE[names.session_key("ab" * 32)]), None) is None
