"""What tests of faults share: bite, mutants, a second driver, what the machine lacks."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from disruption.rig import Rig
from disruption.scene import PATIENCE_S, Scene, scene
from equality import is_filled
from weir_local import ports
from weir_local.process import Part

# By mutant, what its test must find wrong: red for another reason proves nothing. A mutant has as
# long as Weir: a copy that is right and slower than usual must not look like one that is wrong.
_EARLY = r"not counted that were acknowledged before processed-through"
_COUNTS = r"ledger and log must agree|panes must equal the recount"
# An old driver meets three lines of defence: in a shard, before it records, before it begins anew.
UNFENCED = "no_fence_no_token+fence_not_asked+start_not_asked"
SKIPPING = "skips_known_batches+marks_not_asked"
RED = {
    "adds_without_mark": _COUNTS,
    "another_log_read_on": r"the driver must stop and name what is gone",
    "another_log_unseen": r"the driver must stop and name what is gone",
    "alerts_by_the_present": r"no alert may change with the clock of alerts",
    "alerts_by_the_wall_clock": r"no alert may change with the clock of alerts",
    "answer_waits_for_tail": r"events must be answered while Redis is silent",
    "batch_error_swallowed": r"could not see \w+ named",
    "call_without_timeout": r"could not see a new result",
    "channels_in_turn": r"a channel must delay no other",
    "dedup_without_tenant": rf"{_COUNTS}|that of the run alone",
    "fence_in_redis_only": r"the newer driver must go on",
    "fenced_goes_on": r"one of two drivers fenced",
    "format_version_ignored": r"the driver must stop and name what is gone",
    "lost_log_ignored": r"the driver must stop and name what is gone",
    "message_without_timeout": r"could not see what is wrong with the channel far",
    "missing_mark_starts_here": _COUNTS,
    "new_partitions_not_ticked": r"could not see a new result",
    "new_partitions_start_late": rf"could not see a new result|{_COUNTS}",
    "newest_time_serves": rf"no alert may change with the clock of a broker|old numbers|{_EARLY}",
    "no_bound_of_a_batch": r"a batch must be bounded",
    UNFENCED: r"must end, fenced",
    "one_quota_for_all": r"no other tenant may be refused",
    "no_time_to_send_again": r"could not see a new result while packets are lost",
    "no_token": _COUNTS,
    "older_mark_accepted": rf"could not see a new result|{_COUNTS}",
    "sent_again_unread": _COUNTS,
    # The record of a batch asks the marks as well: alone it would begin anew for ever.
    # Until its numbers have passed those of before, its shards stand where no record says, and
    # readers refuse them.
    SKIPPING: rf"{_COUNTS}|after healing: \['503 store_unavailable'",
    "tail_without_timeout": r"a new heartbeat and live tail of ingest",
    "term_ignored": r"panes must end by itself",
    "unconfirmed_is_taken": rf"nothing may be taken while Kafka has no room|{_COUNTS}",
}


class NotBittenError(Exception):
    """A fault did not reach what it was to break: the outcome is unknown, not passed."""


class MutantLivesError(Exception):
    """A mutant passed, or was red by chance: the test proves nothing."""


def bites(happened: object, what: str) -> None:
    """Do nothing if a fault has bitten.

    Raises:
        NotBittenError: If not.
    """
    if not happened:
        msg = f"the fault must be felt, but {what} was not seen: unknown, not passed"
        raise NotBittenError(msg)


def with_mutant(name: str) -> pytest.MarkDecorator:
    """Run a test on Weir, where it must pass, and on a mutant, where it must turn red."""
    return pytest.mark.parametrize("mutant", ["", name], ids=["weir", name])


@contextmanager
def judged(mutant: str) -> Iterator[None]:
    """Let a block pass on Weir; on a mutant, it must find what `RED` says.

    Args:
        mutant: Its name; "" for Weir itself.

    Raises:
        MutantLivesError: If a mutant passed, or was red by something else.
    """
    if not mutant:
        yield
        return
    try:
        yield
    except (AssertionError, TimeoutError) as error:
        if not re.search(RED[mutant], str(error)):
            msg = f"{mutant} must be red by /{RED[mutant]}/, was by: {str(error)[:400]}"
            raise MutantLivesError(msg) from error
        print(f"{mutant} is red: {str(error)[:400]}")  # noqa: T201
        return
    msg = f"the mutant {mutant} must turn the test red, and passed"
    raise MutantLivesError(msg)


@contextmanager
def broken(
    folder: Path,
    seed: int,
    mutant: str,
    *,
    part: str = "panes",
    errors: tuple[str, ...] = (),
    redis_goes_back: bool = False,
    **told: Any,
) -> Iterator[Scene]:
    """Yield a stack of a test's own, of which one part may be a mutant, and check it after.

    Args:
        folder: Where everything of it is kept.
        seed: Of this run.
        mutant: Its name; "" for none.
        part: The service that it is in.
        errors: Events that this fault may log as errors.
        redis_goes_back: Whether the fault takes Redis back in time.
        told: What `scene` is told besides.
    """
    with (
        scene(folder, seed, mutants={part: mutant}, **told) as here,
        judged(mutant),
        here.watched(errors, redis_goes_back=redis_goes_back),
    ):
        yield here


@contextmanager
def second_driver(rig: Rig) -> Iterator[Part]:
    """Yield another panes driver of the same stack, not started: with a state of its own.

    What is done to a link of the first one does not reach it.
    """
    first = rig.part("panes")
    env = {
        **first.env,
        "WEIR_ANALYTICS_STATE_DIR": str(rig.home.folder / "panes2"),
        "WEIR_ANALYTICS_OPS_PORT": str(ports.free_port()),
        "WEIR_ANALYTICS_REDIS_URL": rig.redis_url,
        "WEIR_FAIL": "",
    }
    second = Part("panes2", first.argv, rig.home.run, env)
    rig.stack.parts["panes2"] = second
    try:
        yield second
    finally:
        second.kill()
        del rig.stack.parts["panes2"]


def await_batches(rig: Rig, part: str, count: int) -> None:
    """Wait until a driver has recorded so many more batches."""
    before = len(rig.lines(part, "batch")) if rig.part(part).log_path.exists() else 0
    rig.wait_until(
        lambda: (
            rig.part(part).log_path.exists() and len(rig.lines(part, "batch")) >= before + count
        ),
        f"{count} batches of {part}",
        PATIENCE_S,
    )


# The second batch of a driver: one shard is committed, and the other is not for some seconds.
IN_A_BATCH = "C6:sleep@2"


def stop_in_a_batch(here: Scene) -> None:
    """Start the driver anew and return while one shard of a batch is committed, the other not.

    It sleeps there for three seconds, and then meets what was done to it.
    """
    rig = here.rig
    rig.forget(IN_A_BATCH)
    rig.kill("panes")
    rig.arm("panes", IN_A_BATCH)
    rig.stack.launch("panes")
    rig.wait_until(lambda: rig.has_bitten(IN_A_BATCH), "the first shard", PATIENCE_S)


def wipe_and_recount(here: Scene) -> None:
    """Empty Redis; return when all is counted again, which is done unasked and told (D5)."""
    rig, told = here.rig, set[str]()
    before = len(rig.lines("panes", "reconciled"))

    def found() -> list[str]:
        told.add(rig.fresh()["status"])
        return [line["verdict"] for line in rig.lines("panes", "reconciled")[before:]]

    here.wipe()
    rig.wait_until(found, "the loss", PATIENCE_S)
    bites(found()[-1] == "lost", "the verdict LOST")
    # All is filled, too, while the dashboard has not heard of the loss.
    rig.wait_until(lambda: found() and "rebuilding" in told, "a rebuild that is told", PATIENCE_S)
    rig.wait_until(lambda: is_filled(rig), "what was lost", PATIENCE_S)


def assert_stops_as_foreign(rig: Rig, words: str) -> None:
    """Assert that a driver ends, naming what it must not decide by itself."""
    try:
        rig.wait_until(lambda: rig.part("panes").pid() is None, "the end of panes", PATIENCE_S / 3)
    except TimeoutError as error:
        msg = "the driver must stop and name what is gone, and went on"
        raise AssertionError(msg) from error
    last = rig.lines("panes", "verdict")[-1]
    assert last["verdict"] == "foreign"
    assert words in last["reason"]


def needs(**tools: Callable[[], object]) -> None:
    """Skip a test where the machine lacks something, and say what.

    What was not tried has not passed: the run tells all of it at its end, and ends non-zero
    (`conftest.py` of the repository, by these words).
    """
    missing = [name.replace("_", " ") for name, is_there in tools.items() if not is_there()]
    if missing:
        pytest.skip(f"not tried, the machine lacks {', '.join(missing)}")


def root() -> bool:
    """Return whether this is Linux, and this process may mount."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("mount") is not None
