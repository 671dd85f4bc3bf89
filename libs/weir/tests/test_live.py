"""The live protocol: a client that folds deltas ends where a fresh snapshot stands."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weir.live import HISTORY_MS, Track, UnknownOpError, apply, read_message, same
from weir.problems import ProblemError, Reason

STEP_MS = 10_000


class World:
    """Panes that change at random, and the answer that a hub would read from them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.rev = 1
        self.head = 6
        self.final = 2
        self.cells: dict[tuple[int, int], int] = {}
        self.shown = {0, 1}
        self.late: list[dict[str, Any]] = []

    def step(self) -> None:
        """Let one batch pass: events, time, series that come and go."""
        self.rev += self.random.randint(1, 3)
        for _ in range(self.random.randint(0, 3)):
            cell = (self.random.randint(0, 5), self.random.randint(0, self.head))
            self.cells[cell] = self.cells.get(cell, 0) + 1
        if self.random.random() < 0.4:
            self.head += self.random.randint(1, 2)
        if self.random.random() < 0.4:
            self.final = min(self.head - 1, self.final + 1)
        if self.random.random() < 0.3:
            self._correct(self.random.randint(0, 5), self.random.randint(0, self.final) * STEP_MS)
        if self.random.random() < 0.3:
            self.shown ^= {self.random.randint(0, 5)}

    def _correct(self, k: int, t_ms: int) -> None:
        """Tell of a window what late events changed, in place of what was told of it before."""
        others = [one for one in self.late if (one["k"], one["t_ms"]) != (k, t_ms)]
        told = {"t_ms": t_ms, "k": k, "was": 0.0, "is": 1.0, "events": self.rev, "late_ms": 5}
        self.late = [told, *others]

    def answer(self) -> dict[str, Any]:
        """Return the answer at the present revision, its series in any order."""
        at = range(max(0, self.head - 7), self.head + 1)
        order = list(self.shown)
        self.random.shuffle(order)
        state = "".join("f" if t <= self.final else "p" for t in at)
        return {
            "metric": {"name": "m", "version": 1},
            "epoch": 7,
            "rev": self.rev,
            "final_to_ms": self.final * STEP_MS,
            "fresh": {"status": "live"},
            "t_ms": [t * STEP_MS for t in at],
            "of": len(order),
            "corrections": [one for one in self.late if one["t_ms"] >= at[0] * STEP_MS],
            "notes": [{"code": "capped"}] if len(order) > 3 else [],
            "series": [self._series(k, at, state) for k in order],
        }

    def _series(self, k: int, at: range, state: str) -> dict[str, Any]:
        counts = [self.cells.get((k, t), 0) for t in at]
        values = [float(c) for c in counts]
        earlier = [self.cells.get((k, t - 3)) for t in at]
        return {
            "k": k,
            "by": {"region": f"r{k}"},
            "slot": k,
            "value": values,
            "low": values,
            "high": values,
            "count": counts,
            "state": state,
            "compare": [
                {
                    "offset": "1h",
                    "value": earlier,
                    "low": [None if n is None else n - 1 for n in earlier],
                    "high": [None if n is None else n + 1 for n in earlier],
                    "count": earlier,
                    "state": "f" * len(counts),
                }
            ],
        }


class TestModelEqualsSnapshot:
    @given(seed=st.integers(0, 2**32), steps=st.integers(1, 25), loss=st.floats(0, 0.9))
    @settings(max_examples=150, deadline=None)
    def test_after_loss_repeat_and_reconnect(self, seed: int, steps: int, loss: float) -> None:
        """Whatever is lost, repeated or resumed, the client ends at the fresh snapshot."""
        world = World(seed)
        track = Track(copy.deepcopy(world.answer()), now_ms=0)
        client = copy.deepcopy(track.answer)
        dice = random.Random(seed + 1)  # noqa: S311
        for tick in range(steps):
            world.step()
            track.advance(copy.deepcopy(world.answer()), now_ms=tick * 250)
            if dice.random() < loss:
                continue
            # A resume asks from one revision before: another replica may have read
            # a pane one batch ahead of the revision that it named.
            back = dice.choice([0, 0, 1])
            delta = track.since(max(client["rev"] - back, track.floor_rev))
            assert delta is not None
            for _ in range(dice.choice([1, 2])):
                client = apply(client, delta)
        last = track.since(client["rev"])
        assert last is not None
        client = apply(client, last)
        fresh = world.answer()
        assert same({**client, "rev": fresh["rev"]}, fresh)

    def test_a_lost_cell_is_seen(self) -> None:
        """The comparison itself tells a difference of one cell."""
        world = World(1)
        one, other = world.answer(), world.answer()
        other["series"][0]["value"][0] += 1
        assert not same(one, other)


