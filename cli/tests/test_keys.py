"""`weir keys`: what is asked for, and that a key is all that standard output gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from weir.definitions.key import SCOPES
from weir_cli.commands import keys

from .conftest import Command, finish
from .serving import Given, Served, serving

NOW_MS = 1_800_000_000_000
SHOWN = "wk_new00001_" + "s" * 43
KEY: dict[str, Any] = {
    "id": "new00001",
    "label": "web shop",
    "scopes": ["ingest", "read"],
    "source": "web",
    "created_ms": NOW_MS,
    "created_by": "key:admin001",
    "expires_ms": None,
    "events_per_s": None,
    "bytes_per_s": None,
    "last_used_ms": None,
}
MADE = KEY | {"key": SHOWN}
ROTATED = MADE | {"old_id": "old00001", "old_expires_ms": NOW_MS + 86_400_000}
LIMITED = KEY | {
    "id": "old00001",
    "label": "",
    "scopes": ["ingest"],
    "expires_ms": NOW_MS + 86_400_000,
    "events_per_s": 1_500,
    "bytes_per_s": 2_000_000,
    "last_used_ms": NOW_MS - 1_000,
}
SESSION: Given = (200, {"signed_in": True}, {})
REFUSAL = {"code": "scope_missing", "message": "a key cannot open more than its maker's"}


def answered(
    tmp_path: Path, given: Given, *words: str, code: int = 0
) -> tuple[str, str, list[tuple[str, str, Any]]]:
    """Return what the command writes, what it complains of, and what it asked for."""

    def by(method: str, path: str, _: Any) -> Given:
        return SESSION if (method, path) == ("GET", "/api/v1/session") else given

    with serving(by=by) as served:
        written, errors = Command(tmp_path, served.url, "key").do("keys", *words, code=code)
    return written, errors, [one for one in served.asked if one[1] != "/api/v1/session"]


class TestListed:
    def test_as_a_table(self, tmp_path: Path) -> None:
        """What there is none of is a dash, and what never ends says so."""
        body = {"items": [KEY, LIMITED]}
        written, errors, asked = answered(tmp_path, (200, body, {}))

        assert asked == [("GET", "/api/v1/keys", 0)]
        assert errors == ""
        assert written == (
            "id        label     scopes        source  made                  expires             "
            "  events/s  bytes/s    last used\n"
            "new00001  web shop  ingest, read  web     2027-01-15 08:00:00Z  never               "
            "  -         -          -\n"
            "old00001  -         ingest        web     2027-01-15 08:00:00Z  2027-01-16 08:00:00Z"
            "  1,500     2,000,000  2027-01-15 07:59:59Z\n"
        )

    def test_for_programs(self, tmp_path: Path) -> None:
        """An object a line, as the dashboard has it."""
        written, _, _ = answered(tmp_path, (200, {"items": [KEY, LIMITED]}, {}), "--json")
        assert [json.loads(line) for line in written.splitlines()] == [KEY, LIMITED]


class TestNew:
    def test_the_key_alone(self, tmp_path: Path) -> None:
        """On standard output, so that it can be captured; what it is stands beside it."""
        written, errors, asked = answered(
            tmp_path, (201, MADE, {}), "new", "--scope", "ingest", "--scope", "read"
        )
        assert asked == [("POST", "/api/v1/keys", {"scopes": ["ingest", "read"]})]
        assert written == f"{SHOWN}\n"
        assert errors == ("weir: key new00001 of source web with ingest, read, shown this once\n")

    def test_all_that_can_be_said(self, tmp_path: Path) -> None:
        """It is asked for as it was typed; the dashboard refuses what it does not take."""
        options = "--source web --label= --expires soon --events-per-s 0 --bytes-per-s 7"
        ends = MADE | {"expires_ms": NOW_MS}
        _, errors, asked = answered(
            tmp_path, (201, ends, {}), "new", "--scope", "ingest", *options.split()
        )
        assert asked[0][2] == {
            "scopes": ["ingest"],
            "source": "web",
            "label": "",
            "expires": "soon",
            "events_per_s": 0,
            "bytes_per_s": 7,
        }
        assert errors.endswith("with ingest, read until 2027-01-15 08:00:00Z, shown this once\n")

    def test_for_programs(self, tmp_path: Path) -> None:
        """The answer, the key among it, and nothing beside."""
        written, errors, _ = answered(tmp_path, (201, MADE, {}), "new", "--scope", "read", "--json")
        assert (json.loads(written), errors) == (MADE, "")

    def test_a_refusal_leaves_standard_output_empty(self, tmp_path: Path) -> None:
        """What captures it gets no key."""
        written, errors, _ = answered(
            tmp_path, (403, REFUSAL, {}), "new", "--scope", "admin", code=1
        )
        assert (written, errors) == ("", f"weir: {REFUSAL['message']}\n")

    def test_nobody_reads(self, tmp_path: Path) -> None:
        """A key that nobody has seen should not live on."""
        with serving(by=lambda method, *_: SESSION if method == "GET" else (201, MADE, {})) as at:
            process = Command(tmp_path, at.url, "key").begin("keys", "new", "--scope", "read")
            assert process.stdout is not None
            process.stdout.close()
            process.stdout = None
            _, errors = finish(process)
        assert errors.endswith("weir: nobody has read it; `weir keys revoke new00001` ends it\n")


class TestRotate:
    @pytest.mark.parametrize(
        ("options", "body"),
        [
            ([], {}),
            (["--overlap", "0s"], {"overlap": "0s"}),
            (["--overlap", "2d", "--expires", "x"], {"overlap": "2d", "expires": "x"}),
        ],
    )
    def test_the_key_alone(self, tmp_path: Path, options: list[str], body: Any) -> None:
        """Standard error says when the old one ends."""
        written, errors, asked = answered(
            tmp_path, (201, ROTATED, {}), "rotate", "old00001", *options
        )
        assert asked == [("POST", "/api/v1/keys/old00001/rotate", body)]
        assert written == f"{SHOWN}\n"
        assert errors == (
            "weir: key new00001 of source web with ingest, read, shown this once, in place of "
            "old00001, which expires at 2027-01-16 08:00:00Z\n"
        )

    def test_an_id_that_is_none(self, tmp_path: Path) -> None:
        """It leads to no other route, and is refused in the dashboard's words."""
        none: Given = (404, {"message": "there is no such key"}, {})
        written, errors, asked = answered(tmp_path, none, "rotate", "a/../b", code=1)
        assert asked[0][1] == "/api/v1/keys/a%2F..%2Fb/rotate"
        assert (written, errors) == ("", "weir: there is no such key\n")


