"""A run of `weir send`: one input after the other, and what became of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from weir.clock import Clock, SystemClock

from weir_cli.exits import UsageError
from weir_cli.sending.account import Account, Ended, Part
from weir_cli.sending.asked import Opened, Target
from weir_cli.sending.batching import Made, Reader
from weir_cli.sending.pacing import Waits, stopped_by_ctrl_c
from weir_cli.sending.posting import Fate, Ingest, Tried
from weir_cli.sending.progress import Line
from weir_cli.sending.sender import Apart, Job, Limits, Sender


class Run:
    """One call of the command."""

    def __init__(self, target: Target, limits: Limits, clock: Clock | None = None) -> None:
        """Prepare it; nothing is sent yet.

        Args:
            target: Where events go.
            limits: How they are sent.
            clock: Tells the time; by default the machine's.
        """
        self.clock = clock or SystemClock()
        self._waits, self._limits, self._line = Waits(self.clock), limits, Line(self.clock)
        self._post = Apart(Ingest(target.url, target.key).post, self._waits, self._line)
        self._account, self._parts, self._length_s = Account(), list[Part](), 0.0

    @property
    def ended(self) -> Ended:
        """What became of everything."""
        return Ended(self._account, self._parts, self._length_s, self._waits.is_stopped)

    def send(self, jobs: Sequence[Job]) -> Tried | None:
        """Send inputs in order; return the last try of what ended it before they did, if any did.

        Raises:
            UsageError: If nothing of an input is understood, and nothing was sent.
        """
        start_s, failed = self.clock.monotonic_s(), None
        with stopped_by_ctrl_c(self._waits):
            for job in jobs:
                if failed is None and not self._waits.is_stopped:
                    failed = self._one(job)
        self._length_s = self.clock.monotonic_s() - start_s
        is_refusal = failed is not None and failed.fate is Fate.REFUSED
        return failed if is_refusal or not self._waits.is_stopped else None

    def _one(self, job: Job) -> Tried | None:
        sender = Sender(job, self._post, self._waits, self._limits, self._line)
        failed: Tried | None = None
        try:
            failed = sender.run()
        except UsageError as error:
            if not self._account.sent:
                raise
            sender.account.broken.append(str(error))
            self._line.tell(str(error))
        self._account.add(sender.account)
        before = job.state.totals if job.is_resumed else None
        self._parts.append(Part(job.source.label, job.state.name, sender.at, before))
        return failed


def first_of(one: Opened, most: int) -> Iterator[Made]:
    """Yield the first entries of an input, and what would be sent of each."""
    one.source.at(one.first.offset, ())
    made = (made for made in Reader(one.source, one.form, one.first) if made is not None)
    yield from islice(made, most)
