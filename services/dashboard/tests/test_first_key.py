"""The first API key: what is no key is refused at the start, and what waits is tried again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import ValidationError
from weir.problems import ProblemError, Reason
from weir_dashboard.definitions import bootstrap
from weir_dashboard.definitions.bootstrap import TENANT, store_first_key
from weir_dashboard.definitions.catalog import Catalog
from weir_dashboard.settings import Settings

KEY = "wk_abcd2345_" + "x" * 32


def settings_of(folder: Path, key: str) -> Settings:
    """Return the settings of an installation with a first key."""
    (folder / "hash_key").write_text("k3y")
    (folder / "bootstrap_key").write_text(key)
    return Settings(
        kafka_bootstrap="127.0.0.1:1", redis_url="redis://127.0.0.1:1", secrets_dir=folder
    )


def test_what_is_written_as_keys_are(tmp_path: Path) -> None:
    """White space around it is not part of it."""
    assert settings_of(tmp_path, f"{KEY}\n").secret("bootstrap_key") == KEY


def test_none_is_needed(tmp_path: Path) -> None:
    """An installation that has keys need not keep the first."""
    assert settings_of(tmp_path, "\n").secret("bootstrap_key") == ""


@pytest.mark.parametrize("key", ["secret", KEY.upper(), KEY[:-1], KEY + "x" * 97, KEY + "="])
def test_what_is_no_key_is_refused_at_the_start(tmp_path: Path, key: str) -> None:
    """The fault says how keys are written, and not what stands there."""
    with pytest.raises(ValidationError) as error:
        settings_of(tmp_path, key)
    (fault,) = error.value.errors()
    assert fault["loc"] == ("secrets_dir",)
    assert "must hold bootstrap_key as wk_, 8 of a-z and 0-9" in fault["msg"]
    assert f"found {len(key)} characters that are not written so" in fault["msg"]
    assert key not in fault["msg"]


class Refusing:
    """A writer in whose way something stands at first."""

    def __init__(self, *problems: ProblemError) -> None:
        self.problems = list(problems)
        self.put_texts: list[str] = []

    async def put(self, place: tuple[str, str, str], text: str, **_given: Any) -> None:
        """Refuse, or keep what was given."""
        if self.problems:
            raise self.problems.pop(0)
        assert place == (TENANT, "key", json.loads(text)["name"])
        self.put_texts.append(text)


def store(writer: Refusing) -> list[str]:
    """Store the first key; return what was logged."""
    with structlog.testing.capture_logs() as said:
        asyncio.run(store_first_key(Catalog(), writer, KEY, b"k3y"))  # type: ignore[arg-type]
    return [line["event"] for line in said]


def test_it_is_tried_until_the_log_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is away at the start keeps nobody out for longer than it is away."""
    monkeypatch.setattr(bootstrap, "AGAIN_S", 0.0)
    away = ProblemError(503, Reason.LOG_UNAVAILABLE, "the log did not confirm in time")
    writer = Refusing(away, away)

    assert store(writer) == ["first_key_waits", "first_key_waits", "first_key_stored"]
    (text,) = writer.put_texts
    assert KEY not in text


def test_another_dashboard_may_have_been_first() -> None:
    """What another one has stored says the same."""
    conflict = ProblemError(409, Reason.VERSION_CONFLICT, "there is a version")

    assert store(Refusing(conflict)) == ["first_key_stored"]
