"""A look at the fold is made again only where something was written since."""

from __future__ import annotations

from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.records import Edit, put_record

TEXT = "kind: metric\nname: {}\nevents: {{type: t}}\nkeep: {{10s: 1h}}\n"


def write(fold: Definitions, name: str) -> None:
    """Append the first version of a metric."""
    record = put_record(Edit("acme", "metric", name, None, "test", 0), TEXT.format(name))
    fold.apply(fold.next_offset, record.key, record.value)


class Looks:
    """Which metrics are there; counts how often that was looked for."""

    def __init__(self) -> None:
        self.made = 0
        self.memo = FoldMemo(self._look)

    def _look(self, fold: Definitions) -> list[str]:
        self.made += 1
        return [one.name for one in fold.current(kind="metric")]


class TestFoldMemo:
    def test_nothing_written_is_not_looked_at_again(self) -> None:
        """However often it is asked; also while nothing at all was written, and for "none"."""
        looks, fold = Looks(), Definitions()
        assert [looks.memo.of(fold) for _ in range(3)] == [[], [], []]
        assert looks.made == 1

        write(fold, "a")
        assert [looks.memo.of(fold) for _ in range(3)] == [["a"]] * 3
        assert looks.made == 2

    def test_each_record_that_was_folded_is_looked_at(self) -> None:
        """Also one that changes nothing: that is the look's to say."""
        looks, fold = Looks(), Definitions()
        write(fold, "a")
        assert looks.memo.of(fold) == ["a"]
        write(fold, "b")
        assert looks.memo.of(fold) == ["a", "b"]
        fold.apply(fold.next_offset, b"acme/metric/c", b"no JSON")
        assert looks.memo.of(fold) == ["a", "b"]
        assert looks.made == 3

    def test_another_fold_of_as_many_records_is_another_fold(self) -> None:
        """A driver that begins again reads the log into a new one."""
        looks, before, after = Looks(), Definitions(), Definitions()
        write(before, "a")
        write(after, "b")
        assert looks.memo.of(before) == ["a"]
        assert looks.memo.of(after) == ["b"]

    def test_what_is_written_during_the_look_is_looked_at_next_time(self) -> None:
        """The answer is of what was folded when the look began."""

        def look(fold: Definitions) -> int:
            found = len(fold.current(kind="metric"))
            if found < 2:
                write(fold, f"m{found}")
            return found

        memo, fold = FoldMemo(look), Definitions()
        assert [memo.of(fold) for _ in range(4)] == [0, 1, 2, 2]
