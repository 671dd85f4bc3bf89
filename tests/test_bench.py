"""Benchmarks write a figure only if everything was counted, and the page is what the files say."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, cast

import harness
import latency
import pytest
import report
import rest
import sources
from account import LogRecord
from bars import Reached, judge
from weir_local.testing import TestStack

BENCH = Path(report.__file__).parent


class Counting:
    """Answers queries with growing counts."""

    def __init__(self, *totals: int) -> None:
        self._totals = list(totals)

    def query(self, _body: dict[str, Any]) -> dict[str, Any]:
        """Return the next total, in two panes; the last one again and again."""
        total = self._totals.pop(0) if len(self._totals) > 1 else self._totals[0]
        return {"series": [{"count": [total - 1, None, 1]}]}


def test_all_that_was_sent_is_waited_for() -> None:
    """The figure waits until the last event is counted."""
    stack = cast("TestStack", Counting(3, 9, 10))
    harness.await_counted(stack, "m", since_ms=0, sent=10)


@pytest.mark.parametrize("counts", [(11,), (9,)])
def test_a_wrong_count_ends_the_benchmark(counts: tuple[int, ...]) -> None:
    """One too many fails at once, one too few when the time is over."""
    stack = cast("TestStack", Counting(*counts))
    with pytest.raises(RuntimeError, match=f"m must count the 10 events .* got {counts[-1]}"):
        harness.await_counted(stack, "m", since_ms=0, sent=10, timeout_s=0.3)


def test_the_tile_must_end_at_the_probes() -> None:
    """One more, one less or a step back is no result."""
    latency.check_shown([1, 3, 4], 4)
    for values in ([1, 3], [1, 3, 5], [1, 3, 2, 4]):
        with pytest.raises(RuntimeError, match="must grow to 4, showed"):
            latency.check_shown(values, 4)


def test_every_chosen_probe_must_be_seen() -> None:
    """The log says which were chosen; the tail must have shown exactly those."""
    log = [
        LogRecord(0, 0, 0, {"weir-tail": b"1"}, b'{"id":"probe-1","type":"bench.probe"}'),
        LogRecord(0, 1, 0, {"weir-tail": b"1"}, b'{"id":"load-1","type":"bench.load"}'),
        LogRecord(0, 2, 0, {}, b'{"id":"probe-2","type":"bench.probe"}'),
        LogRecord(0, 3, 0, {"weir-tick": b"1"}, None),
    ]
    chosen = latency.sampled(log)
    assert chosen == {"probe-1", "load-1"}
    latency.check_tail(chosen, {"probe-1", "load-1"})
    latency.check_tail(chosen, {"probe-1"})
    for seen in ({"load-1"}, {"probe-1", "probe-2"}, {"probe-1", "load-2"}):
        with pytest.raises(RuntimeError, match=r"differs in \['(probe|load)-"):
            latency.check_tail(chosen, seen)


def results() -> list[dict[str, Any]]:
    """Return the tracked files in bench/results."""
    listed = git("ls-files", "results")
    return [json.loads((BENCH / name).read_text()) for name in sorted(listed)]


def git(*words: str) -> list[str]:
    """Return the words of what git says of this repository."""
    done = subprocess.run(  # noqa: S603  git, asked by us
        ["git", *words],  # noqa: S607
        cwd=BENCH,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def commits_of(results: list[dict[str, Any]]) -> dict[str, str]:
    """Return the commits that results, or pieces of them, were measured at: commit -> result."""
    found = {result["commit"]: result["name"] for result in results}
    for result in results:
        pieces = result.get("pieces", {})
        found |= {piece["commit"]: f"{result['name']}: {of}" for of, piece in pieces.items()}
    return found


def test_what_was_measured_can_be_looked_up() -> None:
    """Each commit that a result names is of this history."""
    if git("rev-parse", "--is-shallow-repository") != ["false"]:
        pytest.skip("a shallow clone does not hold the history")
    history = git("rev-list", "HEAD")
    commits = commits_of(results())
    unknown = {c: of for c, of in commits.items() if not any(h.startswith(c) for h in history)}
    assert unknown == {}


def test_a_piece_names_its_commit_too() -> None:
    """A result of several has one for each."""
    pieces = {"events": {"commit": "b"}, "series": {"commit": "c"}}
    measured = {"name": "growth", "commit": "a", "pieces": pieces}
    assert commits_of([measured]) == {"a": "growth", "b": "growth: events", "c": "growth: series"}


def test_the_page_says_what_the_files_say() -> None:
    """bench/README.md is made of the tracked files in bench/results and of nothing else.

    But for which results are of an earlier script: a change of one need not make the page anew,
    the next benchmark does.
    """
    found = results()
    assert found
    page = (BENCH / "README.md").read_text()
    assert page == report.page(found, scripts_of(page, found))


def scripts_of(page: str, results: list[dict[str, Any]]) -> dict[str, str]:
    """Return the digests of all scripts as they were when the page was made."""
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| ")]
    present = {row[0] for row in rows if report.PRESENT in row}
    scripts = {}
    for result in results:
        for name, piece in result.get("pieces", {}).items():
            if f"{result['name']}: {name}" in present:
                scripts[result["name"]] = piece["script"]
        if result["name"] in present:
            scripts[result["name"]] = result["script"]
    return scripts


def test_a_result_makes_the_page_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing a result writes the page too."""
    monkeypatch.setattr(harness, "RESULTS", tmp_path / "results")
    path = harness.write("rows", settings={"rate": 1}, figures={"notes": ["all were counted"]})
    page = (tmp_path / "README.md").read_text()
    assert "`make bench-rows`" in page
    assert "- all were counted" in page
    assert f" | {report.PRESENT} | 1 |" in page
    assert "earlier script" not in page

    result = json.loads(path.read_text())
    path.write_text(json.dumps(result | {"script": "of before"}))
    report.main(tmp_path / "results")
    page = (tmp_path / "README.md").read_text()
    assert "**Beware.** Measured by an earlier script than the one here: rows." in page
    assert f" | {report.EARLIER} | 1 |" in page


