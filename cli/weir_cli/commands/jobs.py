"""`weir audit`, `replay`, `erase`, `adopt`: work that the engine does between live batches.

Each asks for a job and follows it to its end; `--detach` returns at once with its id, and
`weir jobs ID` follows it later. Ctrl-C stops the following, not the job. Asked again with
the same `--idempotency-key` it is the same job.
"""

from __future__ import annotations

import argparse
import json
import secrets
from types import SimpleNamespace
from typing import Any

from weir_cli import exits
from weir_cli.api import Answer, Api, UnreachedError, quoted
from weir_cli.following import Progress, follow
from weir_cli.options import SENDABLE, add_command, reached
from weir_cli.telling import complain, instant, refuse, say, say_json, say_list
from weir_cli.uncompared import uncompared


def _add_job(commands: Any, name: str, says: str, about: str) -> Any:
    command = add_command(commands, name, says=says, about=about)
    command.add_argument("--detach", action="store_true", help="do not wait for its end")
    command.add_argument(
        "--idempotency-key", metavar="TEXT", help="asked again with it, it is the same job"
    )
    command.set_defaults(run=run, job=name)
    return command


def _add_audit(commands: Any) -> None:
    about = """`weir audit [METRIC…]`: recount panes from the log, compare them with what is served.

Instants are drawn at random; the pane of each resolution that holds one is recounted, with
all its series. A difference ends with exit code 4, and is named. Where nothing was compared, of
all or of one that was asked for, it ends with exit code 6, and says why."""
    command = _add_job(commands, "audit", "compare what is served with a recount of the log", about)
    command.add_argument("metrics", nargs="*", metavar="METRIC", help="by default every metric")
    command.add_argument("--last", metavar="LENGTH", help="how far back; by default 1h")
    command.add_argument("--recent", metavar="LENGTH", help="draw half of the instants of so much")
    command.add_argument(
        "--most-records", type=int, metavar="N", help="go no further back than so many records"
    )
    command.add_argument("--sample", type=int, metavar="N", help="how many instants; by default 20")
    command.add_argument("--ledger", action="store_true", help="compare the ledger, too")
    command.add_argument("--seed", type=int, metavar="N", help="of the draw, to repeat one")
    command.add_argument("--mend", action="store_true", help="count a metric that differs again")


def _add_replay(commands: Any) -> None:
    about = """`weir replay`: put records that were quarantined whole back into the log, once each.

They keep their identity and event time, so they count in their own panes. Mend what made
them unusable first; `--dry-run` says what would become of each."""
    command = _add_job(commands, "replay", "put quarantined records back into the log", about)
    command.add_argument("--reason", metavar="CODE", help="only those quarantined for this")
    command.add_argument("--source", metavar="NAME", help="only those of this source")
    command.add_argument("--since", metavar="INSTANT", help="only those received since then")
    command.add_argument("--until", metavar="INSTANT", help="only those received before")
    command.add_argument("--dry-run", action="store_true", help="put nothing back")


def _add_adopt(commands: Any) -> None:
    about = """`weir adopt --reason TEXT`: go on with a log to which the state does not belong.

For after the verdict FOREIGN, when Kafka was made anew or lost records: the engine stands still
until somebody says so. What is given up is recorded and told. It cannot be undone."""
    command = _add_job(commands, "adopt", "go on with a foreign log, giving up what is gone", about)
    command.add_argument("--reason", required=True, metavar="TEXT", help="why, for later")


def _add_erase(commands: Any) -> None:
    about = """`weir erase SUBJECT`: count the events about somebody no more.

Events whose attribute `subject` it is are accounted as erased from then on, and every metric is
counted anew from the log without them. Needs the scope admin. It cannot be undone."""
    command = _add_job(commands, "erase", "count a subject no more, and all without it", about)
    command.add_argument("subject", metavar="SUBJECT", help="as in the events' `subject`")


def _add_jobs(commands: Any) -> None:
    about = """`weir jobs [ID]`: all jobs, or one, which is followed to its end."""
    command = add_command(commands, "jobs", says="list, follow and cancel jobs", about=about)
    command.add_argument("id", nargs="?", metavar="ID", help="by default all are listed")
    command.add_argument("--cancel", action="store_true", help="cancel it; what it has done stays")
    command.add_argument("--detach", action="store_true", help="tell it once, do not wait")
    command.set_defaults(run=run_jobs)


AUDIT, REPLAY, ADOPT, ERASE, JOBS = (
    SimpleNamespace(add=add) for add in (_add_audit, _add_replay, _add_adopt, _add_erase, _add_jobs)
)
ARGUMENTS = {
    "audit": ("metrics", "last", "recent", "most_records", "sample", "ledger", "seed", "mend"),
    "replay": ("reason", "source", "since", "until", "dry_run"),
    "adopt": ("reason",),
    "erase": ("subject",),
}
"""Job -> its arguments, which the options are called after."""


