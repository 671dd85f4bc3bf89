"""The command behind `make up`, `demo`, `down`, `status`, `logs`, `link` and `reset`."""

from __future__ import annotations

import argparse
import shutil
import sys

from confluent_kafka import KafkaException

from weir_local.client import ApiError
from weir_local.console import complain, in_words, say
from weir_local.home import Home
from weir_local.keeper import Keeper, keeper_part, unwatched
from weir_local.logs import logs
from weir_local.process import PartError
from weir_local.signin import sign_in_link
from weir_local.stack import Stack
from weir_local.status import rows, table
from weir_local.up import down, up


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        starting = options.command in ("up", "demo")
        return _run(options, Home.from_environment(starting=starting))
    except KafkaException as error:
        complain(f"weir: kafka refused: {error.args[0].str()}; see `make logs PART=kafka`")
        return 1
    except (PartError, ApiError, OSError) as error:
        complain(f"weir: {in_words(error)}")
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m weir_local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (("up", "start everything"), ("demo", "start everything, with real data")):
        command = commands.add_parser(name, help=what)
        command.add_argument("--detach", action="store_true", help="return when it is ready")
    commands.add_parser("down", help="stop everything")
    commands.add_parser("status", help="how each part is")
    commands.add_parser("link", help="print a new sign-in link")
    command = commands.add_parser("logs", help="what the parts write")
    command.add_argument("part", nargs="?", help="only this part")
    command.add_argument("--follow", action="store_true", help="go on until Ctrl-C")
    command = commands.add_parser("reset", help="stop and forget everything")
    command.add_argument("--yes", action="store_true", help="do not ask")
    commands.add_parser("keep", help="(internal) start again what has ended")
    return parser


def _run(options: argparse.Namespace, home: Home) -> int:
    match options.command:
        case "up" | "demo":
            return up(home, demo=options.command == "demo", detach=options.detach)
        case "down":
            down(home)
        case "status":
            say(table(rows(Stack(home))))
            if note := unwatched(home):
                say(note)
        case "link":
            _check_dashboard(home)
            say(sign_in_link(home))
        case "logs":
            logs(Stack(home), options.part or None, follow=options.follow)
        case "reset":
            return _reset(home, sure=options.yes)
        case "keep":
            Keeper(home).run()
    return 0


def _check_dashboard(home: Home) -> None:
    """Do nothing if the dashboard runs, or if the keeper is about to start it again."""
    running = Stack(home).running()
    if not running:
        msg = f"a stack must run for a link, none does in {home.folder}; run `make up`"
        raise PartError(msg)
    if "dashboard" not in running and keeper_part(home).pid() is None:
        msg = "the dashboard must run for a link, and has ended, as has its keeper; run `make up`"
        raise PartError(msg)


def _reset(home: Home, *, sure: bool) -> int:
    if not home.folder.exists():
        say(f"there is nothing in {home.folder}")
        return 0
    if not (home.folder / "secrets" / "hash_key").exists():
        msg = f"{home.folder} must be a stack's folder to be removed, found no keys in it"
        raise PartError(msg)
    if not sure:
        question = (
            f"This removes all events, numbers and keys in {home.folder}. Type yes to go on: "
        )
        if not sys.stdin.isatty():
            msg = "reset must be confirmed; run `make reset YES=1`"
            raise PartError(msg)
        if input(question).strip() != "yes":
            say("nothing was removed")
            return 1
    down(home)
    shutil.rmtree(home.folder)
    say(f"removed {home.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
