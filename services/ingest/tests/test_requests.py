"""POST /v1/events as clients use it: protocols, credentials, the end."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import redis as redis_client
from weir import names
from weir.event_time import parse_time
from weir.position import format_position, parse_position

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Ingest, LogReader

pytestmark = pytest.mark.kafka

LINES = b'{"type":"a","id":"1","data":{"n":1}}\r\n\n{"type":"a","id":"2","data":{"n":2}}'


class TestProtocols:
    @pytest.mark.parametrize(
        "content_type",
        [
            "application/x-ndjson",
            "application/jsonl",
            "application/json",
            "text/plain",
            "application/x-www-form-urlencoded",
        ],
    )
    def test_lines(self, content_type: str, ingest: Ingest, log_reader: LogReader) -> None:
        """Lines are events under any content type; blank ones are none."""
        mark = log_reader.ends()

        answer = ingest.post(LINES, content_type=content_type).json()

        assert (answer["accepted"], answer["quarantined"], answer["retry_safe"]) == (2, 0, True)
        assert sorted(r.event["data"]["n"] for r in log_reader.since(mark)) == [1, 2]

    @pytest.mark.parametrize(
        ("body", "content_type", "count"),
        [
            (b'[{"a":1},{"a":2}]', "application/json", 2),
            (b'{"a":1}', "text/plain", 1),
            (b'\n {"a":\n1}\n', "application/json", 1),
            (b'\xef\xbb\xbf{"a":1}', "application/json", 1),
            (b'\x1e{"a":1}\n\x1e{"a":2}\n', "application/json-seq", 2),
        ],
    )
    def test_shapes(self, body: bytes, content_type: str, count: int, ingest: Ingest) -> None:
        """Arrays, single objects and text sequences are cut into their items."""
        assert ingest.post(body, content_type=content_type).json()["accepted"] == count

    def test_name_and_subject(self, ingest: Ingest, log_reader: LogReader) -> None:
        """The query names what objects without envelope do not say."""
        mark = log_reader.ends()
        url = f"{ingest.url}/?name=clicks&subject=u1&access_token={ingest.key}"

        response = ingest.client.post(url, content=b'{"date":1772359200.5,"log":"hi"}')

        assert response.json()["retry_safe"] is False
        event = log_reader.since(mark)[0].event
        assert (event["type"], event["subject"]) == ("dev.weir.ndjson.clicks", "u1")
        assert event["time"] == "2026-03-01T10:00:00.500Z"

    def test_cloudevents_batch(self, ingest: Ingest) -> None:
        """A batch is counted event by event."""
        event = {"specversion": "1.0", "id": "b", "source": "/s", "type": "t"}

        answer = ingest.post(
            json.dumps([event, {**event, "specversion": "0.3"}]).encode(),
            content_type="Application/CloudEvents-Batch+JSON; charset=utf-8",
        ).json()

        assert (answer["accepted"], answer["quarantined"]) == (1, 1)
        assert answer["items"][0] == {
            "index": 1,
            "status": "quarantined",
            "code": "not_an_event",
            "detail": 'specversion must be "1.0", got "0.3"',
        }

    def test_cloudevents_binary(self, ingest: Ingest, log_reader: LogReader) -> None:
        """Attributes come from headers, percent-decoded, with the JavaScript SDK's Latin-1."""
        mark = log_reader.ends()
        headers: Any = {
            "ce-specversion": b"1.0",
            "ce-id": b"bin-1",
            "ce-source": b"/shop",
            "ce-type": b"com.acme.order",
            "ce-subject": b'"caf%C3%A9 100% \xdc"',
            "content-type": b"application/json; charset=utf-8",
            "authorization": f"Bearer {ingest.key}".encode(),
        }

        response = ingest.client.post(ingest.url, content=b'{"a":1}', headers=headers)

        assert response.json()["accepted"] == 1
        event = log_reader.since(mark)[0].event
        assert event["subject"] == "café 100% Ü"
        assert event["data"] == {"a": 1}

    def test_binary_data_stays_inside(self, ingest: Ingest) -> None:
        """A binary body cannot write members of the event around it."""
        headers = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/s", "ce_type": "t"}

        response = ingest.post(b'1,"weirtenant":"x"', **headers)

        assert response.json()["code"] == "invalid_json"

    def test_upgrade_h2c(self, ingest: Ingest, log_reader: LogReader) -> None:
        """A body of 30 KB with `Upgrade: h2c`, as Java sends it, is stored whole."""
        mark = log_reader.ends()
        body = b'{"type":"t","id":"h2c","data":"' + b"x" * 30_000 + b'"}'

        answer = ingest.exchange(
            b"POST /v1/events HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\n"
            b"Upgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n",
            f"Authorization: Bearer {ingest.key}\r\nContent-Length: {len(body)}\r\n\r\n".encode(),
            body,
        )

        assert answer.startswith(b"HTTP/1.1 200")
        assert len(log_reader.since(mark)[0].event["data"]) == 30_000

    def test_position(self, ingest: Ingest, log_reader: LogReader) -> None:
        """The answer's position is the highest offset of the request in each partition."""
        mark = log_reader.ends()
        body = b"\n".join(b'{"type":"t","id":"%d","data":0}' % n for n in range(200))

        response = ingest.post(body)

        highest: dict[int, int] = {}
        for record in log_reader.since(mark):
            highest[record.partition] = max(record.offset, highest.get(record.partition, 0))
        assert parse_position(response.json()["position"]) == highest
        assert response.headers["weir-position"] == format_position(highest)

    def test_a_retry_meets_its_first(self, ingest: Ingest, log_reader: LogReader) -> None:
        """A request sent twice writes the same keys and digests to the same partitions."""
        marks, seen = log_reader.ends(), []
        for _ in range(2):
            ingest.post(LINES, idempotency_key='"8e03"')
            records = log_reader.since(marks)
            seen.append(sorted((r.partition, r.key, r.value[:43]) for r in records))
            marks = log_reader.ends()

        assert seen[0] == seen[1]
        assert len(seen[0]) == 2