def test_processors_are_told_apart() -> None:
    """Two of one name differ in what the first processor says besides; the second says the same."""
    told = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nflags\t: a b\n"
    other = told.replace("17", "1")
    assert harness.processor(told + other) == ("AMD EPYC", {"cpu family": "25", "model": "17"})
    assert harness.processor(other)[1]["model"] == "1"
    assert harness.processor("") == ("unknown", {})
    name, details = harness.machine()["cpu"], harness.machine()["cpu_details"]
    assert (name, details) == harness.processor(Path("/proc/cpuinfo").read_text())


class TestBars:
    """Whether a bar is reached, in words."""

    @pytest.mark.parametrize(
        ("reach", "got", "reached", "words"),
        [
            ("≥ 0.35 (record 0.5)", 0.337, Reached.MISSED, "0.337 is below 0.35 by 3.7 %"),
            ("≥ 0.35 (record 0.5)", 0.35, Reached.YES, "reached; record missed: 0.35 is below"),
            ("≥ 0.35 (record 0.5)", 0.5, Reached.RECORD, "record"),
            ("< 3 s", "9 s", Reached.MISSED, "9 s is above 3 s by 200 %"),
            ("< 3 s", "3.0 s (median of 5)", Reached.MISSED, "3 s is above 3 s"),
            ("< 3 s", "2.9 s (median of 5)", Reached.YES, "reached"),
            ("≤ 42 B", "12 B (whole), 43 B (doubles)", Reached.MISSED, "43 B is above 42 B"),
            ("p50 < 8 ms, p99 < 15 ms", "p50 9 ms, p99 14 ms", Reached.MISSED, "p50 9 ms is"),
            ("p99 < 15 ms", "p50 99 ms, p99 14 ms, p99.9 20 ms", Reached.YES, "reached"),
            ("≤ 0.3 core, ≤ 2 GB (record 0.1, 1)", "0.1 core, 1.5 GB", Reached.YES, "1.5 GB is"),
            ("≤ 0.3 core, ≤ 2 GB (record 0.1, 1)", "0.4 core, 2.5 GB", Reached.MISSED, ", 2.5 GB"),
            ("record ≤ 1 %, ≤ 4 KB", "0.9 %, 17 KB", Reached.YES, "record missed: 17 KB"),
            ("≥ 1,000 /s", "999 /s", Reached.MISSED, "999 /s is below 1000 /s by 0.1 %"),
            ("", 7, Reached.NONE, ""),
        ],
    )
    def test_a_bar_is_judged(self, reach: str, got: Any, reached: Reached, words: str) -> None:
        """Limit and record, alone or several, by name or by unit; the worst figure counts."""
        found = judge(reach, got)
        assert found.reached is reached
        assert words in found.words

    @pytest.mark.parametrize(
        ("reach", "got"),
        [(1.25, 1.0), ("soon", 1.0), ("< 3 s", "quick"), ("< 3 s (record 1, 2)", "1 s")],
    )
    def test_what_cannot_be_read_is_not_reached(self, reach: Any, got: Any) -> None:
        """A limit without a direction, and a figure that is none, are not judged."""
        found = judge(reach, got)
        assert found.reached is Reached.UNREADABLE
        assert "not judged" in found.words


