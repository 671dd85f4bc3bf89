"""Tests of channels, from the API through the log to a real alerts job and its receivers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from alerts_job import AlertsJob, Receiver
from weir_local.testing import running_broker

from .channels import define_channel, listed_channel, problem

if TYPE_CHECKING:
    from .conftest import Running

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return a broker of this module's own: a real job's records pass others over."""
    with running_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.bootstrap


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Return a name of this test's own."""
    return "n" + str(abs(hash(request.node.name)) % 10**9)


@pytest.fixture(scope="module")
def job(running: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AlertsJob]:
    """Return a real alerts job on the same log and store."""
    settings = running.dashboard.context.settings
    folder = tmp_path_factory.mktemp("alerts")
    job = AlertsJob(settings.kafka_bootstrap, settings.redis_url, folder)
    job.start()
    yield job
    assert job.stop() == 0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a receiver of webhooks."""
    receiver = Receiver()
    yield receiver
    receiver.close()


class TestChannels:
    @pytest.mark.usefixtures("job")
    def test_a_test_tells_what_really_came_of_it(
        self, running: Running, receiver: Receiver, name: str
    ) -> None:
        """Delivered, refused or failed, with status and time; and the list says it too."""
        define_channel(running, name, webhook={"url": receiver.url, "secret": "secret://hook"})
        with running.client() as client:
            for status, outcome in ((200, "delivered"), (404, "refused"), (503, "failed")):
                receiver.statuses.append(status)
                found = client.post(f"/channels/{name}/test").json()
                assert (found["outcome"], found["status"]) == (outcome, status)
                assert 0 <= found["took_ms"] < 10_000
                listed = listed_channel(client, name)
                assert (listed["outcome"], listed["status"]) == (outcome, status)
                assert (listed["failing_ms"] is None) == (outcome == "delivered")
        (body,) = receiver.bodies
        assert (body["kind"], body["title"]) == ("test", f"Test of channel {name}")
        assert receiver.calls == 3

    @pytest.mark.usefixtures("job")
    def test_nobody_answers(self, running: Running, name: str) -> None:
        """It is told in words."""
        url = "http://127.0.0.1:9/"
        define_channel(running, name, webhook={"url": url, "secret": "secret://hook"})
        with running.client() as client:
            found = client.post(f"/channels/{name}/test").json()

        assert (found["outcome"], found["status"]) == ("failed", None)
        assert found["why"] == "nothing could be reached there"

    @pytest.mark.usefixtures("job")
    def test_an_address_that_is_not_public(self, running: Running, name: str) -> None:
        """It is refused by name, and nothing is called."""
        url = "http://169.254.169.254/latest/"
        define_channel(running, name, webhook={"url": url, "secret": "secret://hook"})
        with running.client() as client:
            found = client.post(f"/channels/{name}/test")
            listed = listed_channel(client, name)

        assert problem(found) == (422, "url_not_allowed")
        assert listed["host"] == "169.254.169.254"
        assert "not public" in listed["why"]

    def test_by_apprise(
        self, running: Running, job: AlertsJob, receiver: Receiver, name: str
    ) -> None:
        """The URL is a secret of the job: it is in no answer and in no log."""
        job.store_secret(name, "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ?x=1")
        define_channel(running, name, apprise=f"secret://{name}_other")
        with running.client() as client:
            missing = client.post(f"/channels/{name}/test").json()
            assert missing["why"] == "a secret that the channel names is missing"
            port = receiver.url.rpartition(":")[2].partition("/")[0]
            job.store_secret(f"{name}_other", f"json://127.0.0.1:{port}/t0kent0ken")
            found = client.post(f"/channels/{name}/test").json()
            listed = listed_channel(client, name)

        # This receiver wants signatures of webhooks, and Apprise makes none.
        assert (found["outcome"], found["status"]) == ("refused", 401)
        assert "error=401" in found["why"]
        assert (listed["way"], listed["host"]) == ("apprise", None)
        assert "t0kent0ken" not in str(found) + str(listed) + job.log_path.read_text()