class TestRevoke:
    def test_it_is_told(self, tmp_path: Path) -> None:
        """With JSON as the key was."""
        written, _, asked = answered(tmp_path, (200, KEY, {}), "revoke", "new00001")
        assert asked == [("DELETE", "/api/v1/keys/new00001", 0)]
        assert written == "key new00001 revoked: it is refused everywhere within 60 s\n"
        written, _, _ = answered(tmp_path, (200, KEY, {}), "revoke", "new00001", "--json")
        assert json.loads(written) == KEY


class TestSentOnce:
    def tries(self, served: Served) -> list[str]:
        """Return what was asked, in order."""
        return [f"{method} {path.removeprefix('/api/v1')}" for method, path, _ in served.asked]

    def test_a_dashboard_that_comes_up_is_waited_for(self, tmp_path: Path) -> None:
        """Before anything is made."""
        away: Given = (503, {"message": "not yet"}, {})
        with serving(away, SESSION, (201, MADE, {})) as served:
            words = ("keys", "new", "--scope", "read", "--wait", "20")
            written, _ = Command(tmp_path, served.url, "key").do(*words)
        assert written == f"{SHOWN}\n"
        assert self.tries(served) == ["GET /session", "GET /session", "POST /keys"]

    @pytest.mark.parametrize("words", [("new", "--scope", "read"), ("rotate", "old00001")])
    def test_what_may_be_made_is_not_made_twice(
        self, tmp_path: Path, words: tuple[str, ...]
    ) -> None:
        """Also if it may be waited: the answer says neither yes nor no."""
        lost: Given = (503, {"message": "it may stand or not"}, {})
        with serving(SESSION, lost) as served:
            command = Command(tmp_path, served.url, "key")
            written, errors = command.do("keys", *words, "--wait", "20", code=3)
        assert written == ""
        assert errors.endswith(
            "must answer, answered 503: it may stand or not; whether it is done is not known: look "
            "before it is asked for again\n"
        )
        assert len(served.asked) == 2

    def test_over_the_quota_it_is_not_made(self, tmp_path: Path) -> None:
        """So it is asked for again, once it may be."""
        over = {"code": "rate_limited", "message": "a tenant must make at most 9 changes an hour"}
        later = {"Retry-After": "1", "RateLimit-Policy": '"changes";q=9;w=3600'}
        with serving(SESSION, (429, over, later), (201, MADE, {})) as served:
            written, errors = Command(tmp_path, served.url, "key").do(
                "keys", "new", "--scope", "read"
            )
        assert written == f"{SHOWN}\n"
        assert errors.splitlines()[0] == (
            f"weir: {over['message']}; waiting to do so, an hour at most"
        )

    def test_a_wrong_key_makes_nothing(self, tmp_path: Path) -> None:
        """It is refused before."""
        with serving((401, {"message": "this needs a valid API key"}, {})) as served:
            _, errors = Command(tmp_path, served.url, "key").do(
                "keys", "new", "--scope", "read", code=1
            )
        assert errors == "weir: this needs a valid API key\n"
        assert self.tries(served) == ["GET /session"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("rotate", "a key to rotate must be said by its ID, got none; `weir keys` lists them"),
        ("revoke", "a key to revoke must be said by its ID, got none; `weir keys` lists them"),
        ("new abc --scope read", 'must be left its ID to the dashboard, got "abc"; leave it out'),
        ("new", "a new key must open something, got no --scope; give one or more of ingest, read"),
        ("--label x", "--label must come with `weir keys new`, got it without"),
        ("rotate a --scope read", "--scope must come with `weir keys new`, got it without"),
        ("revoke a --expires x", "--expires must come with `weir keys new`, `weir keys rotate`,"),
        ("new --scope read --overlap 1h", "--overlap must come with `weir keys rotate`, got it"),
        ("rotate a --bytes-per-s 0", "--bytes-per-s must come with `weir keys new`, got it"),
        ("new --scope root", "argument --scope: invalid choice: 'root'"),
        ("renew", "argument do: invalid choice: 'renew'"),
        ("new --scope read --events-per-s many", "--events-per-s: invalid int value: 'many'"),
    ],
)
def test_words_that_do_not_go_together(tmp_path: Path, words: str, why: str) -> None:
    """Nothing is sent then."""
    command = Command(tmp_path, "http://127.0.0.1:1", "key")
    written, errors = command.do("keys", *words.split(), code=2)
    assert why in errors
    assert written == ""


