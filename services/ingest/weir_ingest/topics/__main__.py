"""Make the topics what the settings want: `python -m weir_ingest.topics apply`.

Creates what is missing, raises what is too short, never deletes, and ends by reading
everything back. Run twice, also at once, it does the same as run once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from confluent_kafka import KafkaException
from pydantic import ValidationError
from weir_service.settings import EXIT_SETTINGS

from weir_ingest.topics.broker import PERMANENT, Topics
from weir_ingest.topics.plan import GROW, MIN_ISR, SHORTEN, Allowed, Found, Plan, Wanted, plan
from weir_ingest.topics.settings import Settings

EXIT_FAILED = 1
EXIT_LESS_THAN_ASKED = 3
PAUSE_S = 0.5
ENDS = f"""exit codes:
  0  the topics are as wanted, or larger
  {EXIT_FAILED}  the brokers did not answer or refused
  {EXIT_SETTINGS}  a setting cannot be used
  {EXIT_LESS_THAN_ASKED}  a topic stays smaller than asked for; trying again does not help"""


class UnreachedError(Exception):
    """The topics could not be made as wanted in time; the text says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    asked = _parser().parse_args(arguments)
    try:
        settings = Settings()  # type: ignore[call-arg]  # from the environment
    except ValidationError as error:
        for fault in error.errors():
            name = "_".join(str(part) for part in fault["loc"]).upper()
            for why in fault["msg"].splitlines():
                sys.stderr.write(f"WEIR_TOPICS_{name}: {why}\n")
        return EXIT_SETTINGS
    allowed = Allowed(
        grow=settings.allow_grow or asked.allow_grow,
        shorten=settings.allow_shorten or asked.allow_shorten,
    )
    topics = Topics(settings.kafka)
    try:
        plans, found = apply(topics, settings.wanted(), allowed, wait_s=settings.wait_s)
    except UnreachedError as error:
        sys.stderr.write(f"weir: {error}\n")
        return EXIT_FAILED
    for one in plans:
        _tell_state(one, found[one.wanted.topic.name])
    return EXIT_LESS_THAN_ASKED if any(one.refused for one in plans) else 0


def apply(
    topics: Topics, wanted: Sequence[Wanted], allowed: Allowed, *, wait_s: float
) -> tuple[list[Plan], dict[str, Found]]:
    """Change the topics until a reading finds nothing left to do; return that reading.

    Raises:
        UnreachedError: If the time is over, or the brokers refuse for good.
    """
    deadline_s = time.monotonic() + wait_s
    names = [one.topic.name for one in wanted]
    why = ""
    while True:
        try:
            found = topics.read(names)
            plans = [plan(one, found.get(one.topic.name), allowed) for one in wanted]
            if all(one.is_done for one in plans):
                return plans, found
            for one in plans:
                _carry_out(topics, one, found.get(one.wanted.topic.name))
            why = "what was changed is not to be seen yet"
        except KafkaException as error:
            why = error.args[0].str()
            if error.args[0].code() in PERMANENT:
                msg = f"the brokers refused: {why}; grant it, or change the setting"
                raise UnreachedError(msg) from None
            if (refusal := topics.refusal()) is not None:
                raise UnreachedError(refusal) from None
        if time.monotonic() >= deadline_s:
            msg = f"the topics must be as wanted within {wait_s:g} s, found: {why}"
            raise UnreachedError(msg)
        time.sleep(PAUSE_S)


def _carry_out(topics: Topics, one: Plan, found: Found | None) -> None:
    if one.is_done:
        return
    topics.carry_out(one)
    name = one.wanted.topic.name
    if found is None:
        _say("created", name)
        return
    if one.partitions is not None:
        _say("changed", f"{name}: partitions {found.partitions} -> {one.partitions}")
    for key, value in (one.config or {}).items():
        _say("changed", f"{name}: {key} {found.config.get(key, 'unset')} -> {value}")


def _tell_state(one: Plan, found: Found) -> None:
    name = one.wanted.topic.name
    for text in one.kept:
        _say("kept", f"{name}: {text}")
    for text in one.refused:
        _say("refused", f"{name}: {text}")
    shown = (*one.wanted.topic.config, MIN_ISR)
    settings = " ".join(f"{key}={found.config.get(key, 'unset')}" for key in shown)
    _say("read", f"{name}: {found.partitions} partitions, {found.replication} replicas, {settings}")


def _say(what: str, text: str) -> None:
    sys.stdout.write(f"{what:<8} {text}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m weir_ingest.topics",
        description="Weir's topics. Settings are environment variables WEIR_TOPICS_<NAME>.",
        epilog=ENDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("apply", help="create what is missing, raise what is too short")
    command.add_argument(GROW, action="store_true", help="add partitions to topics that exist")
    command.add_argument(SHORTEN, action="store_true", help="shorten retentions")
    return parser


if __name__ == "__main__":
    sys.exit(main())
