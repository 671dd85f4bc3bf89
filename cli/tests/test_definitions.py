"""`weir check`, `diff`, `get`, `history` and `rollback` against a real dashboard."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest
from confluent_kafka import Producer
from weir import names
from weir.definitions.records import Edit, put_record
from weir_local.testing import TestStack

from .conftest import Command

pytestmark = pytest.mark.stack
RULE = "kind: rule\nname: {name}\nmetric: {metric}\naggregate: count\nwindow: 1m\nabove: 5\n"
METRIC = "# {note}\nkind: metric\nname: {name}\nevents: {{type: shop.order}}\nunit: {unit}\n"


def metric(name: str, unit: str = "ms", note: str = "orders") -> str:
    """Return the text of a metric."""
    return METRIC.format(name=name, unit=unit, note=note)


def objects(written: str) -> list[dict[str, Any]]:
    """Return what `--json` wrote: an object a line."""
    return [json.loads(line) for line in written.splitlines()]


def store(weir: Command, name: str, *texts: str) -> None:
    """Store texts one after the other as versions."""
    for text in texts:
        path = weir.write(f"{name}.yaml", text)
        weir.run("-f", path)
        path.unlink()


class TestCheck:
    def test_nothing_is_stored(self, weir: Command) -> None:
        """What would be accepted is told, what would not in the dashboard's words."""
        weir.write("a.yaml", metric("only_checked"))
        weir.write("b.yaml", metric("badly_checked").replace("unit", "unti"))
        written, _ = weir.do("check", "-f", weir.folder, code=1)
        good, bad = sorted(written.splitlines(), reverse=True)
        assert bad.startswith("ok        metric/only_checked: at most 1 series, ")
        assert good.startswith("refused   metric/badly_checked (")
        assert good.endswith('/unti must be a known member, got "unti"; did you mean "unit"?')
        _, errors = weir.do("get", "metric/only_checked", code=1)
        assert errors == "weir: there is no such definition\n"

    def test_json(self, weir: Command) -> None:
        """An object a line, with the same words."""
        weir.write("b.yaml", metric("badly_checked").replace("unit", "unti"))
        (found,) = objects(weir.do("check", "-f", weir.folder, "--json", code=1)[0])
        assert (found["outcome"], found["name"]) == ("refused", "badly_checked")
        assert "did you mean" in found["why"][0]
        assert found["error"]["errors"][0]["pointer"] == "/unti"

    def test_what_a_metric_costs(self, weir: Command) -> None:
        """At most, in words and for programs; what is not counted costs nothing."""
        weir.write("a.yaml", metric("costs") + "by: [source]\nkeep: {10s: 1h}\n")
        weir.write("b.yaml", "kind: source\nname: free\n")
        costly, free = weir.do("check", "-f", weir.folder)[0].splitlines()[::-1]
        assert re.fullmatch(
            r"ok        metric/costs: at most [\d,]+ series, [\d.]+ [MG]B of panes, "
            r"[\d,]+ rows written a batch",
            costly,
        )
        assert free == "ok        source/free"
        costly_json = objects(weir.do("check", "-f", weir.folder, "--json")[0])[1]
        assert costly_json["estimate"]["rows"] == 360 * costly_json["estimate"]["series"]

    def test_before_the_first_apply(self, weir: Command) -> None:
        """A rule is checked beside the metric that comes with it, by `diff` too."""
        weir.write("a.yaml", RULE.format(name="early", metric="early"))
        weir.write("b.yaml", metric("early"))
        told = weir.do("check", "-f", weir.folder)[0].splitlines()
        assert [line.split()[:2] for line in told] == [
            ["ok", "metric/early:"],
            ["ok", "rule/early"],
        ]
        assert "rule/early: new\n" in weir.do("diff", "-f", weir.folder, code=4)[0]
        (weir.folder / "b.yaml").unlink()
        assert "refused   rule/early (" in weir.do("check", "-f", weir.folder, code=1)[0]


