"""The HTTP API: scopes, tenants, definitions, keys, sessions, headers, pages."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import httpx
import pytest
from weir.problems import ProblemError, Reason
from weir_dashboard.auth.scopes import TABLE, Scope, find
from weir_dashboard.definitions.writer import Expected
from weir_dashboard.openapi import described

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

METRIC = "kind: metric\nname: {name}\nevents: {{type: order.placed}}\n{rest}"


def put(http: httpx.Client, name: str, rest: str = "", **condition: str) -> httpx.Response:
    """Put a metric, as a new one unless told otherwise."""
    headers = condition or {"if-none-match": "*"}
    headers = {key.replace("_", "-"): value for key, value in headers.items()}
    text = METRIC.format(name=name, rest=rest)
    return http.put(f"/definitions/metric/{name}", json={"text": text}, headers=headers)


class TestScopes:
    def test_every_described_route_is_in_the_table_and_no_other(self) -> None:
        """The scope table and the OpenAPI description list the same routes."""
        routes = {
            (method.upper(), path.removeprefix("/api/v1"))
            for path, operations in described()["openapi.json"]["paths"].items()
            for method in operations
        }
        undescribed = {("GET", "/live"), ("GET", "/openapi.json"), ("GET", "/asyncapi.json")}
        assert routes | undescribed == set(TABLE)

    @pytest.mark.parametrize("scope", list(Scope))
    def test_each_scope_opens_its_routes_and_no_other(self, running: Any, scope: Scope) -> None:
        """A key with one scope is let through exactly where the table says so."""
        key = running.key_for(f"scoped{scope.value}", [scope.value])
        with running.client(key) as http:
            for (method, template), needed in TABLE.items():
                path = template.replace("{kind}", "metric")
                path = re.sub(r"\{\w+\}", "nothing", path)
                answer = http.request(method, path, json={})
                refused = answer.status_code == 403 and answer.json()["code"] == "scope_missing"
                assert refused == (needed not in (None, scope)), (method, path, answer.text)

    @pytest.mark.parametrize("path", ["/nothing", "/query/", "/definitions/metric", "/session/x"])
    def test_what_is_not_in_the_table_is_not_reached(self, running: Any, path: str) -> None:
        """A path without a row is unknown, also to an administrator."""
        with running.client() as http:
            assert http.post(path, json={}).status_code == 404

    def test_nobody_gets_401_before_the_body_is_looked_at(self, running: Any) -> None:
        """Without a credential even a broken body is answered with 401."""
        with httpx.Client(base_url=f"{running.url}/api/v1") as http:
            answer = http.post("/query", content=b"{")
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"

    def test_a_fixed_path_wins_over_a_placeholder(self) -> None:
        """`/definitions/validate` is not read as a kind and a name."""
        entry, _ = find("POST", "/api/v1/definitions/validate")
        assert entry is not None
        assert entry.template == "/definitions/validate"


class TestTenants:
    def test_each_sees_its_own_only(self, running: Any) -> None:
        """The same names in two tenants are two things; a foreign one is unknown."""
        keys = [running.key_for(tenant, ["read", "define"]) for tenant in ("one", "two")]
        with running.client(keys[0]) as one, running.client(keys[1]) as two:
            assert put(one, "shared", "description: of one").status_code == 201
            assert put(one, "secret").status_code == 201
            assert put(two, "shared", "description: of two").status_code == 201
            assert "of two" in two.get("/definitions/metric/shared").json()["text"]
            theirs = two.get("/definitions/metric/secret")
            none = two.get("/definitions/metric/nothing")
            assert theirs.status_code == none.status_code == 404
            assert theirs.json() == none.json()
            assert [d["name"] for d in two.get("/definitions").json()["items"]] == ["shared"]
            assert [m["name"] for m in two.get("/metrics").json()["items"]] == ["shared"]


class TestDefinitions:
    def test_a_new_one_is_stored_with_its_version(self, running: Any) -> None:
        """A put is answered after it was read back, with the version as ETag."""
        with running.client() as http:
            made = put(http, "fresh_one")
            assert (made.status_code, made.headers["etag"]) == (201, '"1"')
            read = http.get("/definitions/metric/fresh_one")
            assert read.json()["state"] == "starting"
            assert read.json()["parsed"]["resolution"] == "10s"
            progress = http.get("/definitions/metric/fresh_one/progress").json()
            assert progress["active"] is False
            assert "no panes driver has been heard" in progress["waits_for"]
            waiting = http.get("/metrics/fresh_one").json()["waiting"]
            assert waiting == {"version": 1, "instead": None, "why": progress["waits_for"]}

    def test_conditions(self, running: Any) -> None:
        """428 without a condition, 412 when it does not hold, else the next version."""
        with running.client() as http:
            assert put(http, "guarded").status_code == 201
            assert put(http, "guarded").status_code == 412
            text = {"text": METRIC.format(name="guarded", rest="")}
            assert http.put("/definitions/metric/guarded", json=text).status_code == 428
            assert put(http, "guarded", if_match='"7"').status_code == 412
            second = put(http, "guarded", "unit: ms", if_match='"1"')
            assert (second.status_code, second.headers["etag"]) == (200, '"2"')
            assert put(http, "guarded", if_match="2").json()["code"] == "request_invalid"

    def test_of_two_writers_one_wins(self, running: Any) -> None:
        """Two edits of one version at the same time: one stands, the other gets 409 or 412."""
        with running.client() as http:
            put(http, "raced")
        results = running.run(self._race(running))
        assert sorted(results) in ([200, 409], [200, 412])
        with running.client() as http:
            assert len(http.get("/definitions/metric/raced/history").json()["items"]) == 2

    def test_who_lost_in_the_log_gets_409(self, running: Any) -> None:
        """Two edits that both found version 1 in force; what they are told is in the problem."""
        with running.client() as http:
            put(http, "lost")
        writer, place = running.dashboard.context.writer, ("default", "metric", "lost")

        async def both() -> list[Any]:
            texts = [METRIC.format(name="lost", rest=f"unit: {u}") for u in ("ms", "s")]
            works = [writer.put(place, t, by="x", expected=Expected(version=1)) for t in texts]
            return await asyncio.gather(*works, return_exceptions=True)

        (problem,) = [one for one in running.run(both()) if isinstance(one, ProblemError)]
        assert (problem.status, problem.reason) == (409, Reason.VERSION_CONFLICT)
        assert "is at version 2" in problem.message

    async def _race(self, running: Any) -> list[int]:
        headers = {"authorization": f"Bearer {running.key}", "if-match": '"1"'}
        async with httpx.AsyncClient(base_url=f"{running.url}/api/v1", headers=headers) as http:
            texts = [METRIC.format(name="raced", rest=f"unit: {u}") for u in ("ms", "s")]
            path = "/definitions/metric/raced"
            answers = await asyncio.gather(*(http.put(path, json={"text": t}) for t in texts))
        return [answer.status_code for answer in answers]

    def test_a_deleted_one_is_gone_and_its_history_stays(self, running: Any) -> None:
        """Deleting makes a version of its own; the name can be used again after it."""
        with running.client() as http:
            put(http, "doomed")
            gone = http.delete("/definitions/metric/doomed", headers={"if-match": '"1"'})
            assert gone.json()["op"] == "delete"
            assert http.get("/definitions/metric/doomed").status_code == 404
            history = http.get("/definitions/metric/doomed/history").json()["items"]
            assert [edit["op"] for edit in history] == ["delete", "put"]
            assert put(http, "doomed").headers["etag"] == '"3"'

    @pytest.mark.parametrize(
        ("rest", "code"),
        [
            ("where: \"reflect('java.lang.Runtime', 'exit')\"", "function_not_allowed"),
            ("tenant: other", "unknown_field"),
            ("is_admin: true", "unknown_field"),
            ("keep: {3s: 1h}", "definition_invalid"),
            ("where: 'data.a = (select 1)'", "function_not_allowed"),
        ],
    )
    def test_a_wrong_draft_is_refused_with_place_and_mend(
        self, running: Any, rest: str, code: str
    ) -> None:
        """The check names what is wrong, by PUT as by validate, and stores nothing."""
        with running.client() as http:
            refused = put(http, "wrong_one", rest)
            checked = http.post(
                "/definitions/validate", json={"text": METRIC.format(name="wrong_one", rest=rest)}
            )
            assert http.get("/definitions/metric/wrong_one").status_code == 404
        assert refused.status_code == 422
        assert checked.status_code == 200
        assert checked.json()["ok"] is False
        assert refused.json()["errors"][0]["pointer"].startswith("/")
        assert {refused.json()["code"], checked.json()["code"]} <= {code, "expression_invalid"}

    def test_a_key_is_not_written_as_a_definition(self, running: Any) -> None:
        """A key's hash can neither be chosen nor read as a definition."""
        with running.client() as http:
            text = {"text": "kind: key\nname: abcdefgh\n"}
            condition = {"if-none-match": "*"}
            refused = http.put("/definitions/key/abcdefgh", json=text, headers=condition)
            assert refused.status_code == 422
            assert http.get("/definitions/key/bootstr1").status_code == 404
            assert "hash" not in http.get("/definitions").text


