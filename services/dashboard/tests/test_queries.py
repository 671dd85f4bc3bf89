"""Queries over HTTP: real panes, every format, every refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from weir import names
from weir.rows import Row
from weir_reading.panes import StoreLostError
from written import mark

from .conftest import Engine
from .watching import asked, ten_seconds_ago, total

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


class TestQuery:
    def test_it_counts_what_the_panes_hold(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """The answer equals what was written, with its state and its slot."""
        name, vid = metric
        engine.commit({(vid, 10, ten_seconds_ago(3)): {"=eu": Row(5), "=us": Row(2)}})
        with running.client() as http:
            body = http.post("/query", json=asked(name)).json()
        assert [(total(body, r), r) for r in ("eu", "us")] == [(5, "eu"), (2, "us")]
        assert {s["slot"] for s in body["series"]} == {0, 1}
        assert (body["rev"], body["epoch"]) == (engine.rev, engine.epoch)

    @pytest.mark.parametrize("left", ["nothing", "an older life"])
    def test_a_store_that_was_lost_is_no_zero(
        self,
        running: Any,
        engine: Any,
        metric: tuple[str, int],
        left: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Until a batch record tells how it goes on, what is read from it is refused."""

        async def unseen() -> None:
            """Do not look whether the stream of batches has gone."""

        # A second after a batch the dashboard finds the loss by itself, and answers that
        # nothing is known: this is about the time before.
        monkeypatch.setattr(running.dashboard.context.batches, "_check_rewound", unseen)
        name, vid = metric
        pane = (vid, 10, ten_seconds_ago(3))
        engine.commit({pane: {"=eu": Row(5)}})
        running.redis.flushdb()
        if left == "an older life":
            running.redis.set(names.mark_key(0), mark(engine.epoch, 0, {0: -1}))
        with running.client() as http:
            lost = http.post("/query", json=asked(name))
            assert (lost.status_code, lost.json()["code"]) == (503, "store_unavailable")
            Engine(running, reason="lost").commit({pane: {"=eu": Row(5)}})
            assert total(http.post("/query", json=asked(name)).json(), "eu") == 5

    def test_panes_of_another_epoch_are_refused(self, running: Any, engine: Any) -> None:
        """What was asked of one life of the state is not answered by the next."""
        engine.commit({})
        panes = running.dashboard.context.queries.panes
        assert running.run(panes.together(set(), 1, engine.epoch)) == {}
        with pytest.raises(StoreLostError, match=f"{engine.epoch} has begun"):
            running.run(panes.together(set(), 1, engine.epoch - 1))

    def test_csv_escapes_what_a_spreadsheet_would_run(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """A dimension that begins like a formula is text in CSV."""
        name, vid = metric
        engine.commit({(vid, 10, ten_seconds_ago(1)): {"==SUM(A1)": Row(1)}})
        with running.client() as http:
            answer = http.post("/query", json=asked(name), headers={"accept": "text/csv"})
        assert answer.headers["content-type"].startswith("text/csv")
        assert ",'=SUM(A1),1.0,1.0,1.0,1,p" in answer.text
        assert json.loads(answer.headers["weir-fresh"])["status"] in ("live", "stale")
        assert json.loads(answer.headers["weir-notes"]) == []

    def test_ndjson_has_a_line_a_point(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """NDJSON says the same, one object a window."""
        name, vid = metric
        engine.commit({(vid, 10, ten_seconds_ago(1)): {"=eu": Row(4)}})
        accept = {"accept": "application/x-ndjson"}
        with running.client() as http:
            lines = http.post("/query", json=asked(name), headers=accept).text.splitlines()
        assert sum(json.loads(line)["count"] or 0 for line in lines) == 4
        assert len(lines) == 30

    @pytest.mark.parametrize(
        ("wrong", "status", "code"),
        [
            ({"metric": "nothing_like_it"}, 404, "metric_unknown"),
            ({"aggregate": "p99"}, 422, "query_invalid"),
            ({"by": ["planet"]}, 422, "query_invalid"),
            ({"step": "7s"}, 422, "query_invalid"),
            ({"tenant": "other"}, 422, "unknown_field"),
            ({"range": {"last": "24h"}, "step": "1s"}, 422, "query_invalid"),
            ({"after": "x"}, 422, "query_invalid"),
            (
                {"window": {"kind": "sliding", "length": "36500d10s"}, "step": "1d"},
                422,
                "query_too_large",
            ),
        ],
    )
    def test_what_cannot_be_answered_is_refused_by_name(
        self, running: Any, metric: tuple[str, int], wrong: dict[str, Any], status: int, code: str
    ) -> None:
        """Each wrong query gets its status and code, and says what would do."""
        with running.client() as http:
            refused = http.post("/query", json=asked(metric[0], **wrong))
        assert (refused.status_code, refused.json()["code"]) == (status, code)

    def test_after_a_position_that_is_counted(
        self, running: Any, engine: Any, metric: tuple[str, int]
    ) -> None:
        """It answers at once; that it waits for one which is not, `test_after.py` holds."""
        name, vid = metric
        engine.commit({(vid, 10, ten_seconds_ago(1)): {"=eu": Row(3)}}, received=3)
        with running.client() as http:
            body = http.post("/query", json=asked(name, after="0:2")).json()
        assert total(body, "eu") == 3

    def test_another_tenant_has_no_such_metric(self, running: Any, metric: tuple[str, int]) -> None:
        """Another tenant's metric is as unknown as one that does not exist."""
        key = running.key_for("elsewhere", ["read"])
        with running.client(key) as http:
            theirs = http.post("/query", json=asked(metric[0]))
            none = http.post("/query", json=asked("nothing_like_it"))
        assert theirs.status_code == none.status_code == 404
        assert theirs.json()["code"] == none.json()["code"] == "metric_unknown"
