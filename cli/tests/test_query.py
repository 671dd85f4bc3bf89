"""`weir query`: what is asked for, and how answers are told."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from weir_cli.__main__ import main, parser
from weir_cli.commands.query import lines_of, question
from weir_cli.exits import UsageError

from .conftest import Command
from .serving import serving

CSV = {"Content-Type": "text/csv; charset=utf-8"}
T_MS = 1_800_000_000_000
ENDS = "2027-01-15 08:00:00Z"


def series(by: dict[str, str | None] | None = None, **columns: Any) -> dict[str, Any]:
    """Return a series of one window; an exact 7 of 3 events, unless a column says otherwise."""
    exact = {name: [7.0] for name in ("value", "low", "high")}
    return {"by": by or {}, **exact, "count": [3], "state": "f", **columns}


def answer(*found: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an answer of one window."""
    return {"series": list(found), "t_ms": [T_MS], "notes": [], "fresh": {}, **more}


class TestWhatIsAsked:
    @pytest.mark.parametrize(
        ("words", "wanted"),
        [
            ("", {}),
            ("--top 0", {"limit": {"top": 0}}),
            ("--last= --step= --after=", {"range": {"last": ""}, "step": "", "after": ""}),
            ("--window=", {"window": {"kind": "tumbling", "length": ""}}),
            ("--kind sliding", {"window": {"kind": "sliding"}}),
            ("--from= --to 9", {"range": {"from": "", "to": "9"}}),
            ("--to 9", {"range": {"from": None, "to": "9"}}),
            (
                "--last 1h --by a --by b --where a=1",
                {"range": {"last": "1h"}, "by": ["a", "b"], "where": [["a", "=", "1"]]},
            ),
        ],
    )
    def test_what_was_typed(self, words: str, wanted: dict[str, Any]) -> None:
        """Also 0, and an empty text, as of a variable that is not set: the dashboard refuses it."""
        asked = parser().parse_args(["query", "orders", "rate", *words.split()])
        assert question(asked) == {"metric": "orders", "aggregate": "rate", **wanted}

    @pytest.mark.parametrize("other", ["--from", "--to"])
    def test_two_spans(self, other: str) -> None:
        """Neither goes before the other."""
        asked = parser().parse_args(["query", "orders", "rate", "--last", "1h", other, "9"])
        told = "a span must be said by --last, or by --from and --to, got both; leave one out"
        with pytest.raises(UsageError, match=told):
            question(asked)

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            ("orders", "METRIC"),
            ("orders rate --last 1h", "METRIC, AGGREGATE, --last"),
            ("--top 0 --by= --where a=1", "--by, --where, --top"),
            ("--from 1 --to 2 --kind sliding", "--from, --to, --kind"),
            ("--window 5m --step 5m --after 0", "--window, --step, --after"),
        ],
    )
    def test_words_beside_a_file(self, tmp_path: Path, words: str, told: str) -> None:
        """They would not be asked for: exit code 2, and all of them are named."""
        (tmp_path / "q.json").write_text("{}")
        with serving((200, answer(), {})) as served:
            command = Command(tmp_path, served.url, "wk_key")
            _, errors = command.do("query", *words.split(), "-f", tmp_path / "q.json", code=2)
        assert errors == (
            f"weir: --file must stand in place of all of a query, got {told} beside it; write that"
            " into the file, or leave it out\n"
        )
        assert served.asked == []

    def test_standard_input(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """`-` is a file like any other; what is no query there is refused."""
        given = {"metric": "orders", "aggregate": "rate", "compare": ["1w"]}
        typed = io.TextIOWrapper(io.BytesIO(json.dumps(given).encode()))
        monkeypatch.setattr("sys.stdin", typed)
        with serving((200, answer(series()), {})) as served:
            command = Command(tmp_path, served.url, "wk_key")
            command.do("query", "-f", "-")
            _, errors = command.do("query", "-f", "-", code=2)
        assert [body for _, _, body in served.asked] == [given]
        assert errors.startswith("weir: --file must be a query as JSON: ")


class TestTable:
    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (1_234_567.0, "1234567"),
            (9_999.6, "9999.6"),
            (609.4166666666666, "609.4166666666666"),
            (0.1, "0.1"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (1e16, "1e+16"),
            (-3.0, "-3"),
            (-0.0, "0"),
            (None, "-"),
        ],
    )
    def test_no_digit_is_lost(self, value: float | None, shown: str) -> None:
        """What is whole has no point; of the rest as many digits as it takes to read it back."""
        ends: dict[str, Any] = {name: [value] for name in ("value", "low", "high")}
        *_, line = lines_of(answer(series(**ends, count=[1_234_567])))
        assert line.split()[2:] == [shown, shown, shown, "1234567", "final"]

    @pytest.mark.parametrize(
        ("more", "told"),
        [
            ({}, "no series: nothing of this metric is counted in that time"),
            (
                {"fresh": {"status": "rebuilding"}},
                "no series yet: the numbers are being counted again",
            ),
            (
                {"notes": [{"code": "capped", "message": "more series than it keeps"}]},
                "no series: those of that time are not known one by one, since the metric is "
                "capped",
            ),
        ],
    )
    def test_no_series(self, more: dict[str, Any], told: str) -> None:
        """That nothing is known is not that nothing came."""
        assert lines_of(answer(**more)) == [told]

    def test_why_a_dimension_has_no_value(self) -> None:
        """Null, an empty text and several series together; texts that look so are in quotes."""
        values = [None, "", "-", "(other)", '"', "eu"]
        found = [series({"region": value}) for value in values]
        _, *lines = lines_of(answer(*found, series(other=True)))
        assert [line.split()[2] for line in lines] == [
            "-",
            '""',
            '"-"',
            '"(other)"',
            r'"\""',
            "eu",
            "(other)",
        ]

    def test_the_others_alone(self) -> None:
        """Where no series has a row of its own nobody says what the dimensions are called."""
        head, line = lines_of(answer(series(other=True)))
        assert head.split("  ")[-1].strip() == "events"
        assert head.split()[2] == "series"
        assert line.split()[2] == "(other)"

    def test_what_it_is_compared_with(self) -> None:
        """Each earlier time has columns like those of now, in the order of the answer."""
        then = {"value": [5.5], "low": [5.0], "high": [6.0], "count": [2], "state": "p"}
        nothing = {name: [None] for name in ("value", "low", "high", "count")}
        compare = [{"offset": "1d", **then}, {"offset": "1w", **nothing, "state": "n"}]
        assert lines_of(answer(series(compare=compare))) == [
            "window ends           value  low  high  events         1d before  low  high  events"
            "               1w before  low  high  events",
            f"{ENDS}  7      7    7     3       final  5.5        5    6     2       provisional"
            "  -          -    -     -       not kept",
        ]


