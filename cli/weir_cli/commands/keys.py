"""`weir keys [new|rotate ID|revoke ID]`: list API keys, make, replace and revoke them.

A new key is all that standard output gets, this once, so that a script can take it; what else
there is to say of it goes to standard error.

$ (umask 077; weir keys new --scope ingest --source web --events-per-s 500 > web.key)
$ (umask 077; weir keys rotate c3fa90b1 --overlap 48h > new.key)

`rotate` makes a key with the scopes, source, label and limits of another one, which is good for
--overlap more: let clients change over meanwhile. Both are stored together, or neither is. A
request that makes a key is sent once: where its answer is lost, `weir keys` lists what was made,
and `rotate` of the old key makes another one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final

from weir_cli import exits
from weir_cli.api import Answer, Api, quoted
from weir_cli.options import add_command, reached
from weir_cli.telling import complain, instant, refuse, say, say_json, say_list

SCOPES: Final = ("ingest", "read", "tail", "define", "operate", "admin")
OF_A_NEW_ONE: Final = ("scope", "source", "label", "expires", "events_per_s", "bytes_per_s")
TAKES: Final[dict[str | None, tuple[str, ...]]] = {
    None: (),
    "new": OF_A_NEW_ONE,
    "rotate": ("overlap", "expires"),
    "revoke": (),
}
"""What is done -> the options that go with it, as argparse calls them."""
COLUMNS: Final = (
    *("id", "label", "scopes", "source", "made"),
    *("expires", "events/s", "bytes/s", "last used"),
)


def add(commands: Any) -> None:
    """Add the command to the parser."""
    says = "list, make, replace and revoke API keys"
    command = add_command(commands, "keys", says=says, about=__doc__)
    command.add_argument(
        "do", nargs="?", choices=("new", "rotate", "revoke"), help="by default all are listed"
    )
    command.add_argument("id", nargs="?", metavar="ID", help="which, to rotate or revoke it")
    command.add_argument(
        "--scope", action="append", choices=SCOPES, help="what a new key opens; may be repeated"
    )
    command.add_argument("--source", metavar="NAME", help="whose events it sends; by default http")
    command.add_argument("--label", metavar="TEXT", help="what people call it")
    command.add_argument(
        "--expires", metavar="INSTANT", help="from when on it is refused; by default never"
    )
    command.add_argument(
        "--events-per-s", type=int, metavar="N", help="events a second that it may send"
    )
    command.add_argument(
        "--bytes-per-s", type=int, metavar="N", help="bytes of decoded bodies a second"
    )
    command.add_argument(
        "--overlap",
        metavar="LENGTH",
        help="how long the old key is good beside the new one, 30d at most; by default 24h",
    )
    command.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """List keys, or do something about one; return the exit code.

    Raises:
        UsageError: If the words do not go together, or address or key cannot be used.
        UnreachedError: If the dashboard did not answer in time.
    """
    _check(asked)
    doing: dict[str | None, Callable[[Api, argparse.Namespace], int]] = {
        None: _list,
        "new": _make,
        "rotate": _rotate,
        "revoke": _revoke,
    }
    return doing[asked.do](reached(asked), asked)


def _check(asked: argparse.Namespace) -> None:
    """Check that the words go together.

    Raises:
        UsageError: If they do not; it says which.
    """
    if asked.do in ("rotate", "revoke") and asked.id is None:
        msg = f"a key to {asked.do} must be said by its ID, got none; `weir keys` lists them"
        raise exits.UsageError(msg)
    if asked.do == "new" and asked.id is not None:
        msg = f'a new key must be left its ID to the dashboard, got "{asked.id}"; leave it out'
        raise exits.UsageError(msg)
    if asked.do == "new" and not asked.scope:
        msg = (
            f"a new key must open something, got no --scope; give one or more of {_listed(SCOPES)}"
        )
        raise exits.UsageError(msg)
    for name in (*OF_A_NEW_ONE, "overlap"):
        if getattr(asked, name) is not None and name not in TAKES[asked.do]:
            goes = _listed([f"`weir keys {do}`" for do, takes in TAKES.items() if name in takes])
            msg = f"--{name.replace('_', '-')} must come with {goes}, got it without"
            raise exits.UsageError(msg)


def _listed(words: Any) -> str:
    return ", ".join(words)


def _given(asked: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the options that were typed; what they are worth is for the dashboard to say."""
    return {name: value for name in names if (value := getattr(asked, name)) is not None}


def _list(api: Api, asked: argparse.Namespace) -> int:
    return say_list(api.call("GET", "/keys"), COLUMNS, _row, as_json=asked.json)


def _make(api: Api, asked: argparse.Namespace) -> int:
    body = {"scopes": asked.scope, **_given(asked, *OF_A_NEW_ONE[1:])}
    answer = api.make("/keys", body)
    return _show(answer, asked, lambda key: f"key {key['id']} {_opens(key)}, shown this once")


def _rotate(api: Api, asked: argparse.Namespace) -> int:
    answer = api.make(f"/keys{quoted(asked.id)}/rotate", _given(asked, "overlap", "expires"))

    def said(key: dict[str, Any]) -> str:
        ends = f"which expires at {instant(key['old_expires_ms'])}"
        return (
            f"key {key['id']} {_opens(key)}, shown this once, in place of {key['old_id']}, {ends}"
        )

    return _show(answer, asked, said)


def _revoke(api: Api, asked: argparse.Namespace) -> int:
    answer = api.call("DELETE", f"/keys{quoted(asked.id)}")
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    if asked.json:
        say_json(answer.body)
    else:
        say(f"key {asked.id} revoked: it is refused everywhere within 60 s")
    return exits.DONE


def _show(answer: Answer, asked: argparse.Namespace, said: Callable[[dict[str, Any]], str]) -> int:
    """Write a key that was made, and what it is; return the exit code."""
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    key = answer.body
    is_read = say_json(key) if asked.json else say(key["key"])
    if not asked.json:
        complain(said(key))
    if not is_read:
        complain(f"nobody has read it; `weir keys revoke {key['id']}` ends it")
    return exits.DONE


def _opens(key: dict[str, Any]) -> str:
    """Return what a key is good for, in words."""
    opens = f"of source {key['source']} with {_listed(key['scopes'])}"
    ends_ms = key["expires_ms"]
    return opens if ends_ms is None else f"{opens} until {instant(ends_ms)}"


def _row(key: dict[str, Any]) -> list[str]:
    made = (key["id"], key["label"] or "-", _listed(key["scopes"]), key["source"])
    limits = (key.get("events_per_s"), key.get("bytes_per_s"))
    return [
        *made,
        instant(key["created_ms"]),
        _at(key.get("expires_ms"), "never"),
        *("-" if limit is None else f"{limit:,}" for limit in limits),
        _at(key.get("last_used_ms"), "-"),
    ]


def _at(at_ms: int | None, unknown: str) -> str:
    return unknown if at_ms is None else instant(at_ms)
