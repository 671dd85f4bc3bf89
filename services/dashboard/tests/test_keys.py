"""API keys: what is stored when one is made or replaced, and which are good when; no server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError
from weir.clock import ManualClock
from weir.definitions.key import SCOPES
from weir.problems import ProblemError, Reason
from weir_dashboard.api.keys import list_keys, make_key, revoke_key, rotate_key
from weir_dashboard.api.models import Key, NewKey, RotatedKey, Rotation, ShownKey
from weir_dashboard.auth.callers import Caller, KeyRing, hash_key_text
from weir_dashboard.change_quota import ChangeQuota
from weir_dashboard.context import Context
from weir_dashboard.definitions.catalog import Catalog
from weir_dashboard.definitions.writer import Writer
from weir_reading.appender import Appender, NotConfirmedError
from weir_reading.follower import Follower, Record

NOW_MS = 1_800_000_000_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
HASH_KEY = b"k3y"
OLD = f"wk_oldkey01_{'s' * 32}"
ADMIN = Caller("acme", frozenset(SCOPES), "admin001")
LIMITS: dict[str, Any] = {"events_per_s": 50, "bytes_per_s": 9_000}


class Log:
    """The topic's place: what is appended is read at once, up to a crash."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.records: list[tuple[bytes, bytes]] = []
        self.crashes_after: int | None = None

    async def append_all(self, records: Sequence[tuple[bytes, bytes]]) -> list[int]:
        """Append records, or only some of them."""
        first = len(self.records)
        for key, value in records[: self.crashes_after]:
            self._catalog.take([Record(len(self.records), key, value, NOW_MS)])
            self.records.append((key, value))
        if self.crashes_after is not None:
            raise NotConfirmedError
        return list(range(first, len(self.records)))

    async def reach(self, offset: int) -> None:
        """Wait for nothing: it is read."""
        assert offset < len(self.records)