def test_the_scopes_are_those_that_a_key_may_have() -> None:
    """The command does not load the schema, which takes longer than it does."""
    assert keys.SCOPES == SCOPES


@pytest.mark.stack
def test_a_key_from_its_making_to_its_end(weir: Command) -> None:
    """Made, used, replaced and revoked at a real dashboard."""
    told = ("--source", "shop", "--label", "the shop", "--events-per-s", "5")
    key = weir.do("keys", "new", "--scope", "read", *told)[0].strip()
    key_id = key.split("_")[1]

    def row(key_id: str) -> dict[str, Any]:
        listed = map(json.loads, weir.do("keys", "--json")[0].splitlines())
        (found,) = (one for one in listed if one["id"] == key_id)
        return dict(found)

    assert (row(key_id)["label"], row(key_id)["events_per_s"]) == ("the shop", 5)
    mine = Command(weir.folder, weir.url, key)
    mine.do("get")
    _, errors = mine.do("keys", code=1)
    assert 'this needs the scope "admin"' in errors

    new = weir.do("keys", "rotate", key_id, "--overlap", "1h")[0].strip()
    assert row(new.split("_")[1])["label"] == "the shop"
    assert row(key_id)["expires_ms"] is not None
    for one in (key, new):
        Command(weir.folder, weir.url, one).do("get")
    weir.do("keys", "revoke", key_id)
    assert "valid API key" in mine.do("get", code=1)[1]
    assert "there is no such key" in weir.do("keys", "revoke", key_id, code=1)[1]
    past = ("--scope", "read", "--expires", "2020-01-01T00:00:00Z")
    assert "must be an instant later than now" in weir.do("keys", "new", *past, code=1)[1]