class TestTrack:
    def test_nothing_new_is_no_change(self) -> None:
        """An equal answer at a later revision moves nothing, so nobody is sent a frame."""
        world = World(3)
        track = Track(world.answer(), now_ms=0)
        assert track.advance({**world.answer(), "rev": 9}, now_ms=250) is False
        assert track.rev == 1

    def test_corrections_come_when_they_changed_and_then_whole(self) -> None:
        """So a window that was corrected twice is told once, as it is."""
        world = World(3)
        track = Track(world.answer(), now_ms=0)
        for rev, t in ((2, 1), (3, 1), (4, 2)):
            world.rev = rev
            world._correct(0, t * STEP_MS)
            assert track.advance(world.answer(), now_ms=0) is True
        world.rev = 5
        world.cells[0, world.head] = 9
        assert track.advance(world.answer(), now_ms=0) is True

        last, all_three = track.since(4), track.since(1)
        assert last is not None
        assert all_three is not None
        assert "corrections" not in last
        told = [(one["t_ms"], one["events"]) for one in all_three["corrections"]]
        assert told == [(2 * STEP_MS, 4), (STEP_MS, 3)]

    def test_values_that_only_became_final_are_not_sent(self) -> None:
        """Finality travels as one number; the cells stay home."""
        world = World(3)
        track = Track(world.answer(), now_ms=0)
        world.rev, world.final = 2, 5
        assert track.advance(world.answer(), now_ms=250) is True
        delta = track.since(1)
        assert delta is not None
        assert delta["final_to_ms"] == 5 * STEP_MS
        assert (delta["series"], delta["t_ms"]) == ([], [])
        assert same(apply(World(3).answer(), delta), track.answer)

    def test_only_changed_windows_travel(self) -> None:
        """One new event means one window of one series in the delta."""
        world = World(3)
        track = Track(world.answer(), now_ms=0)
        world.rev, world.cells = 2, {(1, 4): 1}
        track.advance(world.answer(), now_ms=250)
        delta = track.since(1)
        assert delta is not None
        assert delta["t_ms"] == [4 * STEP_MS]
        assert [(s["k"], s["value"]) for s in delta["series"]] == [(1, [1.0])]

    def test_another_epoch_needs_a_snapshot(self) -> None:
        """Revisions of two epochs cannot be compared, so no delta leads across."""
        world = World(3)
        track = Track(world.answer(), now_ms=0)
        assert track.advance({**world.answer(), "epoch": 8, "rev": 4}, now_ms=250) is True
        assert track.since(3) is None

    def test_another_version_at_the_same_revision_is_another_life(self) -> None:
        """An edit brings a new answer between two batches; no delta leads to it."""
        world = World(3)
        track = Track(world.answer(), now_ms=0)
        life = track.life
        assert track.advance({**world.answer(), "rev": 2}, now_ms=250) is False
        assert track.life == life
        edited = {**world.answer(), "metric": {"name": "m", "version": 2}, "rev": 2}
        assert track.advance(edited, now_ms=500) is True
        assert (track.life, track.rev, track.answer) == (life + 1, 2, edited)

    def test_removals_are_remembered_for_the_history_only(self) -> None:
        """A client away for longer than the history gets a snapshot, not a ghost series."""
        world = World(3)
        track = Track(world.answer(), now_ms=0)
        world.rev, world.shown = 2, {0}
        track.advance(world.answer(), now_ms=250)
        inside = track.since(1)
        assert inside is not None
        assert inside["del"] == [1]
        world.rev = 3
        track.advance(world.answer(), now_ms=HISTORY_MS + 251)
        assert track.since(1) is None
        assert track.since(2) is not None

    def test_an_answer_at_the_same_revision_is_ignored(self) -> None:
        """Cells read ahead at one revision would never reach clients that hold it."""
        world = World(3)
        track = Track(world.answer(), now_ms=0)
        world.cells = {(0, 4): 9}
        assert track.advance(world.answer(), now_ms=250) is False
        assert track.answer["series"][0]["value"][4] == 0


class TestApply:
    def test_a_hole_is_refused(self) -> None:
        """A delta that begins after the client's revision says what to do."""
        world = World(3)
        track = Track(world.answer(), now_ms=0)
        world.step()
        track.advance(world.answer(), now_ms=250)
        delta = track.since(1)
        assert delta is not None
        with pytest.raises(ValueError, match="resume or take a snapshot"):
            apply({**World(3).answer(), "rev": 0}, delta)


class TestReadMessage:
    def test_resume_is_read(self) -> None:
        """A subscription may say from where it goes on."""
        message = read_message(
            {"op": "subscribe", "id": 1, "to": "query", "query": {}, "from": {"epoch": 1, "rev": 2}}
        )
        assert getattr(message, "position").rev == 2  # noqa: B009

    @pytest.mark.parametrize("body", [[], "x", None, 3, {}, {"op": "nope"}, {"op": ["hello"]}])
    def test_no_message_at_all(self, body: object) -> None:
        """What has no known `op` is not spoken to."""
        with pytest.raises(UnknownOpError, match='must be an object with an "op"'):
            read_message(body)

    @pytest.mark.parametrize(
        ("body", "reason", "pointer"),
        [
            ({"op": "pace", "hz": 1, "x": 1}, Reason.UNKNOWN_FIELD, "/x"),
            ({"op": "pace", "hz": -1}, Reason.QUERY_INVALID, "/hz"),
            ({"op": "pace", "hz": float("nan")}, Reason.QUERY_INVALID, "/hz"),
            ({"op": "subscribe", "id": 1, "to": "moon"}, Reason.QUERY_INVALID, "/to"),
            ({"op": "hello", "v": 2}, Reason.QUERY_INVALID, "/v"),
        ],
    )
    def test_wrong_members_are_named(
        self, body: dict[str, Any], reason: Reason, pointer: str
    ) -> None:
        """A wrong or unknown member is refused by its place, and the socket can stay."""
        with pytest.raises(ProblemError) as caught:
            read_message(body)
        assert caught.value.reason is reason
        assert caught.value.errors[0]["pointer"] == pointer
