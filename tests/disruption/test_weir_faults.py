"""The tools that break things: failpoints, mutants, and the proxy in a link."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from disruption import faults
from disruption.faults import RED
from disruption.proxy import Proxy
from disruption.rig import errors_in
from disruption.weir_faults import Order, mutation, read_order
from weir_local.repository import ROOT
from weir_local.waiting import wait_until

HERE = Path(__file__).parent
POINTS = [f"C{n}" for n in range(1, 12)] + ["C12-stored", "C12-sent"]
MUTANTS = sorted(path.stem for path in (HERE / "mutants").glob("*.py"))
PROGRAM = """
from weir_service.failpoints import failpoint
for n in range(3):
    failpoint("C7")
    print("passed", n, flush=True)
"""


def run(folder: Path, fail: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    """Run a program with an order, in a session of its own."""
    return subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(HERE), "WEIR_FAIL": fail, "WEIR_FAULTS_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )


def test_each_mutant_has_what_it_must_be_red_by() -> None:
    """One without could be caught by anything."""
    assert sorted(one for names in RED for one in names.split("+")) == MUTANTS


def test_a_mutant_has_the_patience_of_weir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With less, one that is right and slow would look like one that is wrong."""
    told: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def watched(errors: object, **more: Any) -> Iterator[None]:
        told.append({"errors": errors, **more})
        yield

    @contextlib.contextmanager
    def scene(*_: Any, **__: Any) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(watched=watched)

    monkeypatch.setattr(faults, "scene", scene)
    with faults.broken(tmp_path, 1, ""):
        pass
    wrong = "ledger and log must agree"
    with faults.broken(tmp_path, 1, "no_token"):
        raise AssertionError(wrong)
    assert told[0] == told[1]


class TestErrors:
    """What a log says of errors only."""

    UNCAUGHT = """Traceback (most recent call last):
  File "/app/weir_analytics/panes/driver.py", line 1, in run
ValueError: 7
"""
    TOLD = f"PythonException: An exception was thrown from the Python worker:\n{UNCAUGHT}"
    OF_DAEMON = """Traceback (most recent call last):
  File "/lib/pyspark.zip/pyspark/daemon.py", line 262, in manager
BrokenPipeError: [Errno 32] Broken pipe
"""
    CAUSE = "\nDuring handling of the above exception, another exception occurred:\n\n"
    CUT = 'Traceback (most recent call last):\n{"event": "settings", "level": "info"}\n'

    @pytest.mark.parametrize(
        ("log", "said"),
        [
            (UNCAUGHT, {"traceback": 1}),
            (f"  Traceback: no\n{UNCAUGHT}{UNCAUGHT}", {"traceback": 2}),
            (TOLD, {}),
            (OF_DAEMON, {}),
            (f"{UNCAUGHT}{CAUSE}{UNCAUGHT}", {"traceback": 1}),
            (f"Return Message: {UNCAUGHT}{CAUSE}{UNCAUGHT}", {}),
            (CUT, {}),
            ('{"event": "batch", "level": "info"}\n[]\n7\nnull\n', {}),
            ('{"event": "log_lost", "level": "error"}', {"log_lost": 1}),
            ('{"event": "counting_interrupted", "level": "warning"}', {"counting_interrupted": 1}),
            ('{"event": "worn", "level": "warning"}', {}),
        ],
    )
    def test_what_is_one(self, log: str, said: dict[str, int]) -> None:
        """Uncaught ones, and what is told at that level; not what Spark quotes."""
        assert errors_in(log) == said