class TestPage:
    """What the page says of all results together."""

    @staticmethod
    def result(name: str, **more: Any) -> dict[str, Any]:
        """Return a result as a file holds it."""
        machine = {"cores": 2, "cpu": "one", "memory_gib": 4, "system": "Linux-6"}
        bar = {"id": "P2", "what": "pace", "reach": "≥ 2", "got": 1}
        usual = {"name": name, "at_ms": 0, "commit": "abc", "machine": machine, "settings": {}}
        usual["script"] = "now"
        return {**usual, "figures": {"bars": [bar]}, **more}

    def test_a_missed_bar_stands_at_the_top(self) -> None:
        """It is told in words before the first section."""
        head, _, rest = report.page([self.result("a")], {"a": "now"}).partition("## a")
        assert "Bars: 1 missed." in head
        assert f"- P2 (a), pace: **missed**: 1 is below 2 by 50 %; {report.NO_REASON}" in head
        assert "| P2 | pace | ≥ 2 | 1 | **missed**: 1 is below 2 by 50 % |" in rest

    def test_a_bar_without_a_result_stands_at_the_top(self) -> None:
        """With the command that measures it; once it is there it is judged as all others are."""
        head, _, _ = report.page([self.result("a")], {}).partition("## a")
        (line,) = (one for one in head.splitlines() if one.startswith("- without a result: "))
        assert "P8 (`make bench-growth`), " in line
        assert "P2" not in line
        bars = [{"id": one, "what": "", "reach": "", "got": 1} for one in report.ASKED]
        assert "without" not in report.page([self.result("a", figures={"bars": bars})], {})

    @pytest.mark.parametrize(("one", "by"), report.ASKED.items())
    def test_what_measures_a_bar_is_there(self, one: str, by: str) -> None:
        """A command of the Makefile, whose program names the bar."""
        assert f"bench-{by}:" in (BENCH.parent / "Makefile").read_text()
        assert f'"{one}"' in (BENCH / f"{by}.py").read_text()

    def test_results_of_one_commit_need_no_warning(self) -> None:
        """All of one commit and one machine are taken together."""
        assert report.warnings([self.result("a"), self.result("b")]) == []

    def test_different_commits_are_told(self) -> None:
        """Of results, and of the pieces of one; commit and date of each stand on the page."""
        other = self.result("b", commit="def")
        assert "2 commits: `abc`, `def`" in report.warnings([self.result("a"), other])[0]
        pieces = {"events": self.result(""), "series": self.result("", commit="def+")}
        found = report.warnings([self.result("c", pieces=pieces)])
        assert "2 commits: `abc`, `def+`" in found[0]
        assert "the tree had changes: def+" in found[1]
        page = report.page([self.result("c", pieces=pieces)], {})
        assert "**Beware.** The results are of 2 commits" in page
        assert "| c: series | 1970-01-01 00:00 UTC | `def+` | an earlier one | 1 |" in page

    @pytest.mark.parametrize(
        "other", [{"cpu": "other"}, {"system": "Linux-7"}, {"cpu_details": {"model": "17"}}]
    )
    def test_different_machines_are_told(self, other: dict[str, Any]) -> None:
        """Ratios carry over; figures of two machines, or kernels, in one table do not."""
        one = self.result("a")
        machine = one["machine"] | other
        two = self.result("b", machine=machine)
        (told,) = report.warnings([one, two])
        assert told.startswith("They were measured on different machines: 2 cores of ")
        assert report.machine_of(machine) in told
        page = report.page([one, two], {"a": "now"})
        assert "| a | 1970-01-01 00:00 UTC | `abc` | as it is here | 1 |" in page
        assert "| b | 1970-01-01 00:00 UTC | `abc` | an earlier one | 2 |" in page
        assert f"\n2. {report.machine_of(machine)}\n" in page

    def test_a_result_of_an_earlier_script_is_told(self) -> None:
        """Of one that changed since, and of one that did not say; each piece for itself."""
        pieces = {"events": self.result(""), "series": self.result("", script="before")}
        silent = self.result("b")
        del silent["script"]
        found = [self.result("a"), silent, self.result("c", pieces=pieces)]
        scripts = {"a": "now", "b": "now", "c": "now"}
        assert report.earlier(found, scripts) == ["b", "c: series"]
        assert report.earlier(found, scripts | {"a": "later"}) == ["a", "b", "c: series"]
        assert "earlier script than the one here: b, c: series." in report.page(found, scripts)
        assert "earlier" not in report.page(found[:1], scripts)

    def test_the_same_page_may_be_of_scripts_that_changed_since(self) -> None:
        """What the page said of them is read from it, and of nothing else it may differ."""
        pieces = {"events": self.result(""), "series": self.result("", script="before")}
        found = [self.result("a", script="one"), self.result("c", pieces=pieces)]
        for scripts in ({}, {"a": "one"}, {"c": "now"}, {"a": "one", "c": "before"}):
            page = report.page(found, scripts)
            assert scripts_of(page, found) == scripts
            assert report.page(found, scripts_of(page, found)) == page

    def test_a_missed_bar_names_its_reason(self) -> None:
        """Under the bars of its section, each once; without one that nobody has profiled it."""

        def told(bar: str, what: str, got: float) -> str:
            bars = [{"id": bar, "what": what, "reach": "≥ 2 (record 3)", "got": got}] * 2
            page = report.page([self.result("a", figures={"bars": bars})], {})
            (why,) = [one for one in page.splitlines() if one.startswith("- why ")] or [""]
            return why

        assert "0034-what-a-rebuild-takes.md" in told("P13", "rebuild", 1.0)
        assert "0034-what-a-rebuild-takes.md" in told("P13", "rebuild", 2.5)
        assert told("P13", "rebuild", 3.5) == ""
        assert "what grows with the series" in told("P8", "10 to 10000 series", 2.5)
        assert told("P8", "1 to 9 events", 2.5).endswith(report.NO_REASON)

    def test_every_reason_is_of_something_that_is_there(self) -> None:
        """The decision that it links, and the file that it names."""
        for one in report.REASONS:
            assert one.bar in report.ASKED
            for link in re.findall(r"\]\((.+?)\)", one.text):
                assert (BENCH / link).is_file()
            results = [BENCH / "results" / f"{of}.json" for of in re.findall(r"`(\w+)`", one.text)]
            is_measured = any(path.is_file() for path in results)
            assert "](" in one.text or is_measured or "not profiled" in one.text

    def test_what_the_contestant_is_stands_beside_its_bars(self) -> None:
        """Of each benchmark that runs plan and tasks by itself, as the one that does not."""
        for name in ("engine", "flink", "growth"):
            assert "batch by batch" in report.page([self.result(name)], {})
            assert "contest" in {path.stem for path in sources.sources(name)}
        assert "batch by batch" not in report.page([self.result("rebuild")], {})


