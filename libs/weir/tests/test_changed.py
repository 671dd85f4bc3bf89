"""What changed is told in bounded room, and nothing that changed is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir import changed
from weir.changed import ChangedPanes, PaneKey, PaneSpan, folded

PANE = st.builds(
    lambda vid, res_s, at: (vid, res_s, res_s * at),
    st.integers(-2, 4),
    st.sampled_from([10, 60]),
    st.integers(0, 40),
)
PANES = st.sets(PANE, max_size=60)


class TestFolded:
    @given(panes=PANES, most=st.integers(0, 60))
    def test_all_are_on_the_list_or_in_a_span(self, panes: set[PaneKey], most: int) -> None:
        """And the list keeps to its bound, with one span at most of a version and resolution."""
        listed, spans = folded(panes, most)

        assert len(listed) <= most
        assert len({span[:2] for span in spans}) == len(spans)
        assert set(listed) <= panes <= {*listed, *(key for span in spans for key in span.panes())}
        if len(panes) <= most:
            assert (set(listed), spans) == (panes, [])

    def test_those_with_the_most_panes_go_first(self) -> None:
        """A metric to which much comes late costs the list of the others nothing."""
        few = [(1, 60, 60 * n) for n in range(3)]
        many = [(2, 60, 60 * n) for n in (9, 2, 5, 7)]

        assert folded([*few, *many], 6) == (few, [PaneSpan(2, 60, 120, 540)])
        assert folded([*few, *many], 2) == (
            [],
            [PaneSpan(2, 60, 120, 540), PaneSpan(1, 60, 0, 120)],
        )

    def test_shards_of_a_pane_are_one_span(self) -> None:
        """Where nothing comes late a span says what the list did."""
        newest = [(1, 60, 120, shard) for shard in range(4)]
        assert folded(newest, 3) == ([], [PaneSpan(1, 60, 120, 120)])


class TestChangedPanes:
    @given(batches=st.lists(PANES, max_size=5), keys=PANES, most=st.integers(0, 60))
    @pytest.mark.parametrize(("short", "held"), [(8, 20_000), (0, 20_000), (3, 10)])
    def test_nothing_that_changed_is_left_out(
        self, batches: list[set[PaneKey]], keys: set[PaneKey], most: int, short: int, held: int
    ) -> None:
        """However it was told and however much there is; what no span says is not made up."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(changed, "SHORT", short)
            patched.setattr(changed, "MOST_HELD", held)
            known = ChangedPanes()
            for batch in batches:
                known.add(ChangedPanes(*folded(batch, most)))
        all_of_them = set().union(*batches)

        assert keys & all_of_them <= known.among(keys) == {key for key in keys if key in known}
        assert known.touches(keys) is bool(known.among(keys))
        assert len(known.listed) <= held
        if all(len(batch) <= most for batch in batches) and held > len(all_of_them):
            assert known.among(keys) == keys & all_of_them
        own = {key for key in all_of_them if key[0] == 1}
        assert own <= known.of([1]).among(all_of_them) <= own
        for end_s in (0, 600):
            assert known.is_before(end_s) >= any(start_s < end_s for _, _, start_s in all_of_them)

    def test_a_short_span_is_its_panes(self) -> None:
        """So a reader does as if they had been listed."""
        found = ChangedPanes(spans=[PaneSpan(1, 10, 0, 70), PaneSpan(2, 10, 0, 80)])

        assert found.listed == {(1, 10, 10 * n) for n in range(8)}
        assert found.spans == {(2, 10): PaneSpan(2, 10, 0, 80)}

    def test_spans_of_one_resolution_are_one(self) -> None:
        """What is held does not grow with the batches."""
        found = ChangedPanes(spans=[PaneSpan(1, 10, 100, 300)])
        found.add(ChangedPanes(spans=[PaneSpan(1, 10, 0, 200), PaneSpan(1, 60, 0, 6_000)]))

        assert found.spans == {(1, 10): PaneSpan(1, 10, 0, 300), (1, 60): PaneSpan(1, 60, 0, 6_000)}
        assert (1, 10, 300) in found
        assert (1, 10, 310) not in found
        assert (1, 10, 300, 7) in found  # a pane of one shard
        assert found.is_before(1)
        assert not found.is_before(0)

    def test_nothing_is_nothing(self) -> None:
        """Before any batch, and after one that changed no pane."""
        assert not ChangedPanes()
        assert not ChangedPanes().among({(1, 10, 0)})
        assert ChangedPanes([(1, 10, 0)])
