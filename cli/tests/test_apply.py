"""`weir apply` against a real dashboard: what it creates, updates, leaves and refuses."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path
from typing import Any

import pytest
from weir_local.ports import free_port
from weir_local.testing import TestStack

from .conftest import Command, finish

METRIC = """# {note}
kind: metric
name: {name}
events: {{type: {kind}}}
aggregates: [count]
resolution: 1s
keep: {{1s: 1h}}
"""
RULE = """kind: rule
name: {name}
metric: {metric}
aggregate: count
window: 10s
above: 5
"""


def metric(name: str, kind: str = "shop.order", note: str = "orders") -> str:
    """Return the text of a metric."""
    return METRIC.format(name=name, kind=kind, note=note)


def stored(installation: TestStack, title: str) -> dict[str, Any]:
    """Return a stored definition."""
    body: dict[str, Any] = installation.api("GET", f"/definitions/{title}").body
    return body


@pytest.mark.stack
class TestApply:
    def test_created_unchanged_updated(self, installation: TestStack, weir: Command) -> None:
        """Each definition is stored once; only another meaning makes another version."""
        weir.write("1-rule.yaml", RULE.format(name="many", metric="sales"))
        weir.write("2-metric.yaml", metric("sales"))
        assert weir.run().splitlines() == [
            "created   metric/sales version 1",
            "created   rule/many version 1",
        ]
        assert stored(installation, "metric/sales")["text"] == metric("sales")
        again = ["unchanged metric/sales version 1", "unchanged rule/many version 1"]
        assert weir.run().splitlines() == again
        weir.write("2-metric.yaml", metric("sales", note="another comment"))
        assert weir.run().splitlines() == again
        weir.write("2-metric.yaml", metric("sales", kind="shop.sale"))
        assert weir.run().splitlines() == ["updated   metric/sales version 2", again[1]]
        assert stored(installation, "metric/sales")["parsed"]["events"]["type"] == ["shop.sale"]

    def test_nothing_is_deleted_and_what_was_deleted_comes_back(
        self, installation: TestStack, weir: Command
    ) -> None:
        """A definition that no file names stays; one deleted by hand is created again."""
        weir.write("a.yaml", metric("stays") + "---\n" + metric("comes_back"))
        weir.run()
        installation.api("DELETE", "/definitions/metric/comes_back", None, {"If-Match": '"1"'})
        weir.write("a.yaml", metric("comes_back"))
        assert weir.run().splitlines() == ["created   metric/comes_back version 3"]
        assert stored(installation, "metric/stays")["version"] == 1

    def test_a_refusal_is_told_in_the_dashboards_words(
        self, installation: TestStack, weir: Command
    ) -> None:
        """By its file; nothing is stored of the others, which says a line of each."""
        bad = weir.write("bad.yaml", metric("bad").replace("[count]", "[counts]"))
        weir.write("good.yaml", metric("good"))
        refused, line, caret, skipped = weir.run(code=1).splitlines()
        assert refused.startswith(f"refused   metric/bad ({bad}): /aggregates/0 must be ")
        assert 'got "counts (character 1)"' in refused
        assert (line.strip(), line.index("counts")) == ("counts", caret.index("^"))
        assert skipped == "skipped   metric/good"
        listed = installation.api("GET", "/definitions?kind=metric").body["items"]
        assert "good" not in {one["name"] for one in listed}

    def test_a_rule_without_its_metric_is_refused(self, weir: Command) -> None:
        """It is tried for a while, since another replica may know the metric later."""
        weir.write("rule.yaml", RULE.format(name="lonely", metric="nowhere"))
        assert "refused   rule/lonely (" in weir.run(code=1)

    def test_what_goes_together_comes_together(
        self, installation: TestStack, weir: Command
    ) -> None:
        """Of one run each definition is a version of its own, directly behind the one before."""
        weir.write("all.yaml", "---\n".join(metric(f"at_once_{at}") for at in range(3)))
        weir.run()
        vids = [stored(installation, f"metric/at_once_{at}")["vid"] for at in range(3)]
        assert vids == [vids[0], vids[0] + 1, vids[0] + 2]

    def test_two_at_once_agree(self, installation: TestStack, weir: Command) -> None:
        """Of two runs on the same files each definition is created by one, left by the other."""
        names = [f"twice_{number}" for number in range(8)]
        weir.write("all.yaml", "---\n".join(metric(name) for name in names))
        running = [weir.start(), weir.start()]
        written = [finish(process)[0].splitlines() for process in running]
        for lines in zip(*written, strict=True):
            assert sorted(line.split()[0] for line in lines) == ["created", "unchanged"]
        assert {stored(installation, f"metric/{name}")["version"] for name in names} == {1}

    def test_it_waits_for_a_dashboard_that_starts(
        self, installation: TestStack, weir: Command
    ) -> None:
        """Without --wait it ends at once; with it, the definitions are stored when it is there."""
        weir.write("a.yaml", metric("late"))
        installation.kill("dashboard")
        try:
            told = weir.run(code=3)
            assert f"weir: the dashboard at {weir.url}/api/v1 must answer, could not be" in told
            waiting = weir.start("-f", weir.folder, "--wait", "120")
        finally:
            installation.restart("dashboard")
        assert finish(waiting)[0].splitlines() == ["created   metric/late version 1"]

    def test_the_key_of_a_file_goes_before_that_of_the_environment(self, weir: Command) -> None:
        """A key that the dashboard does not know is refused in its words, after the wait too."""
        path = weir.write("key", "wk_aaaaaaaa_" + "b" * 43 + "\n")
        file = weir.write("a.yaml", metric("never"))
        refused = weir.run("-f", file, "--key-file", path, "--wait", "2", code=1)
        assert refused.startswith("weir: ")
        assert "key" in refused


@pytest.mark.parametrize(
    ("words", "environment", "told"),
    [
        (
            (),
            {"WEIR_API_KEY": ""},
            "--key-file, WEIR_API_KEY_FILE or WEIR_API_KEY must give an API key, found none",
        ),
        (("--key-file", "none"), {}, "--key-file must be a file with an API key: "),
        ((), {"WEIR_API_KEY_FILE": "none"}, "--key-file must be a file with an API key: "),
        ((), {"WEIR_DASHBOARD_URL": "here:1"}, 'must be http://host:port, got "here:1"; give'),
        (("--url", "http://[::1"), {}, 'must be http://host:port, got "http://[::1"; give the'),
        (("--url", "http://here:port"), {}, 'must be http://host:port, got "http://here:port"; '),
        (("--url", "http://a..b"), {}, 'must be http://host:port, got "http://a..b"; give the'),
        (("--url", "http://a/ü"), {}, "in ASCII, got 'http://a/ü'; write other signs percent-"),
        (("--url", "http://a/\udcff"), {}, "in ASCII, got 'http://a/\\udcff'; write other signs"),
        (("--url", "http://a b"), {}, "must be http://host:port in ASCII, got 'http://a b'; "),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_is_sent(
    tmp_path: Path,
    words: tuple[str, ...],
    environment: dict[str, str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit code 2, and the error says what was required."""
    (tmp_path / "a.yaml").write_text(metric("never"))
    command = Command(tmp_path, f"http://127.0.0.1:{free_port()}", "wk_key")
    command.key = environment.get("WEIR_API_KEY", command.key)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    command.url = environment.get("WEIR_DASHBOARD_URL", command.url)
    assert told in command.run("-f", tmp_path, *words, code=2)


