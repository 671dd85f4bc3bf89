"""What cannot be done is told: the dashboard's last words, and with `--json` an object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from weir import names
from weir_cli import api as api_module
from weir_local.ports import free_port

from .conftest import Command
from .serving import Given, serving

NOT_COUNTED = {"code": "not_counted_yet", "message": "events up to 7 are not counted yet"}
STALE = {"status": "stale", "since_ms": 1_800_000_000_000, "part": "panes"}
OLD = "weir: the numbers are stale since 2027-01-15 08:00:00Z, because of panes\n"
NEWER = {"code": "not_available", "message": "a newer release has written weir.alerts"}


def command(folder: Path, url: str) -> Command:
    """Return the command for a server."""
    return Command(folder, url, "wk_key")


class TestLastWords:
    @pytest.mark.parametrize(("status", "body"), [(504, NOT_COUNTED), (503, NEWER)])
    def test_what_the_dashboard_said_is_told(
        self, tmp_path: Path, status: int, body: dict[str, str]
    ) -> None:
        """Its status alone does not say what to do."""
        with serving((status, body, {})) as answers:
            _, errors = command(tmp_path, answers.url).do("query", "orders", "rate", code=3)
        assert errors == (
            f"weir: the dashboard at {answers.url}/api/v1 must answer, answered {status}: "
            f"{body['message']}; --wait waits longer\n"
        )

    def test_one_without_words(self, tmp_path: Path) -> None:
        """A proxy's page says nothing that could be told."""
        with serving((502, "<html>", {})) as answers:
            _, errors = command(tmp_path, answers.url).do("jobs", code=3)
        assert errors.endswith("must answer, answered 502; --wait waits longer\n")