class TestHowMany:
    @pytest.mark.parametrize(
        ("of", "told"),
        [(1_431, "weir: 5 of 1,431 series are shown, those that are largest now\n"), (5, "")],
    )
    @pytest.mark.parametrize("form", [(), ("--csv",)])
    def test_how_many_there_are(
        self, tmp_path: Path, of: int, told: str, form: tuple[str, ...]
    ) -> None:
        """Where some are left out, on standard error; in lines the dashboard tells it beside."""
        body, fields = (
            ("time,value\r\n", {**CSV, "Weir-Of": str(of)}) if form else (answer(of=of), {})
        )
        with serving((200, body, fields)) as served:
            command = Command(tmp_path, served.url, "wk_key")
            _, errors = command.do("query", "orders", "rate", "--top", "5", *form)
            assert errors == told
            assert command.do("query", "orders", "rate", *form)[1] == ""

    def test_a_query_of_a_file(self, tmp_path: Path) -> None:
        """By its limit; for programs the answer itself says it."""
        (tmp_path / "q.json").write_text('{"limit": {"top": 2, "other": true}}')
        (tmp_path / "none.json").write_text('{"limit": null}')
        with serving((200, answer(of=3), {})) as served:
            command = Command(tmp_path, served.url, "wk_key")
            for name, words, told in (
                ("q", (), "weir: 2 of 3 series are shown, those that are largest now\n"),
                ("q", ("--json",), ""),
                ("none", (), ""),
            ):
                asked = ("query", "-f", tmp_path / f"{name}.json", *words)
                assert command.do(*asked)[1] == told


class Terminal(io.StringIO):
    """A terminal that is written to."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def test_no_sign_of_csv_steers_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dimension is anybody's text; a file gets it letter by letter, line ends included."""
    body = "time,region,value\r\n2027,a\x1b[2J\rb,1\r\n"
    with serving((200, body, CSV)) as served:
        monkeypatch.setenv("WEIR_DASHBOARD_URL", served.url)
        monkeypatch.setenv("WEIR_API_KEY", "wk_key")
        for stream, written in (
            (Terminal(), "time,region,value\n2027,a�[2J�b,1\n"),
            (io.StringIO(newline=""), body),
        ):
            with redirect_stdout(stream):
                assert main(["query", "orders", "rate", "--csv"]) == 0
            assert stream.getvalue() == written
