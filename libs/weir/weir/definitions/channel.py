"""Channels: how somebody is told. Secrets are named, never written here."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from weir.definitions.base import DefinitionModel, Model
from weir.definitions.durations import DurationMs, format_duration
from weir.definitions.faults import fault
from weir.kafka import SECRETS as KAFKA_SECRETS

OWN_SECRETS: Final = frozenset(("hash_key", "bootstrap_key", "redis_password", *KAFKA_SECRETS))
"""Secrets of Weir itself, which may stand in the same folder; no channel is given one."""
LEAST_INTERVAL_MS: Final = 10_000
_PREFIX: Final = "secret://"
_SECRET: Final = re.compile(r"secret://[a-z][a-z0-9_]{0,63}")
_WEB: Final = re.compile(r"https?://[^\s\x00-\x1f]+")


def _checked_secret(text: str) -> str:
    if not _SECRET.fullmatch(text):
        raise fault(
            required="the name of a secret: secret:// and a-z, 0-9 and _",
            mend="put the secret into the folder of secrets, and write secret://name",
            # What came may be the secret itself.
            got="something else",
        )
    if text.removeprefix(_PREFIX) in OWN_SECRETS:
        raise fault(
            required="the name of a secret that was made for a channel",
            mend="put the channel's secret into a file of its own, and name that",
        )
    return text


def _checked_url(text: str) -> str:
    if text.startswith(_PREFIX):
        return _checked_secret(text)
    if not _WEB.fullmatch(text):
        raise fault(
            required="an http or https address, or the name of a secret that holds one",
            mend="write url: https://hooks.example.com/weir",
        )
    return text


def _checked_interval(interval_ms: int) -> int:
    if interval_ms < LEAST_INTERVAL_MS:
        raise fault(
            required=f"a duration of at least {format_duration(LEAST_INTERVAL_MS)}",
            mend="write heartbeat: 1m; whoever receives it complains after two of them",
        )
    return interval_ms


Interval = Annotated[DurationMs, AfterValidator(_checked_interval)]
"""How often a channel says that it is alive."""
Secret = Annotated[str, AfterValidator(_checked_secret)]
"""The name of a secret, `secret://name`."""


class Webhook(Model):
    """A receiver of signed calls (Standard Webhooks).

    Attributes:
        url: Where they go; `secret://name` if the address itself is a secret.
        secret: What they are signed with.
        old_secret: Signs too, while receivers change over from it.
    """

    url: Annotated[str, AfterValidator(_checked_url), Field(max_length=2_000)]
    secret: Secret
    old_secret: Secret | None = None


class Channel(DefinitionModel):
    """A channel: a webhook, or one of the services that Apprise speaks.

    Attributes:
        webhook: A receiver of signed calls.
        apprise: The secret that holds an Apprise URL: the whole URL is one, tokens and all.
        follow: `firing`: alerts and their ends; `all`: confirmations and amendments too.
        heartbeat: How often, at least 10s apart, it is told that rules are being evaluated;
            left out: never.
    """

    kind: Literal["channel"] = "channel"
    webhook: Webhook | None = None
    apprise: Secret | None = None
    follow: Literal["firing", "all"] = "firing"
    heartbeat: Interval | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Channel:
        if (self.webhook is None) == (self.apprise is None):
            raise fault(
                required="a channel with one of webhook and apprise",
                mend="write webhook: {url: …, secret: secret://name}, or apprise: secret://name",
                got="neither" if self.webhook is None else "both",
            )
        return self


def secret_name(reference: str) -> str:
    """Return the name in a reference to a secret, `secret://name`."""
    return reference.removeprefix(_PREFIX)
