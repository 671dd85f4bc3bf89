"""Definitions in files: where they are found, their order, and what is refused unsent."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from weir_cli.exits import UsageError
from weir_cli.files import read_all

from .conftest import Command
from .serving import serving

METRIC = "kind: metric\nname: sales\nevents: {type: shop.order}\n"
RULE = "# why\nkind: rule\nname: few\nmetric: sales\n"


def test_a_folder_gives_all_its_files_and_no_others(tmp_path: Path) -> None:
    """Below it too, also as a cluster mounts them; hidden copies and other files are left out."""
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "a.yaml").write_text(METRIC)
    (tmp_path / "a.yaml").symlink_to(Path("..data", "a.yaml"))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.json").write_text('{"kind": "board", "name": "shop"}')
    (tmp_path / "README.md").write_text("no: definition")
    found = read_all([tmp_path])
    assert [(one.title, Path(one.origin).name) for one in found] == [
        ("metric/sales", "a.yaml"),
        ("board/shop", "b.json"),
    ]


def test_what_others_need_comes_first(tmp_path: Path) -> None:
    """A rule is sent after its metric; each keeps its own text, comments included."""
    path = tmp_path / "both.yaml"
    path.write_text(f"{RULE}---\n{METRIC}")
    metric, rule = read_all([path])
    assert (metric.title, metric.text, metric.origin) == (
        "metric/sales",
        METRIC,
        f"{path}, definition 2",
    )
    assert (rule.title, rule.text) == ("rule/few", RULE)


def typed(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    """Let standard input hold a text."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`-` is a file like any other, and is called what it is."""
    typed(monkeypatch, f"{RULE}---\n{METRIC}".encode())
    (tmp_path / "b.yaml").write_text("kind: board\nname: shop\n")
    found = read_all([tmp_path, Path("-")])
    assert [one.title for one in found] == ["metric/sales", "rule/few", "board/shop"]
    assert found[0].origin == "standard input, definition 2"
    for wrong in (b"", b"\xff"):
        typed(monkeypatch, wrong)
        with pytest.raises(UsageError, match="standard input"):
            read_all([Path("-")])


@pytest.mark.parametrize("command", ["apply", "check", "diff"])
def test_commands_read_standard_input(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused there is told by that name."""
    item = {"ok": False, "code": "definition_invalid", "message": "no"}
    answer = {**item, "items": [item]}
    typed(monkeypatch, METRIC.encode())
    with serving((200, answer, {})) as served:
        written, _ = Command(Path(), served.url, "wk_key").do(command, "-f", "-", code=1)
    assert written == "refused   metric/sales (standard input): no\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kind: metric\nname: [\n", "definition must be YAML or JSON, got"),
        ("name: sales\n", 'a definition must have a text as "kind", got None'),
        ("kind: metric\nname: 7\n", 'a definition must have a text as "name", got 7'),
        (f"{METRIC}---\n{METRIC}", "metric/sales must be written once, found in"),
        ("# nothing yet\n", "there must be definitions in"),
        (b"\xff", "must be a readable file of definitions: it is not UTF-8"),
        (None, "must be a readable file of definitions: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, text: str | bytes | None, told: str
) -> None:
    """The error says which file and what it must hold."""
    path = tmp_path / "some.yaml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError) as refused:
        read_all([path])
    assert told in str(refused.value)
    assert str(path) in str(refused.value)