class TestRest:
    """What is used at rest, by process and in all."""

    def test_kinds_of_process_are_told_apart(self) -> None:
        """Of a part that is two processes each is told; one that came meanwhile is left out."""
        spans = [
            {"panes: JVM": (0.5, 1.25), "panes: itself": (0.1, 0.5), "panes: workers": (0.2, 0.25)},
            {"panes: JVM": (0.7, 1.75), "panes: itself": (0.1, 0.5)},
        ]
        assert rest.summed(spans) == {
            "panes: JVM": {"cores": 0.6, "memory_gb": 1.5},
            "panes: itself": {"cores": 0.1, "memory_gb": 0.5},
        }

    def test_both_stacks_have_both_bars(self) -> None:
        """At rest cores and memory count, under load the cores."""
        use = {"cores": {"median": 0.4}, "memory_gb": {"median": 2.0}}
        one = {"at_rest": use, "loaded": use}
        bars = rest.bars({"the demo's metrics": one, "20 metrics": one}, [17.0, 19.0, 18.0], 1_000)
        reached = [judge(bar["reach"], bar["got"]).reached for bar in bars]
        assert reached == [Reached.RECORD, *[Reached.MISSED, Reached.RECORD] * 2]
        assert [bar["what"] for bar in bars[1:3]] == [
            "at rest, the demo's metrics",
            "at 1,000 events/s, the demo's metrics",
        ]
