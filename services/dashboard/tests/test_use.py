"""How late sources are, and what a version did with every event, over HTTP."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from weir.rows import Row
from weir.series import encode_series

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
        assert [one["share"] for one in web["late"] if one["than_ms"] == 60_000] == [0.01]
        assert (web["p50_ms"], web["p99_ms"], web["max_ms"]) == (1_000, 60_000, None)
        assert (app["p50_ms"], app["max_ms"]) == (0, 0)

    def test_without_events_nothing_is_said(self, running: Running, engine: Engine) -> None:
        """A tenant that sent nothing has no median."""
        engine.commit()
        with running.client(running.key_for("silent", ["read"])) as http:
            found = http.get("/lateness").json()
        assert (found["sources"], found["all"]["events"]) == ([], 0)
        assert found["all"]["p50_ms"] is None


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
        told = {item["minute_ms"]: item for item in found["items"]}
        minute, before = told[minute_s * 1000], told[(minute_s - 60) * 1000]

        assert (found["name"], found["version"], len(told)) == (name, 1, 60)
        assert {use: minute[use] for use in uses} == uses
        assert (minute["counted"], minute["not_matched"], minute["open"]) == (100, 30, False)
        assert (before["used"], before["not_matched"]) == (60, None)
        assert unknown.json()["code"] == "metric_unknown"
