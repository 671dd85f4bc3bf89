"""`weir audit`, `replay`, `adopt`, `erase` and `jobs` against a real dashboard.

No engine runs here, so a job stays waiting: what follows it is stopped or cancelled. One
that an engine does is in tests/test_terminal.py.
"""

from __future__ import annotations

import json
import re
import signal
import time

import pytest

from .conftest import Command, finish

pytestmark = pytest.mark.stack


def test_asked_listed_cancelled(weir: Command) -> None:
    """A job is asked for with what the options say, listed, and cancelled once."""
    options = ("--last", "2h", "--sample", "5", "--seed", "0")
    asked = ("audit", "orders", *options, "--detach", "--json")
    made = json.loads(weir.do(*asked)[0])
    assert (made["job"], made["state"]) == ("audit", "waiting")
    wanted = {"job": "audit", "metrics": ["orders"], "last": "2h", "sample": 5, "seed": 0}
    assert made["asked"] == wanted | {"ledger": False, "mend": False}
    (line,) = (one for one in weir.do("jobs")[0].splitlines() if made["id"] in one)
    assert line.split()[1:3] == ["audit", "waiting"]
    assert weir.do("jobs", made["id"], "--cancel")[0] == f"audit {made['id']} cancelled\n"
    _, errors = weir.do("jobs", made["id"], "--cancel", code=1)
    assert "there is nothing to cancel" in errors
    # One that was cancelled has ended without what was asked for.
    assert "cancelled" in weir.do("jobs", made["id"], code=1)[0]


def test_who_is_erased_is_named_nowhere(weir: Command) -> None:
    """The subject is asked for as it was typed; what is told of the job has its hash alone."""
    written, errors = weir.do("erase", "jane@example.com", "--detach", "--json")
    made = json.loads(written)
    assert (made["job"], made["state"], set(made["asked"])) == (
        "erase",
        "waiting",
        {"job", "subject_hash"},
    )
    listed, _ = weir.do("jobs", "--json")
    (same,) = (one for one in map(json.loads, listed.splitlines()) if one["id"] == made["id"])
    assert same["asked"] == made["asked"]
    assert "jane" not in written + errors + listed
    other = json.loads(weir.do("erase", "john@example.com", "--detach", "--json")[0])
    assert other["asked"]["subject_hash"] != made["asked"]["subject_hash"]
    for one in (made, other):
        assert weir.do("jobs", one["id"], "--cancel")[0] == f"erase {one['id']} cancelled\n"
    _, usage = weir.do("erase", code=2)
    assert "the following arguments are required: SUBJECT" in usage


def test_asked_twice_with_one_key_is_one_job(weir: Command) -> None:
    """Without a key of the caller's each call is a job of its own."""
    words = ("replay", "--reason", "too_deep", "--dry-run", "--detach")
    keyed = [weir.do(*words, "--idempotency-key", "once")[0] for _ in range(2)]
    assert keyed[0] == keyed[1]
    own = [weir.do(*words)[0] for _ in range(2)]
    assert own[0] != own[1]
    assert re.fullmatch(r"replay k_\w+ waiting\n", own[0])


def test_what_the_dashboard_refuses(weir: Command) -> None:
    """In its words, with exit code 1."""
    _, errors = weir.do("audit", "--last", "soon", code=1)
    assert "a duration" in errors
    for option in ("--most-records", "--sample"):
        _, errors = weir.do("audit", option, "0", "--detach", code=1)
        assert "greater than or equal to 1" in errors
    _, errors = weir.do("replay", "--source", "", "--detach", code=1)
    assert "at least 1 character" in errors
    _, errors = weir.do("jobs", "nobody", code=1)
    assert 'there is no job "nobody"; see /api/v1/jobs' in errors


def test_ctrl_c_stops_the_following_alone(weir: Command) -> None:
    """The job goes on, and it is told how to come back to it."""
    process = weir.begin("adopt", "--reason", "a test")
    assert process.stderr is not None
    first = process.stderr.readline()
    job = re.fullmatch(r"adopt (k_\w+): waiting\n", first)
    assert job is not None, first
    process.send_signal(signal.SIGINT)
    _, errors = finish(process, 130)
    assert errors == f"weir: the job goes on; `weir jobs {job[1]}` follows it\n"
    assert json.loads(weir.do("jobs", job[1], "--detach", "--json")[0])["state"] == "waiting"
    weir.do("jobs", job[1], "--cancel")


def test_it_is_followed_until_it_ends(weir: Command) -> None:
    """What somebody else cancels ends for whoever follows, too."""
    process = weir.begin("replay")
    assert process.stderr is not None
    job_id = process.stderr.readline().split()[1].rstrip(":")
    weir.do("jobs", job_id, "--cancel")
    begun_s = time.monotonic()
    written, errors = finish(process, 1)
    assert written == f"replay {job_id} cancelled\n"
    assert errors == f"replay {job_id}: cancelled\n"
    assert time.monotonic() - begun_s < 30
