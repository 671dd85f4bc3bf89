"""The examples of docs/definitions.md, run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from weir.definitions.check import check
from weir.definitions.metric import Metric
from weir.definitions.signals import SIGNALS
from weir.definitions.text import parse_text
from weir.expressions import NotMatched, Quarantined, Used, evaluate, parse_where, use
from weir.expressions.functions import NAMES
from weir.expressions.numbers import number_text
from weir.expressions.paths import TEXT_ATTRIBUTES
from weir.problems import ProblemError

PAGE = (Path(__file__).parents[3] / "docs" / "definitions.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
DATA = json.loads(re.findall(r"with `data` = `(\{.*?\})`", PAGE)[0])


def table(heading: str) -> list[list[str]]:
    """Return the rows of the table whose first column has a heading."""
    lines = PAGE.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows: list[list[str]] = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return rows
        cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
        rows.append([cell.strip().replace("\\|", "|") for cell in cells])
    return rows


def code(cell: str) -> str:
    """Return what stands in a cell between the first and the last backtick."""
    return cell.strip("`")


class TestPage:
    @pytest.mark.parametrize("block", BLOCKS)
    def test_definitions_are_accepted(self, block: str) -> None:
        """Every definition on the page passes the check."""
        check(None, None, block)

    def test_outcomes(self) -> None:
        """The metric of the page makes of each event what the page says."""
        metric = check(None, None, BLOCKS[1]).model
        assert isinstance(metric, Metric)
        rows = table("`data` of an event of type `com.acme.http.request` from `web`")
        assert len(rows) == 8
        for data, outcome in rows:
            event = {"type": "com.acme.http.request", "weirsource": "web"}
            got = use(metric, event | {"data": json.loads(code(data))})
            match got:
                case Used():
                    said = f"used: series `{got.series}`, value {got.value}"
                case Quarantined():
                    said = f"quarantined: `{got.reason}`"
                case NotMatched():
                    said = "not matched"
            assert said == outcome, data

    def test_expressions(self) -> None:
        """Each expression yields what stands beside it."""
        for expression, expected in table("expression"):
            got = evaluate(parse_where(code(expression)), {"data": DATA})
            assert json.dumps(got) == expected, expression

    def test_every_function_has_an_example(self) -> None:
        """Among the examples that are run each function stands at least once."""
        examples = " ".join(code(row[0]) for row in table("expression"))
        assert [name for name in NAMES if f"{name}(" not in examples] == []

    def test_place(self) -> None:
        """The place that the page shows is that of a real refusal."""
        (shown,) = re.findall(r"```\n(data\.total > 10.*?)\n```", PAGE, re.DOTALL)
        where = shown.splitlines()[0]
        with pytest.raises(ProblemError) as caught:
            check("metric", "m", {"events": {"type": "t"}, "where": where})
        assert caught.value.errors[0]["excerpt"] == shown

    def test_number_texts(self) -> None:
        """Each spelling of a number has the text that stands beside it."""
        for spellings, text in table("JSON"):
            for spelling in spellings.split(", "):
                assert number_text(json.loads(code(spelling))) == code(text)

    def test_refusals(self) -> None:
        """Each wrong member is refused with the code and the words beside it."""
        for written, reason, words in table("written"):
            plain = {"kind": "metric", "name": "m", "events": {"type": "t"}}
            members = plain | parse_text(code(written))
            with pytest.raises(ProblemError) as caught:
                check(None, None, members)
            assert caught.value.reason == code(reason)
            assert words in caught.value.message

    def test_everything_that_can_be_said_is_on_the_page(self) -> None:
        """Members, functions and attributes are all named."""
        members = [code(row[0]).partition(".")[0] for row in table("member")]
        assert {"kind", *members} == set(Metric.model_fields)
        assert all(f"`{name}(" in PAGE for name in NAMES)
        assert all(f"`{name}`" in PAGE for name in TEXT_ATTRIBUTES)


def test_signals() -> None:
    """The page names every signal that a rule can watch."""
    assert {row[0].strip("`") for row in table("`metric`")} == set(SIGNALS)
