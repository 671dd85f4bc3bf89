"""Jobs over HTTP: asked for, followed, cancelled, and only by who may."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from weir import names
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import DriverStart, start_record
from weir.erasure import subject_hash
from weir_local.waiting import wait_until

from .conftest import HASH_KEY

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


class Driver:
    """Says of jobs what a panes driver says."""

    def __init__(self, running: Any) -> None:
        self._running = running
        bootstrap = running.dashboard.context.settings.kafka_bootstrap
        self._producer = Producer({"bootstrap.servers": bootstrap})
        fold = running.dashboard.context.catalog.folded
        before = fold.fence()
        self._append(start_record(DriverStart("test", 1, "start"), at_ms=0))
        wait_until(lambda: fold.fence() != before, timeout_s=10, what="the driver's start")
        self._fence = fold.fence()

    def say(self, job_id: str, state: JobState, at_ms: int = 7, **outcome: Any) -> None:
        """Record where a job stands, and wait until the dashboard has read it."""
        fold = self._running.dashboard.context.catalog.folded
        vid = fold.history("default", "job", job_id)[-1].vid
        report = JobReport(vid, state, at_ms=at_ms, outcome=outcome)
        self._append(job_record(report, fence=self._fence))
        wait_until(lambda: fold.jobs.get(vid) == report, timeout_s=10, what="the report")

    def tell(self, job_id: str, **live: Any) -> None:
        """Put into Redis how far a job is."""
        fold = self._running.dashboard.context.catalog.folded
        vid = fold.history("default", "job", job_id)[-1].vid
        self._running.redis.set(names.job_key(vid), json.dumps(live))

    def _append(self, record: Any) -> None:
        self._producer.produce(names.DEFINITIONS, record.value, record.key)
        assert self._producer.flush(10) == 0


@pytest.fixture(scope="module")
def driver(running: Any) -> Driver:
    """Return a driver that has started."""
    return Driver(running)


def asked(running: Any, *metrics: str) -> str:
    """Ask for an audit, and return its id."""
    with running.client() as http:
        made = http.post("/jobs", json={"job": "audit", "metrics": metrics})
        return str(made.json()["id"])


def audited(running: Any, driver: Driver, bounded_by: str = "last", **found: Any) -> str:
    """Have an audit end, which says something of a metric; return its id."""
    epoch = running.dashboard.context.batches.epoch
    told = {"version": 1, "verified": True, "panes": 40, "series": 9, "events": 500}
    told |= {"epoch": epoch, "rev": 3}
    made = asked(running)
    span: dict[str, Any] = {"from_ms": 1, "to_ms": 2, "bounded_by": bounded_by}
    driver.say(made, JobState.DONE, metrics=[told | found], **span)
    return made


class TestJobs:
    def test_a_job_is_followed_to_its_end(self, running: Any, driver: Driver) -> None:
        """Waiting, running with its progress, done with its outcome; whole while Redis has it."""
        with running.client() as http:
            asked = {"job": "audit", "metrics": ["hits"], "last": "2h", "sample": 5}
            answer = http.post("/jobs", json=asked)
            assert answer.status_code == 202
            made = answer.json()
            assert (made["job"], made["state"]) == ("audit", "waiting")
            assert made["asked"] == asked | {"ledger": False, "mend": False}
            driver.say(made["id"], JobState.RUNNING)
            driver.tell(made["id"], state="running", at=3, of=9, outcome={})
            found = http.get(f"/jobs/{made['id']}").json()
            assert (found["state"], found["progress"]) == ("running", {"at": 3, "of": 9})
            assert found["outcome"] is None
            driver.say(made["id"], JobState.DONE, verified=True)
            driver.tell(made["id"], state="done", at=9, of=9, outcome={"verified": True, "all": 1})
            found = http.get(f"/jobs/{made['id']}").json()
            assert (found["state"], found["told_ms"]) == ("done", 7)
            assert found["outcome"] == {"verified": True, "all": 1}
            running.redis.flushall()
            assert http.get(f"/jobs/{made['id']}").json()["outcome"] == {"verified": True}
            listed = http.get("/jobs").json()["items"]
            assert (listed[0]["id"], listed[0]["outcome"]) == (made["id"], {"verified": True})

    def test_a_metric_says_when_it_was_verified(
        self, running: Any, driver: Driver, metric: tuple[str, int]
    ) -> None:
        """By the newest audit that compared it; one that looked at nothing says nothing."""
        name, vid = metric
        with running.client() as http:
            assert http.get(f"/metrics/{name}").json()["verified"] is None
            for ok, panes in ((True, 40), (None, 0)):
                audited(running, driver, metric=name, vid=vid, verified=ok, panes=panes)
            told = http.get(f"/metrics/{name}").json()["verified"]
        assert (told["ok"], told["at_ms"], told["panes"], told["rev"]) == (True, 7, 40, 3)
        assert (told["from_ms"], told["to_ms"], told["version"]) == (1, 2, 1)
        assert told["events"] == 500
        assert told["withdrawn_by"] is None

    def test_a_metric_says_how_much_was_compared(
        self, running: Any, driver: Driver, metric: tuple[str, int]
    ) -> None:
        """What there was no room for, what retention took, and why it reaches no further back."""
        name, vid = metric
        found: dict[str, Any] = {"metric": name, "vid": vid, "panes": 1}
        of_sample = ("panes", "left_out", "overtaken", "bounded_by")
        seen = []
        with running.client() as http:
            for bounded_by, more in (
                ("records", {"left_out": 37, "overtaken": 2}),
                ("of a later release", {}),
            ):
                audited(running, driver, bounded_by, **found, **more)
                told = http.get(f"/metrics/{name}").json()
                assert told["not_compared"] is None
                seen.append([told["verified"][one] for one in of_sample])
        assert seen == [[1, 37, 2, "records"], [1, 0, 0, None]]

    def test_a_metric_says_since_when_audits_compare_nothing_of_it(
        self, running: Any, driver: Driver, metric: tuple[str, int]
    ) -> None:
        """Those that failed among them; not one that found nothing to be there, as it should be."""
        name, vid = metric
        nothing: dict[str, Any] = {"metric": name, "vid": vid, "verified": None, "panes": 0}

        with running.client() as http:

            def told() -> Any:
                return http.get(f"/metrics/{name}").json()["not_compared"]

            assert told() is None
            first = audited(running, driver, "records", **nothing)
            since = {"since_ms": 7, "audits": 1}
            why: dict[str, Any] = {"why": "not_drawn", "bounded_by": "records"}
            assert told() == {"job": first, "at_ms": 7} | why | since
            audited(running, driver, metric=name, vid=vid, verified=False)
            assert told() is None
            # Nothing happened in these, and nothing is served.
            audited(running, driver, **nothing | {"panes": 3})
            audited(running, driver, metric="another")
            driver.say(asked(running, "another"), JobState.FAILED, error="no")
            assert told() is None
            audited(running, driver, **nothing, left_out=40)
            failed = asked(running, name)
            assert told()["why"] == "left_out"
            driver.say(failed, JobState.FAILED, at_ms=9, error="no")
            why = {"why": "failed", "bounded_by": None}
            assert told() == {"job": failed, "at_ms": 9} | why | since | {"audits": 2}
            audited(running, driver, metric=name, vid=vid)
            assert told() is None

    def test_what_was_verified_of_other_numbers_is_withdrawn(
        self, running: Any, driver: Driver, metric: tuple[str, int]
    ) -> None:
        """After an audit another version serves, or a new epoch has counted all anew."""
        name, vid = metric
        here = running.dashboard.context
        told: list[str | None] = []
        for at_vid, epoch in ((vid, here.batches.epoch), (vid - 1, here.batches.epoch), (vid, -1)):
            audited(running, driver, metric=name, vid=at_vid, epoch=epoch)
            with running.client() as http:
                told.append(http.get(f"/metrics/{name}").json()["verified"]["withdrawn_by"])
        assert told == [None, "version", "epoch"]

    def test_a_request_that_is_repeated_is_one_job(self, running: Any) -> None:
        """The same Idempotency-Key is the same job; with another body it is refused."""
        with running.client() as http:
            key = {"idempotency-key": "again"}
            asked = {"job": "replay", "reason": "too_deep", "since": "2027-01-31T18:00:00Z"}
            first = http.post("/jobs", json=asked, headers=key).json()
            second = http.post("/jobs", json=asked, headers=key).json()
            other = http.post("/jobs", json=asked | {"dry_run": True}, headers=key)
        assert first["id"] == second["id"]
        assert other.status_code == 422
        assert "was used for another job" in other.json()["message"]

    def test_a_job_is_cancelled_once(self, running: Any, driver: Driver) -> None:
        """What has not ended is cancelled; what has ended cannot be."""
        with running.client() as http:
            made = http.post("/jobs", json={"job": "replay"}).json()
            assert http.delete(f"/jobs/{made['id']}").json()["state"] == "cancelled"
            again = http.delete(f"/jobs/{made['id']}")
            assert (again.status_code, again.json()["code"]) == (409, "already_ended")
            ended = http.post("/jobs", json={"job": "replay"}).json()
            driver.say(ended["id"], JobState.FAILED, error="no")
            assert http.delete(f"/jobs/{ended['id']}").status_code == 409
            assert http.get(f"/jobs/{ended['id']}").json()["outcome"] == {"error": "no"}

    def test_audits_and_replays_have_addresses_of_their_own(self, running: Any) -> None:
        """What is asked for there is a job like any other."""
        with running.client() as http:
            audit = http.post("/audit", json={"last": "2h", "sample": 5}).json()
            body = {"filter": {"reason": "too_deep"}, "dry_run": True}
            replay = http.post("/quarantine/replay", json=body).json()
            listed = http.get("/audit").json()["items"]
            jobs = {one["id"]: one["asked"] for one in http.get("/jobs").json()["items"]}
        assert listed[0]["id"] == audit["id"]
        assert {one["job"] for one in listed} == {"audit"}
        assert audit["asked"]["sample"] == 5
        assert jobs[replay["id"]] == {"job": "replay", "reason": "too_deep", "dry_run": True}

    def test_each_job_needs_its_scope(self, running: Any) -> None:
        """Operators audit and replay, admins adopt; nobody sees another tenant's jobs."""
        adopt = {"job": "adopt", "reason": "the topic was made anew"}
        with running.client(running.key_for("default", ["read"])) as http:
            assert http.post("/jobs", json={"job": "replay"}).status_code == 403
        with running.client(running.key_for("default", ["read", "operate"])) as http:
            made = http.post("/jobs", json={"job": "replay"}).json()
            refused = http.post("/jobs", json=adopt)
            assert refused.status_code == 403
            assert "adopt needs the scope admin" in refused.json()["message"]
        with running.client(running.key_for("other", ["read", "operate", "admin"])) as http:
            assert http.get(f"/jobs/{made['id']}").status_code == 404
            assert http.get("/jobs").json()["items"] == []
            assert "the log is everybody's" in http.post("/jobs", json=adopt).json()["message"]
        with running.client() as http:
            made = http.post("/jobs", json=adopt).json()
            assert made["state"] == "waiting"
        with running.client(running.key_for("default", ["read", "operate"])) as http:
            assert http.delete(f"/jobs/{made['id']}").status_code == 403

    def test_who_is_erased_is_stored_as_a_hash(self, running: Any, driver: Driver) -> None:
        """Nothing keeps the subject; what holds cannot be cancelled; only admins ask for it."""
        asked = {"job": "erase", "subject": "jane@example.com"}
        with running.client(running.key_for("default", ["read", "operate"])) as http:
            assert http.post("/jobs", json=asked).status_code == 403
        with running.client() as http:
            made = http.post("/jobs", json=asked).json()
            known = subject_hash(HASH_KEY.encode(), "default", "jane@example.com")
            assert made["asked"] == {"job": "erase", "subject_hash": known}
            driver.say(made["id"], JobState.RUNNING)
            refused = http.delete(f"/jobs/{made['id']}")
            assert (refused.status_code, refused.json()["code"]) == (409, "already_ended")
            history = http.get("/changes").text
        stored = [one.text for one in running.dashboard.context.catalog.folded.current()]
        assert not any("jane" in text for text in (*stored, history))

    @pytest.mark.parametrize(
        ("asked", "told"),
        [
            ({"job": "fly"}, "audit"),
            ({"job": "audit", "last": "soon"}, "a duration"),
            ({"job": "audit", "sample": 0}, "sample"),
            ({"job": "replay", "since": "yesterday"}, "an instant with its zone"),
            ({"job": "replay", "metrics": ["a"]}, "metrics"),
        ],
    )
    def test_what_cannot_be_done_is_refused(
        self, running: Any, asked: dict[str, Any], told: str
    ) -> None:
        """The refusal names what is wrong."""
        with running.client() as http:
            answer = http.post("/jobs", json=asked)
        assert answer.status_code == 422
        assert told in json.dumps(answer.json())

    def test_a_job_is_no_definition_to_be_written(self, running: Any) -> None:
        """Jobs have a route of their own, which knows who may ask for which."""
        with running.client() as http:
            text = {"text": "do: {job: adopt, reason: x}"}
            answer = http.put("/definitions/job/j1", json=text, headers={"if-none-match": "*"})
        assert answer.status_code == 422
        assert "/api/v1/jobs" in answer.json()["message"]
