"""Waits of two services that must fit each other."""

from __future__ import annotations

from weir_analytics.alerts import outbox
from weir_analytics.alerts.channels import by_apprise, turns, webhook
from weir_dashboard.api import channels

ROUND_TRIP_S = 2.0
"""A question and its answer through the log."""


def test_who_asks_for_a_test_of_a_channel_hears_of_it() -> None:
    """The dashboard waits for as long as a test may take that waits, and then hangs."""
    slowest_s = max(turns.TEST_WAITS_S + by_apprise.TIMEOUT_S, webhook.TIMEOUT_S)

    assert outbox.TRIAL_S + slowest_s + ROUND_TRIP_S < channels.ANSWER_S
