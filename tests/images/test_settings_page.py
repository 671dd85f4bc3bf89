"""docs/settings.md: every setting of every service, as the classes read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_settings import BaseSettings
from weir_service.settings import KafkaSettings, ServiceSettings

from .dockerfiles import ROOT
from .settings_page import EACH, PAGE, TITLES, page, prefix_of

NUMBER = re.compile(r"(above|at least|at most) `([\d.]+)`")
TOLD = {
    **{"kafka_bootstrap": "k:9092", "redis_url": "redis://r", "instance": "one"},
    **{"state_dir": "state", "jars_dir": "jars"},
}


def rows(kind: type[BaseSettings]) -> dict[str, list[str]]:
    """Return the other cells of the page's rows, by the name of the setting in a class."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("| `WEIR_")]
    found = {}
    for variable, *rest in cells:
        prefix = next(p for p in (prefix_of(kind), EACH, "") if variable.strip(" `").startswith(p))
        name = variable.strip(" `").removeprefix(prefix).lower()
        if prefix and name in kind.model_fields:
            found[name] = [cell.strip() for cell in rest]
    return found


def made(kind: type[BaseSettings], folder: Path, **given: str) -> BaseSettings:
    """Return the settings of a process that is told what it needs, and what is given."""
    (folder / "hash_key").write_text("key")
    told: dict[str, Any] = {name: text for name, text in TOLD.items() if name in kind.model_fields}
    return kind(**{**told, "secrets_dir": str(folder), **given})


NUMBERS: list[Any] = [
    pytest.param(kind, name, id=f"{prefix_of(kind)}{name}".upper())
    for kind in TITLES
    for name, (_, _, bounds, _) in rows(kind).items()
    if NUMBER.search(bounds)
]


def test_the_page_is_what_the_classes_say() -> None:
    """After a change of a setting, `python -m tests.images.settings_page`."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_class_is_on_the_page() -> None:
    """A service with a prefix of its own has its tables."""
    found = {
        prefix
        for folder in ("libs", "services", "cli")
        for path in (ROOT / folder).glob("*/weir_*/**/*.py")
        for prefix in re.findall(r'env_prefix="(\w+)"', path.read_text(encoding="utf-8"))
    }
    assert found == {prefix_of(kind) for kind in TITLES}


@pytest.mark.parametrize("kind", TITLES, ids=prefix_of)
def test_every_setting_is_told(kind: type[BaseSettings]) -> None:
    """Each field of a class stands in a row that says what it does."""
    told = rows(kind)
    assert told.keys() == kind.model_fields.keys()
    assert [name for name, cells in told.items() if len(cells) != 4 or not all(cells)] == []


@pytest.mark.parametrize("kind", TITLES, ids=prefix_of)
def test_a_default_is_what_holds(
    kind: type[BaseSettings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page gives as a default, typed into the variable, changes nothing."""
    for name in kind.model_fields:
        monkeypatch.delenv(f"{prefix_of(kind)}{name}".upper(), raising=False)
    alone = made(kind, tmp_path).model_dump()
    typed = {
        name: default[1]
        for name, (_, text, _, _) in rows(kind).items()
        if (default := re.match("`([^`]*)`", text))
    }
    assert len(typed) >= 3
    assert made(kind, tmp_path, **typed).model_dump() == alone
    untold = {name for name, (_, text, _, _) in rows(kind).items() if text.startswith("none")}
    assert [alone[name] for name in untold - {"secrets_dir"} if alone[name]] == []


@pytest.mark.parametrize(("kind", "name"), NUMBERS)
def test_a_bound_is_where_the_page_says(
    kind: type[BaseSettings], name: str, tmp_path: Path
) -> None:
    """The last value within a bound is taken, the next one beyond it is refused."""
    takes, _, bounds, _ = rows(kind)[name]
    step = 0.001 if takes.startswith("number") else 1
    for word, limit in NUMBER.findall(bounds):
        beyond = {"above": 0.0, "at least": -step, "at most": step}[word]
        within = step if word == "above" else 0.0
        taken = made(kind, tmp_path, **{name: f"{float(limit) + within:.12g}"})
        assert getattr(taken, name) == pytest.approx(float(limit) + within)
        with pytest.raises(ValidationError) as refused:
            made(kind, tmp_path, **{name: f"{float(limit) + beyond:.12g}"})
        assert [error["loc"] for error in refused.value.errors()] == [(name,)]


def test_the_ports_of_the_interfaces_are_the_defaults() -> None:
    """docs/interfaces.md, section 8, says where a process listens that is told no port."""
    text = (ROOT / "docs/interfaces.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(WEIR_[A-Z]+_)` \| `.*?` \| (.*) \|$", text, re.M))
    found = {}
    for kind in TITLES:
        ports = [(n, kind.model_fields[n]) for n in ("port", "ops_port") if n in kind.model_fields]
        words = [f"{'ops ' * (name == 'ops_port')}{field.default}" for name, field in ports]
        found[prefix_of(kind)] = ", ".join(words) or "none: it ends by itself"
    assert told == found


def test_every_secret_is_told() -> None:
    """Each file that a class looks for stands in the table of secrets, with who needs it."""
    table = PAGE.read_text(encoding="utf-8").partition("## Secrets")[2].partition("\n## ")[0]
    told = {line.split("|")[1]: line.split("|")[2] for line in table.splitlines() if "|" in line}
    services = {kind for kind in TITLES if issubclass(kind, ServiceSettings)}
    assert len(services) == 4
    for kind in TITLES:
        assert issubclass(kind, KafkaSettings)
        for name in (*kind.needed_secrets, *kind.optional_secrets):
            assert any(f"`{name}`" in files for files in told)
        for name in kind.needed_secrets:
            (needed,) = [who for files, who in told.items() if f"`{name}`" in files]
            assert TITLES[kind].lower() in needed
