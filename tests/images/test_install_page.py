"""docs/install.md: what it has `docker run` start is what the images can start."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex

import pytest

from .dockerfiles import ROOT, last_stage
from .settings_page import PAGE as SETTINGS

PAGE = (ROOT / "docs/install.md").read_text(encoding="utf-8")
RUNS = re.findall(r"^docker run .*?[^\\]$", PAGE, re.M | re.S)
WITH_VALUE = ("--entrypoint", "-e", "-v", "--env-file")
# The command line's own; docs/cli.md has them.
OF_WEIR = {"WEIR_DASHBOARD_URL", "WEIR_API_KEY"}


def started(command: str) -> tuple[list[str], list[str]]:
    """Return the words that a `docker run` starts, and the variables that it gives."""
    words = shlex.split(command.replace("\\\n", " "))[2:]
    options: dict[str, list[str]] = {name: [] for name in WITH_VALUE}
    while words[0].startswith("-"):
        option = words.pop(0)
        if option in options:
            options[option].append(words.pop(0))
    image, *rest = words
    (own,) = [
        json.loads(one.rest)
        for one in last_stage(image.removeprefix("weir-"))
        if one.word == "ENTRYPOINT"
    ]
    given = [one.partition("=")[0] for one in options["-e"]]
    return [*(options["--entrypoint"] or own), *rest], given


@pytest.mark.parametrize("command", RUNS)
def test_what_is_run_is_there(command: str) -> None:
    """Entrypoint and words make a Python module's start, and each variable is one that is read."""
    words, given = started(command)
    if words[:2] == ["tini", "--"]:
        words = words[2:]
    assert words[:2] == ["python", "-m"], words
    assert importlib.util.find_spec(f"{words[2]}.__main__") is not None
    known = set(re.findall(r"`(WEIR_\w+)`", SETTINGS.read_text(encoding="utf-8")))
    common = {f"WEIR_TOPICS_{name}" for name in re.findall(r"`WEIR_…_(\w+)`", SETTINGS.read_text())}
    assert set(given) <= known | common | OF_WEIR


def test_every_way_is_shown() -> None:
    """The page starts the topics' command, the command line and the alerts job from images."""
    modules = [started(command)[0] for command in RUNS]
    shown = {word for words in modules for word in words if word.startswith("weir_")}
    assert shown == {"weir_ingest.topics", "weir_cli", "weir_analytics.alerts"}
