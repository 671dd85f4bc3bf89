"""Run the three images as a cluster would, and count with them: `make images-offline`.

Each process gets the image's files as a read-only root, a `/tmp` of its own, process
numbers of its own, the user of the image without any right, and the image's own
environment and entrypoint. Kafka and Redis are real and run beside them, on a base of
ports; so do the network and the processors, which are not shut off. The topics and a
metric are made by the commands in the images; four events are sent, one of them twice.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from weir_local.console import complain, say
from weir_local.process import PartError
from weir_local.testing import TestStack
from weir_local.waiting import wait_until

from weir_images.build import BuildError, buildah, check

USER = 10001
GRACE_S = 30.0
SECRETS, STATE, FILES = "/run/weir/secrets", "/var/weir/state", "/etc/weir/definitions"
IMAGES = {"ingest": "ingest", "panes": "analytics", "alerts": "analytics", "dashboard": "dashboard"}
METRIC = """kind: metric
name: of_images
events: {type: image.check}
aggregates: [count]
resolution: 1s
keep: {1s: 1h}
"""
# Arguments: the image's files, and for each folder that it is given, the folder and its place.
INSIDE = """
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do mount --bind "$1" "$root$2"; shift 2; done
shift
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777,size=1g tmpfs "$root/tmp"
exec chroot "$root" "$@"
"""


@dataclass(frozen=True)
class Image:
    """An image whose files are mounted.

    Attributes:
        root: Where.
        config: What it says of itself: Env, Entrypoint, Cmd, User, WorkingDir.
        container: What buildah calls the mount.
    """

    root: Path
    config: Mapping[str, Any]
    container: str

    def bytes(self) -> int:
        """Return how large its files are."""
        done = subprocess.run(  # noqa: S603
            ["du", "-sbx", self.root],  # noqa: S607  the du of PATH
            capture_output=True,
            text=True,
            check=True,
        )
        return int(done.stdout.split()[0])

    def command(
        self,
        environment: Mapping[str, str],
        folders: Mapping[str, Path],
        words: Sequence[str] | None = None,
    ) -> list[str]:
        """Return what runs it: its entrypoint, or other words in its place."""
        if self.config["User"] != f"{USER}:{USER}":
            msg = f"an image must run as {USER}:{USER}, got {self.config['User']}"
            raise BuildError(msg)
        own = [*self.config.get("Entrypoint", []), *self.config.get("Cmd", [])]
        spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private"]
        mounts = [str(word) for place, folder in folders.items() for word in (folder, place)]
        user = [f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"]
        rights = ["--bounding-set=-all", "--inh-caps=-all"]
        variables = [*self.config["Env"], *(f"{k}={v}" for k, v in environment.items())]
        start = ["env", "-i", f"--chdir={self.config['WorkingDir']}", *variables]
        inside = ["sh", "-euc", INSIDE, "sh", str(self.root), *mounts, "--"]
        return [*spaces, "--", *inside, "setpriv", *user, *rights, *start, *(words or own)]


def mount(service: str) -> Image:
    """Mount an image's files, with the folders that it may be given."""
    name = f"localhost/weir-{service}"
    told = _output(buildah("inspect", "--type=image", name))
    container = _output(buildah("from", "--pull-never", name))
    root = Path(_output(buildah("mount", container)))
    for place in (SECRETS, STATE, FILES):
        (root / place.removeprefix("/")).mkdir(parents=True, exist_ok=True)
    return Image(root, json.loads(told)["OCIv1"]["config"], container)


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        msg = f"`{' '.join(command[:7])} …` must succeed: {done.stderr.strip()[-600:]}"
        raise BuildError(msg)
    return done.stdout.strip()


class Installation:
    """A stack whose services are the images' processes."""

    def __init__(self, images: Mapping[str, Image], folder: Path, port_base: int) -> None:
        self.images = images
        self.stack = TestStack(folder, port_base)
        self.files = folder / "definitions"
        self.files.mkdir()
        (self.files / "metric.yaml").write_text(METRIC)
        self._state = folder / "state"
        self._state.mkdir()
        secrets = self.stack.home.secrets
        for path in (self._state, secrets, *secrets.iterdir()):
            shutil.chown(path, USER, USER)
        for name, image in IMAGES.items():
            part = self.stack.stack.services[name].part
            words = ["python", "-m", "weir_analytics.alerts"] if name == "alerts" else None
            if words is not None:
                words = [*images[image].config["Entrypoint"], *words]
            part.argv = images[image].command(inside(part.env), self._folders(name), words)

    def _folders(self, name: str) -> dict[str, Path]:
        if name == "panes":
            return {STATE: self._state}
        return {SECRETS: self.stack.home.secrets}

    def once(self, image: str, *words: str, environment: Mapping[str, str] = {}) -> str:
        """Run a command in an image to its end; return what it wrote.

        Raises:
            BuildError: If it failed.
        """
        folders = {FILES: self.files, SECRETS: self.stack.home.secrets}
        return _output(self.images[image].command(environment, folders, words))

    def rss_bytes(self, name: str) -> int:
        """Return the memory of a service's processes."""
        pid = self.stack.stack.parts[name].pid()
        family = psutil.Process(pid).children(recursive=True) if pid else []
        return sum(one.memory_info().rss for one in family)


