"""Writes definitions: checked, based on a version, read back to learn whether they won.

Every record counts against its tenant's quota of changes, also one that loses: it stands in
the log as well.

Delivery: an answer of success means that the records stand in the log and won. After a
crash or a lost answer the change may stand or not, of several all or none; repeating it is
safe, because both are based on the same version, and the second one loses.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from weir.clock import Clock
from weir.definitions.history import Definition
from weir.definitions.records import Edit, NewRecord, bundle_records, delete_record, put_record
from weir.problems import MAX_ERRORS, ProblemError, Reason
from weir_reading.appender import Appender, NotConfirmedError
from weir_reading.follower import Follower

from weir_dashboard.change_quota import ChangeQuota, changes_in
from weir_dashboard.definitions.catalog import Catalog, Place

TIMEOUT_S = 5.0
TRIES = 5
"""How often several changes are written, if other records come between them."""


@dataclass(frozen=True)
class Expected:
    """What a client says is there: one of the two, or nothing.

    Attributes:
        version: The version that it changes (`If-Match`).
        absent: There is none (`If-None-Match: *`).
    """

    version: int | None = None
    absent: bool = False


@dataclass(frozen=True)
class Put:
    """One of several changes that are stored together.

    Attributes:
        place: What it is a change of; each once.
        text: The new text, checked before.
        based_on: The version that it was made from; None: there was none.
        pointer: Where that stands in the request.
    """

    place: Place
    text: str
    based_on: int | None
    pointer: str


class Writer:
    """Puts and deletes definitions."""

    def __init__(
        self,
        appender: Appender,
        follower: Follower,
        catalog: Catalog,
        clock: Clock,
        quota: ChangeQuota,
    ) -> None:
        self._appender = appender
        self._follower = follower
        self._catalog = catalog
        self._clock = clock
        self._quota = quota
        # What is being deleted.
        self._ending: set[Place] = set()

    async def put(self, place: Place, text: str, *, by: str, expected: Expected) -> Definition:
        """Store a text that was checked as the next version.

        Raises:
            ProblemError: 428 without a condition, 412 if it does not hold, 429 over the quota,
                409 if another writer was faster, 503 if the log did not confirm.
            NewerFormatError: If a newer release wrote definitions: what a change would be based
                on is not known.
        """
        record = put_record(self._edit(place, by, expected), text)
        self._quota.check(place[0], changes_in([record.value]), calms=place[1] == "silence")
        return await self._append(place, record)

    async def put_all(self, puts: Sequence[Put], *, by: str) -> list[Definition]:
        """Store texts as the next versions of their definitions, all of them or none.

        Returns:
            The versions, in the order of `puts`.

        Raises:
            ProblemError: 409 with each that is not at the version it is based on, 429 over the
                quota, 503 if the log did not confirm, or other records came between again and
                again.
            NewerFormatError: As `put`.
        """
        if not puts:
            return []
        tenant = puts[0].place[0]
        for tried in range(TRIES):
            self._catalog.folded.newer.check()
            self._check_all(puts)
            records = self._bundle(puts, by)
            if not tried:  # what has begun is not refused because others came between
                self._quota.check(tenant, changes_in(one.value for one in records))
            offsets = await self._appended_all(tenant, records)
            await self._read_back(max(offsets))
            made = [self._catalog.folded.by_vid(offset) for offset in offsets]
            won = [one for one in made if one is not None]
            if len(won) == len(puts):
                return won
        msg = "others wrote definitions at the same time, and nothing was stored; try again"
        raise ProblemError(503, Reason.LOG_UNAVAILABLE, msg, retry_after_s=2)

    def _bundle(self, puts: Sequence[Put], by: str) -> list[NewRecord]:
        at_ms, folded = self._clock.now_ms(), self._catalog.folded
        edits = [
            Edit(*one.place, based_on=folded.version(*one.place), by=by, at_ms=at_ms)
            for one in puts
        ]
        texts = [one.text for one in puts]
        return bundle_records(list(zip(edits, texts, strict=True)), secrets.token_hex(8))

    def _check_all(self, puts: Sequence[Put]) -> None:
        stale = [one for one in puts if not self._holds(one)]
        if not stale:
            return
        told = ", ".join(
            f"{'/'.join(one.place[1:])} is {self._standing(one)}" for one in stale[:MAX_ERRORS]
        )
        msg = (
            f"nothing is stored: each of {len(puts)} definitions must be based on the current "
            f"version, {told}; read what is there and try again"
        )
        errors = tuple(
            {
                "pointer": one.pointer,
                "required": f"the current version: {self._standing(one)}",
                "got": "none" if one.based_on is None else str(one.based_on),
                "mend": "take over the current text, then change it",
            }
            for one in stale
        )
        raise ProblemError(409, Reason.VERSION_CONFLICT, msg, errors)

    def _holds(self, one: Put) -> bool:
        current = self._catalog.folded.get(*one.place)
        return one.based_on == (None if current is None else current.version)

    def _standing(self, one: Put) -> str:
        current = self._catalog.folded.get(*one.place)
        return "not there" if current is None else f"at version {current.version}"

    async def delete(self, place: Place, *, by: str, expected: Expected) -> Definition:
        """End a definition; its history stays.

        That of a key is never refused by the quota: it ends who floods it. Nobody revokes more
        keys than were made: of one, one at a time.

        Raises:
            ProblemError: As `put`, and 404 if there is none.
        """
        if self._catalog.folded.get(*place) is None:
            raise ProblemError(404, Reason.NOT_FOUND, "there is no such definition")
        record = delete_record(self._edit(place, by, expected))
        if place[1] != "key":
            self._quota.check(place[0], changes_in([record.value]), calms=True)
        if place in self._ending:
            raise self._conflict(place, 409, "another deletion of it is under way")
        self._ending.add(place)
        try:
            return await self._append(place, record)
        finally:
            self._ending.discard(place)

    def _edit(self, place: Place, by: str, expected: Expected) -> Edit:
        self._catalog.folded.newer.check()
        self._check(place, expected)
        based_on = self._catalog.folded.version(*place)
        return Edit(*place, based_on=based_on, by=by, at_ms=self._clock.now_ms())

    async def _append(self, place: Place, record: NewRecord) -> Definition:
        (offset,) = await self._appended_all(place[0], [record])
        await self._read_back(offset)
        winner = self._catalog.folded.by_vid(offset)
        if winner is None:
            raise self._conflict(place, 409, "another change came first")
        return winner

    async def _appended_all(self, tenant: str, records: Sequence[NewRecord]) -> list[int]:
        try:
            with self._quota.taken(tenant, changes_in(one.value for one in records)):
                return await self._appender.append_all(records)
        except NotConfirmedError:
            # A repeat is safe: of two records that are based on the same version one wins.
            msg = "the log did not confirm the change; it may stand or not, read it and try again"
            raise ProblemError(503, Reason.LOG_UNAVAILABLE, msg, retry_after_s=2) from None

    async def _read_back(self, offset: int) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._follower.reach(offset)
        except TimeoutError:
            msg = "the change is stored but could not be read back in time; read it and see"
            raise ProblemError(503, Reason.LOG_UNAVAILABLE, msg, retry_after_s=2) from None

    def _check(self, place: Place, expected: Expected) -> None:
        current = self._catalog.folded.get(*place)
        if expected.version is None and not expected.absent:
            msg = "a change needs If-Match with the version it changes, or If-None-Match: *"
            raise ProblemError(428, Reason.PRECONDITION_REQUIRED, msg)
        if expected.absent and current is not None:
            raise self._conflict(place, 412, "it exists already")
        if expected.version is not None and (
            current is None or current.version != expected.version
        ):
            raise self._conflict(place, 412, f"you changed version {expected.version}")

    def _conflict(self, place: Place, status: int, why: str) -> ProblemError:
        current = self._catalog.folded.get(*place)
        version = current.version if current else 0
        required = f"the current version, {version}" if current else "that it does not exist"
        msg = f"{place[1]} {place[2]} is at version {version}: {why}; read it and try again"
        error = {
            "pointer": "/version",
            "required": required,
            "got": why,
            "mend": "take over the current text, then change it",
        }
        return ProblemError(status, Reason.VERSION_CONFLICT, msg, (error,))
