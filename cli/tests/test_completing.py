"""What real shells offer, by what `weir completion` gives them; skipped where one is not there."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from glob import glob
from pathlib import Path

import pytest
from weir_cli.__main__ import parser
from weir_cli.completing import SHELLS, words_of

DEADLINE_S = 30.0
NOT_THERE = {name: f"{name} is not installed, so what it completes is not tried" for name in SHELLS}
"""Shell -> what the report of the tests says where it is not there."""
# `compadd` is what all of zsh's completion ends in: here it tells what it was given.
ZSH = """
fpath=(FOLDER $fpath)
autoload -U compinit; compinit -D -u
LISTMAX=0
compadd() {
  if [[ "$*" == *-[OAD]\\ * ]]; then builtin compadd "$@"; return; fi
  local -a found
  builtin compadd -A found "$@"
  print -rl -- $found >> FOLDER/offered
  builtin compadd "$@"
}
ended() { print -r -- . >> FOLDER/offered }
comppostfuncs=(ended)
print . > FOLDER/ready
"""


def by_fish(folder: Path, line: str) -> set[str]:
    """Return what fish offers at the end of a line."""
    script = folder / "weir.fish"
    script.write_text(SHELLS["fish"](words_of(parser())))
    asked = f"source {script}; complete -C '{line}'"
    done = subprocess.run(  # noqa: S603
        ["fish", "--no-config", "-c", asked],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
        env={**os.environ, "HOME": str(folder)},
    )
    assert done.stderr == ""
    # What it offers takes the place of the whole word, and a description may follow.
    words = [told.partition("\t")[0] for told in done.stdout.splitlines()]
    return {word.partition("=")[2] if "=" in line else word for word in words}


def by_zsh(folder: Path, line: str) -> set[str]:
    """Return what zsh offers at the end of a line, as in a terminal: it completes nowhere else."""
    (folder / "_weir").write_text(SHELLS["zsh"](words_of(parser())))
    (folder / "setup").write_text(ZSH.replace("FOLDER", str(folder)))
    offered = folder / "offered"
    shell, terminal = pty.fork()
    if shell == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb"})  # noqa: S606, S607
    try:
        os.write(terminal, f"source {folder}/setup\n".encode())
        await_file(terminal, lambda: (folder / "ready").exists())
        os.write(terminal, f"{line}\t".encode())
        await_file(terminal, lambda: offered.exists() and ".\n" in lines_of(offered))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(shell, signal.SIGKILL)
        os.waitpid(shell, 0)
        os.close(terminal)
    words = {told.strip() for told in lines_of(offered)} - {"", "."}
    # Of a path it adds what comes after the folder that is there.
    before = line.rpartition("=")[2].rpartition(" ")[2].rpartition("/")
    return {f"{before[0]}{before[1]}{word}" for word in words}


def lines_of(file: Path) -> list[str]:
    """Return the lines of a file, ends included."""
    return file.read_text().splitlines(keepends=True)


def await_file(terminal: int, is_there: Callable[[], bool]) -> None:
    """Wait until something is in a file; what the shell writes meanwhile is read and told."""
    deadline_s, said = time.monotonic() + DEADLINE_S, b""
    while not is_there():
        if time.monotonic() > deadline_s:
            msg = f"zsh must answer within {DEADLINE_S:g} s, got {said[-500:]!r}"
            raise TimeoutError(msg)
        if select.select([terminal], [], [], 0.02)[0]:
            said += os.read(terminal, 4_096)


@pytest.mark.parametrize(
    ("shell", "offer"),
    [
        pytest.param(
            name, offer, marks=pytest.mark.skipif(not shutil.which(name), reason=NOT_THERE[name])
        )
        for name, offer in (("zsh", by_zsh), ("fish", by_fish))
    ],
)
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("weir ro", {"rollback"}),
        ("weir rollback --t", {"--to", "--timeout"}),
        ("weir apply --fo", {"--follow"}),
        ("weir rollback me", {"metric/"}),
        ("weir get bo", {"board"}),
        ("weir query --kind s", {"sliding"}),
        ("weir query --kind=s", {"sliding"}),
        ("weir query --last ", set()),
        ("weir completion f", {"fish"}),
        ("weir keys ro", {"rotate"}),
        ("weir send /etc/host", set(glob("/etc/host*"))),
        ("weir keys new --scope o", {"operate"}),
        ("weir apply -f /etc/host", set(glob("/etc/host*"))),
        ("weir apply --file=/etc/host", set(glob("/etc/host*"))),
        ("weir apply -f /etc/hosts -f /etc/host", set(glob("/etc/host*"))),
    ],
)
def test_offered(
    tmp_path: Path, shell: str, offer: Callable[[Path, str], set[str]], line: str, wanted: set[str]
) -> None:
    """At the last word, and nothing else."""
    assert offer(tmp_path, line) == wanted, shell


@pytest.mark.skipif(not shutil.which("fish"), reason=NOT_THERE["fish"])
def test_fish_offers_every_command(tmp_path: Path) -> None:
    """After the first word."""
    assert by_fish(tmp_path, "weir ") == set(words_of(parser()))


@pytest.mark.skipif(not shutil.which("zsh"), reason=NOT_THERE["zsh"])
def test_zsh_offers_every_command(tmp_path: Path) -> None:
    """After the first word."""
    assert by_zsh(tmp_path, "weir ") == set(words_of(parser()))


@pytest.mark.parametrize(
    "shell",
    [
        pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=NOT_THERE[name]))
        for name in sorted(SHELLS)
    ],
)
def test_a_shell_can_read_what_it_is_given(shell: str) -> None:
    """Read without being run."""
    text = SHELLS[shell](words_of(parser()))
    subprocess.run([shell, "-n"], input=text, text=True, check=True)  # noqa: S603


def test_a_shell_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The report says what was not tried, and why, without being asked."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not told"]
    without = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(  # noqa: S603
        [*words, __file__], env=without, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED [")]
    for why in NOT_THERE.values():
        assert any(line.endswith(f": {why}") for line in told), done.stdout