class TestDiff:
    def test_what_apply_would_change(self, weir: Command) -> None:
        """New, changed, changed in letters alone; exit code 4 while something would change."""
        store(weir, "x", metric("changes"), metric("same_meaning"))
        weir.write("changes.yaml", metric("changes", "s"))
        weir.write("same.yaml", metric("same_meaning", note="another comment"))
        weir.write("z.yaml", metric("is_new"))
        written, _ = weir.do("diff", "-f", weir.folder, code=4)
        assert (
            "metric/changes: 1 member(s) change\n  /unit: 'ms' -> 's'\n--- version 1\n" in written
        )
        assert f"+++ {weir.folder / 'changes.yaml'}\n" in written
        assert "-unit: ms\n+unit: s\n" in written
        assert "metric/same_meaning: the same as version 1, but for its letters\n" in written
        assert "metric/is_new: new\n--- nothing\n" in written
        _, errors = weir.do("get", "metric/is_new", code=1)
        assert errors

    def test_what_apply_would_refuse(self, weir: Command) -> None:
        """Each refused file is named, beside what the others would change; exit code 1."""
        good = weir.write("good.yaml", metric("diff_good"))
        bad = weir.write("bad.yaml", metric("diff_bad").replace("unit", "unti"))
        lonely = weir.write("lonely.yaml", RULE.format(name="diff_rule", metric="nowhere"))
        written, errors = weir.do("diff", "-f", weir.folder, code=1)
        assert "metric/diff_good: new\n" in written
        assert f"refused   metric/diff_bad ({bad}): /unti must be a known member" in written
        assert f"refused   rule/diff_rule ({lonely}): metric must be one that is" in written
        assert errors == ""
        found = objects(weir.do("diff", "-f", weir.folder, "--json", code=1)[0])
        outcomes = {one["origin"]: one["outcome"] for one in found}
        assert outcomes == {str(good): "new", str(bad): "refused", str(lonely): "refused"}
        assert {one["error"]["code"] for one in found if one["outcome"] == "refused"} == {
            "unknown_field",
            "metric_unknown",
        }

    def test_once_applied_nothing_differs(self, weir: Command) -> None:
        """What apply leaves alone, diff calls the same."""
        weir.write("a.yaml", metric("applied"))
        weir.run()
        written, _ = weir.do("diff", "-f", weir.folder)
        assert written == "metric/applied: the same as version 1\n"

    def test_two_versions(self, weir: Command) -> None:
        """By number; one that is not there is refused."""
        store(weir, "x", metric("versions"), metric("versions", "s"), metric("versions", "h"))
        asked = ("diff", "metric/versions", "--version", "2", "--against", "1")
        assert "  /unit: 'ms' -> 's'" in weir.do(*asked, code=4)[0]
        (found,) = objects(weir.do("diff", "metric/versions", "--version", "3", "--json")[0])
        assert (found["same"], found["old_version"]) == (True, 3)
        _, errors = weir.do("diff", "metric/versions", "--version", "9", code=1)
        assert "must have a version 9, got none; the newest is 3" in errors


class TestGet:
    def test_the_text_as_it_was_written(self, weir: Command) -> None:
        """It can be put into a file and applied again, and nothing changes."""
        store(weir, "x", metric("to_get"))
        written, _ = weir.do("get", "metric/to_get")
        assert written == metric("to_get")
        weir.write("again.yaml", written)
        assert weir.run().splitlines() == ["unchanged metric/to_get version 1"]

    def test_what_a_metric_waits_for(self, weir: Command) -> None:
        """Beside its text, so that a file holds nothing else; here no engine runs."""
        store(weir, "x", metric("to_wait"), metric("to_wait", "s"))
        for words in (("get", "metric/to_wait"), ("get", "metric/to_wait", "--json")):
            written, errors = weir.do(*words)
            assert "does not serve" not in written
            assert errors.startswith(
                "weir: version 2 does not serve yet: the panes driver counts nothing now: "
                "no panes driver has been heard"
            )
        weir.write("s.yaml", "kind: source\nname: at_once\n")
        weir.run()
        assert weir.do("get", "source/at_once")[1] == ""

    def test_lists(self, weir: Command) -> None:
        """Of a kind, or all; each with who changed it and when."""
        store(weir, "x", metric("to_list"))
        for words in (("get",), ("get", "metric")):
            (line,) = (one for one in weir.do(*words)[0].splitlines() if "/to_list " in one)
            assert line.split()[:3] == ["metric/to_list", "1", "starting"]
            assert line.split()[-1].startswith("key:")
        assert "metric/" not in weir.do("get", "board")[0]
        assert "to_list" in {one["name"] for one in objects(weir.do("get", "--json")[0])}

    def test_files_say_which(self, weir: Command) -> None:
        """By kind and name, whatever else they say; what is written is a file of its own."""
        store(weir, "x", metric("first_of_files"), metric("second_of_files"))
        first = weir.write("first.yaml", metric("first_of_files", "h"))
        second = weir.write("second.yaml", metric("second_of_files", "h"))
        written, errors = weir.do("get", "-f", first, second)
        assert written == f"{metric('first_of_files')}---\n{metric('second_of_files')}"
        assert errors.startswith("weir: metric/first_of_files: version 1 does not serve yet: ")
        first.unlink()
        second.write_text(written)
        assert [line.split()[0] for line in weir.run().splitlines()] == ["unchanged"] * 2

        lost = weir.write("lost.yaml", metric("lost_of_files"))
        written, errors = weir.do("get", "-f", second, lost, code=1)
        assert written.count("kind: metric") == 2
        assert f"weir: metric/lost_of_files ({lost}): there is no such definition\n" in errors
        *found, missing = objects(weir.do("get", "-f", second, lost, "--json", code=1)[0])
        assert [one["name"] for one in found] == ["first_of_files", "second_of_files"]
        assert (missing["name"], missing["outcome"]) == ("lost_of_files", "refused")
        assert missing["error"]["code"] == "not_found"

    def test_a_terminal_is_not_steered(self, weir: Command) -> None:
        """Signs that a terminal obeys are written to a file as they are, to a terminal not."""
        path = weir.write("raw.json", '{"kind": "source", "name": "raw", "title": "a\u009b2J"}')
        weir.run("-f", path)
        assert "\u009b" in weir.do("get", "source/raw")[0]
        assert "\u009b" not in on_a_terminal(weir, "get", "source/raw")
        assert "\u009b" not in weir.do("get", "source", "--json")[0]


