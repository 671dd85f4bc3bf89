"""The key that a command is given, and what else it puts into a request."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command
from .serving import serving

SECRET = "wk_aaaaaaaa_" + "b" * 43
COMMENTED = f"# of the pipeline\n{SECRET}\n"
WITHOUT_SPACES = "must give an API key of ASCII signs without spaces, got "


@pytest.mark.parametrize(
    ("key", "told"),
    [
        (COMMENTED, f"{WITHOUT_SPACES}{len(COMMENTED) - 1} signs of which number 2 is none; leave"),
        (f"{SECRET}\nmore", f"{WITHOUT_SPACES}60 signs of which number 56 is none; leave out all"),
        (f"{SECRET}ü", f"{WITHOUT_SPACES}56 signs of which number 56 is none; leave out all that"),
        (f"ü{SECRET}", f"{WITHOUT_SPACES}56 signs of which number 1 is none; leave out all that"),
        (f"{SECRET}\x7f", f"{WITHOUT_SPACES}56 signs of which number 56 is none; leave out all"),
    ],
)
@pytest.mark.parametrize("is_file", [True, False])
def test_a_key_that_cannot_be_sent_is_not_told(
    tmp_path: Path, key: str, told: str, *, is_file: bool
) -> None:
    """Exit code 2; neither an error nor a log of CI shows any of it."""
    (tmp_path / "key").write_text(key)
    with serving((200, {"items": []}, {})) as served:
        command = Command(tmp_path, served.url, "wk_other" if is_file else key)
        words = ("--key-file", tmp_path / "key") if is_file else ()
        written, errors = command.do("jobs", "--json", *words, code=2)
    assert told in errors
    assert "aaaa" not in written + errors
    assert served.asked == []


@pytest.mark.parametrize("key", [f"{SECRET}\n", f" {SECRET}\r\n", SECRET])
def test_white_space_around_a_key_is_passed_over(tmp_path: Path, key: str) -> None:
    """A secret that was made with `echo` ends in a line break, and so may an address."""
    (tmp_path / "key").write_text(key)
    with serving((200, {"items": []}, {})) as served:
        Command(tmp_path, f"{served.url}\n", key).do("jobs")
        Command(tmp_path, served.url, "wk_other").do("jobs", "--key-file", tmp_path / "key")
    assert served.keys == [SECRET] * 2


@pytest.mark.parametrize("text", ["ü", "a\nb", "\udcff"])
def test_what_no_header_field_holds_is_refused(tmp_path: Path, text: str) -> None:
    """Before the job is asked for."""
    with serving((200, {}, {})) as served:
        _, errors = Command(tmp_path, served.url, "wk_key").do(
            "audit", "--idempotency-key", text, code=2
        )
    assert errors == (
        f"weir: --idempotency-key must be of ASCII signs, got {text!r}; choose another text\n"
    )
    assert served.asked == []
