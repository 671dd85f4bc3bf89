"""The dedup state that a batch begins with: from its runs, else read from the log again."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from confluent_kafka import Message
from weir import names
from weir.admission import Refused, admit_foreign
from weir.clock import SystemClock
from weir.event import placed

from weir_analytics.panes.batch import Batch
from weir_analytics.panes.decode import END
from weir_analytics.panes.dedup import PartitionState
from weir_analytics.panes.history import Headers, LogPartition, all_headers, first_at, read_range
from weir_analytics.panes.holes import Hole, Reading, beyond
from weir_analytics.panes.kinds import Kind
from weir_analytics.panes.mapped import Mapped
from weir_analytics.panes.runs import Run, chain_before, files_beyond, write_run
from weir_analytics.panes.shared_sieves import searched

# Kafka finds an offset by time to the millisecond; a second covers its rounding.
MARGIN_MS = 1_000
# What the tasks of this process have mapped. The driver, which looks seldom, keeps nothing.
MAPPED = Mapped(SystemClock())


def dedup_folder(batch: Batch, partition: int) -> Path:
    """Return where the runs of a partition are; another log or lane has others."""
    folder = log_folder(Path(batch.dedup_dir), batch.topic_id, batch.cut_epoch)
    return folder / batch.lane / str(partition)


def log_folder(dedup_dir: Path, topic_id: str, cut_epoch: int) -> Path:
    """Return where the runs of a log are. Its id is base64, in which `/` is a digit.

    What a log has lost is of another log than what came in its place, though the id is the same.
    """
    name = topic_id.replace("/", "_")
    return dedup_dir / (f"{name}@{cut_epoch}" if cut_epoch else name)


def forget_lanes(folder: Path, lanes: Collection[str]) -> None:
    """Delete the runs that nothing asks for any more: of lanes that are done, and of what is gone.

    Args:
        folder: Where the runs of the log are; those of another log stay.
        lanes: The lanes that go on, the live one among them.
    """
    name, _, _ = folder.name.partition("@")
    before = (one for one in folder.parent.glob(f"{name}*") if one.name.partition("@")[0] == name)
    gone = [one for one in before if one.name != folder.name]
    done = [one for one in folder.glob("*") if one.name not in lanes]
    for one in gone + done:
        shutil.rmtree(one, ignore_errors=True)


class Frontier:
    """Where the lanes of one life of a driver stand, to see which of them begins or goes back.

    What is counted again may have more records than it had: such as were given up as lost, and are
    back. A merged run or a sieve that was made without them would hide them, and a repeat of one
    would count twice. So nothing is kept of what lies behind the place where counting goes on.
    Only the driver can tell. A task that hangs and ends long after it was overtaken finds files of
    those that came later, too, and they need them.
    """

    def __init__(self) -> None:
        self._ends: dict[tuple[str, int], int] = {}

    def stale(self, batch: Batch) -> list[Path]:
        """Return the files of what a batch, or one behind it, counts again.

        Nothing is looked up where its lane goes on.
        """
        found: list[Path] = []
        for partition in batch.end:
            start = batch.start.get(partition, 0)
            if self._ends.get((batch.lane, partition)) != start:
                found += files_beyond(dedup_folder(batch, partition), start)
        return found

    def move(self, batch: Batch) -> None:
        """Take note of a batch that is to run, of which nothing stale is left."""
        self._ends |= {(batch.lane, partition): end for partition, end in batch.end.items()}


def state_before(
    batch: Batch, partition: int, first_at_ms: int
) -> tuple[PartitionState, list[Hole]]:
    """Return the state of a partition before the batch's first record, and what it lacks.

    Whoever is given holes must not let the batch be recorded before they are told: a repeat of a
    record that was not read would be counted twice. They are no error yet, so that those of all
    partitions of a task are told at once. Such a state is not kept.

    Args:
        batch: The batch; a repetition of it gets the same state.
        partition: The partition.
        first_at_ms: Append time of the batch's first record in it.

    Raises:
        KafkaException: If the log does not hold what is read of it, or did not answer in time.
    """
    start = batch.start.get(partition, 0)
    if not batch.recalls:
        return PartitionState(start), []
    folder = dedup_folder(batch, partition)
    chain = chain_before(folder, start, batch.horizon_ms, MAPPED)
    holes: list[Hole] = []
    if chain is None:
        run, holes = _read_back(batch, partition, first_at_ms)
        if not holes:  # also by a trial: who counts would read it again
            write_run(folder, run, batch.horizon_ms)
        chain = [run]
    older = searched(folder, chain, batch.horizon_ms, MAPPED)
    return PartitionState.after(chain, start, older), holes


def _read_back(batch: Batch, partition: int, first_at_ms: int) -> tuple[Run, list[Hole]]:
    """Read one horizon of the log up to a batch's first record; return what was missing, too.

    Of that retention may have taken the beginning: reading begins where the log does now, and a
    repeat of what is gone is counted, since nothing knows of the first one any more. What
    retention takes while this reads is an error of the log's, and the batch comes again. Records
    that are missing in between are a hole, as in a batch (`holes.py`); one that is given up is
    passed like what is gone, and the panes of one horizon behind it are incomplete.
    """
    start = batch.start.get(partition, 0)
    log = LogPartition(batch.kafka, batch.topic, partition)
    begin = min(start, first_at(log, first_at_ms - batch.horizon_ms - MARGIN_MS))
    state = PartitionState(begin)
    reading = Reading({partition: begin}, {partition: start})
    for messages in read_range(log, begin, start):
        reading.take(partition, np.array([m.offset() for m in messages], np.int64))
        _replay(state, messages)
    return state.run(start), beyond(reading.holes(all_partitions=True), batch.lost)


def received_before(batch: Batch) -> dict[int, int]:
    """Return R at the start of a range, of the partitions whose runs tell it."""
    found: dict[int, int] = {}
    for partition, start in batch.start.items():
        chain = chain_before(dedup_folder(batch, partition), start, horizon_ms=0)
        if chain:
            found[partition] = chain[0].received_end
    return found


def _replay(state: PartitionState, messages: Sequence[Message]) -> None:
    received = state.advance(np.array([m.timestamp()[1] for m in messages], np.int64))
    places: list[int] = []
    digests: list[bytes] = []
    for at, (message, headers) in enumerate(zip(messages, all_headers(messages), strict=True)):
        digest = _identity(message, headers, int(received[at]))
        if digest is not None:
            places.append(at)
            digests.append(digest)
    if digests:
        pairs = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)
        state.remember(pairs[0::2], pairs[1::2], received[places])


def _identity(message: Message, headers: Headers, received_ms: int) -> bytes | None:
    """Return the identity of a record that is an event, None of every other one."""
    value = message.value()
    kind = kind_of(headers, value)
    if kind <= Kind.SAMPLED:
        return placed(value or b"").digest
    if kind != Kind.FOREIGN:
        return None
    origin = f"{message.topic()}/{message.partition()}/{message.offset()}"
    found = admit_foreign(value, received_ms=received_ms, recheck=True, origin=origin)
    return None if isinstance(found, Refused) else found.digest


def kind_of(headers: Headers, value: bytes | None) -> Kind:
    """Say what a record is; the same answer as the columns of `decode.py`."""
    first = headers[0][0] if headers else None
    if first == names.HEADER_TICK and value is None:
        return Kind.TICK
    if first == names.HEADER_REASON and value is not None:
        return Kind.REFUSED
    if first in EVENT_HEADERS and _is_placed(value):
        return Kind.EVENT if first == names.HEADER_CONTENT_TYPE else Kind.SAMPLED
    return Kind.FOREIGN


def kinds_of(
    firsts: Sequence[str | None],
    values: Sequence[bytes | None],
    is_event: npt.NDArray[np.bool_],
) -> npt.NDArray[np.int8]:
    """Say what records are, as `kind_of` says of one.

    Args:
        firsts: The name of each one's first header; None: there is none that can be read.
        values: The values.
        is_event: Whether header and value are those of an event; see `places_of`.
    """
    kinds = np.full(len(values), Kind.FOREIGN, np.int8)
    kinds[is_event] = Kind.EVENT
    if set(firsts) <= {names.HEADER_CONTENT_TYPE}:
        return kinds
    for at, (first, value) in enumerate(zip(firsts, values, strict=True)):
        if first == names.HEADER_TAIL and is_event[at]:
            kinds[at] = Kind.SAMPLED
        elif first == names.HEADER_TICK and value is None:
            kinds[at] = Kind.TICK
        elif first == names.HEADER_REASON and value is not None:
            kinds[at] = Kind.REFUSED
    return kinds


EVENT_HEADERS = (names.HEADER_CONTENT_TYPE, names.HEADER_TAIL)


def _is_placed(value: bytes | None) -> bool:
    try:
        placed(value or b"")
    except ValueError:
        return False
    return value is not None and value.endswith(END)
