"""Versions of formats: what is newer is refused, what is not ours is no text of any version."""

from __future__ import annotations

import msgspec
import pytest
from weir.formats import Newer, NewerFormatError, check, checked, refusal
from weir.problems import ProblemError, Reason


@pytest.mark.parametrize("found", [0, 1, 3])
def test_what_this_release_reads_is_not_refused(found: int) -> None:
    """Its own version and those before."""
    assert refusal("mark", found, 3) is None
    check("mark", found, 3)


def test_the_next_version_is_refused() -> None:
    """What was required, what came, and what to do."""
    assert refusal("mark", 4, 3) == (
        "mark must be of format version 3 or below, got 4: a newer release of Weir wrote it; "
        "run that release again, or a newer one"
    )


def test_a_request_that_needs_it_is_answered() -> None:
    """The refusal is a problem like any other, and the fault of no client."""
    with pytest.raises(ProblemError, match="got 4") as caught:
        check("mark", 4, 3)
    assert (caught.value.status, caught.value.reason) == (503, Reason.NOT_AVAILABLE)
    assert str(caught.value) == caught.value.body()["message"]


def test_a_text_of_a_version_that_is_read_stays_as_it_is() -> None:
    """Without a version it is of the first."""
    for text in (b'{"v":3,"x":[]}', b'{"v":1}', b"{}"):
        assert checked(text, "mark", 3) is text


@pytest.mark.parametrize("text", [b"", b"[]", b"1", b"\xff", b'{"v":"4"}', b'{"v":null}'])
def test_what_is_no_text_of_ours_is_no_newer_one(text: bytes) -> None:
    """It is junk: running another release would not help."""
    with pytest.raises(msgspec.DecodeError):
        checked(text, "mark", 3)


def test_the_first_that_was_met_is_told() -> None:
    """Until then nothing is."""
    newer = Newer()
    newer.meet(None)
    newer.check()
    newer.meet("mark 1 is newer")
    newer.meet("mark 2 is newer")

    with pytest.raises(NewerFormatError, match="mark 1 is newer"):
        newer.check()