class TestKeys:
    def test_made_shown_once_listed_revoked(self, running: Any) -> None:
        """A key works once made, is listed without its secret, and is refused when revoked."""
        with running.client() as http:
            made = http.post("/keys", json={"scopes": ["read"], "label": "mine"}).json()
            listed = http.get("/keys")
            assert made["key"] not in listed.text
            assert made["id"] in {key["id"] for key in listed.json()["items"]}
            with running.client(made["key"]) as mine:
                assert mine.get("/metrics").status_code == 200
                http.delete(f"/keys/{made['id']}")
                assert mine.get("/metrics").status_code == 401

    def test_no_more_than_the_makers_scopes(self, running: Any) -> None:
        """A key cannot open what its maker cannot."""
        with running.client(running.key_for("limited", ["admin", "read"])) as http:
            refused = http.post("/keys", json={"scopes": ["read", "define"]})
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")

    def test_no_secret_is_stored(self, running: Any) -> None:
        """No key, cookie or token stands in Redis or in the log of definitions."""
        with running.client() as http:
            key = http.post("/keys", json={"scopes": ["read"]}).json()["key"]
            once = http.post("/session/once").json()["once"]
            signed = http.post("/session", json={"key": key})
        cookie = signed.cookies.get("__Host-weir") or signed.headers["set-cookie"]
        secret = re.split(r"[=;]", cookie)[1] if "=" in cookie else cookie
        stored = b""
        for name in running.redis.scan_iter():
            stored += name + (running.redis.dump(name) or b"")
        texts = [d.text for d in running.dashboard.context.catalog.folded.current(kind="key")]
        for canary in (key, once, secret, key.split("_", 2)[2]):
            assert canary.encode() not in stored
            assert canary not in "".join(texts)

    def test_guessing_is_slowed_and_the_owner_is_not(self, running: Any) -> None:
        """After twenty wrong keys an address gets 429; the right key still passes."""
        with running.client("wk_aaaaaaaa_" + "x" * 43) as guesser:
            codes = [guesser.get("/metrics").status_code for _ in range(30)]
        assert set(codes) == {401, 429}
        with running.client() as owner:
            assert owner.get("/metrics").status_code == 200