class TestCredentials:
    @pytest.mark.parametrize(
        "header", [None, "Bearer", "Bearer wk_aaaaaaaa_" + "x" * 40, "Basic x"]
    )
    def test_unauthorized(self, header: str | None, ingest: Ingest) -> None:
        """No key and a wrong one get the same answer."""
        headers = {"authorization": header} if header else {}

        response = ingest.client.post(ingest.url, content=b"{}", headers=headers)

        assert response.status_code == 401
        assert response.json()["message"] == (
            "a request must carry a valid key; send Authorization: Bearer wk_..."
        )

    def test_a_right_id_with_a_wrong_secret(self, ingest: Ingest) -> None:
        """Knowing a key's id does not help."""
        headers = {
            "authorization": f"Bearer {ingest.key[:-1]}{'a' if ingest.key[-1] != 'a' else 'b'}"
        }

        assert ingest.client.post(ingest.url, content=b"{}", headers=headers).status_code == 401

    def test_scope_and_revocation(
        self,
        kafka: str,
        ingest: Ingest,
        new_key: Callable[..., str],
        define_key: Callable[..., None],
        wait_for: Callable[..., Any],
    ) -> None:
        """A key without the scope is refused by name; a deleted one soon is unknown."""
        reader, writer = new_key(kafka, scopes=("read",)), new_key(kafka, tenant="acme")

        def status(key: str) -> int:
            headers = {"authorization": f"Bearer {key}"}
            return ingest.client.post(ingest.url, content=b'{"a":1}', headers=headers).status_code

        wait_for(lambda: status(writer) == 200)
        assert status(reader) == 403
        define_key(kafka, "acme", writer[3:11], None, version=2)
        wait_for(lambda: status(writer) == 401)

    def test_tenant_is_the_keys(
        self,
        kafka: str,
        ingest: Ingest,
        log_reader: LogReader,
        new_key: Callable[..., str],
        wait_for: Callable[..., Any],
    ) -> None:
        """What a body says of its tenant is ignored."""
        key = new_key(kafka, tenant="acme", source="shop")
        body = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","weirtenant":"default"}'
        mark = log_reader.ends()

        def sent() -> bool:
            headers = {"authorization": f"Bearer {key}"}
            return ingest.client.post(ingest.url, content=body, headers=headers).status_code == 200

        wait_for(sent)
        event = log_reader.since(mark)[0].event
        assert (event["weirtenant"], event["weirsource"]) == ("acme", "shop")


class TestOtherMethods:
    def test_preflight(self, ingest: Ingest) -> None:
        """A browser of any origin may send, with a key and without cookies."""
        asked = {"origin": "https://shop.example", "access-control-request-method": "POST"}

        response = ingest.client.options(ingest.url, headers=asked)

        assert response.status_code == 204
        assert response.headers["access-control-allow-origin"] == "https://shop.example"
        assert "authorization" in response.headers["access-control-allow-headers"]

    def test_webhook_handshake(self, ingest: Ingest) -> None:
        """A webhook that asks for consent gets it in headers."""
        asked = {"webhook-request-origin": "events.example", "webhook-request-rate": "120"}

        response = ingest.client.options(ingest.url, headers=asked)

        assert response.status_code == 200
        assert response.headers["webhook-allowed-origin"] == "events.example"
        assert response.headers["webhook-allowed-rate"] == "*"

    def test_head_and_slash(self, ingest: Ingest) -> None:
        """A health check by HEAD is exactly 200; a trailing slash is the same route."""
        assert ingest.client.head(ingest.url).status_code == 200
        response = ingest.client.put(
            f"{ingest.url}/", content=b'{"a":1}', headers={"authorization": f"Bearer {ingest.key}"}
        )
        assert response.status_code == 200

    def test_elsewhere(self, ingest: Ingest) -> None:
        """Unknown paths and methods are problems in JSON."""
        assert ingest.client.get(ingest.url).json()["code"] == "method_not_allowed"
        url = ingest.url.replace("events", "nothing")
        assert ingest.client.post(url).json()["code"] == "not_found"

    def test_openapi(self, ingest: Ingest) -> None:
        """The document tells of the route, its bodies and its answers."""
        found = ingest.client.get(ingest.url.replace("/v1/events", "/openapi.json")).json()

        post = found["paths"]["/v1/events"]["post"]
        assert "application/x-ndjson" in post["requestBody"]["content"]
        assert {"200", "400", "401", "413", "503"} <= set(post["responses"])