def inside(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a local service's settings with the places that are the image's."""
    places = {"SECRETS_DIR": SECRETS, "STATE_DIR": STATE, "JARS_DIR": None, "WEB_DIR": None}
    inside = {}
    for name, value in environment.items():
        setting = name.split("_", 2)[-1]
        place = places.get(setting, value)
        if place is not None:
            inside[name] = place
    return inside


def lookinside(installation: Installation, service: str) -> None:
    """Check what holds for every image.

    Raises:
        BuildError: If it can write where it must not, is somebody else, or has an installer.
    """
    program = (
        "import errno, importlib.util, os, pwd\n"
        "for path in ('/opt/weir/x', '/etc/x', '/var/x', '/x'):\n"
        "    try:\n"
        "        open(path, 'w')\n"
        "        raise SystemExit(f'{path} could be written')\n"
        "    except OSError as error:\n"
        "        assert error.errno == errno.EROFS, error\n"
        "open('/tmp/x', 'w').close()\n"
        "assert (os.getuid(), os.getgid(), os.getgroups()) == (10001, 10001, [])\n"
        "assert pwd.getpwuid(10001).pw_name == 'weir'\n"
        "assert not [m for m in ('pip', 'setuptools', 'wheel') if importlib.util.find_spec(m)]\n"
        "status = open('/proc/self/status').read()\n"
        "assert 'CapBnd:\\t0000000000000000' in status and 'NoNewPrivs:\\t1' in status\n"
        "print('as 10001, without rights, only /tmp can be written, no installer')\n"
    )
    say(f"weir-{service:<10} {installation.once(service, 'python', '-c', program)}")


def count(installation: Installation) -> None:
    """Make the topics and a metric by the images' commands, send events, read the count.

    Raises:
        BuildError: If a command failed.
        PartError: If a service did not become ready.
        TimeoutError: If the events were not counted in time.
    """
    stack = installation.stack
    servers, addresses = stack.stack, {"WEIR_TOPICS_KAFKA_BOOTSTRAP": stack.kafka_bootstrap}
    for name in ("redis", "kafka"):
        servers.launch(name)
    say(
        installation.once(
            "ingest", "python", "-m", "weir_ingest.topics", "apply", environment=addresses
        )
    )
    began_s = time.monotonic()
    servers.start(tuple(IMAGES), say)
    say(f"all four services ready in {time.monotonic() - began_s:.0f} s")
    known = {"WEIR_DASHBOARD_URL": stack.dashboard_url}
    command = ("weir", "apply", "-f", FILES, "--key-file", f"{SECRETS}/bootstrap_key")
    say(installation.once("ingest", *command, environment=known))
    progress = "/definitions/metric/of_images/progress"
    stack.wait_until(
        lambda: stack.api("GET", progress).body["active"], "the metric counted", timeout_s=60
    )
    events = [
        {"specversion": "1.0", "id": str(n), "source": "urn:check", "type": "image.check"}
        for n in (1, 2, 3, 1)
    ]
    stack.post(events)
    asked = {"metric": "of_images", "aggregate": "count", "range": {"last": "1m"}, "step": "1m"}
    asked["window"] = {"kind": "sliding", "length": "1m"}

    def counted() -> int:
        series = stack.query(asked)["series"]
        return max((n or 0 for one in series for n in one["value"]), default=0)

    stack.wait_until(lambda: counted() >= 3, "three events counted", timeout_s=60)
    say(f"sent 3 events and 1 duplicate, counted {counted():g}")
    for name in IMAGES:
        say(f"{name:<10} {installation.rss_bytes(name) / 1e6:.0f} MB of memory")


def end(installation: Installation, name: str) -> None:
    """End a service as a cluster does: SIGTERM to the first process of the container.

    Raises:
        BuildError: If it did not end well.
        TimeoutError: If it did not end in time.
    """
    part = installation.stack.stack.parts[name]
    leader = part.pid()
    if leader is None:
        return
    began_s = time.monotonic()
    (first,) = psutil.Process(leader).children()
    first.terminate()
    wait_until(lambda: part.pid() is None, timeout_s=GRACE_S, what=f"the end of {name}")
    say(f"{part.ending()}, {time.monotonic() - began_s:.1f} s after SIGTERM")
    if not part.ending().endswith("exit status 0"):
        msg = f"{name} must end with exit status 0 after SIGTERM; see {part.log_path}"
        raise BuildError(msg)


def main() -> int:
    """Run all three; return the exit code."""
    images: dict[str, Image] = {}
    try:
        check()
        for service in sorted(set(IMAGES.values())):
            images[service] = mount(service)
            say(f"weir-{service:<10} {images[service].bytes() / 1e6:.0f} MB of files")
        with tempfile.TemporaryDirectory(prefix="weir-images-") as folder:
            installation = Installation(
                images, Path(folder), int(sys.argv[1]) if sys.argv[1:] else 27080
            )
            for service in images:
                lookinside(installation, service)
            try:
                count(installation)
                for name in IMAGES:
                    end(installation, name)
            finally:
                installation.stack.stop()
    except (BuildError, PartError, TimeoutError) as error:
        complain(f"weir: {error}")
        return 1
    finally:
        for image in images.values():
            subprocess.run(buildah("rm", image.container), capture_output=True, check=False)  # noqa: S603
    return 0


if __name__ == "__main__":
    sys.exit(main())
