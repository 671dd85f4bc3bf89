"""Which origins a replay holds: never more than it may, and each has its turn once."""

from __future__ import annotations

import pytest
from weir_analytics.jobs.origins import Found, Origins, Share

ORIGINS = [f"weir.events/6rVbWQSCRoS1Ld1xyMzKkA/{i % 3}/{1_000 + i}" for i in range(1_000)]


@pytest.mark.parametrize("most", [7, 100, 1_000])
def test_each_has_its_turn_once(most: int) -> None:
    """Whatever was put back is known in that turn, and no copy is judged twice."""
    origins, judged = Origins(most), dict[str, list[Found]]()
    turns = 0
    while True:
        turns += 1
        for origin in (*ORIGINS, *ORIGINS[::2]):
            origins.ask(origin)
            assert len(origins) <= most
        for origin in ORIGINS[::5]:
            origins.put_back(origin)
        for origin in (*ORIGINS, *ORIGINS[::2]):
            found = origins.judge(origin)
            if found not in (None, Found.JUDGED):
                judged.setdefault(origin, []).append(found)
        if not origins.next_share():
            break
    assert turns >= len(ORIGINS) / most
    assert (turns == 1) == (most == 1_000)
    assert judged == {
        origin: [Found.ASKED if i % 5 else Found.BACK] for i, origin in enumerate(ORIGINS)
    }


def test_what_nobody_asks_for_is_not_held() -> None:
    """There may be notes of years on what other replays have put back."""
    origins = Origins(10)
    for origin in ORIGINS:
        origins.put_back(origin)
    assert len(origins) == 0
    assert origins.judge(ORIGINS[0]) is None


def test_halves_of_a_share_are_the_share() -> None:
    """None is of both, and none of neither."""
    for share in (Share(0, 1), Share(1, 2), Share(5, 8)):
        for origin in ORIGINS:
            assert sum(half.has(origin) for half in share.halves()) == share.has(origin)
