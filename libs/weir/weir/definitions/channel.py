"""Channels: how somebody is told. Secrets are named, never written here."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from weir.definitions.base import DefinitionModel, Model
from weir.definitions.faults import fault

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
    return text


def _checked_url(text: str) -> str:
    if not _WEB.fullmatch(text) and not _SECRET.fullmatch(text):
        raise fault(
            required="an http or https address, or the name of a secret that holds one",
            mend="write url: https://hooks.example.com/weir",
        )
    return text


Secret = Annotated[str, AfterValidator(_checked_secret)]
"""The name of a secret, `secret://name`."""


class Webhook(Model):
    """A receiver of signed calls (Standard Webhooks).

    Attributes:
        url: Where they go; `secret://name` if the address itself is a secret.
        secret: What they are signed with; two while one takes over from the other.
    """

    url: Annotated[str, AfterValidator(_checked_url), Field(max_length=2_000)]
    secret: Secret
    old_secret: Secret | None = None


class Channel(DefinitionModel):
    """A channel.

    Attributes:
        webhook: How.
        follow: `firing`: alerts and their ends; `all`: confirmations and amendments too.
    """

    kind: Literal["channel"] = "channel"
    webhook: Webhook
    follow: Literal["firing", "all"] = "firing"
