"""Reads Dockerfiles and `.dockerignore`, as far as the tests ask."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("ingest", "analytics", "dashboard")


@dataclass(frozen=True)
class Instruction:
    """One instruction, its lines joined and its comments gone."""

    word: str
    rest: str


def path_of(service: str) -> Path:
    """Return where a service's Dockerfile is."""
    return ROOT / "services" / service / "Dockerfile"


def instructions(service: str) -> list[Instruction]:
    """Return the instructions of a service's Dockerfile."""
    text = re.sub(r"^\s*#.*\n", "", path_of(service).read_text(), flags=re.M)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [Instruction(*line.split(maxsplit=1)) for line in lines if line.strip()]


def last_stage(service: str) -> list[Instruction]:
    """Return the instructions of what runs in the end."""
    found = instructions(service)
    begin = max(number for number, one in enumerate(found) if one.word == "FROM")
    return found[begin:]


def environment(service: str) -> dict[str, str]:
    """Return the variables that the image sets."""
    pairs = [one.rest.split() for one in last_stage(service) if one.word == "ENV"]
    return dict(pair.split("=", 1) for words in pairs for pair in words)


def context_sources(service: str) -> list[str]:
    """Return what is copied from the build's context."""
    return [
        source
        for one in instructions(service)
        if one.word == "COPY" and "--from=" not in one.rest
        for source in one.rest.split()[:-1]
    ]


def is_in_context(path: str) -> bool:
    """Tell whether `.dockerignore` lets a file through: the last line that matches decides.

    A line matches a file, or a folder that the file lies in; `**` is any number of folders,
    `*` stays within one.
    """
    parts = path.split("/")
    parents = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    allowed = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if not pattern or pattern.startswith("#"):
            continue
        if any(_matches(parent, pattern) for parent in parents):
            allowed = line.startswith("!")
    return allowed


def _matches(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatchcase(path.rpartition("/")[2], pattern.removeprefix("**/"))
    names, wanted = path.split("/"), pattern.split("/")
    return len(names) == len(wanted) and all(map(fnmatchcase, names, wanted))