def run(asked: argparse.Namespace) -> int:
    """Ask for a job and follow it; return the exit code.

    Raises:
        UsageError: If address or key cannot be used.
        UnreachedError: If the dashboard did not answer in time.
    """
    if not SENDABLE.fullmatch(asked.idempotency_key or ""):
        msg = (
            f"--idempotency-key must be of ASCII signs, got {asked.idempotency_key!r}; choose"
            " another text"
        )
        raise exits.UsageError(msg)
    # With a key of its own a request whose answer was lost is sent again without harm.
    key = asked.idempotency_key or secrets.token_hex(16)
    api = reached(asked)
    answer = api.call("POST", "/jobs", asked_for(asked), {"Idempotency-Key": key})
    return _followed(api, answer, asked)


def asked_for(asked: argparse.Namespace) -> dict[str, Any]:
    """Return the job that the options say.

    What was typed is asked for, be it 0 or an empty text: it is for the dashboard to refuse that.
    """
    given = {name: getattr(asked, name) for name in ARGUMENTS[asked.job]}
    # What was not typed is None, of a flag False, of a list of names empty.
    typed = {
        name: value
        for name, value in given.items()
        if value is not None and value is not False and value != []
    }
    return {"job": asked.job, **typed}


def run_jobs(asked: argparse.Namespace) -> int:
    """List jobs, or follow or cancel one; return the exit code.

    Raises:
        UsageError: If the options do not go together, or address or key cannot be used.
        UnreachedError: If the dashboard did not answer in time.
    """
    if asked.id is None:
        if asked.cancel:
            msg = "--cancel must say which job, got no ID; `weir jobs` lists them"
            raise exits.UsageError(msg)
        columns = ("id", "job", "state", "asked", "by")
        return say_list(reached(asked).call("GET", "/jobs"), columns, _row, as_json=asked.json)
    api = reached(asked)
    if asked.cancel:
        answer = api.call("DELETE", f"/jobs{quoted(asked.id)}")
        if answer.is_ok:
            _tell(answer.body, as_json=asked.json)
            return exits.DONE
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    return _followed(api, api.call("GET", f"/jobs{quoted(asked.id)}"), asked)


def _followed(api: Api, answer: Answer, asked: argparse.Namespace) -> int:
    if not answer.is_ok:
        refuse(answer, as_json=asked.json)
        return exits.REFUSED
    if not asked.detach:
        job_id, progress = answer.body["id"], Progress()
        goes_on = f"the job goes on; `weir jobs {job_id}` follows it"
        try:
            answer = follow(api, answer.body, progress)
        except KeyboardInterrupt:
            complain(goes_on)
            raise
        except UnreachedError as error:
            error.job = job_id
            error.add_note(goes_on)
            raise
        finally:
            progress.end()
        if not answer.is_ok:
            refuse(answer, as_json=asked.json, job=job_id)
            complain(goes_on)
            return exits.REFUSED
    _tell(answer.body, as_json=asked.json)
    return ended_with(answer.body)


def ended_with(job: dict[str, Any]) -> int:
    """Return the exit code of a job as it stands."""
    if job["state"] in ("failed", "cancelled"):
        return exits.REFUSED
    outcome = job.get("outcome") or {}
    if "verified" not in outcome:
        return exits.DONE
    if outcome["verified"] is False:
        return exits.DIFFERENT
    is_all = outcome["verified"] and not outcome.get("not_compared")
    return exits.DONE if is_all else exits.NOT_COMPARED


def _row(job: dict[str, Any]) -> list[str]:
    return [job["id"], job["job"], job["state"], instant(job["at_ms"]), job["by"]]


def _tell(job: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        say_json(job)
        return
    say(f"{job['job']} {job['id']} {job['state']}")
    outcome = job.get("outcome") or {}
    for name, value in outcome.items():
        for line in _lines(name, value):
            say(f"  {line}")
    for text in uncompared(outcome):
        complain(text)
    if missing := outcome.get("not_copied"):
        complain(
            f"{missing:,} more records that nobody could use have no copy, and a replay takes "
            "copies only; the ledger counts all, and their sender has to send them again"
        )


def _lines(name: str, value: Any) -> list[str]:
    """Return a member of an outcome as lines; each item of a list on one of its own."""
    shown = instant(value) if name.endswith("_ms") and isinstance(value, int) else value
    name = name.removesuffix("_ms").replace("_", " ")
    if not isinstance(value, list):
        text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
        return [f"{name}: {text}"]
    items = [f"  {json.dumps(one, ensure_ascii=False)}" for one in value]
    return [f"{name}: {len(value)}", *items]