class TestSessions:
    def _signed_in(self, running: Any) -> str:
        with running.client() as http:
            once = http.post("/session/once").json()["once"]
        answer = httpx.post(f"{running.url}/api/v1/session", json={"once": once})
        assert answer.json()["signed_in"] is True
        header = answer.headers["set-cookie"]
        for part in ("__Host-weir=", "HttpOnly", "Secure", "SameSite=lax", "Path=/"):
            assert part in header
        return str(header.split(";")[0])

    def test_a_link_signs_in_once(self, running: Any) -> None:
        """A sign-in token works a single time."""
        with running.client() as http:
            once = http.post("/session/once").json()["once"]
        url = f"{running.url}/api/v1/session"
        assert httpx.post(url, json={"once": once}).status_code == 200
        again = httpx.post(url, json={"once": once})
        assert (again.status_code, again.json()["code"]) == (401, "unauthorized")

    def test_a_cookie_reads_and_is_worth_nothing_after_sign_out(self, running: Any) -> None:
        """The session ends on the server, not only in the browser."""
        cookie = self._signed_in(running)
        own = {"cookie": cookie, "origin": running.url, "sec-fetch-site": "same-origin"}
        with httpx.Client(base_url=f"{running.url}/api/v1", headers=own) as http:
            assert http.get("/session").json()["tenant"] == "default"
            assert http.delete("/session").json()["signed_in"] is False
            assert http.get("/metrics").status_code == 401
            assert http.get("/session").json() == {
                "signed_in": False,
                "tenant": None,
                "scopes": [],
                "key_id": None,
            }

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
            {"origin": "{url}", "sec-fetch-site": "same-site"},
            {"origin": "{url}"},
            {"origin": "null", "sec-fetch-site": "same-origin"},
        ],
    )
    def test_a_write_of_another_site_is_refused(
        self, running: Any, headers: dict[str, str]
    ) -> None:
        """A cookie writes only from the installation's own pages."""
        sent = {name: value.format(url=running.url) for name, value in headers.items()}
        sent["cookie"] = self._signed_in(running)
        answer = httpx.post(f"{running.url}/api/v1/query", json={}, headers=sent)
        assert (answer.status_code, answer.json()["code"]) == (403, "origin_refused")

    def test_signing_in_anew_ends_the_session_before(self, running: Any) -> None:
        """The cookie is rotated at sign-in."""
        cookie = self._signed_in(running)
        own = {"cookie": cookie, "origin": running.url, "sec-fetch-site": "same-origin"}
        url = f"{running.url}/api/v1/session"
        assert httpx.post(url, json={"key": running.key}, headers=own).status_code == 200
        assert httpx.get(url, headers={"cookie": cookie}).json()["signed_in"] is False


