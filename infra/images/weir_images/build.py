"""Build the three images where no image registry can be reached: `make images-offline`.

The real Dockerfiles are built by buildah, without an engine, on a base that debootstrap
makes from Debian's packages in place of the pinned one, and on this machine's Node.
Must be root on Linux; needs debootstrap and buildah (Debian has both), the registries of
Python, Maven and Node packages, about 6 GB of disk and a few minutes.

Tested so: the steps of the Dockerfiles, the hashes, user, entrypoint, size. Not tested:
the pinned base images themselves, other processors, pulling and pushing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from weir_local.console import complain, say
from weir_local.repository import ROOT, TOOLS

SERVICES = ("ingest", "analytics", "dashboard")
RELEASE = "bookworm"
PACKAGES = "ca-certificates"
# As in the slim image: no documentation, no languages, no package that was installed already.
LEFT_OUT = ("usr/share/doc", "usr/share/locale", "usr/share/man", "usr/share/info")
EMPTIED = (*LEFT_OUT, "var/lib/apt/lists", "var/cache/apt")
DPKG = "".join(f"path-exclude /{folder}/*\n" for folder in LEFT_OUT)
APT = """Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Keep-Downloaded-Packages "false";
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };
"""
BASE, NODE = "localhost/weir-base", "localhost/weir-node"
NEEDED = ("debootstrap", "buildah", "node", "npm")
IT = "<container>"
HOME = TOOLS / "images"
LOG = TOOLS / "logs" / "images.log"
# What this machine trusts and where it takes packages from holds for the stand-in, too.
CERTIFICATES = Path("/usr/local/share/ca-certificates")
SOURCES = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d/debian.sources"))
PIP_CONFIG = Path("/etc/pip.conf")
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


class BuildError(Exception):
    """The images could not be built; the text says what is missing or what failed."""


def buildah(*words: str | Path) -> list[str]:
    """Return a buildah command whose images lie in a folder of the checkout."""
    storage = ["--root", str(HOME / "storage"), "--runroot", str(HOME / "run")]
    return ["buildah", *storage, *map(str, words)]


def run(command: Sequence[str | Path]) -> str:
    """Run a command and return what it wrote; all of it goes to the log.

    Raises:
        BuildError: If it failed; has its last lines.
    """
    words = [str(word) for word in command]
    with LOG.open("ab") as log:
        log.write(f"\n$ {' '.join(words)}\n".encode())
        log.flush()
        began_at = log.tell()
        done = subprocess.run(  # noqa: S603
            words, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False
        )
    written = LOG.read_bytes()[began_at:].decode("utf-8", "replace")
    if done.returncode != 0:
        last = "\n".join(written.splitlines()[-12:])
        short, where = " ".join(words[:6]), f"All of it is in {LOG}."
        msg = f"`{short} …` must succeed, ended with {done.returncode}:\n{last}\n{where}"
        raise BuildError(msg)
    return written.strip()


def check() -> None:
    """Do nothing if everything that is needed is there.

    Raises:
        BuildError: If not; says what to do.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        msg = (
            "images are built here by root on Linux, without an engine; with one, use docker build"
        )
        raise BuildError(msg)
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        msg = f"{', '.join(missing)} must be on PATH, found none; install the packages of that name"
        raise BuildError(msg)


def make_tree(tree: Path) -> None:
    """Make the files of a small Debian, once."""
    done = tree.with_suffix(".done")
    if done.exists():
        return
    shutil.rmtree(tree, ignore_errors=True)
    options = ["--variant=minbase", f"--include={PACKAGES}"]
    mirror = [os.environ["WEIR_DEBIAN_MIRROR"]] if "WEIR_DEBIAN_MIRROR" in os.environ else []
    run(["debootstrap", *options, RELEASE, tree, *mirror])
    for folder in EMPTIED:
        shutil.rmtree(tree / folder)
        (tree / folder).mkdir()
    (tree / "etc/dpkg/dpkg.cfg.d/slim").write_text(DPKG)
    (tree / "etc/apt/apt.conf.d/slim").write_text(APT)
    if f"VERSION_CODENAME={RELEASE}" in Path("/etc/os-release").read_text():
        for source in SOURCES:
            _copy(source, tree)
        if SOURCES[1].exists():
            (tree / "etc/apt/sources.list").unlink(missing_ok=True)
    for certificate in CERTIFICATES.glob("*.crt"):
        _copy(certificate, tree)
    _copy(PIP_CONFIG, tree)
    run(["chroot", tree, "update-ca-certificates"])
    done.touch()


def _copy(path: Path, tree: Path) -> None:
    if path.exists():
        target = tree / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def commit(name: str, base: str, steps: Sequence[Sequence[str | Path]]) -> None:
    """Make an image out of another by buildah's own steps; `IT` in one is the container."""
    container = run(buildah("from", "--pull-never", base)).splitlines()[-1]
    for step in steps:
        run(buildah(*(container if word == IT else word for word in step)))
    run(buildah("commit", "-q", "--rm", container, name))


def make_bases() -> None:
    """Make what the Dockerfiles build from."""
    tree = HOME / "debian"
    make_tree(tree)
    commit(BASE, "scratch", [("add", IT, tree, "/"), ("config", "--cmd=bash", IT)])
    node = Path(shutil.which("node") or "").resolve()
    npm = Path(shutil.which("npm") or "").resolve().parents[1]
    modules, program = "/usr/local/lib/node_modules/npm", "/usr/local/bin/npm"
    link = ("ln", "-s", f"{modules}/bin/npm-cli.js", program)
    steps: list[Sequence[str | Path]] = [
        ("copy", IT, node, "/usr/local/bin/node"),
        ("copy", IT, npm, modules),
        ("run", "--isolation=chroot", IT, "--", *link),
        ("config", f"--env=NODE_EXTRA_CA_CERTS={BUNDLE}", IT),
    ]
    commit(NODE, BASE, steps)


def build(service: str) -> None:
    """Build a service's Dockerfile."""
    arguments = [f"--build-arg=BASE_IMAGE={BASE}"]
    if service == "dashboard":
        arguments.append(f"--build-arg=NODE_IMAGE={NODE}")
    file = ROOT / "services" / service / "Dockerfile"
    options = ["--isolation=chroot", "--network=host", "--pull-never", "--layers", *arguments]
    run(buildah("bud", *options, "-f", file, "-t", f"localhost/weir-{service}", ROOT))


def main() -> int:
    """Build all three; return the exit code."""
    for folder in (HOME, LOG.parent):
        folder.mkdir(parents=True, exist_ok=True)
    LOG.write_text("")
    try:
        check()
        for what, step in [
            ("base and Node", make_bases),
            *((f"weir-{one}", lambda one=one: build(one)) for one in SERVICES),
        ]:
            began_s = time.monotonic()
            say(f"building {what} …")
            step()
            say(f"  {what}: done in {time.monotonic() - began_s:.0f} s")
    except BuildError as error:
        complain(f"weir: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