# What ingest says of an event that brings nothing but its data.
SAID = ("arrivedat", "datacontenttype", "ingestproto", "requestid", "requestpos", "timesrc")


class TestOperations:
    def test_metrics(self, ingest: Ingest) -> None:
        """What was accepted and refused is counted by its code."""
        ingest.post(b'{"a":1}\n{"a":\n')

        text = ingest.ops("/metrics").text

        assert 'weir_ingest_events_total{outcome="accepted"}' in text
        assert 'weir_ingest_refused_total{code="invalid_json"}' in text
        assert int(re.findall(r"^weir_ingest_threads_count (\d+)", text, re.MULTILINE)[0]) > 1
        assert ingest.ops("/livez").status_code == 200

    @pytest.mark.redis
    def test_tail_heartbeat_and_end(
        self,
        kafka: str,
        redis_url: str,
        start_ingest: Callable[..., Ingest],
        wait_for: Callable[..., Any],
        new_key: Callable[..., str],
        log_reader: LogReader,
    ) -> None:
        """A stored event shows in the tail, the process beats, and SIGTERM ends it well."""
        ingest = start_ingest(kafka, new_key(kafka), redis_url=redis_url, instance="test")
        client = redis_client.Redis.from_url(redis_url, decode_responses=True)
        wait_for(ingest.is_ready)
        mark = log_reader.ends()

        ingest.post(b'{"type":"t","id":"seen","subject":"s","data":{"a":1}}\nbad\n')

        def tail() -> list[dict[str, Any]] | None:
            entries: Any = client.xrange(names.tail_key("default"))
            items = [item for _id, fields in entries for item in json.loads(fields["e"])]
            return items if len(items) == 2 else None

        shown = wait_for(tail)
        stored = {(r.partition, r.offset): r for r in log_reader.since(mark)}
        event = next(entry for entry in shown if entry["id"] == "seen")
        record = stored[tuple(event["at"])]
        assert record.headers[0] == ("weir-tail", b"1")
        assert (event["type"], event["subject"], event["data"]) == ("t", "s", '{"a":1}')
        said = record.event
        assert event["attributes"] == {name: said[name] for name in SAID}
        assert [entry["reason"] for entry in shown if "reason" in entry] == ["invalid_json"]
        part = names.part_key("ingest", "test")
        beat = json.loads(wait_for(lambda: client.get(part)))
        assert beat["status"] == "ok"
        assert beat["detail"]["rss_bytes"] > 10_000_000

        def told() -> int | None:
            found: int | None = json.loads(str(client.get(part)))["detail"]["received_ms"]
            return found

        assert wait_for(told) == parse_time(said["arrivedat"])
        client.close()
        assert ingest.stop() == 0

    def test_bad_settings(self, start_ingest: Callable[..., Ingest]) -> None:
        """A start with bad settings fails with all errors at once."""
        ingest = start_ingest("x", "", port="99999", linger_ms="-1", max_events="many")

        assert ingest.process.wait(20) == 2
        text = ingest.log_path.read_text()
        for name in ("PORT", "LINGER_MS", "MAX_EVENTS"):
            assert f'"name": "WEIR_INGEST_{name}"' in text


def test_unknown_until_keys_are_read(
    start_ingest: Callable[..., Ingest], free_port: int, wait_for: Callable[..., Any]
) -> None:
    """Without a broker ingest lives, is not ready, and answers 503 with Retry-After, never 401."""
    ingest = start_ingest(f"127.0.0.1:{free_port}", "wk_aaaaaaaa_" + "x" * 40)

    def answered() -> httpx.Response | None:
        try:
            return ingest.post(b'{"a":1}')
        except httpx.TransportError:
            return None

    response = wait_for(answered)
    assert response.status_code == 503
    assert 1 <= int(response.headers["retry-after"]) <= 5
    assert response.json()["code"] == "log_unavailable"
    assert ingest.ops("/livez").status_code == 200
    assert ingest.ops("/readyz").status_code == 503
