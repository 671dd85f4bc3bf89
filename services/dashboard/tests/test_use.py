"""How late sources are, and what a version did with every event, over HTTP."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from weir.definitions.records import Counting, DriverStart, activation_record, start_record
from weir.lateness import EDGES_MS
from weir.rows import Row
from weir.series import encode_series
from weir_dashboard import turns
from weir_reading import accounts

from .watching import METRIC

if TYPE_CHECKING:
    from .conftest import Engine, Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


class TestLateness:
    def test_the_share_beyond_each_length_is_told_by_source(
        self, running: Running, engine: Engine
    ) -> None:
        """Of the hours asked for, and of all sources together; nobody else's."""
        hour_s = int(time.time()) // 3600 * 3600

        def rows(**counts: int) -> dict[str, Row]:
            found = {}
            for name, n in counts.items():
                source, edge = name.split("_")
                found[encode_series(["lateness", source, edge])] = Row(n)
            return found

        other = {encode_series(["elsewhere", "web", "beyond"]): Row(1_000)}
        engine.commit(
            {
                (-4, 3600, hour_s): rows(web_1000=90, web_60000=9, app_0=50) | other,
                (-4, 3600, hour_s - 3600): rows(web_beyond=1),
                (-4, 3600, hour_s - 7200): rows(web_beyond=500),
            }
        )
        with running.client(running.key_for("lateness", ["read"])) as http:
            found = http.get("/lateness", params={"hours": 2}).json()
        app, web = found["sources"]

        assert (app["source"], web["source"], found["all"]["source"]) == ("app", "web", None)
        assert (app["events"], web["events"], found["all"]["events"]) == (50, 100, 150)
        late = {one["than_ms"]: one["events"] for one in web["late"]}
        assert late[0] == 100
        assert late[1_000] == late[10_000] == 10
        assert late[60_000] == late[86_400_000] == 1
        assert tuple(late) == EDGES_MS
        assert (web["suggested_ms"], app["suggested_ms"]) == (None, 0)
        assert [one["share"] for one in web["late"] if one["than_ms"] == 60_000] == [0.01]
        assert (web["p50_ms"], web["p99_ms"], web["max_ms"]) == (1_000, 60_000, None)
        assert (app["p50_ms"], app["max_ms"]) == (0, 0)

    def test_of_a_metric_it_is_that_of_its_types_and_sources(
        self, running: Running, engine: Engine
    ) -> None:
        """Stored or a draft; what is not known by type is told, and is in no figure."""
        hour_s = int(time.time()) // 3600 * 3600

        def rows(*of: tuple[str, ...], n: int) -> dict[str, Row]:
            return {encode_series(["typed", *values]): Row(n) for values in of}

        long_type = "com.long." + "x" * 230
        engine.commit(
            {
                (-4, 3600, hour_s): rows(("web", "1000"), ("app", "1000"), n=2_200)
                | rows(("web", "60000"), ("other", "0"), n=100),
                (-5, 3600, hour_s): rows(
                    ("web", "1000", "com.a"),
                    ("web", "1000", "org"),
                    ("app", "1000", "com.b"),
                    n=1_000,
                )
                | rows(("web", "60000", "com.a"), n=1)
                | rows(("web", "60000", long_type), n=9)
                | rows(("other", "0", "com.a"), n=100),
            }
        )
        text = (
            "kind: metric\nname: typed\nevents: {type: [com.a, com.b], source: [web, app]}\n"
            "aggregates: [count]\nkeep: {10s: 1h}\nallowed_lateness: 30s\n"
        )
        running.put("typed", "metric", "typed", text)
        every = text.replace("[com.a, com.b]", "'*'").replace("typed", "every")
        with running.client(running.key_for("typed", ["read"])) as http:
            stored = http.get("/lateness", params={"metric": "typed"}).json()
            draft = http.post("/lateness", json={"text": text}).json()
            long = http.post("/lateness", json={"text": text.replace("com.b", long_type)}).json()
            prefix = http.post("/lateness", json={"text": text.replace("com.b", "com.*")}).json()
            whole = http.post("/lateness", json={"text": every}).json()
            unknown = http.get("/lateness", params={"metric": "nobody"})
            rule = http.post("/lateness", json={"text": "kind: board\nname: b\ntiles: []\n"})

        app, web = stored["sources"]
        assert (stored["allowed_ms"], app["source"], app["events"]) == (30_000, "app", 1_000)
        late = {one["than_ms"]: one["events"] for one in web["late"]}
        assert (web["events"], late[10_000], late[30_000], late[60_000]) == (1_001, 1, 1, 0)
        assert (web["suggested_ms"], stored["all"]["suggested_ms"]) == (1_000, 1_000)
        # A type that is too long was cut: by its beginning alone can it be found.
        assert (stored["untyped"], prefix["untyped"]) == (4_500 - 3_001, 4_500 - 3_010)
        assert draft == stored
        assert (long["all"]["events"], long["untyped"]) == (1_001, stored["untyped"])
        assert prefix["all"]["events"] == 2_010
        assert (whole["all"]["events"], whole["untyped"]) == (4_500, 0)
        assert (unknown.status_code, rule.status_code) == (404, 422)

    def test_it_costs_what_the_tenants_own_rows_cost(
        self, running: Running, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A flood of sources, or of types, is its sender's alone: nobody else reads its rows."""
        hour_s = int(time.time()) // 3600 * 3600
        crowd = {encode_series(["crowd", f"s{n}", "0"]): Row(1) for n in range(3_000)}
        flood = {encode_series(["flood", "web", "0", f"t{n}"]): Row(1) for n in range(3_000)}
        mine = {encode_series(["beside", "web", "1000", "com.a"]): Row(7)}
        engine.commit(
            {
                (-4, 3600, hour_s): {encode_series(["beside", "web", "1000"]): Row(7)} | crowd,
                (-5, 3600, hour_s): flood | mine,
            }
        )
        text = "kind: metric\nname: m\nevents: {type: com.a}\naggregates: [count]\n"
        panes = running.dashboard.context.queries.panes
        monkeypatch.setattr(panes, "_query_bytes", 500_000)
        panes.clear()
        with running.client(running.key_for("beside", ["read"])) as http:
            found = http.post("/lateness", json={"text": text}).json()
            every = http.get("/lateness").json()
            monkeypatch.setattr(accounts, "MAX_LOOKED_FOR", 24)
            assert http.post("/lateness", json={"text": text}).status_code == 200
            long = http.post("/lateness", json={"text": text, "hours": 25})
        with running.client(running.key_for("flood", ["read"])) as http:
            many = http.post("/lateness", json={"text": text, "hours": 24})
            whole = http.get("/lateness")
        with running.client(running.key_for("crowd", ["read"])) as http:
            crowded = http.get("/lateness")

        assert (found["all"]["events"], found["untyped"]) == (7, 0)
        assert every["all"]["events"] == 7
        assert (long.status_code, long.json()["code"]) == (422, "query_too_large")
        assert long.json()["detail"] == (
            "rows of sources to look for must be at most 24, got 25: 1 series of the last 8 days in"
            " each of 25 h; ask for at most 24 h"
        )
        assert many.json()["detail"] == (
            "rows of types to look for must be at most 24, got 72,000: 3,000 series of the last 8"
            " days in each of 24 h; ask for all types together"
        )
        assert whole.status_code == 200
        assert crowded.json()["detail"].endswith("each of 24 h; let fewer sources send")

    def test_it_takes_a_turn(self, running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        """As whatever reads much does: nobody has more than six under way."""
        monkeypatch.setattr(turns, "A_SESSION", 0)
        text = "kind: metric\nname: m\nevents: {type: com.a}\naggregates: [count]\n"
        with running.client(running.key_for("turning", ["read"])) as http:
            asked = (http.get("/lateness"), http.post("/lateness", json={"text": text}))
        assert [one.status_code for one in asked] == [429, 429]

    def test_only_what_the_metric_may_allow_is_suggested(
        self, running: Running, engine: Engine
    ) -> None:
        """No longer than its panes are kept: a draft that takes it is as right as before."""
        hour_s = int(time.time()) // 3600 * 3600
        edges = {"0": 900, str(12 * 3_600_000): 100}
        of_type = {encode_series(["keeps", "web", e, "com.a"]): Row(n) for e, n in edges.items()}
        of_all = {encode_series(["keeps", "web", edge]): Row(n) for edge, n in edges.items()}
        engine.commit({(-4, 3600, hour_s): of_all, (-5, 3600, hour_s): of_type})
        text = "kind: metric\nname: m\nevents: {type: com.a}\naggregates: [count]\n"
        told: dict[str, tuple[int | None, int]] = {}
        with running.client(running.key_for("keeps", ["read", "define"])) as http:
            for keep in ("resolution: 1s\n", "keep: {10s: 12h}\n", "keep: {10s: 5h, 1m: 7d}\n"):
                found = http.post("/lateness", json={"text": text + keep}).json()
                assert {one["suggested_ms"] for one in found["sources"]} == {
                    found["all"]["suggested_ms"]
                }
                told[keep] = (found["all"]["suggested_ms"], found["longest_ms"] // 3_600_000)
                taken = f"allowed_lateness: {found['longest_ms'] // 1000}s\n"
                draft = {"kind": "metric", "text": text + keep + taken}
                assert http.post("/definitions/validate", json=draft).json()["ok"]
            every = http.get("/lateness").json()

        assert list(told.values()) == [(None, 6), (12 * 3_600_000, 12), (None, 2)]
        assert (every["all"]["suggested_ms"], every["longest_ms"]) == (12 * 3_600_000, 86_400_000)

    def test_without_events_nothing_is_said(self, running: Running, engine: Engine) -> None:
        """A tenant that sent nothing has no median."""
        engine.commit()
        with running.client(running.key_for("silent", ["read"])) as http:
            found = http.get("/lateness").json()
        assert (found["sources"], found["all"]["events"]) == ([], 0)
        assert found["all"]["p50_ms"] is None


def stop_counting(running: Running, name: str, vid: int) -> None:
    """Say, as a driver does, that a version was counted and is not any more."""
    fence = running.record(start_record(DriverStart("a", 1, "start"), at_ms=0))
    counting = Counting(vid, "default", name, 1, {0: 0}, from_start=True)
    for op in ("start", "stop"):
        running.record(activation_record(counting, op=op, fence=fence, at_ms=0))


class TestMetricLedger:
    def test_counted_is_used_not_matched_refused_and_too_old(
        self, running: Running, engine: Engine, metric: tuple[str, int]
    ) -> None:
        """By received minute; before the version was counted nothing is said of the rest."""
        name, vid = metric
        minute_s = int(time.time()) // 60 * 60 - 60
        began_ms = (minute_s - 30) * 1000
        running.dashboard.context.catalog.activated_ms[vid] = began_ms
        owner = ["default", "http"]
        uses = {"used": 60, "value_quarantined": 7, "pane_not_kept": 3}

        def panes(at_s: int) -> dict[Any, dict[str, Row]]:
            return {
                (-1, 60, at_s): {
                    encode_series([*owner, "counted"]): Row(100),
                    encode_series([*owner, "duplicate"]): Row(11),
                },
                (-3, 60, at_s): {
                    **{encode_series([str(vid), use]): Row(n) for use, n in uses.items()},
                    encode_series([f"{vid}1", "used"]): Row(1_000),
                },
            }

        engine.commit(panes(minute_s) | panes(minute_s - 60), through_ms=(minute_s + 61) * 1000)
        with running.client() as http:
            found = http.get(f"/metrics/{name}/ledger").json()
            unknown = http.get("/metrics/nowhere/ledger")
            text = METRIC.format(name=name) + "unit: ms\n"
            path, based = f"/definitions/metric/{name}", {"if-match": '"1"'}
            http.put(path, json={"text": text}, headers=based).raise_for_status()
            stop_counting(running, name, vid)
            former, newest = (
                http.get(f"/metrics/{name}/ledger", params={"version": n}).json() for n in (1, 2)
            )
            missing = http.get(f"/metrics/{name}/ledger", params={"version": 3})
        told = {item["minute_ms"]: item for item in found["items"]}
        minute, before = told[minute_s * 1000], told[(minute_s - 60) * 1000]

        assert (found["name"], found["version"], len(told)) == (name, 1, 60)
        assert {use: minute[use] for use in uses} == uses
        assert (minute["counted"], minute["not_matched"], minute["open"]) == (100, 30, False)
        assert (before["used"], before["not_matched"]) == (60, None)
        assert unknown.json()["code"] == "metric_unknown"
        assert [one["version"] for one in (former, newest)] == [1, 2]
        of_minute = [
            next(item for item in one["items"] if item["minute_ms"] == minute_s * 1000)
            for one in (former, newest)
        ]
        assert [one["used"] for one in of_minute] == [60, 0]
        assert [one["not_matched"] for one in of_minute] == [None, None]
        assert missing.status_code == 404
        assert "has versions up to 2, got 3" in missing.json()["detail"]
