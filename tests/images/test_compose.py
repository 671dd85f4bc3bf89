"""The compose files: right by schema, and true of images and settings."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic_settings import BaseSettings
from ruamel.yaml import YAML
from weir_analytics.alerts.settings import Settings as AlertsSettings
from weir_analytics.settings import Settings as AnalyticsSettings
from weir_dashboard.settings import Settings as DashboardSettings
from weir_ingest.settings import Settings as IngestSettings
from weir_ingest.topics.settings import Settings as TopicsSettings

from .dockerfiles import ROOT, SERVICES, environment, last_stage

COMPOSE = ROOT / "infra/local/compose.yaml"
MONITORING = ROOT / "infra/monitoring/compose.yaml"
CHECK = Path(sys.executable).parent / "check-jsonschema"
SETTINGS: dict[str, type[BaseSettings]] = {
    "topics": TopicsSettings,
    "ingest": IngestSettings,
    "panes": AnalyticsSettings,
    "alerts": AlertsSettings,
    "dashboard": DashboardSettings,
}


def read(path: Path) -> Any:
    """Return what a YAML file holds."""
    return YAML(typ="safe", pure=True).load(path.read_text())


def schema_check(*words: str | Path) -> str:
    """Return what the schema's checker says; empty if the file is right."""
    command = [str(CHECK), "-q", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return "" if done.returncode == 0 else done.stdout + done.stderr or "refused"


@pytest.mark.parametrize("path", [COMPOSE, MONITORING])
def test_compose_fits_its_schema(path: Path, tmp_path: Path) -> None:
    """By the schema of the Compose specification; a misspelt member is found."""
    assert schema_check("--builtin-schema", "vendor.compose-spec", path) == ""
    bad = tmp_path / "compose.yaml"
    bad.write_text(path.read_text().replace("restart:", "restarts:", 1))
    assert schema_check("--builtin-schema", "vendor.compose-spec", bad) != ""


class TestCompose:
    services: dict[str, Any] = read(COMPOSE)["services"]

    @pytest.mark.parametrize("name", list(SETTINGS))
    def test_its_variables_make_settings(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With the image's own, they are enough for a start, and none is unknown."""
        service, kind = self.services[name], SETTINGS[name]
        image = service["image"].removeprefix("weir-")
        prefix = str(kind.model_config.get("env_prefix"))
        given = {**environment(image), **service["environment"]}
        mine = {key: value for key, value in given.items() if key.startswith(prefix)}
        assert {key.removeprefix(prefix).lower() for key in mine} <= kind.model_fields.keys()
        for variable in [key for key in os.environ if key.startswith("WEIR_")]:
            monkeypatch.delenv(variable)
        for key, value in mine.items():
            monkeypatch.setenv(key, value)
        if f"{prefix}SECRETS_DIR" in mine:
            (tmp_path / "hash_key").write_text("key")
            monkeypatch.setenv(f"{prefix}SECRETS_DIR", str(tmp_path))
        assert kind().model_fields_set >= {"kafka_bootstrap"}

    def test_ports_are_those_of_the_images_and_of_this_machine_alone(self) -> None:
        """What is published is what the image listens on, and no network sees it."""
        for name in ("ingest", "dashboard"):
            (published,) = self.services[name]["ports"]
            address, _, port = published.split(":")
            exposed = [one.rest for one in last_stage(name) if one.word == "EXPOSE"]
            assert address == "127.0.0.1"
            assert port in exposed[0].split()
        others = self.services.keys() - {"ingest", "dashboard"}
        assert not [name for name in others if "ports" in self.services[name]]

    def test_the_services_are_shut_in(self) -> None:
        """Root is read-only, no right is left, and only /tmp and named volumes can be written."""
        for name in ("ingest", "panes", "alerts", "dashboard"):
            service = self.services[name]
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert service["security_opt"] == ["no-new-privileges:true"]
            (temporary,) = service["tmpfs"]
            assert temporary.startswith("/tmp:exec,")  # noqa: S108  the container's own
            assert "user" not in service

    def test_redis_never_evicts(self) -> None:
        """The services refuse to start on a Redis with another policy."""
        words = self.services["redis"]["command"]
        assert ("--maxmemory-policy", "noeviction") in list(pairwise(words))

    def test_broker_and_redis_are_those_that_are_tested(self) -> None:
        """The broker is of the release whose jars the tests run; no image goes without a tag."""
        lock = (ROOT / "infra/local/jars.lock").read_text()
        (version,) = re.findall(r"kafka/kafka_2\.13-([\d.]+)\.jar", lock)
        assert self.services["kafka"]["image"] == f"docker.io/apache/kafka:{version}"
        images = [
            one["image"]
            for one in [*self.services.values(), *read(MONITORING)["services"].values()]
        ]
        for image in images:
            assert image.removeprefix("weir-") in SERVICES or re.search(r":v?\d[\w.-]+$", image)

    def test_the_key_that_it_makes_is_one(self, tmp_path: Path) -> None:
        """The first run writes both secrets for their readers alone; the next leaves them."""
        (program,) = self.services["keys"]["command"]
        compile(program, "keys", "exec", ast.PyCF_ONLY_AST)
        state = tmp_path / "state"
        state.mkdir()
        local = program.replace("/run/weir/secrets", str(tmp_path)).replace(
            "/var/weir/state", str(state)
        )
        local = local.replace("10001, 10001", f"{os.getuid()}, {os.getgid()}")
        made = []
        for _ in range(2):
            subprocess.run([sys.executable, "-c", local], check=True)  # noqa: S603
            made.append([(tmp_path / name).read_text() for name in ("hash_key", "bootstrap_key")])
        assert made[0] == made[1]
        assert re.fullmatch(r"[0-9a-f]{64}", made[0][0])
        assert re.fullmatch(r"wk_[a-z0-9]{8}_[\w-]{43}", made[0][1])
        assert (tmp_path / "bootstrap_key").stat().st_mode & 0o777 == 0o400