def test_a_redirect_carries_the_key_nowhere(tmp_path: Path) -> None:
    """An answer that leads elsewhere is a refusal; the other server hears nothing."""
    seen: list[str] = []

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        do_POST = do_GET  # noqa: N815  the server looks for it

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    (tmp_path / "a.yaml").write_text(metric("never"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = Command(tmp_path, f"http://127.0.0.1:{server.server_port}", "wk_key")
        told = command.run(code=1)
        server.shutdown()
    assert told == (
        "weir: answer 302 leads to /elsewhere, where the key is not sent; --url must be the address"
        " of the service itself\n"
    )
    assert seen == ["/api/v1/definitions/plan"]


@pytest.mark.parametrize("status", [200, 422])
def test_an_answer_that_is_cut_short_is_none(tmp_path: Path, status: int) -> None:
    """Exit code 3: nobody knows what became of it; an answer is only believed whole."""

    class CutShort(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b'{"version":')

        do_POST = do_GET  # noqa: N815  the server looks for it

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    (tmp_path / "a.yaml").write_text(metric("never"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), CutShort) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = Command(tmp_path, f"http://127.0.0.1:{server.server_port}", "wk_key")
        told = command.run(code=3)
        server.shutdown()
    assert "must answer, broke off (IncompleteRead(11 bytes read, 89 more expected))" in told
