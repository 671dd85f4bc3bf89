"""Sends a message to a channel by the way that its definition names.

A new way is a module beside this one, and its line in `Sender.send`.
"""

from __future__ import annotations

import asyncio

import msgspec
from weir.alerts.records import Notification
from weir.clock import Clock
from weir.definitions.channel import Channel, Webhook, secret_name
from weir_reading.catalog import Catalog

from weir_analytics.alerts.channels import by_apprise
from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.webhook import Caller, signed
from weir_analytics.alerts.settings import Settings

_MISSING = "a secret that the channel names is missing"


class Sender:
    """Knows channels by their definitions, and secrets by their files."""

    def __init__(self, catalog: Catalog, settings: Settings, clock: Clock) -> None:
        self._catalog, self._settings, self._clock = catalog, settings, clock
        self._caller = Caller(settings.allowed_hosts)
        self._processes = asyncio.Semaphore(by_apprise.MOST_AT_ONCE)

    async def send(self, tenant: str, channel: str, note: Notification) -> Answer:
        """Send once; never raises for what a receiver does."""
        found = self._catalog.folded.get(tenant, "channel", channel)
        model = found.readable if found is not None else None
        if not isinstance(model, Channel):
            return Answer(None, 0, "there is no such channel")
        if model.webhook is not None:
            return await self._by_webhook(model.webhook, note)
        url = self._secret(model.apprise or "")
        if url is None:
            return Answer(None, 0, _MISSING)
        async with self._processes:
            return await by_apprise.call(url, note, self._settings.allowed_hosts)

    async def close(self) -> None:
        """Close what is open."""
        await self._caller.close()

    async def _by_webhook(self, webhook: Webhook, note: Notification) -> Answer:
        names = (webhook.secret, webhook.old_secret)
        secrets = [self._secret(name) for name in names if name is not None]
        url = self._secret(webhook.url) if webhook.url.startswith("secret://") else webhook.url
        if url is None or None in secrets:
            return Answer(None, 0, _MISSING)
        body = msgspec.json.encode(note)
        at_s = self._clock.now_ms() // 1000
        known = [secret for secret in secrets if secret is not None]
        try:
            headers = signed(note.id, at_s, body, known)
        except ValueError as error:
            return Answer(None, 0, str(error))
        return await self._caller.call(url, body, headers)

    def _secret(self, reference: str) -> str | None:
        return self._settings.secret(secret_name(reference))
