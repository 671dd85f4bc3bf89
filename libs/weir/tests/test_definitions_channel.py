"""Channels: one way each, and no secret but by its name."""

from __future__ import annotations

from typing import Any

import pytest
from weir.definitions.channel import OWN_SECRETS, Channel, secret_name
from weir.definitions.check import check
from weir.problems import ProblemError

HOOK = {"url": "https://hooks.example.com/weir", "secret": "secret://oncall"}


def refused(**members: Any) -> str:
    """Return what the refusal of a channel says."""
    with pytest.raises(ProblemError) as caught:
        check("channel", "c", members)
    return str(caught.value.errors)


def channel(**members: Any) -> Channel:
    """Return a checked channel."""
    model = check("channel", "c", members).model
    assert isinstance(model, Channel)
    return model


def test_either_way() -> None:
    """A webhook, or the secret that holds an Apprise URL."""
    assert channel(webhook=HOOK).apprise is None
    assert channel(apprise="secret://slack").webhook is None
    for members in ({}, {"webhook": HOOK, "apprise": "secret://slack"}):
        assert "one of webhook and apprise" in refused(**members)


def test_an_apprise_url_is_never_written_down() -> None:
    """It holds the token; what came is not said back."""
    said = refused(apprise="slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ")

    assert "the name of a secret" in said
    assert "T1JJ3T3L2" not in said


@pytest.mark.parametrize("name", sorted(OWN_SECRETS))
def test_secrets_of_weir_are_not_given_to_channels(name: str) -> None:
    """Whoever may write definitions must not have keys of Weir used elsewhere."""
    reference = f"secret://{name}"

    assert "made for a channel" in refused(apprise=reference)
    assert "made for a channel" in refused(webhook={**HOOK, "secret": reference})
    assert "made for a channel" in refused(webhook={**HOOK, "old_secret": reference})
    assert "made for a channel" in refused(webhook={**HOOK, "url": reference})


@pytest.mark.parametrize(("written", "length_ms"), [("10s", 10_000), ("1m30s", 90_000)])
def test_a_heartbeat_is_a_duration(written: str, length_ms: int) -> None:
    """Of ten seconds or more; left out there is none."""
    assert channel(webhook=HOOK, heartbeat=written).heartbeat == length_ms
    assert channel(webhook=HOOK).heartbeat is None
    assert "a duration of at least 10s" in refused(webhook=HOOK, heartbeat="9s")
    assert "a duration" in refused(webhook=HOOK, heartbeat="often")


def test_secret_name() -> None:
    """The name is what a file is called."""
    assert secret_name("secret://oncall") == "oncall"
