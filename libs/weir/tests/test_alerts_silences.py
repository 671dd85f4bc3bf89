"""Silences: what they may say, and what they hide."""

from __future__ import annotations

from typing import Any

import pytest
from weir.alerts.silences import hides, hiding
from weir.definitions.check import check
from weir.definitions.silence import Silence, instant_text
from weir.problems import ProblemError

UNTIL = "2027-01-31T18:00:00Z"
UNTIL_MS = 1_801_418_400_000
LABELS = {"region": "eu", "data.route": "/pay", "team": "checkout", "user": None}


def silence(**members: Any) -> Silence:
    """Return a checked silence."""
    model = check("silence", "s", {"until": UNTIL, **members}).model
    assert isinstance(model, Silence)
    return model


def mend(**members: Any) -> str:
    """Return how a refusal says it is mended."""
    with pytest.raises(ProblemError) as caught:
        silence(**members)
    return str(caught.value.errors[0]["mend"])


class TestDefinition:
    @pytest.mark.parametrize("until", [UNTIL, "2027-01-31T19:00:00+01:00", "2027-01-31 18:00Z"])
    def test_until(self, until: str) -> None:
        """An instant in any zone; written back in UTC."""
        assert silence(rule="r", until=until).until == UNTIL_MS
        assert silence(rule="r", until=until).canonical()["until"] == UNTIL

    def test_in_yaml(self) -> None:
        """YAML knows instants itself."""
        model = check(None, None, f"kind: silence\nname: s\nrule: r\nuntil: {UNTIL}").model
        assert isinstance(model, Silence)
        assert model.until == UNTIL_MS

    @pytest.mark.parametrize("until", ["2027-01-31T18:00:00", "tomorrow", 5, None, True])
    def test_without_a_zone_it_is_no_instant(self, until: object) -> None:
        """Nobody should have to guess when it ends."""
        assert mend(rule="r", until=until) == "write until: 2027-01-31T18:00:00Z"

    def test_everything_is_not_silenced_by_saying_nothing(self) -> None:
        """A rule or a label must be named."""
        assert mend().startswith("write rule: slow_checkout")
        assert silence(where="region = 'eu'").rule is None

    def test_instants(self) -> None:
        """Whole seconds without a fraction."""
        assert instant_text(UNTIL_MS) == UNTIL
        assert instant_text(UNTIL_MS + 5) == "2027-01-31T18:00:00.005Z"


class TestHides:
    @pytest.mark.parametrize(
        ("members", "hidden"),
        [
            ({"rule": "slow"}, True),
            ({"rule": "other"}, False),
            ({"where": "region = 'eu'"}, True),
            ({"where": "region = 'us'"}, False),
            ({"where": "team = 'checkout' and region in ('eu', 'us')"}, True),
            ({"where": "team = 'checkout' and region = 'us'"}, False),
            ({"where": "route like '/p%'"}, True),
            ({"where": "data.route = '/pay'"}, True),
            ({"where": "user is null"}, True),
            ({"where": "pod is null"}, True),
            ({"where": "pod != 'a'"}, False),
            ({"rule": "slow", "where": "region = 'us'"}, False),
        ],
    )
    def test_what_it_names(self, members: dict[str, Any], hidden: bool) -> None:
        """Its rule, and every one of its conditions on labels."""
        assert hides(silence(**members), "slow", LABELS, 0) is hidden

    def test_until_it_ends(self) -> None:
        """At its end it hides no more."""
        one = silence(rule="slow")
        assert hides(one, "slow", LABELS, UNTIL_MS - 1)
        assert not hides(one, "slow", LABELS, UNTIL_MS)
        assert hiding([one, silence(rule="other")], "slow", LABELS, 0) == ["s"]
