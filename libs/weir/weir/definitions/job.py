"""Jobs: work that is asked for once and that the panes driver does between live batches.

What was asked for is the definition, how far it has come and how it ended are what
the driver says of it (`jobs.py`). A job is never edited; deleting it cancels it.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from weir.definitions.base import DefinitionModel, Model, Name, as_tuple
from weir.definitions.durations import DurationMs
from weir.definitions.faults import fault
from weir.definitions.silence import Instant

MAX_SAMPLE: Final = 1_000
MAX_AUDITED: Final = 100
DAY_MS: Final = 86_400_000


class Audit(Model):
    """Recount sampled panes from the log and compare them with what is served.

    Attributes:
        metrics: Which; empty: every one of the tenant.
        last: How far back from processed-through the instants are drawn, as far as the log
            holds all of a pane.
        recent: Of how much of its end half of the instants are drawn, whatever `last` is; None:
            all instants are drawn evenly.
        most_records: How many records of the log are gone through at most, which begin 23 hours
            and the dedup horizon before the oldest pane; None: as many as that needs.
        sample: How many instants are drawn, up to half of them those of events of the log; the
            pane of each resolution that holds one is recounted, with all its series.
        ledger: Recount the ledger, too, in received minutes of the same span.
        seed: What the draw is made with; None: the number of the job's own record.
        mend: Count a metric that differs again, as a new version over the log.
    """

    job: Literal["audit"] = "audit"
    metrics: Annotated[
        tuple[Name, ...], BeforeValidator(as_tuple), Field(max_length=MAX_AUDITED)
    ] = ()
    last: Annotated[DurationMs, Field(ge=60_000, le=400 * DAY_MS)] = 3_600_000
    recent: Annotated[DurationMs, Field(ge=60_000, le=400 * DAY_MS)] | None = None
    most_records: Annotated[int, Field(ge=1, lt=2**63)] | None = None
    sample: Annotated[int, Field(ge=1, le=MAX_SAMPLE)] = 20
    ledger: bool = False
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    mend: bool = False


class Replay(Model):
    """Put records that were quarantined whole back into the log, once each.

    Attributes:
        reason: Only those quarantined for this; None: for any.
        source: Only those of this source (`weirsource`); None: of any.
        since: Only those received at or after it; None: from the topic's start on.
        until: Only those received before it; None: up to the start of the job.
        dry_run: Say what would become of each, and put nothing back.
    """

    job: Literal["replay"] = "replay"
    reason: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    source: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    since: Instant | None = None
    until: Instant | None = None
    dry_run: bool = False

    @model_validator(mode="after")
    def _forwards(self) -> Replay:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise fault(
                required="a span that ends after it begins",
                mend="write since before until",
                got="until at or before since",
            )
        return self


class Adopt(Model):
    """Go on with a log to which the state does not belong, giving up what is gone.

    Attributes:
        reason: Why, for those who ask in a year.
    """

    job: Literal["adopt"] = "adopt"
    reason: Annotated[str, Field(min_length=1, max_length=1_000)]


class Erase(Model):
    """Count the events about a subject no more, and every metric anew without them.

    Attributes:
        subject_hash: What the subject is known by, a keyed hash; the subject itself is
            not stored.
    """

    job: Literal["erase"] = "erase"
    subject_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Job(DefinitionModel):
    """A job.

    Attributes:
        do: What is to be done.
    """

    kind: Literal["job"] = "job"
    do: Annotated[Audit | Replay | Adopt | Erase, Field(discriminator="job")]
