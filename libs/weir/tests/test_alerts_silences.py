"""Silences: what they may say, and what they hide."""

from __future__ import annotations

from typing import Any

import pytest
from weir.alerts.silences import Spell, hides, hiding, spells
from weir.definitions.check import check
from weir.definitions.history import Definition
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
        assert mend(rule="r", until=until) == "write it like 2027-01-31T18:00:00Z"

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


def version(number: int, at_ms: int, text: str) -> Definition:
    """Return a version of silence `s`; without a text, its end."""
    op: Any = "put" if text else "delete"
    return Definition(
        number, "default", "silence", "s", number, number - 1 or None, op, text, "ann", at_ms
    )


class TestSpells:
    def test_from_when_it_is_written(self) -> None:
        """Not before, by processed-through; and until it ends by itself."""
        (one,) = spells([version(1, 60, f"kind: silence\nname: s\nrule: r\nuntil: {UNTIL}")])
        assert one == Spell(silence(rule="r"), 60)
        assert [one.holds(at_ms) for at_ms in (59, 60, UNTIL_MS)] == [False, True, True]

    def test_an_edit_goes_on_with_it(self) -> None:
        """Each version holds until the next is written, so none is left out between them."""
        texts = [f"kind: silence\nname: s\nrule: {rule}\nuntil: {UNTIL}" for rule in "ab"]
        found = spells([version(2, 90, texts[1]), version(1, 60, texts[0])])
        assert [(one.silence.rule, one.from_ms, one.to_ms) for one in found] == [
            ("b", 90, None),
            ("a", 60, 90),
        ]
        for at_ms, rule in ((59, None), (60, "a"), (89, "a"), (90, "b")):
            assert [one.silence.rule for one in found if one.holds(at_ms)] == [rule] * bool(rule)

    def test_what_was_deleted_is_over(self) -> None:
        """Also where another was made under its name; and what cannot be read ends nothing."""
        text = f"kind: silence\nname: s\nrule: r\nuntil: {UNTIL}"
        ended = [version(2, 90, ""), version(1, 60, text)]
        assert spells(ended) == []
        assert [one.from_ms for one in spells([version(3, 95, text), *ended])] == [95]
        later = version(2, 90, "kind: silence\nshape: of a later release")
        assert spells([later, version(1, 60, text)]) == [Spell(silence(rule="r"), 60)]
