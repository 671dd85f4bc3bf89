"""The loop of `weir send`: a batch, its answer, and then the place up to which all is confirmed.

Nothing is confirmed that ingest has not answered for, so nothing is lost; and what is sent again
goes with the ids that it had, so that it counts once. In whatever step the process ends, the
resume file says less than what is stored, never more.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from weir_cli.exits import UsageError
from weir_cli.sending.account import Account, Complaints
from weir_cli.sending.batching import Batch, Batcher, Made, Reader
from weir_cli.sending.entries import Entry
from weir_cli.sending.guessing import Format
from weir_cli.sending.identity import request_key
from weir_cli.sending.inputs import Input
from weir_cli.sending.pacing import SLICE_S, Pace, Patience, Waits
from weir_cli.sending.posting import Fate, Post, Tried
from weir_cli.sending.progress import Line
from weir_cli.sending.resuming import (
    HEAD_BYTES,
    HORIZON_MS,
    Print,
    State,
    StateFile,
    sent_too_long_ago,
)

STOP_S: Final = 5.0
"""How long Ctrl-C waits for the batch that is on its way."""
STOPPING: Final = (
    f"stopping once ingest answers what was sent, in {STOP_S:g} s at most; Ctrl-C again ends at"
    " once"
)


@dataclass(frozen=True)
class Job:
    """An input that is to be sent.

    Attributes:
        source: The input, which stands at the place of the state.
        form: How it is read.
        state: What is known of it.
        file: Where that is kept; None for nowhere.
        is_resumed: A run before has confirmed some of it.
        is_open: What is behind the place may have been sent by one.
    """

    source: Input
    form: Format
    state: State
    file: StateFile | None
    is_resumed: bool = False
    is_open: bool = False


@dataclass(frozen=True)
class Limits:
    """How it is sent.

    Attributes:
        rate_per_s: Events a second; None for as fast as it goes.
        batch: The most events of a request.
        give_up_s: How long without progress what fails is tried again.
    """

    rate_per_s: float | None = None
    batch: int = 1_000
    give_up_s: float = 600.0


class _UnsavedError(Exception):
    """The resume file cannot be written: to go on would be to send all of it again."""


class Sender:
    """Sends one input to its end, as far as that goes."""

    def __init__(self, job: Job, post: Post, waits: Waits, limits: Limits, line: Line) -> None:
        """Prepare it; nothing is sent yet.

        Args:
            job: What is sent.
            post: Sends a batch once.
            waits: What it waits by.
            limits: How it is sent.
            line: Where progress and trouble are told.
        """
        now_s = waits.clock.monotonic_s()
        self.account = Account()
        self.account.reach(job.state.totals.position)
        self._job, self._post, self._waits, self._line = job, post, waits, line
        self._state, self._before = job.state, job.state.totals
        self._patience = Patience(limits.give_up_s, now_s)
        self._give_up_s = limits.give_up_s
        self._reader = Reader(job.source, job.form, job.state.at)
        pace = Pace(limits.rate_per_s, now_s)
        self._batcher = Batcher(iter(self._reader), pace, waits, limits.batch)
        self._complaints = Complaints(job.source.label, line.tell)
        self._is_open = job.is_open
        self._is_late = sent_too_long_ago(job.state, waits.clock.now_ms())

    @property
    def at(self) -> int:
        """Up to which byte everything is confirmed."""
        return self._state.at.offset

    def run(self) -> Tried | None:
        """Send; return what ended it before the end of the input, if that was ingest.

        Raises:
            UsageError: If nothing of how the input begins is understood; nothing was sent.
        """
        failed: Tried | None = None
        try:
            while failed is None:
                batch = self._batcher.next()
                if self._waits.is_stopped or not batch.made:
                    break
                self._check_understood(batch)
                failed = self._send(batch)
            if self._reader.broken is not None:
                self._break(str(self._reader.broken))
            if not self.account.unknown and not self._is_open:
                self._save(replace(self._state, tried_at_ms=None))
        except _UnsavedError as error:
            self._break(str(error))
        finally:
            self._complaints.end()
            self._line.end()
        return failed

    def _check_understood(self, batch: Batch) -> None:
        first = next((one for one in batch.made if not one.event and not one.is_left), None)
        is_first = self._state.at.offset == self._job.state.at.offset and not self._job.is_resumed
        if batch.sent or first is None or not is_first or not self._job.source.is_file:
            return
        label, line = self._job.source.label, first.entry.line
        msg = (
            f"{label} must have entries that are understood, got {len(batch.made):,} first ones of"
            f" which none is, {self._job.form.told()}; line {line:,}: {first.why}; see --format"
            " and --pattern, and try it with --dry-run"
        )
        raise UsageError(msg)

    def _send(self, batch: Batch) -> Tried | None:
        """Send a batch, in parts if need be; return what failed for good."""
        parts = deque([batch])
        while parts:
            part = parts.popleft()
            tried = self._delivered(part) if part.sent else None
            if tried is not None and tried.fate is Fate.TOO_LARGE:
                if len(part.sent) > 1:
                    by_events = tried.code == "too_many_events"
                    self._batcher.smaller(part, by_events=by_events)
                    parts.extendleft(reversed(part.halves()))
                    continue
                self._refuse(part.sent[0], tried)
                tried = None
            if tried is not None:
                if tried.fate is not Fate.STORED:
                    return tried
                self.account.stored(tried)
                self._complaints.not_accepted(part, tried)
            self._confirm(part)
        return None

    def _delivered(self, part: Batch) -> Tried:
        """Send a part until an answer is final, or it is given up.

        The body is the same each time, and so are the ids in it.
        """
        body, events = part.body, len(part.sent)
        key = request_key(self._state.name, part.sent[0].entry.start)
        unknown_since_s: float | None = None
        tries, goes_on = 0, True
        while goes_on:
            tried, tries = self._post(body, events, key), tries + 1
            now_s = self._waits.clock.monotonic_s()
            if tried.fate is Fate.UNKNOWN and unknown_since_s is None:
                unknown_since_s = now_s
            goes_on = tried.fate in (Fate.LATER, Fate.UNKNOWN) and self._is_again(tried, tries)
        if tried.fate is Fate.STORED:
            length_s = 0.0 if unknown_since_s is None else now_s - unknown_since_s
            if self._is_late or 1_000 * length_s > HORIZON_MS:
                self.account.twice += events
            self._is_late = False
        elif tried.fate is not Fate.TOO_LARGE and unknown_since_s is not None:
            # Also of what is refused in the end: a try before may have stored it.
            self.account.unknown += events
        return tried

    def _is_again(self, tried: Tried, tries: int) -> bool:
        """Wait for the next try; return whether there is to be one."""
        pause_s = self._patience.pause_s(self._waits.clock.monotonic_s(), tried.pause_s)
        if pause_s is None or self._waits.is_stopped:
            return False
        self._tell_trouble(tried, tries)
        self._waits.pause(pause_s)
        return not self._waits.is_stopped

    def _tell_trouble(self, tried: Tried, tries: int) -> None:
        # One that asks to come a little later is nothing to tell.
        if tries == 2:
            said = f": {tried.answer.sentence}" if tried.answer and tried.answer.sentence else ""
            self._line.tell(
                f"ingest {tried.why}{said}; trying again until {self._give_up_s:g} s have gone by"
                " without an answer"
            )

    def _refuse(self, one: Made, tried: Tried) -> None:
        """Count an event that is too large by itself: what follows it is sent all the same."""
        self.account.refused[tried.code] += 1
        why = tried.answer.told()[0] if tried.answer else tried.why
        self._complaints.refused(one, f"{tried.code}: {why}")

    def _confirm(self, part: Batch) -> None:
        """Count what was not sent of a part, and keep the place behind it.

        Raises:
            _UnsavedError: If the place cannot be kept.
        """
        for one in part.made:
            if not one.event:
                self.account.not_understood += 1
                self.account.left += one.is_left
                self._complaints.not_understood(one)
        self._patience.progressed(self._waits.clock.monotonic_s())
        self._is_open = False
        if (entry := part.end) is not None:
            self._save(self._state_after(entry))
        self._line.show(self._job.source.label, self.account.sent, self._job.source.share)

    def _state_after(self, entry: Entry) -> State:
        head = self._job.source.beginning.head[: min(HEAD_BYTES, entry.after.offset)]
        return replace(
            self._state,
            at=entry.after,
            head=self._state.head if self._state.head.length else Print.of(0, head),
            last=Print.of(entry.start, entry.raw),
            tried_at_ms=self._waits.clock.now_ms(),
            totals=self.account.totals(self._before),
        )

    def _save(self, state: State) -> None:
        file = self._job.file
        try:
            if file is not None:
                file.save(state)
        except OSError as error:
            msg = (
                f"{file and file.path} must be written after each batch: {error.strerror}; what is"
                " not in it is sent again by the next run, with the same ids"
            )
            raise _UnsavedError(msg) from None
        self._state = state

    def _break(self, why: str) -> None:
        self.account.broken.append(why)
        self._line.tell(why)


class Apart:
    """Sends in a thread of its own: Ctrl-C waits for an answer, not as long as a socket does."""

    def __init__(self, post: Post, waits: Waits, line: Line) -> None:
        """Take what sends.

        Args:
            post: Sends a batch once.
            waits: What Ctrl-C stops.
            line: Where it is told that something is still on its way.
        """
        self._post, self._waits, self._line = post, waits, line

    def __call__(self, body: bytes, events: int, key: str) -> Tried:
        """Send a body once; return what came of it."""
        answered: concurrent.futures.Future[Tried] = concurrent.futures.Future()

        def work() -> None:
            try:
                answered.set_result(self._post(body, events, key))
            except BaseException as error:  # noqa: BLE001  it is raised where it is waited for
                answered.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        clock, until_s = self._waits.clock, None
        while not concurrent.futures.wait([answered], SLICE_S).done:
            if not self._waits.is_stopped:
                continue
            if until_s is None:
                until_s = clock.monotonic_s() + STOP_S
                self._line.tell(STOPPING)
            elif clock.monotonic_s() >= until_s:
                return Tried(Fate.UNKNOWN, "did not answer before it was stopped")
        return answered.result()
