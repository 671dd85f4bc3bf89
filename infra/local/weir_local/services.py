"""The services as processes: their commands, addresses and settings."""

from __future__ import annotations

import http.client
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weir_local import ports
from weir_local.process import Part
from weir_local.repository import SPARK_JARS, WEB_BUILD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weir_local.home import Home

PROBE_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class Service:
    """One service.

    Attributes:
        part: Its process.
        ops_port: Where it answers `/livez`, `/readyz` and `/metrics`; 0 if nowhere.
    """

    part: Part
    ops_port: int

    def is_ready(self) -> bool:
        """Return whether it says that it is ready to do its work."""
        if not self.ops_port:
            return self.part.pid() is not None
        return probe(self.ops_port, "/readyz") == http.client.OK

    def doing(self) -> str:
        """Return what it answers on `/readyz` when it is not ready; empty if nothing."""
        return ask(self.ops_port, "/readyz")[1].strip() if self.ops_port else ""


def probe(
    port: int, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None
) -> int:
    """Return the HTTP status of a request without a body, 0 if nothing answers."""
    return ask(port, path, method=method, headers=headers)[0]


def ask(
    port: int, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Return status and text of the answer to a request without a body; (0, "") if none."""
    connection = http.client.HTTPConnection(ports.HOST, port, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request(method, path, headers=dict(headers or {}))
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


def addresses(home: Home) -> dict[str, str]:
    """Return what scripts need: the contents of the stack's env file."""
    return {
        "WEIR_INGEST_URL": f"http://{ports.HOST}:{home.ports['ingest']}",
        "WEIR_DASHBOARD_URL": f"http://{ports.HOST}:{home.ports['dashboard']}",
        "WEIR_API_KEY": home.api_key(),
        "WEIR_KAFKA_BOOTSTRAP": f"{ports.HOST}:{home.ports['kafka']}",
        "WEIR_REDIS_URL": f"redis://{ports.HOST}:{home.ports['redis']}/0",
    }


def services(home: Home) -> dict[str, Service]:
    """Return the services of a stack by name, in the order in which events reach them."""
    return {
        "ingest": _service(home, "weir_ingest", "ingest", _ingest(home)),
        "panes": _service(home, "weir_analytics.panes", "panes", _panes(home)),
        "alerts": _service(home, "weir_analytics.alerts", "alerts", _alerts(home)),
        "dashboard": _service(home, "weir_dashboard", "dashboard", _dashboard(home)),
        "feeder": Service(_part(home, "weir_local.demo", "feeder", _feeder(home)), 0),
    }


def _service(home: Home, module: str, name: str, env: Mapping[str, str]) -> Service:
    return Service(_part(home, module, name, env), home.ports[f"{name} ops"])


def _part(home: Home, module: str, name: str, env: Mapping[str, str]) -> Part:
    # PYTHONUNBUFFERED: the last words of a process that is killed must be in its log.
    env = {"PYTHONUNBUFFERED": "1", **env}
    return Part(name, [sys.executable, "-m", module], home.run, env)


def _stores(home: Home, prefix: str) -> dict[str, str]:
    known = addresses(home)
    return {
        f"{prefix}KAFKA_BOOTSTRAP": known["WEIR_KAFKA_BOOTSTRAP"],
        f"{prefix}REDIS_URL": known["WEIR_REDIS_URL"],
    }


def _web(home: Home, name: str) -> dict[str, str]:
    prefix = f"WEIR_{name.upper()}_"
    return {
        **_stores(home, prefix),
        f"{prefix}HOST": ports.HOST,
        f"{prefix}PORT": str(home.ports[name]),
        f"{prefix}OPS_PORT": str(home.ports[f"{name} ops"]),
        f"{prefix}SECRETS_DIR": str(home.secrets),
    }


def _ingest(home: Home) -> dict[str, str]:
    return _web(home, "ingest")


def _panes(home: Home) -> dict[str, str]:
    return {
        **_stores(home, "WEIR_ANALYTICS_"),
        "WEIR_ANALYTICS_OPS_PORT": str(home.ports["panes ops"]),
        "WEIR_ANALYTICS_SECRETS_DIR": str(home.secrets),
        "WEIR_ANALYTICS_STATE_DIR": str(home.folder / "panes"),
        "WEIR_ANALYTICS_JARS_DIR": str(SPARK_JARS),
    }


def _alerts(home: Home) -> dict[str, str]:
    return {
        **_stores(home, "WEIR_ALERTS_"),
        "WEIR_ALERTS_OPS_PORT": str(home.ports["alerts ops"]),
        "WEIR_ALERTS_SECRETS_DIR": str(home.secrets),
        "WEIR_ALERTS_DASHBOARD_URL": addresses(home)["WEIR_DASHBOARD_URL"],
        # Whoever tries a webhook on a laptop has the receiver there, too.
        "WEIR_ALERTS_ALLOWED_HOSTS": "localhost,127.0.0.0/8,::1",
    }


def _dashboard(home: Home) -> dict[str, str]:
    port = home.ports["dashboard"]
    return {
        **_web(home, "dashboard"),
        "WEIR_DASHBOARD_WEB_DIR": os.environ.get("WEIR_DASHBOARD_WEB_DIR", str(WEB_BUILD)),
        "WEIR_DASHBOARD_INGEST_URL": addresses(home)["WEIR_INGEST_URL"],
        "WEIR_DASHBOARD_ORIGINS": f"http://{ports.HOST}:{port},http://localhost:{port}",
    }


def _feeder(home: Home) -> dict[str, str]:
    return {
        "WEIR_INGEST_URL": addresses(home)["WEIR_INGEST_URL"],
        "WEIR_API_KEY": home.api_key(),
        "WEIR_FEEDER_STATE": str(home.folder / "feeder.json"),
    }