class World:
    """A dashboard without servers, with one key of tenant `acme`."""

    def __init__(self, **members: Any) -> None:
        self.clock, self.catalog = ManualClock(NOW_MS), Catalog()
        self.log = Log(self.catalog)
        self.used: list[tuple[str, str]] = []
        self.last_used_ms: dict[str, int] = {}
        quota = ChangeQuota(0, self.clock)
        self.writer = Writer(
            cast("Appender", self.log), cast("Follower", self.log), self.catalog, self.clock, quota
        )
        self.ring = KeyRing(self.catalog, HASH_KEY, self.clock, self._note)
        named: Any = dict.fromkeys(Context.__dataclass_fields__)
        named |= {
            "clock": self.clock,
            "catalog": self.catalog,
            "writer": self.writer,
            "hash_key": HASH_KEY,
            "last_used": SimpleNamespace(read=self._read),
        }
        self.here = Context(**named)
        self.put("oldkey01", OLD, **members)

    def _note(self, tenant: str, key_id: str) -> None:
        self.used.append((tenant, key_id))

    async def _read(self, tenant: str) -> dict[str, int]:
        assert tenant == "acme"
        return self.last_used_ms

    def put(self, key_id: str, key: str, *, version: int = 1, **members: Any) -> None:
        """Store a key as an earlier release did, or with more members."""
        plain = {"kind": "key", "name": key_id, "hash": hash_key_text(HASH_KEY, key)}
        text = json.dumps({**plain, "scopes": ["ingest", "read"], "source": "web", **members})
        value = {"v": 1, "tenant": "acme", "kind": "key", "name": key_id, "version": version}
        value |= {"based_on": version - 1 or None, "op": "put", "text": text, "by": "key:first"}
        value["at_ms"] = 6 + version
        asyncio.run(self.log.append_all([(f"acme/key/{key_id}".encode(), _bytes(value))]))

    def is_good(self, key: str) -> bool:
        """Tell whether a key lets somebody in now."""
        key_id = key.split("_")[1]
        is_good = self.ring.still_valid(key_id)
        if is_good:
            assert self.ring.check(key, "").key_id == key_id
            return True
        problem = refused(self.ring.check, key=key, address="")
        assert (problem.status, problem.reason) == (401, Reason.UNAUTHORIZED)
        assert problem.message == "this needs a valid API key or a signed-in session"
        return False

    def rotate(self, caller: Caller = ADMIN, key_id: str = "oldkey01", **asked: Any) -> RotatedKey:
        """Replace a key."""
        return asyncio.run(rotate_key(key_id, self.here, caller, Rotation(**asked)))

    def make(self, caller: Caller = ADMIN, **asked: Any) -> ShownKey:
        """Make a key."""
        return asyncio.run(make_key(NewKey(**{"scopes": ["read"], **asked}), self.here, caller))

    def listed(self) -> dict[str, Key]:
        """Return the keys by id."""
        found = asyncio.run(list_keys(self.here, ADMIN)).items
        return {one.id: one for one in found}

    def texts(self) -> dict[str, Any]:
        """Return the newest text of each key."""
        values = [json.loads(value) for _, value in self.log.records]
        return {one["name"]: json.loads(one["text"]) for one in values if one["text"]}


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def instant(at_ms: int) -> str:
    """Return an instant as people write it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()


def refused(work: Any, **asked: Any) -> ProblemError:
    """Return why something is refused."""
    with pytest.raises(ProblemError) as found:
        work(**asked)
    return found.value


class TestExpired:
    def test_good_up_to_its_instant(self) -> None:
        """A millisecond before it lets in, at it it does not, and is no use of it either."""
        world = World(expires=instant(NOW_MS + 1))
        assert world.is_good(OLD)
        world.clock.advance(1)

        assert not world.is_good(OLD)
        assert world.used == [("acme", "oldkey01")] * 2

    def test_who_goes_on_trying_it_is_slowed(self) -> None:
        """As with a wrong one: by nothing it is told apart."""
        world = World(expires=instant(NOW_MS))
        tried = [refused(world.ring.check, key=OLD, address="a").status for _ in range(25)]
        assert tried == [401] * 20 + [429] * 5

    def test_one_without_an_end(self) -> None:
        """What an earlier release stored is good for ever."""
        world = World()
        world.clock.advance(10**12)
        assert world.is_good(OLD)


class TestMake:
    def test_with_an_end_and_limits(self) -> None:
        """They are stored, told and in force."""
        world = World()
        made = world.make(expires=instant(NOW_MS + HOUR_MS), label="guest", **LIMITS)

        assert (made.expires_ms, made.events_per_s, made.bytes_per_s) == (
            NOW_MS + HOUR_MS,
            *LIMITS.values(),
        )
        stored = world.texts()[made.id]
        assert stored["expires"] == "2027-01-15T09:00:00Z"
        assert {name: stored[name] for name in LIMITS} == LIMITS
        assert world.is_good(made.key)
        world.clock.advance(HOUR_MS)
        assert not world.is_good(made.key)
        assert world.listed()[made.id].expires_ms == NOW_MS + HOUR_MS

    def test_without(self) -> None:
        """Then no release before meets a member that it does not know."""
        world = World()
        made = world.make(expires=None)

        assert (made.expires_ms, made.events_per_s, made.bytes_per_s) == (None, None, None)
        assert set(world.texts()[made.id]) == {
            "kind", "name", "description", "hash", "scopes", "source", "label"
        }  # fmt: skip

    @pytest.mark.parametrize("before_ms", [0, 1, DAY_MS])
    def test_an_end_that_is_over(self, before_ms: int) -> None:
        """A key that nobody can use is a mistake."""
        problem = refused(World().make, expires=instant(NOW_MS - before_ms))
        assert (problem.status, problem.reason) == (422, Reason.REQUEST_INVALID)
        assert problem.message.startswith(
            'member "expires" is invalid: must be an instant later than now, 2027-01-15T08:00:00Z'
        )
        assert problem.message.endswith("; leave it out for a key that never expires")
        assert problem.errors[0]["pointer"] == "/expires"

    @pytest.mark.parametrize(
        ("member", "value", "says"),
        [
            ("expires", "tomorrow", "must be an instant with its zone"),
            ("expires", "2027-01-15T09:00:00", "must be an instant with its zone"),
            ("events_per_s", 0, "greater than or equal to 1"),
            ("events_per_s", True, "valid integer"),
            ("bytes_per_s", "9", "valid integer"),
            ("bytes_per_s", 10**12 + 1, "less than or equal to 1000000000000"),
        ],
    )
    def test_what_is_none(self, member: str, value: object, says: str) -> None:
        """It is refused before anything is stored."""
        with pytest.raises(ValidationError, match=says):
            NewKey.model_validate({"scopes": ["read"], member: value})

    def test_no_more_than_the_makers_scopes(self) -> None:
        """Whoever asks for more is told what lacks."""
        world, lesser = World(), Caller("acme", frozenset({"admin", "read"}), "lesser01")
        problem = refused(world.make, caller=lesser, scopes=["read", "define", "ingest"])
        assert (problem.status, problem.reason) == (403, Reason.SCOPE_MISSING)
        assert problem.message == (
            "a key cannot open more than its maker's, which lacks ['define', 'ingest']"
        )
        assert len(world.log.records) == 1


class TestRotate:
    def test_both_are_good_for_the_overlap(self) -> None:
        """The new one from now on and for ever, the old one up to its instant."""
        world = World()
        new = world.rotate(overlap="2h")

        assert (new.old_id, new.old_expires_ms) == ("oldkey01", NOW_MS + 2 * HOUR_MS)
        world.clock.advance(2 * HOUR_MS - 1)
        assert (world.is_good(OLD), world.is_good(new.key)) == (True, True)
        world.clock.advance(1)
        assert (world.is_good(OLD), world.is_good(new.key)) == (False, True)
        world.clock.advance(10**12)
        assert world.is_good(new.key)

    def test_the_new_one_is_as_the_old_one(self) -> None:
        """But for its id, its hash and its end."""
        world = World(**LIMITS, label="shop", description="of the shop")
        new = world.rotate()

        texts = world.texts()
        old, made = texts["oldkey01"], texts[new.id]
        assert made["hash"] == hash_key_text(HASH_KEY, new.key)
        assert old.pop("expires") == "2027-01-16T08:00:00Z"
        differing = {name for name in old | made if old.get(name) != made.get(name)}
        assert differing == {"name", "hash"}
        assert new.key.startswith(f"wk_{new.id}_")
        told = (new.label, new.scopes, new.source, new.events_per_s, new.bytes_per_s)
        assert told == ("shop", ["ingest", "read"], "web", *LIMITS.values())

    @pytest.mark.parametrize(
        ("asked", "length_ms"), [({}, DAY_MS), ({"overlap": "30d"}, 30 * DAY_MS)]
    )
    def test_how_long(self, asked: dict[str, Any], length_ms: int) -> None:
        """A day unless it is said, 30 days at most."""
        assert World().rotate(**asked).old_expires_ms == NOW_MS + length_ms

    def test_longer_is_refused(self) -> None:
        """Then nothing is stored."""
        world = World()
        problem = refused(world.rotate, overlap="30d1ms")
        assert (problem.status, problem.reason) == (422, Reason.REQUEST_INVALID)
        assert problem.message == (
            "two keys may be good beside each other for at most 30d, got 30d1ms"
        )
        assert len(world.log.records) == 1

    def test_at_once(self) -> None:
        """Without an overlap the old one is wrong when the new one is shown."""
        world = World()
        new = world.rotate(overlap="0s")
        assert (world.is_good(OLD), world.is_good(new.key)) == (False, True)

    @pytest.mark.parametrize("stored", [0, 1])
    @pytest.mark.parametrize("overlap", ["24h", "0s"])
    def test_a_crash_between_the_two_records(self, stored: int, overlap: str) -> None:
        """The old key stays good without an end, and no other is: nobody was shown one."""
        world = World()
        world.log.crashes_after = stored
        problem = refused(world.rotate, overlap=overlap)
        assert (problem.status, len(world.log.records)) == (503, 1 + stored)
        world.log.crashes_after = None
        world.make()  # what others write decides it

        world.clock.advance(31 * DAY_MS)
        assert world.is_good(OLD)
        assert world.listed()["oldkey01"].expires_ms is None
        assert len(world.listed()) == 2
        assert world.is_good(world.rotate(overlap=overlap).key)

    def test_the_new_one_is_written_first(self) -> None:
        """Also by whoever reads records one by one there is always a good one."""
        world = World()
        new = world.rotate()
        written = [json.loads(value)["name"] for _, value in world.log.records]
        assert written == ["oldkey01", new.id, "oldkey01"]

    def test_after_a_lost_answer_it_is_asked_again(self) -> None:
        """The old key keeps the earlier end, whichever is asked for; each answer's key is good."""
        world = World()
        first = world.rotate(overlap="1h")
        world.clock.advance(HOUR_MS // 2)
        second = world.rotate(overlap="24h")
        assert first.old_expires_ms == second.old_expires_ms == NOW_MS + HOUR_MS
        assert world.is_good(second.key)
        assert world.rotate(overlap="0s").old_expires_ms == NOW_MS + HOUR_MS // 2
        assert not world.is_good(OLD)

    def test_an_expired_one_can_be_replaced(self) -> None:
        """Its end stays where it was."""
        world = World(expires=instant(NOW_MS - HOUR_MS))
        new = world.rotate()
        assert new.old_expires_ms == NOW_MS - HOUR_MS
        assert (world.is_good(OLD), world.is_good(new.key)) == (False, True)

    def test_an_end_of_the_new_one(self) -> None:
        """Only if it is said: that of the old one is not taken over; one that is over is none."""
        world = World(expires=instant(NOW_MS + HOUR_MS))
        assert world.rotate().expires_ms is None
        assert world.rotate(expires=instant(NOW_MS + DAY_MS)).expires_ms == NOW_MS + DAY_MS
        assert refused(world.rotate, expires=instant(NOW_MS)).errors[0]["pointer"] == "/expires"

    def test_not_with_scopes_that_the_caller_lacks(self) -> None:
        """Or an admin would get a key that reads."""
        world, lesser = World(), Caller("acme", frozenset({"admin", "ingest"}), "lesser01")
        problem = refused(world.rotate, caller=lesser)
        assert (problem.status, problem.reason) == (403, Reason.SCOPE_MISSING)
        assert problem.message.endswith("which lacks ['read']")
        assert len(world.log.records) == 1

    @pytest.mark.parametrize(("tenant", "key_id"), [("acme", "nothing1"), ("other", "oldkey01")])
    def test_none_that_is_not_there(self, tenant: str, key_id: str) -> None:
        """Another tenant's is not there either."""
        caller = Caller(tenant, frozenset(SCOPES), "admin001")
        problem = refused(World().rotate, caller=caller, key_id=key_id)
        assert (problem.status, problem.message) == (404, "there is no such key")

    def test_of_two_at_once_one_wins(self) -> None:
        """The other stores nothing, so nobody's key stays that was not shown."""
        world = World()

        async def both() -> list[Any]:
            works = (rotate_key("oldkey01", world.here, ADMIN, Rotation()) for _ in range(2))
            return await asyncio.gather(*works, return_exceptions=True)

        world.log.append_all = _slowly(world.log.append_all)  # type: ignore[method-assign]
        shown, lost = sorted(asyncio.run(both()), key=lambda one: isinstance(one, Exception))
        assert (lost.status, lost.reason) == (409, Reason.VERSION_CONFLICT)
        assert set(world.listed()) == {"oldkey01", shown.id}


def _slowly(append_all: Any) -> Any:
    async def slow(records: Any) -> Any:
        await asyncio.sleep(0)
        return await append_all(records)

    return slow


class TestTold:
    def test_what_is_listed(self) -> None:
        """Newest first, with what holds of each; who made it stays, whoever gave it an end."""
        world = World(**LIMITS)
        world.last_used_ms = {"oldkey01": NOW_MS - 5, "gone0001": 1}
        new = world.rotate(caller=Caller("acme", frozenset(SCOPES), "other001"))

        old = world.listed()["oldkey01"]
        assert list(world.listed()) == [new.id, "oldkey01"]
        assert (old.created_ms, old.created_by) == (7, "key:first")
        assert (old.expires_ms, old.last_used_ms) == (NOW_MS + DAY_MS, NOW_MS - 5)
        assert (old.events_per_s, old.bytes_per_s) == tuple(LIMITS.values())
        mine = world.listed()[new.id]
        assert (mine.created_ms, mine.created_by) == (NOW_MS, "key:other001")
        assert (mine.expires_ms, mine.last_used_ms) == (None, None)

    def test_what_is_revoked(self) -> None:
        """An expired one stays until then."""
        world = World()
        world.last_used_ms = {"oldkey01": 3}
        new = world.rotate(overlap="0s")
        assert set(world.listed()) == {"oldkey01", new.id}
        told = asyncio.run(revoke_key("oldkey01", world.here, ADMIN))
        assert (told.expires_ms, told.last_used_ms) == (NOW_MS, 3)
        assert (told.created_ms, told.created_by) == (7, "key:first")
        assert set(world.listed()) == {new.id}

    def test_a_key_of_a_name_that_was_revoked(self) -> None:
        """It is told as the new one that it is."""
        world = World()
        asyncio.run(revoke_key("oldkey01", world.here, ADMIN))
        world.put("oldkey01", OLD, version=3)
        assert world.listed()["oldkey01"].created_ms == 9
