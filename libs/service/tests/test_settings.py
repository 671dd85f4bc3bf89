"""Settings: from the environment, all faults at once, secrets as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import structlog
from pydantic import Field
from pydantic_settings import SettingsConfigDict
from weir_service.settings import Listed, Port, ServiceSettings, read


class Sample(ServiceSettings):
    """Settings of no service."""

    model_config = SettingsConfigDict(env_prefix="WEIR_SAMPLE_", frozen=True)
    needed_secrets = ("hash_key",)

    port: Port = Field(default=1)
    origins: Listed = Field(default=())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of secrets of an environment in which nothing is wrong."""
    (tmp_path / "hash_key").write_text(" k3y\n")
    monkeypatch.setenv("WEIR_SAMPLE_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("WEIR_SAMPLE_REDIS_URL", "redis://me:s3cret@127.0.0.1:2/0")
    monkeypatch.setenv("WEIR_SAMPLE_SECRETS_DIR", str(tmp_path))
    return tmp_path


def test_what_the_environment_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are split at commas; secrets come without the line end."""
    monkeypatch.setenv("WEIR_SAMPLE_ORIGINS", "http://a, ,http://b")
    settings = read(Sample)
    assert settings is not None
    assert settings.origins == ("http://a", "http://b")
    assert (settings.hash_key, settings.redis_password) == (b"k3y", None)
    (folder / "redis_password").write_text("p4ss\n")
    assert settings.secret("redis_password") == settings.redis_password == "p4ss"


def test_what_is_logged_holds_no_credential(folder: Path) -> None:
    """Addresses are told without user and password, files of secrets by their folder."""
    settings = read(Sample)
    assert settings is not None
    told = settings.told()
    assert told["redis_url"] == "redis://***@127.0.0.1:2/0"
    assert told["secrets_dir"] == str(folder)
    assert not {"s3cret", "k3y"} & set(json.dumps(told).split('"'))


def test_all_faults_are_told_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing setting, one out of bounds and a missing secret: three lines, by their names."""
    monkeypatch.delenv("WEIR_SAMPLE_REDIS_URL")
    monkeypatch.setenv("WEIR_SAMPLE_PORT", "99999")
    (folder / "hash_key").write_text("\n")
    with structlog.testing.capture_logs() as said:
        assert read(Sample) is None
    faults = {line["name"]: line["why"] for line in said if line["event"] == "bad_setting"}
    assert faults.keys() == {
        "WEIR_SAMPLE_REDIS_URL",
        "WEIR_SAMPLE_PORT",
        "WEIR_SAMPLE_SECRETS_DIR",
    }
    assert "a folder with a file hash_key that is not empty" in faults["WEIR_SAMPLE_SECRETS_DIR"]
