"""The parser and what is made from it: the page, and the completion of shells."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from glob import glob
from pathlib import Path

import pytest
from weir.audited import Bound, Lack
from weir.definitions.kinds import KINDS
from weir_cli.__main__ import main, parser
from weir_cli.commands import COMMANDS
from weir_cli.commands.jobs import asked_for, ended_with
from weir_cli.commands.query import condition, how_old, lines_of
from weir_cli.completing import SHELLS, WRITTEN, words_of
from weir_cli.exits import MEANINGS, UsageError
from weir_cli.following import line_of
from weir_cli.reference import written
from weir_cli.uncompared import NOT_DRAWN, WHY, uncompared

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_what_the_parser_says() -> None:
    """After a change of a command: `python -m weir_cli.reference docs/cli.md`."""
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page


def test_every_argument_is_explained() -> None:
    """Each command, option and exit code has its sentence."""
    (subparsers,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    assert len(subparsers.choices) == len(COMMANDS)
    for name, command in subparsers.choices.items():
        assert command.description, name
        assert [a.dest for a in command._actions if not a.help] == [], name
    assert sorted(MEANINGS) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 130]


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_completion_knows_every_word(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command and each option is in it."""
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for name, command in words_of(parser()).items():
        assert name in text
        for option in command.options:
            spelled = max(option.names, key=len)
            assert (spelled[2:] if shell == "fish" else spelled) in text, (name, spelled)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["weir", ""], {"apply", "top", "completion", "--help"}),
        (["weir", "ro"], {"rollback"}),
        (["weir", "rollback", "--t"], {"--to", "--timeout"}),
        (["weir", "apply", "--fo"], {"--follow"}),
        (["weir", "rollback", "me"], {"metric/"}),
        (["weir", "get", "bo"], {"board"}),
        (["weir", "query", "--kind", "s"], {"sliding"}),
        (["weir", "query", "--last", ""], set()),
        (["weir", "completion", "f"], {"fish"}),
        (["weir", "keys", "ro"], {"rotate"}),
        (["weir", "send", "--format", "n"], {"ndjson"}),
        (["weir", "send", "--state", "/etc/host"], set(glob("/etc/host*"))),
        (["weir", "keys", "new", "--scope", "o"], {"operate"}),
        (["weir", "keys", "rotate", "--o"], {"--overlap"}),
        (["weir", "query", "--kind", "=", "s"], {"sliding"}),
        (["weir", "query", "--kind", "="], {"tumbling", "hopping", "sliding"}),
        (["weir", "apply", "--file", "=", "/etc/host"], set(glob("/etc/host*"))),
    ],
)
def test_bash_offers(typed: list[str], offered: set[str]) -> None:
    """What a real bash is given to offer, at the last word."""
    words = " ".join(f"'{word}'" for word in typed)
    script = (
        f"{SHELLS['bash'](words_of(parser()))}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}\n"
        '_weir; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)  # noqa: S603, S607
    found = set(done.stdout.split())
    assert found == offered if typed[-1] or not offered else offered <= found


def test_zsh_adds_no_space_after_a_kind() -> None:
    """A name follows the slash; where all of a kind may be meant, the word ends."""
    commands = words_of(parser())
    text = SHELLS["zsh"](commands)
    assert '\'*:word:compadd -S "" -- board/ channel/ metric/ ' in text
    assert "'*:word:(board channel metric " in text


def test_files_are_completed_where_a_command_takes_them() -> None:
    """Of `send` they are the arguments themselves; fish offers none unless it is told."""
    told = SHELLS["fish"](words_of(parser())).splitlines()
    forced = [line for line in told if line.endswith(" -F") and " -l " not in line]
    assert forced == ["complete -c weir -n '__fish_seen_subcommand_from send' -F"]


def test_it_completes_what_is_written_as_a_definition() -> None:
    """Every kind but those that have routes of their own."""
    assert set(WRITTEN) == set(KINDS) - {"key", "job"}


def test_it_starts_without_what_only_top_needs() -> None:
    """Loading the schema of definitions, or sockets, takes longer than most commands take."""
    slow = "numpy", "sqlglot", "pydantic", "websockets"
    tell = f"import sys, weir_cli.__main__; print([n for n in {slow} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"


def test_conditions() -> None:
    """The sign that comes first decides; what has none is refused."""
    assert condition("route=/pay") == ["route", "=", "/pay"]
    assert condition("route!=/a=b") == ["route", "!=", "/a=b"]
    assert condition("route~/x=%") == ["route", "like", "/x=%"]
    assert condition("data.b=") == ["data.b", "=", ""]
    for wrong in ("route", "=x", ""):
        with pytest.raises(UsageError, match="must be name=value"):
            condition(wrong)


def test_an_answer_as_a_table() -> None:
    """A line for each window of each series; what is not known is a dash, never 0."""
    series = {"k": 0, "by": {"country": None}, "value": [1.5, None], "low": [1.0, None],
              "high": [2.0, None], "count": [3, None], "state": "fi"}  # fmt: skip
    answer = {"series": [series], "t_ms": [1_800_000_000_000, 1_800_000_010_000]}
    assert lines_of(answer) == [
        "window ends           country  value  low  high  events",
        "2027-01-15 08:00:00Z  -        1.5    1    2     3       final",
        "2027-01-15 08:00:10Z  -        -      -    -     -       incomplete",
    ]
    assert lines_of({"series": [], "t_ms": []}) == [
        "no series: nothing of this metric is counted in that time"
    ]


@pytest.mark.parametrize(
    ("fresh", "words"),
    [
        ({"status": "live", "since_ms": None, "part": None}, None),
        ({}, None),
        (
            {"status": "stale", "since_ms": 1_800_000_000_000, "part": "panes"},
            "the numbers are stale since 2027-01-15 08:00:00Z, because of panes",
        ),
        ({"status": "behind", "since_ms": None, "part": None}, "the numbers are behind"),
        (
            {"status": "rebuilding", "since_ms": None, "part": None, "progress": 0.625},
            "the numbers are being counted again, 62% done; some are missing until then",
        ),
    ],
)
def test_since_when_numbers_are_old(fresh: dict[str, object], words: str | None) -> None:
    """Told where they are; of live ones, and where nobody says, nothing is."""
    assert how_old(fresh) == words


def test_how_far_a_job_is() -> None:
    """A bar while it runs, and its state alone before and after."""
    job = {"id": "j_1", "job": "audit", "state": "waiting", "progress": None}
    assert line_of(job) == "audit j_1: waiting"
    running = {**job, "state": "running", "progress": {"at": 1_500, "of": 3_000}}
    assert (
        line_of(running) == f"audit j_1: running {'█' * 15}{'░' * 15} 50%, 1,500 of 3,000 records"
    )
    assert line_of({**running, "state": "done"}) == "audit j_1: done"
    waits = {**running, "progress": None, "waits_for": "2 metrics are being counted again"}
    assert line_of(waits) == "audit j_1: running, 2 metrics are being counted again"
    assert line_of({**running, "progress": {"at": 0, "of": 0}}) == "audit j_1: running"


def test_what_a_job_ends_with() -> None:
    """A difference is told apart from a failure, and both from an audit that says nothing."""
    assert ended_with({"state": "done", "outcome": {"verified": True}}) == 0
    assert ended_with({"state": "done", "outcome": {"verified": False}}) == 4
    assert ended_with({"state": "done", "outcome": {"replayed": 3}}) == 0
    assert ended_with({"state": "failed", "outcome": {"error": "no"}}) == 1
    assert ended_with({"state": "cancelled", "outcome": None}) == 1
    assert ended_with({"state": "waiting", "outcome": None}) == 0
    all_of_it = {"verified": True, "not_compared": []}
    assert ended_with({"state": "done", "outcome": all_of_it}) == 0
    for said in ({"verified": None}, all_of_it | {"not_compared": ["orders"]}):
        assert ended_with({"state": "done", "outcome": said}) == 6
        assert ended_with({"state": "done", "outcome": said | {"verified": False}}) == 4


def test_what_was_not_compared_is_told() -> None:
    """By name, with why and what to do: panes, or the ledger, and what has lost only some."""
    whole = {"metric": "whole", "panes": 40, "left_out": 0, "overtaken": 0}
    some = [
        {"metric": "large", "panes": 0, "left_out": 40, "overtaken": 0},
        {"metric": "gone", "panes": 0, "left_out": 0, "overtaken": 9},
        {"metric": "partly", "panes": 1, "left_out": 39, "overtaken": 0},
    ]
    outcome = {
        "verified": True,
        "bounded_by": "records",
        "not_compared": ["large", "old", "older", "gone", "the ledger"],
        "metrics": [whole, *some],
        "ledger": {"verified": None, "minutes": 0, "left_out": 0, "overtaken": 0},
    }
    assert list(uncompared(outcome)) == [
        f"nothing of large was compared: {WHY[Lack.LEFT_OUT]}",
        f"nothing of old, older, the ledger was compared: {NOT_DRAWN[Bound.RECORDS]}",
        f"nothing of gone was compared: {WHY[Lack.OVERTAKEN]}",
        "only some panes of partly were compared: its `left_out` says for how many there"
        " was no room, its `overtaken` how many retention took",
    ]
    nothing = {"verified": None, "not_compared": [], "metrics": [whole]}
    assert next(iter(uncompared(nothing))).startswith("nothing was compared: there is no event")
    for said in ({"replayed": 3}, {}, {"verified": True, "not_compared": [], "metrics": [whole]}):
        assert list(uncompared(said)) == []


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("audit", {}),
        ("audit orders --ledger", {"metrics": ["orders"], "ledger": True}),
        (
            "audit --most-records 0 --sample 0 --seed 0",
            {"most_records": 0, "sample": 0, "seed": 0},
        ),
        ("audit --last=", {"last": ""}),
        ("replay --source= --dry-run", {"source": "", "dry_run": True}),
    ],
)
def test_what_was_typed_is_asked_for(words: str, wanted: dict[str, object]) -> None:
    """Also 0, and an empty text, as of a variable that is not set: the dashboard refuses these."""
    asked = parser().parse_args(words.split())
    assert asked_for(asked) == {"job": asked.job, **wanted}
