"""What became of everything: each entry of an input is in exactly one of these numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from weir.position import format_position, parse_position

from weir_cli import exits
from weir_cli.sending.batching import Batch, Made
from weir_cli.sending.posting import Tried
from weir_cli.sending.resuming import Totals

MOST_TOLD: Final = 10


@dataclass
class Account:
    """What became of what a run has read.

    Attributes:
        accepted: Events that ingest stored.
        quarantined: Events that it stored as unusable, by reason.
        refused: Events that it did not take, by reason, while it took others.
        not_understood: Entries that are no events, and were not sent.
        unknown: Events of which no answer says whether they are stored.
        twice: Events of those that may be stored twice.
        left: Entries at the end of an input that a later run takes again.
        broken: Why an input, or its resume file, was given up.
        offsets: Up to where the log has them: partition to offset.
    """

    accepted: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    not_understood: int = 0
    unknown: int = 0
    twice: int = 0
    left: int = 0
    broken: list[str] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)

    @property
    def sent(self) -> int:
        """Events that went to ingest, each counted once however often it went."""
        stored = self.accepted + self.quarantined.total()
        return stored + self.refused.total() + self.unknown

    @property
    def position(self) -> str:
        """Up to where the log has them, as a query takes it."""
        return format_position(self.offsets)

    @property
    def is_whole(self) -> bool:
        """Whether everything that was read is counted by Weir, once."""
        lacks = self.quarantined or self.refused or self.not_understood or self.broken
        return not lacks and not self.unknown

    def stored(self, tried: Tried) -> None:
        """Count what an answer says of a batch."""
        answer = tried.answer.body if tried.answer else {}
        self.accepted += answer["accepted"]
        self.quarantined.update(str(item.get("code")) for item in tried.items)
        self.reach(str(answer.get("position") or ""))

    def reach(self, position: str) -> None:
        """Go on to a position, in each partition of it."""
        try:
            found = parse_position(position)
        except ValueError:
            return
        for partition, offset in found.items():
            self.offsets[partition] = max(offset, self.offsets.get(partition, -1))

    def add(self, other: Account) -> None:
        """Add what became of another input."""
        self.accepted += other.accepted
        self.quarantined += other.quarantined
        self.refused += other.refused
        self.not_understood += other.not_understood
        self.unknown += other.unknown
        self.twice += other.twice
        self.left += other.left
        self.broken += other.broken
        self.reach(other.position)

    def totals(self, before: Totals) -> Totals:
        """Return this and what was before it."""
        return Totals(
            accepted=before.accepted + self.accepted,
            quarantined=before.quarantined + self.quarantined.total(),
            refused=before.refused + self.refused.total(),
            not_understood=before.not_understood + self.not_understood - self.left,
            position=self.position,
        )


class Complaints:
    """Tells what cannot be used, by its line: the first of each input, and then how many more."""

    def __init__(self, label: str, tell: Callable[[str], None]) -> None:
        """Take what people call the input, and what tells them."""
        self._label, self._tell, self._more, self._left = label, tell, 0, MOST_TOLD

    def not_understood(self, one: Made) -> None:
        """Tell of an entry that is not sent."""
        ending = "left for later" if one.is_left else "not sent"
        self._say(one, f"{one.why}; {ending}")

    def not_accepted(self, batch: Batch, tried: Tried) -> None:
        """Tell of the events of a batch that are stored as unusable."""
        sent = batch.sent
        for item in tried.items:
            at = item.get("index")
            if isinstance(at, int) and 0 <= at < len(sent):
                self._say(sent[at], f"quarantined, {item.get('code')}: {item.get('detail')}")

    def refused(self, one: Made, why: str) -> None:
        """Tell of an event that ingest does not take."""
        self._say(one, f"refused, {why}")

    def end(self) -> None:
        """Tell how many more there were."""
        if self._more:
            self._tell(f"{self._label}: {self._more:,} more entries, which are not told here")

    def _say(self, one: Made, why: str) -> None:
        if self._left:
            self._left -= 1
            self._tell(f"{self._label}, line {one.entry.line:,}: {why}")
        else:
            self._more += 1


@dataclass(frozen=True)
class Part:
    """How far an input is.

    Attributes:
        label: What people call it.
        name: What it is called in ids.
        at: Up to which byte everything is confirmed.
        before: What runs before this one had confirmed; None if there were none.
    """

    label: str
    name: str
    at: int
    before: Totals | None

    def told(self) -> dict[str, Any]:
        """Return it as programs read it."""
        before = None if self.before is None else asdict(self.before)
        return {"input": self.label, "name": self.name, "bytes": self.at, "before": before}

    def line(self) -> str:
        """Return what was confirmed before, as people read it; empty if nothing was."""
        if self.before is None:
            return ""
        before = self.before
        return (
            f"earlier runs, {self.label}: {before.accepted:,} accepted, {before.quarantined:,}"
            f" quarantined, {before.refused:,} refused, {before.not_understood:,} not understood"
        )


@dataclass(frozen=True)
class Ended:
    """A run, over.

    Attributes:
        account: What became of what it read.
        parts: How far each input is.
        length_s: How long it took.
        is_stopped: Ctrl-C ended it.
    """

    account: Account
    parts: Sequence[Part]
    length_s: float
    is_stopped: bool = False

    @property
    def code(self) -> int:
        """The exit code, unless ingest refused or did not answer."""
        if self.is_stopped:
            return exits.STOPPED
        return exits.DONE if self.account.is_whole else exits.LEFT_OUT

    @property
    def per_s(self) -> float:
        """Events a second."""
        return self.account.sent / self.length_s if self.length_s > 0 else 0.0

    def told(self) -> dict[str, Any]:
        """Return it as programs read it."""
        account = self.account
        return {
            "sent": account.sent,
            "accepted": account.accepted,
            "quarantined": account.quarantined.total(),
            "refused": account.refused.total(),
            "unknown": account.unknown,
            "not_understood": account.not_understood,
            "reasons": dict(account.quarantined + account.refused),
            "may_count_twice": account.twice,
            "broken": account.broken,
            "position": account.position,
            "seconds": round(self.length_s, 3),
            "events_per_s": round(self.per_s, 1),
            "stopped": self.is_stopped,
            "inputs": [part.told() for part in self.parts],
        }

    def lines(self) -> list[str]:
        """Return it as people read it."""
        account = self.account
        became = (
            f"{account.accepted:,} accepted",
            _counted("quarantined", account.quarantined),
            _counted("refused", account.refused),
            f"{account.unknown:,} unknown",
        )
        rate = f"in {self.length_s:,.1f} s, {self.per_s:,.0f} a second"
        told = [f"sent {account.sent:,} {rate}: {', '.join(became)}"]
        if account.not_understood:
            told.append(f"not understood, and not sent: {account.not_understood:,}")
        if account.unknown:
            told.append(
                "whether the unknown ones are stored nobody knows: the next run sends them again"
                " with the same ids, and within the dedup horizon each counts once"
            )
        if account.twice:
            told.append(
                f"up to {account.twice:,} may count twice: they were sent again after the usual"
                " dedup horizon of an hour"
            )
        told += filter(None, (part.line() for part in self.parts))
        if account.position:
            told.append(f"counted once `weir query … --after {account.position}` answers")
        return told


def _counted(word: str, counted: Counter[str]) -> str:
    """Return how many there were, with why."""
    reasons = ", ".join(f"{times:,} {reason}" for reason, times in counted.most_common())
    return f"{counted.total():,} {word}{f' ({reasons})' if reasons else ''}"
