"""Who changed what, how versions differ, and the way back."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from .conftest import Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
FIRST = "# the first\nkind: metric\nname: {name}\nevents: {{type: order.placed}}\n"
RULE = "{kind: rule, name: r, metric: nowhere, aggregate: count, window: 1m, above: 5}"
SECOND = FIRST.replace("# the first", "# the second") + "unit: ms\n"


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return a name of this test's own."""
    return str(request.node.originalname)[-60:]


@pytest.fixture
def twice(running: Running, name: str) -> str:
    """Store two versions of a metric; return its path."""
    path = f"/definitions/metric/{name}"
    with running.client() as http:
        for text, condition in ((FIRST, {"if-none-match": "*"}), (SECOND, {"if-match": '"1"'})):
            body = {"text": text.format(name=name)}
            assert http.put(path, json=body, headers=condition).is_success
    return path


def back(http: httpx.Client, path: str, version: int, if_match: str | None) -> httpx.Response:
    """Roll a definition back."""
    headers = {} if if_match is None else {"if-match": if_match}
    return http.post(f"{path}/rollback", json={"version": version}, headers=headers)


class TestRollback:
    def test_an_older_text_becomes_the_newest_version(self, running: Running, twice: str) -> None:
        """Nothing of the history is lost, and the record says who did it."""
        with running.client() as http:
            done = back(http, twice, 1, '"2"')
            assert (done.status_code, done.headers["etag"]) == (200, '"3"')
            history = http.get(f"{twice}/history").json()["items"]
            session = http.get("/session").json()
        assert [one["version"] for one in history] == [3, 2, 1]
        assert history[0]["text"] == history[2]["text"] == done.json()["text"]
        assert session["key_id"] in history[0]["by"]
        assert done.json()["parsed"]["unit"] == ""

    def test_conditions(self, running: Running, twice: str) -> None:
        """It is a change like any other: 428 without a condition, 412 if it does not hold."""
        with running.client() as http:
            for if_match, status in ((None, 428), ('"1"', 412), ('"7"', 412), ("2", 422)):
                assert back(http, twice, 1, if_match).status_code == status
            assert http.get(twice).json()["version"] == 2

    def test_what_cannot_be_gone_back_to(self, running: Running, twice: str) -> None:
        """What is in force, what never was, and a deletion; each says what to name."""
        with running.client() as http:
            same = back(http, twice, 2, '"2"')
            assert (same.status_code, same.json()["code"]) == (422, "request_invalid")
            none = back(http, twice, 9, '"2"')
            assert (none.status_code, none.json()["code"]) == (404, "not_found")
            assert none.json()["message"].endswith("got none; the newest is 2")
            http.delete(twice, headers={"if-match": '"2"'})
            gone = back(http, twice, 3, None)
            assert "got its deletion; name the version before it" in gone.json()["message"]
            wanted = {"version": 2}
            undone = http.post(f"{twice}/rollback", json=wanted, headers={"if-none-match": "*"})
            assert (undone.status_code, undone.headers["etag"]) == (200, '"4"')

    def test_a_key_has_routes_of_its_own(self, running: Running) -> None:
        """A revoked key does not come back this way."""
        key_id = running.key_for("default", ["read"]).split("_")[1]
        with running.client() as http:
            http.delete(f"/keys/{key_id}")
            refused = http.post(
                f"/definitions/key/{key_id}/rollback",
                json={"version": 1},
                headers={"if-none-match": "*"},
            )
        assert (refused.status_code, refused.json()["code"]) == (422, "definition_invalid")


class TestDiff:
    def ask(self, running: Running, **body: Any) -> httpx.Response:
        """Ask for a comparison."""
        with running.client() as http:
            return http.post("/definitions/diff", json=body)

    @pytest.mark.usefixtures("twice")
    def test_two_versions(self, running: Running, name: str) -> None:
        """The texts line by line, and the members that mean something else."""
        found = self.ask(running, kind="metric", name=name, version=2, against=1).json()
        assert found["text"].splitlines()[:2] == ["--- version 1", "+++ version 2"]
        assert {"-# the first", "+# the second", "+unit: ms"} <= set(found["text"].splitlines())
        assert found["members"] == [{"pointer": "/unit", "old": "", "new": "ms"}]
        assert (found["old_version"], found["new_version"], found["same"]) == (1, 2, False)

    @pytest.mark.usefixtures("twice")
    def test_a_draft_that_means_the_same(self, running: Running, name: str) -> None:
        """Its letters differ, its members do not."""
        text = SECOND.format(name=name).replace("# the second", "# another")
        found = self.ask(running, text=text).json()
        assert (found["same"], found["members"], found["old_version"]) == (True, [], 2)
        assert "+# another" in found["text"].splitlines()

    def test_a_draft_of_what_is_not_there(self, running: Running, name: str) -> None:
        """Everything is new."""
        found = self.ask(running, text=FIRST.format(name=name)).json()
        assert (found["old_version"], found["same"]) == (None, False)
        assert {"pointer": "/name", "old": None, "new": name} in found["members"]
        assert not [line for line in found["text"].splitlines()[2:] if line.startswith("-")]

    @pytest.mark.parametrize(
        ("body", "status", "words"),
        [
            ({}, 422, "must have one of text and version"),
            ({"text": "a: 1", "version": 1}, 422, "must have one of text and version"),
            ({"version": 1}, 422, "must be named by kind and name"),
            ({"kind": "metric", "name": "nowhere", "version": 1}, 404, "there is none at all"),
            ({"text": "kind: metrik\nname: m\n"}, 422, 'did you mean "metric"?'),
            ({"text": RULE}, 404, 'must be one that is served, got "nowhere"'),
            ({"kind": "key", "name": "bootstr1", "version": 1}, 422, "use /api/v1/keys"),
        ],
    )
    def test_what_cannot_be_compared(
        self, running: Running, body: dict[str, Any], status: int, words: str
    ) -> None:
        """The refusal says what a comparison needs."""
        refused = self.ask(running, **body)
        assert refused.status_code == status
        assert words in refused.json()["message"]


class TestChanges:
    def test_newest_first_and_page_by_page(self, running: Running) -> None:
        """Every edit of the tenant with who and when, of a key without its text."""
        admin = running.key_for("changing", ["admin", "define", "read"])
        with running.client(admin) as http:
            for name in ("one", "two"):
                body = {"text": FIRST.format(name=name)}
                path = f"/definitions/metric/{name}"
                assert http.put(path, json=body, headers={"if-none-match": "*"}).is_success
            http.delete("/definitions/metric/one", headers={"if-match": '"1"'})
            first = http.get("/changes?limit=2").json()
            rest = http.get(f"/changes?limit=2&cursor={first['next']}").json()
        items = first["items"] + rest["items"]
        assert [(one["op"], one["kind"], one["name"]) for one in items[:3]] == [
            ("delete", "metric", "one"),
            ("put", "metric", "two"),
            ("put", "metric", "one"),
        ]
        assert items[3]["kind"] == "key"
        assert items[3]["text"] is None
        assert rest["next"] is None
        assert items[1]["text"] == FIRST.format(name="two")
        assert items[0]["at_ms"] >= items[1]["at_ms"]
