"""Executors of the driver's former life: deleted before the new one asks for its own.

A driver that is killed deletes nothing, and while its pod stays, the cluster keeps what belongs
to it: pods that wait for a place, or for their image, start later, find the new driver at the
same address with the same secret, and take the numbers of its own executors. So whatever a
driver of this pod's name has made is deleted first.

The API is asked as Spark's client asks it: with the token of the pod's account and the CA
beside it, or those that the variables of that client name.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import structlog
from weir.clock import Clock

from weir_analytics.panes.pods import DRIVER_LABEL
from weir_analytics.settings import PODS, Settings

LOG = structlog.get_logger()

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# What the client in Spark's JVM reads them from.
_TOKEN_TOLD = "KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN"  # noqa: S105  a variable
_CA_TOLD = "KUBERNETES_CERTS_CA_FILE"
TIMEOUT_S = 10.0
# Longer than an executor's grace of 30 s by default; on a host that is lost it never ends.
GONE_WITHIN_S = 40.0
LOOK_EVERY_S = 0.5
_WORDS_KEPT = 300


class FormerError(Exception):
    """What the former life made could not be deleted; the text says what came and what to do."""


@dataclass(frozen=True)
class Access:
    """How the cluster's API is asked.

    Attributes:
        url: Of all pods of the namespace.
        token: File with the token of the driver's account.
        ca: File with the CA of the API's certificate.
    """

    url: str
    token: Path
    ca: Path


def access(settings: Settings, environment: Mapping[str, str]) -> Access:
    """Return how a driver whose `in_pods` is true asks the API."""
    server = settings.master.removeprefix(PODS)
    server = server if "://" in server else f"https://{server}"
    return Access(
        url=f"{server.rstrip('/')}/api/v1/namespaces/{settings.namespace}/pods",
        token=Path(environment.get(_TOKEN_TOLD) or _ACCOUNT / "token"),
        ca=Path(environment.get(_CA_TOLD) or _ACCOUNT / "ca.crt"),
    )


def delete_former(settings: Settings, clock: Clock, stop: threading.Event) -> None:
    """Delete the pods of executors that a driver of this pod has made; return when they are gone.

    Pods that stay for longer than their grace, as on a host that is lost, are told and left.
    So are all once `stop` is set.

    Raises:
        FormerError: If the API cannot be asked, or refuses.
    """
    told = access(settings, os.environ)
    picked = {"labelSelector": f"{DRIVER_LABEL}={settings.driver_pod}"}
    try:
        pods = _Pods(told, urlencode(picked))
        _delete(pods, clock, stop)
    except urllib.error.HTTPError as error:
        with error:
            came = error.read(_WORDS_KEPT).decode(errors="replace")
        raise FormerError(in_words(told, f"{error.code} {came}")) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FormerError(in_words(told, str(error) or repr(error))) from error


def in_words(told: Access, came: str) -> str:
    """Return what was required, what came and what to do."""
    return (
        "executors of a former driver must be deleted before others are made, got from"
        f" {told.url}: {came[:_WORDS_KEPT]}; let the driver's account list and delete pods, and its"
        " pod reach the API"
    )


class _Pods:
    """The pods that a selector picks, as the API has them."""

    def __init__(self, told: Access, query: str) -> None:
        self._url = f"{told.url}?{query}"
        self._token = told.token.read_text(encoding="utf-8").strip()
        context = ssl.create_default_context(cafile=told.ca) if told.url[:6] == "https:" else None
        # Without proxies: one for what is outside of the cluster does not know its API.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )

    def names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in json.loads(self._ask("GET"))["items"]]

    def delete(self) -> None:
        self._ask("DELETE")

    def _ask(self, method: str) -> bytes:
        request = urllib.request.Request(  # noqa: S310  the API's address is a setting
            self._url, method=method, headers={"Authorization": f"Bearer {self._token}"}
        )
        with self._opener.open(request, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read()
            return body


def _delete(pods: _Pods, clock: Clock, stop: threading.Event) -> None:
    names = pods.names()
    if not names:
        return
    LOG.warning("former_executors_deleted", pods=names)
    pods.delete()
    deadline_s = clock.monotonic_s() + GONE_WITHIN_S
    while names := pods.names():
        if stop.wait(LOOK_EVERY_S) or clock.monotonic_s() > deadline_s:
            LOG.error("former_executors_stay", pods=names)
            return
