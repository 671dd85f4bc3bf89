"""`make up` and `make demo`: start, say where everything is, stay until Ctrl-C.

The stack itself runs apart from the terminal, watched by the keeper. This command
only shows what happens; when it is told to end it stops the stack first.
"""

from __future__ import annotations

import shutil
import signal
import time
from typing import TYPE_CHECKING, NoReturn

from weir_local.console import say
from weir_local.demo.prepare import put_definitions, wait_until_counting
from weir_local.keeper import keeper_part, notes_path
from weir_local.lock import only_one
from weir_local.notes import Follower
from weir_local.signin import sign_in_link
from weir_local.stack import CORE, DEMO, Stack

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

    from weir_local.home import Home

# The board of the demo that is worth looking at first.
BOARD = "/b/web"
SHORT_BYTES = 100_000_000
JOINED = "It ran already. Ctrl-C ends only what is shown here; `make down` stops the stack.\n"


def up(home: Home, *, demo: bool = False, detach: bool = False) -> int:
    """Start the stack and, unless `detach`, stay in the foreground until Ctrl-C.

    Ctrl-C stops what this command has started; a stack that ran before goes on.

    Returns:
        The exit code of the command.

    Raises:
        PartError, ApiError, OSError, KafkaException: If the stack could not be started; what
            this call started is stopped again.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    notes = Follower(notes_path(home), from_end=True)
    joined = bool(Stack(home).running())
    try:
        _start(home, demo)
        _greet(home, BOARD if demo else None)
        if detach:
            return 0
        say(JOINED if joined else "Ctrl-C stops the stack; what was accepted is kept.\n")
        return _follow(home, notes)
    except KeyboardInterrupt:
        if joined:
            say("\nleft running; `make down` stops it")
            return 0
        say("\nstopping …")
        down(home)
        return 0


def down(home: Home) -> None:
    """Stop everything cleanly and say so; nothing accepted is lost.

    A second Ctrl-C does not cut it short.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with only_one(home):
        began = time.monotonic()
        home.want([])
        keeper_part(home).stop()
        stack = Stack(home)
        running = stack.running()
        stack.stop()
        what = ", ".join(running) or "nothing ran"
        say(f"stopped ({what}) in {time.monotonic() - began:.1f} s; state is kept in {home.folder}")


def _start(home: Home, demo: bool) -> None:
    with only_one(home):
        stack = Stack(home)
        before = set(stack.running())
        missing = ", ".join(name for name in (DEMO if demo else CORE) if name not in before)
        does = "Weir runs already" if before else "starting Weir"
        say(f"{does} in {home.folder}, ports from {home.port_base}")
        if before and missing:
            say(f"started now, because it did not run: {missing}")
        try:
            _start_parts(stack, demo)
            home.want(stack.running())
            keeper_part(home).start()
        except BaseException:  # whatever it was: nothing may run that nobody watches
            stack.stop(set(stack.running()) - before)
            if not before:
                home.want([])
            raise


def _start_parts(stack: Stack, demo: bool) -> None:
    def tell(line: str) -> None:
        say(f"  {line}")

    if not demo:
        stack.start(CORE, tell)
        return
    # The definitions are put while Spark starts, so that its first plan has them all.
    stack.start(CORE, tell, meanwhile=lambda: put_definitions(stack.home, tell))
    wait_until_counting(stack.home)
    stack.launch("feeder")


def _greet(home: Home, page: str | None) -> None:
    address = f"http://127.0.0.1:{home.ports['ingest']}"
    key = home.api_key()
    say(f"""
Open      {sign_in_link(home, page)}
          (signs in once, within 10 minutes; later: `make link`)
API key   {key}
Try       curl -sS {address}/v1/events -H 'Authorization: Bearer {key}' \\
            -H 'Content-Type: application/json' \\
            -d '{{"type":"hello.world","data":{{"greeting":"it works"}}}}'
Scripts   set -a; . {home.env_file}; set +a
""")


def _follow(home: Home, notes: Follower) -> int:
    keeper = keeper_part(home)
    room = Room(home.folder)
    while home.wanted():
        if text := room.news():
            say(text)
        for note in notes.new():
            say(str(note["text"]))
        if keeper.pid() is None and home.wanted():
            say("the keeper has ended; it was started again")
            keeper.start()
        time.sleep(0.3)
    say("the stack was stopped by another command")
    return 0


class Room:
    """Looks at the space on the disk: the keeper cannot write a note when there is none."""

    def __init__(self, folder: Path) -> None:
        """Begin with enough."""
        self._folder = folder
        self._short = False

    def news(self) -> str | None:
        """Return a sentence when space has become short, once; None otherwise."""
        free = shutil.disk_usage(self._folder).free
        was, self._short = self._short, free < SHORT_BYTES
        if was or not self._short:
            return None
        return (
            f"the disk is full: {free / 1e6:.0f} MB are left for {self._folder}; free some "
            "space: nothing accepted is lost, and what has ended starts again by itself"
        )


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
