"""Sends a message to a channel by the way that its definition names.

A new way is a module beside this one, and its line in `Sender.send`.
"""

from __future__ import annotations

from typing import Final

import msgspec
from weir.alerts.records import Notification
from weir.clock import Clock
from weir.definitions.channel import Channel, Webhook, secret_name
from weir_reading.catalog import Catalog

from weir_analytics.alerts.channels import by_apprise
from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.turns import Turns
from weir_analytics.alerts.channels.webhook import Caller, signed
from weir_analytics.alerts.settings import Settings

AT_ONCE: Final = 4
"""Calls to one receiver; to a service by Apprise one: each has a process."""


class _SecretError(Exception):
    """A secret that cannot be had; its text says why, without the secret."""


class Sender:
    """Knows channels by their definitions, and secrets by their files."""

    def __init__(self, catalog: Catalog, settings: Settings, clock: Clock) -> None:
        self._catalog, self._settings, self._clock = catalog, settings, clock
        self._caller = Caller(settings.allowed_hosts)
        self._turns = Turns()

    def knows(self, tenant: str, channel: str) -> bool:
        """Tell whether there is such a channel."""
        return self._catalog.folded.get(tenant, "channel", channel) is not None

    def at_once(self, tenant: str, channel: str) -> int:
        """Return how many messages a channel may be sent at a time."""
        model = self._model(tenant, channel)
        return AT_ONCE if model is not None and model.webhook is not None else 1

    async def send(self, tenant: str, channel: str, note: Notification) -> Answer:
        """Send once; never raises for what a receiver does, nor for secrets that are amiss."""
        model = self._model(tenant, channel)
        if model is None:
            return self._unknown(tenant, channel)
        try:
            if model.webhook is not None:
                return await self._by_webhook(model.webhook, note)
            return await self._by_apprise((tenant, channel), model.apprise or "", note)
        except _SecretError as error:
            return Answer(None, 0, str(error))

    async def close(self) -> None:
        """Close what is open."""
        await self._caller.close()

    def _unknown(self, tenant: str, channel: str) -> Answer:
        """Return why nothing can be sent there; a channel may be defined after what names it."""
        history = self._catalog.folded.history(tenant, "channel", channel)
        if history and not history[0].deleted:
            return Answer(None, 0, "its definition cannot be read by this release")
        return Answer(None, 0, "there is no such channel", gone=bool(history))

    def _model(self, tenant: str, channel: str) -> Channel | None:
        found = self._catalog.folded.get(tenant, "channel", channel)
        model = found.readable if found is not None else None
        return model if isinstance(model, Channel) else None

    async def _by_apprise(
        self, place: tuple[str, str], reference: str, note: Notification
    ) -> Answer:
        url = self._secret(reference)
        turn = self._turns.test if note.kind == "test" else self._turns.message
        allowed = self._settings.allowed_hosts
        return await turn(place, lambda: by_apprise.call(url, note, allowed))

    async def _by_webhook(self, webhook: Webhook, note: Notification) -> Answer:
        names = (webhook.secret, webhook.old_secret)
        secrets = [self._secret(name) for name in names if name is not None]
        url = self._secret(webhook.url) if webhook.url.startswith("secret://") else webhook.url
        body = msgspec.json.encode(note)
        at_s = self._clock.now_ms() // 1000
        try:
            headers = signed(note.id, at_s, body, secrets)
        except ValueError as error:
            return Answer(None, 0, str(error))
        return await self._caller.call(url, body, headers)

    def _secret(self, reference: str) -> str:
        """Return a secret.

        Raises:
            _SecretError: If there is none, or its file cannot be read.
        """
        why = "is missing"
        try:
            found = self._settings.secret(secret_name(reference))
        except UnicodeDecodeError:
            found, why = None, "must be text in UTF-8, and is none; write its file anew"
        except OSError as error:
            found, why = None, f"could not be read: {error.strerror}; see who may read its file"
        if not found:
            msg = f"a secret that the channel names {why}"
            raise _SecretError(msg) from None
        return found