class TestFailpoints:
    def test_kill_at_the_nth_time_and_only_once(self, tmp_path: Path) -> None:
        """The process dies there, leaves a note, and its successor passes."""
        died, passed = run(tmp_path, "C7:kill@2"), run(tmp_path, "C7:kill@2")

        assert (died.returncode, died.stdout) == (-9, "passed 0\n")
        assert [path.name for path in tmp_path.iterdir()] == ["C7.kill.2"]
        assert passed.stdout == "passed 0\npassed 1\npassed 2\n"

    def test_kill_ends_the_whole_session(self, tmp_path: Path) -> None:
        """A driver is three processes: whoever reaches the point takes the others along."""
        program = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {PROGRAM!r}])
child.wait()
print("survived")
"""
        died = run(tmp_path, "C7:kill@1", program)

        assert (died.returncode, died.stdout) == (-9, "")

    def test_raise(self, tmp_path: Path) -> None:
        """An error that nobody knows comes out of the point."""
        assert "OrderedError: ordered at C7" in run(tmp_path, "C7:raise@1").stderr

    def test_another_point_is_passed(self, tmp_path: Path) -> None:
        """An order is for one point."""
        assert run(tmp_path, "C8:kill@1").returncode == 0

    def test_an_order_is_read_whole(self) -> None:
        """A misspelled order is an error, not a test that proves nothing."""
        assert read_order("C12-sent:sleep@3") == Order("C12-sent", "sleep", 3)
        assert read_order("") is None
        with pytest.raises(ValueError, match=r'kill\|raise\|sleep@n, got "C7:stop@1"'):
            read_order("C7:stop@1")

    @pytest.mark.parametrize("point", POINTS)
    def test_every_crash_point_is_in_the_code(self, point: str) -> None:
        """A point that is gone would be a test that waits in vain."""
        text = f'failpoint("{point}")'
        sources = [*ROOT.glob("services/*/weir_*/**/*.py"), *ROOT.glob("libs/*/weir_*/**/*.py")]
        assert any(text in path.read_text("utf-8") for path in sources)

    def test_no_image_and_no_requirement_has_them(self) -> None:
        """What breaks Weir on purpose is nowhere but in the tests."""
        found = [*ROOT.glob("services/*/Dockerfile*"), *ROOT.glob("**/requirements*.txt")]
        assert len(found) > 3
        for path in found:
            text = path.read_text("utf-8")
            assert "weir_faults" not in text
            assert not re.search(r"^(COPY|ADD) .*\btests\b", text, re.MULTILINE)
        assert importlib.util.find_spec("weir_faults") is None


class TestMutants:
    def test_a_mutant_is_there_before_anybody_imports_its_target(self, tmp_path: Path) -> None:
        """Also who imports the name itself, and not the module, gets the mutant."""
        (tmp_path / "mutants").mkdir()
        (tmp_path / "mutants" / "half.py").write_text(
            'TARGET = "weir.series:shard_of"\n'
            "def mutate(original):\n    return lambda *_: 'mutant'\n"
        )
        program = "from weir.series import shard_of; print(shard_of(b'x', 2))"
        done = subprocess.run(  # noqa: S603  our own interpreter
            [sys.executable, "-c", program],
            env={"PYTHONPATH": f"{tmp_path}:{HERE}", "WEIR_MUTANT": "half"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "mutant\n"

    def test_a_mutant_may_import_what_it_replaces_a_part_of(self, tmp_path: Path) -> None:
        """It is imported after its target: else it would replace nothing, unseen."""
        (tmp_path / "mutants").mkdir()
        (tmp_path / "mutants" / "half.py").write_text(
            'from weir.series import OTHER\nTARGET = "weir.series:shard_of"\n'
            "def mutate(original):\n    return lambda *_: OTHER\n"
        )
        program = "from weir.series import OTHER, shard_of; print(shard_of(b'x', 2) == OTHER)"
        done = subprocess.run(  # noqa: S603  our own interpreter
            [sys.executable, "-c", program],
            env={"PYTHONPATH": f"{tmp_path}:{HERE}", "WEIR_MUTANT": "half"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "True\n"

    @pytest.mark.parametrize("name", MUTANTS)
    def test_every_mutant_replaces_something(self, name: str) -> None:
        """Its target is in the code: else it would be a test that proves nothing."""
        program = (
            "import importlib, sys; sys.path.insert(0, sys.argv[1])\n"
            "from weir_faults.mutation import target_of\n"
            "module, _, path = target_of(sys.argv[2]).partition(':')\n"
            "found = importlib.import_module(module)\n"
            "for step in path.split('.'): found = getattr(found, step)\n"
            "print(found.__module__)"
        )
        done = subprocess.run(  # noqa: S603  our own interpreter
            [sys.executable, "-c", program, str(HERE), name],
            env={"PYTHONPATH": str(HERE), "WEIR_MUTANT": name},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.startswith(f"mutants.{name}"), done.stderr

    def test_a_mutant_that_is_not_there_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not a process that runs as if nothing were."""
        monkeypatch.syspath_prepend(str(HERE))
        with pytest.raises(ValueError, match='with a TARGET, got "weir_faults"'):
            mutation.target_of("weir_faults")

    def test_a_name_that_is_gone_is_an_error(self) -> None:
        """Not a mutant that changes nothing."""
        with pytest.raises(AttributeError):
            mutation.replace(mutation, "gone", lambda original: original)


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    """Return the address of a server that sends back what it gets."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                while piece := connection.recv(65_536):
                    connection.sendall(piece)
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()
    listener.close()


@pytest.fixture
def proxy(server: tuple[str, int]) -> Iterator[Proxy]:
    """Return a proxy before it."""
    proxy = Proxy(server)
    yield proxy
    proxy.close()


def connect(proxy: Proxy) -> socket.socket:
    """Return a connection through the proxy whose reads do not wait for ever."""
    found = socket.create_connection(("127.0.0.1", proxy.port))
    found.settimeout(5)
    return found


def ask(connection: socket.socket, text: bytes) -> bytes:
    """Send bytes and return as many."""
    connection.sendall(text)
    got = b""
    while len(got) < len(text):
        piece = connection.recv(65_536)
        if not piece:
            break
        got += piece
    return got


class TestProxy:
    def test_it_carries_bytes_unchanged(self, proxy: Proxy) -> None:
        """In both directions, however many."""
        text = bytes(range(256)) * 4_000
        with connect(proxy) as connection:
            assert ask(connection, b"x") == b"x"
            sender = threading.Thread(target=connection.sendall, args=(text,))
            sender.start()
            got = b""
            while len(got) < len(text):
                got += connection.recv(65_536)
            sender.join()
        assert got == text

    def test_delay(self, proxy: Proxy) -> None:
        """Each direction takes its time."""
        proxy.now.delay_s = 0.1
        with connect(proxy) as connection:
            began = time.monotonic()
            assert ask(connection, b"x") == b"x"
        assert time.monotonic() - began >= 0.2

    def test_rate(self, proxy: Proxy) -> None:
        """So many bytes a second in each direction."""
        proxy.now.bytes_per_s = 10_000
        with connect(proxy) as connection:
            began = time.monotonic()
            ask(connection, b"x" * 2_000)
        assert time.monotonic() - began >= 0.4

    def test_silence_keeps_connections_open(self, proxy: Proxy) -> None:
        """Nothing passes while it lasts; all of it does afterwards."""
        with connect(proxy) as connection:
            assert ask(connection, b"x") == b"x"
            proxy.now.silent = frozenset({"up"})
            connection.sendall(b"later")
            connection.settimeout(0.3)
            with pytest.raises(TimeoutError):
                connection.recv(10)
            proxy.heal()
            connection.settimeout(5)
            assert connection.recv(10) == b"later"

    def test_a_request_comes_late(self, proxy: Proxy) -> None:
        """Only one that holds the bytes; it arrives once it may go on."""
        proxy.now.held = b"EXEC"
        with connect(proxy) as connection, connect(proxy) as other:
            connection.sendall(b"EXEC")
            wait_until(lambda: proxy.waiting == 1, timeout_s=5, what="the request")
            assert ask(other, b"GET") == b"GET"
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(1)
            proxy.heal()
            connection.settimeout(5)
            assert connection.recv(4) == b"EXEC"
            assert proxy.waiting == 0

    @pytest.mark.parametrize("direction", ["up", "down"])
    def test_what_is_swallowed_never_comes(self, proxy: Proxy, direction: str) -> None:
        """A connection that has lost bytes stays dead; one opened later lives."""
        with connect(proxy) as connection:
            assert ask(connection, b"x") == b"x"
            proxy.now.swallowed = frozenset({direction})
            connection.sendall(b"gone")
            wait_until(lambda: proxy.swallowed == 1, timeout_s=5, what="the loss")
            proxy.heal()
            connection.sendall(b"gone too")
            connection.settimeout(0.3)
            with pytest.raises(TimeoutError):
                connection.recv(10)
        with connect(proxy) as connection:
            assert ask(connection, b"x") == b"x"

    def test_an_end_is_swallowed_as_well(self, free_port: int) -> None:
        """Who answers and hangs up is not heard of either; where nothing is lost both arrive."""
        with socket.create_server(("127.0.0.1", free_port)) as listener:
            proxy = Proxy(("127.0.0.1", free_port))
            for swallowed in (frozenset({"down"}), frozenset[str]()):
                proxy.now.swallowed = swallowed
                with connect(proxy) as connection:
                    connection.sendall(b"x")
                    served, _ = listener.accept()
                    with served:
                        assert served.recv(1) == b"x"
                        served.sendall(b"answer")
                    if swallowed:
                        connection.settimeout(0.3)
                        with pytest.raises(TimeoutError):
                            connection.recv(10)
                    else:
                        assert [connection.recv(10), connection.recv(10)] == [b"answer", b""]
            proxy.close()
        assert proxy.swallowed == 1

    def test_one_reply_is_lost(self, proxy: Proxy) -> None:
        """The request arrives; its answer does not, and the connection ends. The next lives."""
        proxy.now.lose_reply_to = b"EXEC"
        with connect(proxy) as connection:
            assert ask(connection, b"GET") == b"GET"
            connection.sendall(b"..EX")
            assert connection.recv(10) == b"..EX"
            connection.sendall(b"EC..")
            with pytest.raises(ConnectionResetError):
                connection.recv(10)
        assert proxy.lost == 1
        with connect(proxy) as connection:
            assert ask(connection, b"EXEC") == b"EXEC"

    def test_reset_and_cut(self, proxy: Proxy) -> None:
        """Open connections are reset at once, or after so many bytes of replies."""
        with connect(proxy) as connection:
            assert ask(connection, b"x") == b"x"
            assert proxy.reset() == 1
            with pytest.raises(ConnectionResetError):
                ask(connection, b"x")
        proxy.now.cut_after = 3
        with connect(proxy) as connection:
            assert ask(connection, b"xx") == b"xx"
            with pytest.raises(ConnectionResetError):
                ask(connection, b"x")

    def test_nobody_behind_it(self, free_port: int) -> None:
        """A part that is down refuses through the proxy as well."""
        proxy = Proxy(("127.0.0.1", free_port))
        with connect(proxy) as connection, pytest.raises(ConnectionResetError):
            connection.recv(1)
        proxy.close()

    def test_a_closed_proxy_leaves_no_connection(self, server: tuple[str, int]) -> None:
        """Nor a port that is taken."""
        proxy = Proxy(server)
        with connect(proxy) as connection:
            assert ask(connection, b"x") == b"x"
            wait_until(lambda: proxy.connections == 1, timeout_s=5, what="the connection")
            proxy.close()
            with pytest.raises(ConnectionError):
                ask(connection, b"x")
        again = Proxy(server, proxy.port)
        again.close()