def on_a_terminal(weir: Command, *words: str) -> str:
    """Run a command whose standard output is a terminal; return what it wrote."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "WEIR_DASHBOARD_URL": weir.url, "WEIR_API_KEY": weir.key}
    command = [sys.executable, "-m", "weir_cli", *words]
    with subprocess.Popen(command, env=environment, stdout=theirs) as process:  # noqa: S603
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:
                part = b""  # Linux: the other end is closed
            if not part:
                break
            written += part
    os.close(ours)
    assert process.returncode == 0
    return written.decode()


class TestHistory:
    def test_who_and_when(self, weir: Command) -> None:
        """Each edit, the newest first, with its text where asked for."""
        store(weir, "x", metric("edited"), metric("edited", "s"))
        first, second = weir.do("history", "metric/edited")[0].splitlines()
        assert first.split()[:4] == ["metric/edited", "version", "2", "written"]
        assert second.split()[2] == "1"
        assert "    unit: s\n" in weir.do("history", "metric/edited", "--texts", "-n", "1")[0]
        found = objects(weir.do("history", "metric/edited", "--json")[0])
        assert [one["version"] for one in found] == [2, 1]

    def test_everything(self, weir: Command) -> None:
        """Without a name the changes of all definitions; keys without their text."""
        store(weir, "x", metric("among_all"))
        newest, *_ = weir.do("history", "-n", "5")[0].splitlines()
        assert newest.startswith("metric/among_all")
        assert all(one["text"] is None for one in objects(weir.do("history", "--json")[0])
                   if one["kind"] == "key")  # fmt: skip

    def test_files_say_whose(self, weir: Command) -> None:
        """The edits of all that they name in one list, the newest first."""
        store(weir, "x", metric("mine"), metric("yours"), metric("mine", "s"), metric("other"))
        path = weir.write("both.yaml", f"{metric('mine', 'h')}---\n{metric('yours', 'h')}")
        told = [line.split()[:3] for line in weir.do("history", "-f", path)[0].splitlines()]
        assert told == [
            ["metric/mine", "version", "2"],
            ["metric/yours", "version", "1"],
            ["metric/mine", "version", "1"],
        ]
        found = objects(weir.do("history", "-f", path, "--json", "-n", "2")[0])
        assert [(one["name"], one["version"]) for one in found] == [("mine", 2), ("yours", 1)]
        assert weir.do("history", "-f", path, "--refused") == ("", "")
        lost = weir.write("lost.yaml", metric("lost_history"))
        written, errors = weir.do("history", "-f", path, lost, code=1)
        assert (len(written.splitlines()), "metric/lost_history" in errors) == (3, True)

    def test_what_was_passed_over(self, installation: TestStack, weir: Command) -> None:
        """A version that somebody wrote past the API is told with its reason."""
        store(weir, "x", metric("spoilt"))
        edit = Edit("default", "metric", "spoilt", 1, by="other", at_ms=1_800_000_000_000)
        producer = Producer({"bootstrap.servers": installation.kafka_bootstrap, "acks": "all"})
        record = put_record(edit, "kind: metric\nname: spoilt\n")
        producer.produce(names.DEFINITIONS, record.value, record.key)
        assert producer.flush(30) == 0
        installation.wait_until(
            lambda: installation.api("GET", "/definitions/metric/spoilt").body["refused"], "it read"
        )
        told = weir.do("history", "metric/spoilt", "--refused")[0].splitlines()
        assert told[0].split()[:4] == ["metric/spoilt", "version", "2", "refused"]
        assert told[1] == "    passed over: /events must be given, got nothing; add events"
        assert "passed over" in weir.do("history", "metric/spoilt")[0]
        (line,) = (o for o in weir.do("get", "metric")[0].splitlines() if "/spoilt " in o)
        assert "version 2 refused" in line


class TestRollback:
    def test_back_and_forth(self, weir: Command) -> None:
        """A new version with the older text."""
        store(weir, "x", metric("rolled"), metric("rolled", "s"))
        written, _ = weir.do("rollback", "metric/rolled", "--to", "1")
        assert written == "metric/rolled version 3 has the text of version 1\n"
        assert weir.do("get", "metric/rolled")[0] == metric("rolled")
        (found,) = objects(weir.do("rollback", "metric/rolled", "--to", "2", "--json")[0])
        assert (found["version"], found["parsed"]["unit"]) == (4, "s")

    def test_a_file_says_which(self, weir: Command) -> None:
        """By kind and name, whatever else it says; it must be one."""
        store(weir, "x", metric("of_a_file"), metric("of_a_file", "s"))
        path = weir.write("mine.yaml", metric("of_a_file", "h"))
        written, _ = weir.do("rollback", "-f", path, "--to", "1")
        assert written == "metric/of_a_file version 3 has the text of version 1\n"
        assert path.read_text() == metric("of_a_file", "h")
        path.write_text(f"{metric('of_a_file')}---\n{metric('of_two')}")
        _, errors = weir.do("rollback", "-f", path, "--to", "1", code=2)
        assert "found metric/of_a_file, metric/of_two; name one as KIND/NAME" in errors

    def test_only_from_the_version_that_was_meant(self, weir: Command) -> None:
        """Somebody else's change in between is not undone unseen."""
        store(weir, "x", metric("guarded"), metric("guarded", "s"))
        _, errors = weir.do("rollback", "metric/guarded", "--to", "1", "--from", "1", code=1)
        assert "is at version 2: you changed version 1" in errors
        weir.do("rollback", "metric/guarded", "--to", "1", "--from", "2")

    def test_a_deleted_one_comes_back(self, installation: TestStack, weir: Command) -> None:
        """Its history is still there; one that never was is refused."""
        store(weir, "x", metric("undeleted"))
        installation.api("DELETE", "/definitions/metric/undeleted", None, {"If-Match": '"1"'})
        assert "version 3 has" in weir.do("rollback", "metric/undeleted", "--to", "1")[0]
        _, errors = weir.do("rollback", "metric/never_was", "--to", "1", code=1)
        assert "there is none at all" in errors


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("get", "metric/"), "must be written as kind/name, such as metric/orders"),
        (("rollback", "metric"), "must be written as kind/name"),
        (("rollback", "--to", "1"), "must have one KIND/NAME or a file (-f), got neither or both"),
        (("get", "metric/a", "-f", "a.yaml"), "KIND/NAME or by files (-f), got both"),
        (("history", "metric/a", "-f", "a.yaml"), "KIND/NAME or by files (-f), got both"),
        (("get", "-f", "none.yaml"), "none.yaml must be a readable file of definitions"),
        (("diff",), "must have files (-f) or one KIND/NAME, got neither or both"),
        (("diff", "metric/a"), "--version must say which version"),
        (("history", "-n", "0"), "--limit must be between 1 and 500, got 0"),
        (("query", "orders"), "must have METRIC and AGGREGATE"),
        (("query", "a", "count", "--where", "region"), "--where must be name=value"),
        (("query", "a", "count", "--csv", "--json"), "must have one form, got --csv and --json"),
        (("query", "-f", "none.json"), "--file must be a query as JSON"),
        (("jobs", "--cancel"), "--cancel must say which job"),
    ],
)
def test_what_cannot_be_meant(weir: Command, words: tuple[str, ...], told: str) -> None:
    """Exit code 2, and the error says how it is written."""
    _, errors = weir.do(*words, code=2)
    assert told in errors


def test_whoever_reads_may_stop(weir: Command) -> None:
    """A pipe whose reader has gone, as that of `head`, is no error."""
    store(weir, "x", *(metric(f"many_{n}") for n in range(3)))
    process = weir.begin("get", "--json")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