class TestRetryAfter:
    def test_it_is_waited_as_long_as_was_asked(self, tmp_path: Path) -> None:
        """The next request comes no earlier."""
        with serving((503, NEWER, {"Retry-After": "1"}), (200, {"items": []}, {})) as answers:
            command(tmp_path, answers.url).do("jobs", "--wait", "20")
        first, second = answers.at_s
        assert 1 <= second - first < 5

    @pytest.mark.parametrize("asked", ["100000", "Wed, 21 Oct 2099 07:28:00 GMT", "-1", ""])
    def test_but_not_for_ever(
        self, tmp_path: Path, asked: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A wrong one holds up nothing, nor one that is no number of seconds."""
        monkeypatch.setattr(api_module, "LONGEST_ASKED_S", 0.3)
        with serving((429, {}, {"Retry-After": asked}), (200, {"items": []}, {})) as answers:
            command(tmp_path, answers.url).do("jobs", "--wait", "20")
        first, second = answers.at_s
        assert second - first < 5

    def test_the_deadline_goes_before(self, tmp_path: Path) -> None:
        """What asks for more than is left is tried once more at the end."""
        with serving((429, {}, {"Retry-After": "30"})) as answers:
            command(tmp_path, answers.url).do("jobs", "--wait", "2", code=3)
        assert len(answers.at_s) == 2

    def test_only_a_change_waits_without_being_asked_to(self, tmp_path: Path) -> None:
        """Who is told to come later for another reason, such as a wrong key, ends at once."""
        with serving((429, {"message": "too many wrong keys"}, {"Retry-After": "6"})) as answers:
            _, errors = command(tmp_path, answers.url).do("audit", "--detach", code=3)
        assert len(answers.at_s) == 1
        assert "too many wrong keys; --wait waits longer" in errors


OVER = {
    "code": "rate_limited",
    "message": "a tenant must make at most 9 changes an hour, got 1 more with 0 left; send it "
    "again in 1 s",
}
LATER = {"Retry-After": "1", "RateLimit-Policy": '"changes";q=9;w=3600'}


class TestOverQuota:
    def test_a_change_waits_as_long_as_was_asked(self, tmp_path: Path) -> None:
        """Also without --wait; why is told once, and what is read by programs is not disturbed."""
        told = {"id": "j_1", "job": "audit", "state": "waiting"}
        with serving((429, OVER, LATER), (429, OVER, LATER), (202, told, {})) as answers:
            said, errors = command(tmp_path, answers.url).do("audit", "--detach", "--json")
        assert json.loads(said)["id"] == "j_1"
        assert errors == f"weir: {OVER['message']}; waiting to do so, an hour at most\n"
        first, second, third = answers.at_s
        assert 1 <= second - first < 5
        assert 1 <= third - second < 5

    def test_but_not_for_ever(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Then it is refused, in the dashboard's words."""
        monkeypatch.setattr(api_module, "LONGEST_OVER_QUOTA_S", 0.4)
        with serving((429, OVER, {**LATER, "Retry-After": "3000"})) as answers:
            said, errors = command(tmp_path, answers.url).do("audit", "--json", code=1)
        assert len(answers.at_s) == 2
        assert json.loads(said)["error"]["code"] == "rate_limited"
        assert errors.endswith(f"weir: {OVER['message']}\n")


PAGE = (200, "<html>sign in</html>", {"Content-Type": "text/html; charset=utf-8"})
ANOTHER = {names.HTTP_API: "", "Content-Type": "application/json"}
METRIC = "kind: metric\nname: a\n"


class TestNotTheDashboard:
    @pytest.mark.parametrize(
        "words",
        [
            ("get",),
            ("get", "metric/a"),
            ("check", "-f", "a.yaml"),
            ("diff", "-f", "a.yaml"),
            ("diff", "metric/a", "--version", "1"),
            ("query", "orders", "rate"),
            ("jobs",),
            ("audit",),
            ("top",),
        ],
    )
    def test_its_page_is_no_answer(
        self, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """That of a single sign-on, or of what else listens there: exit code 3, and a hint."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.yaml").write_text(METRIC)
        with serving(PAGE) as answers:
            written, errors = command(tmp_path, answers.url).do(*words, "--json", code=3)
        assert errors == (
            f"weir: the dashboard at {answers.url}/api/v1 must answer, answered 200 with text/html"
            " in place of a JSON object; is this the dashboard? see --url, and whether something"
            " asks for a login before it\n"
        )
        assert json.loads(written)["error"]["code"] == "unreached"

    @pytest.mark.parametrize("body", [[], "ok", 7, None])
    def test_nor_is_json_that_is_no_object(self, tmp_path: Path, body: object) -> None:
        """Every answer of the dashboard's is one."""
        with serving((200, body, {"Content-Type": "application/json"})) as answers:
            _, errors = command(tmp_path, answers.url).do("jobs", code=3)
        assert "answered 200 with application/json in place of a JSON object; is this" in errors

    @pytest.mark.parametrize("body", [{"status": "healthy"}, {"items": [{"name": "x"}]}])
    @pytest.mark.parametrize(
        "words",
        [
            ("apply", "-f", "a.yaml"),
            ("get",),
            ("get", "metric/a"),
            ("history", "metric/a"),
            ("jobs",),
            ("jobs", "j_1", "--cancel"),
            ("quarantine",),
            ("query", "a", "rate"),
            ("rollback", "metric/a", "--to", "1", "--from", "2"),
        ],
    )
    def test_nor_is_an_object_of_another_service(
        self,
        tmp_path: Path,
        words: tuple[str, ...],
        body: object,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Whatever is in it: nothing is printed of it, and nothing is taken for done."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.yaml").write_text(METRIC)
        with serving((200, body, ANOTHER)) as answers:
            written, errors = command(tmp_path, answers.url).do(*words, "--json", code=3)
        assert "application/json and without the header field weir-api; is this" in errors
        assert json.loads(written)["error"]["code"] == "unreached"

    def test_one_of_a_newer_dashboard(self, tmp_path: Path) -> None:
        """Its members may mean something else by now."""
        newer = {**ANOTHER, names.HTTP_API: "2"}
        with serving((200, {"items": []}, newer)) as answers:
            _, errors = command(tmp_path, answers.url).do("jobs", code=3)
        assert "version 2 of the API; this weir knows version 1 of the API; update it" in errors

    @pytest.mark.parametrize("given", [PAGE, (200, {"items": []}, {})])
    def test_nor_is_a_page_csv(self, tmp_path: Path, given: Given) -> None:
        """It would be taken for numbers."""
        with serving(given) as answers:
            said, errors = command(tmp_path, answers.url).do("query", "a", "rate", "--csv", code=3)
        assert said == ""
        assert "in place of CSV; is this the dashboard?" in errors

    @pytest.mark.parametrize("page", [PAGE, (200, {"status": "starting"}, ANOTHER)])
    def test_it_is_waited_for_likewise(self, tmp_path: Path, page: Given) -> None:
        """What stands before a dashboard that starts may have a page of its own."""
        with serving(page, (200, {"items": []}, {})) as answers:
            command(tmp_path, answers.url).do("jobs", "--wait", "20")
        assert len(answers.asked) == 2

    def test_where_a_redirect_leads(self, tmp_path: Path) -> None:
        """It is a refusal, and says why it is none of the dashboard's."""
        leads = {"Location": "https://login.example/?to=weir"}
        with serving((301, {}, leads)) as answers:
            written, _ = command(tmp_path, answers.url).do("jobs", "--json", code=1)
        told = json.loads(written)["error"]
        assert told["code"] == "http_301"
        assert told["message"].startswith("answer 301 leads to https://login.example/?to=weir, wh")


REFUSAL = {
    "status": 403,
    "code": "scope_missing",
    "message": "the key must have the scope read",
    "errors": [{"pointer": "/x", "required": "a", "got": "b", "mend": "c"}],
}


class TestJson:
    @pytest.mark.parametrize(
        "words",
        [
            ("get",),
            ("get", "metric/a"),
            ("history", "metric/a"),
            ("query", "orders", "rate"),
            ("diff", "metric/a", "--version", "1"),
            ("rollback", "metric/a", "--to", "1"),
            ("rollback", "metric/a", "--to", "1", "--from", "2"),
            ("jobs",),
            ("jobs", "k_1"),
            ("jobs", "k_1", "--cancel"),
            ("audit",),
            ("top",),
        ],
    )
    def test_a_refusal_is_an_object(self, tmp_path: Path, words: tuple[str, ...]) -> None:
        """The dashboard's code, words and places, on standard output; people read the other."""
        with serving((403, REFUSAL, {})) as answers:
            written, errors = command(tmp_path, answers.url).do(*words, "--json", code=1)
        told = {name: REFUSAL[name] for name in ("code", "message", "errors")}
        assert [json.loads(line) for line in written.splitlines()] == [{"error": told}]
        assert errors == "weir: the key must have the scope read\n"

    def test_without_it_nothing_is_written(self, tmp_path: Path) -> None:
        """Standard output holds what was asked for, and that is nothing."""
        with serving((403, REFUSAL, {})) as answers:
            written, _ = command(tmp_path, answers.url).do("get", code=1)
        assert written == ""

    def test_one_that_is_no_problem(self, tmp_path: Path) -> None:
        """What is no answer of the dashboard's has its status as code."""
        with serving((404, "<html>", {})) as answers:
            written, _ = command(tmp_path, answers.url).do("jobs", "--json", code=1)
        told = {"code": "http_404", "message": "answer 404 without words", "errors": []}
        assert json.loads(written) == {"error": told}

    def test_no_answer(self, tmp_path: Path) -> None:
        """By its own code, or that of the answer that asked to come later."""
        written, errors = command(tmp_path, f"http://127.0.0.1:{free_port()}").do(
            "jobs", "--json", code=3
        )
        told = json.loads(written)["error"]
        assert (told["code"], told["errors"]) == ("unreached", [])
        assert errors == f"weir: {told['message']}\n"
        with serving((504, NOT_COUNTED, {})) as answers:
            written, _ = command(tmp_path, answers.url).do("jobs", "--json", code=3)
        assert json.loads(written)["error"]["code"] == "not_counted_yet"

    @pytest.mark.parametrize(
        "words",
        [
            ("diff", "--json"),
            ("diff", "--js"),
            ("rollback", "--json"),
            ("query", "--json", "--tip", "3"),
            ("--json",),
        ],
    )
    def test_words_that_cannot_be_meant(self, tmp_path: Path, words: tuple[str, ...]) -> None:
        """Also where the parser itself refuses them."""
        written, errors = command(tmp_path, "http://127.0.0.1:1").do(*words, code=2)
        told = json.loads(written)["error"]
        assert (told["code"], told["errors"]) == ("usage", [])
        assert errors.endswith(f"weir: {told['message']}\n")


class TestOldNumbers:
    def test_a_table_is_followed_by_how_old_it_is(self, tmp_path: Path) -> None:
        """On standard error: what reads the table is not disturbed."""
        answer = {"series": [], "t_ms": [], "notes": [], "fresh": STALE}
        with serving((200, answer, {})) as answers:
            said, errors = command(tmp_path, answers.url).do("query", "orders", "rate")
        assert said.startswith("no series")
        assert errors == OLD

    def test_so_is_what_comes_as_csv(self, tmp_path: Path) -> None:
        """The lines have no place for it; the dashboard tells it beside them."""
        notes = [{"code": "capped", "message": "more series than the metric keeps"}]
        beside = {"Weir-Fresh": json.dumps(STALE), "Weir-Notes": json.dumps(notes)}
        beside["Content-Type"] = "text/csv; charset=utf-8"
        with serving((200, "time,value\n", beside)) as answers:
            said, errors = command(tmp_path, answers.url).do("query", "orders", "rate", "--csv")
        assert said == "time,value\n"
        assert errors == f"weir: more series than the metric keeps\n{OLD}"