class TestHostileRequests:
    @pytest.mark.parametrize(
        ("body", "kind", "status", "code"),
        [
            (b"{", "application/json", 400, "invalid_json"),
            (b"", "application/json", 422, "query_invalid"),
            (b"[" * 100_000, "application/json", 400, "invalid_json"),
            (b"\xff\xfe", "application/json", 400, "invalid_json"),
            (b'{"metric":"m"}', "text/plain", 415, "unsupported_media_type"),
            (b"metric=m", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
            (b" " * 1_000_001, "application/json", 413, "body_too_large"),
        ],
    )
    def test_bodies(self, running: Any, body: bytes, kind: str, status: int, code: str) -> None:
        """A body that cannot be used is refused by name, and the service goes on."""
        with running.client() as http:
            answer = http.post("/query", content=body, headers={"content-type": kind})
            assert (answer.status_code, answer.json()["code"]) == (status, code)
            begun = time.monotonic()
            assert http.get("/session").status_code == 200
        assert time.monotonic() - begun < 1

    def test_a_chunked_body_is_cut_off_while_it_is_read(self, running: Any) -> None:
        """A body without a declared length is refused once it is too large."""
        with running.client() as http:
            json_type = {"content-type": "application/json"}
            chunks = (b" " * 100_000 for _ in range(20))
            answer = http.post("/query", content=chunks, headers=json_type)
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


class TestPages:
    def test_headers_stand_on_every_answer(self, running: Any) -> None:
        """The content security policy and its companions are on pages, files and refusals."""
        for path in ("/", "/b/web", "/assets/app-1a2b.js", "/api/v1/nothing", "/api/v1/session"):
            headers = httpx.get(running.url + path).headers
            policy = headers["content-security-policy"]
            for part in (
                "default-src 'self'",
                "object-src 'none'",
                "base-uri 'none'",
                "frame-ancestors 'none'",
            ):
                assert part in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert "referrer-policy" in headers
            assert headers["weir-api"] == "1"
            assert "server" not in headers

    @pytest.mark.parametrize("path", ["/", "/b/web", "/login", "/m/requests"])
    def test_every_page_is_the_page(self, running: Any, path: str) -> None:
        """The page's own router decides; the server gives it for every path, never cached."""
        answer = httpx.get(running.url + path)
        assert "<title>Weir</title>" in answer.text
        assert answer.headers["cache-control"] == "no-store"

    def test_hashed_files_are_kept_for_ever(self, running: Any) -> None:
        """What has its hash in its name never changes."""
        answer = httpx.get(running.url + "/assets/app-1a2b.js")
        assert "immutable" in answer.headers["cache-control"]
        assert httpx.get(running.url + "/assets/none.js").status_code == 404

    @pytest.mark.parametrize("path", ["/../hash_key", "/%2e%2e/hash_key", "/assets/../../x.js"])
    def test_nothing_outside_the_folder_is_served(self, running: Any, path: str) -> None:
        """No path climbs out of the folder of pages."""
        answer = httpx.get(running.url + path)
        assert answer.status_code == 404 or "<title>Weir</title>" in answer.text
