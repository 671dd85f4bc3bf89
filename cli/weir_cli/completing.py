"""Completion of shells, made from the parser itself: whatever it knows is completed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Keys and jobs have commands and routes of their own. A test compares it with all kinds.
WRITTEN: Final = ("board", "channel", "metric", "rule", "silence", "source")


@dataclass(frozen=True)
class Option:
    """An option of a command.

    Attributes:
        names: As it is written: `-f`, `--file`.
        says: What it does, one line.
        takes: `nothing`, `file` or `text`.
        choices: What it takes, if that is a closed set.
    """

    names: tuple[str, ...]
    says: str
    takes: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """A command and what may follow it.

    Attributes:
        says: What it does, one line.
        options: Its options.
        words: What its first argument may be, if that is known.
        has_files: Its arguments are files.
    """

    says: str
    options: tuple[Option, ...]
    words: tuple[str, ...]
    has_files: bool = False


def words_of(parser: argparse.ArgumentParser) -> dict[str, Command]:
    """Return every command of a parser, by its name."""
    (subparsers,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    said = {one.dest: one.help or "" for one in subparsers._choices_actions}
    return {
        name: Command(said[name], tuple(_options(command)), _words(command), _has_files(command))
        for name, command in subparsers.choices.items()
    }


def _options(command: argparse.ArgumentParser) -> Sequence[Option]:
    return [
        Option(
            tuple(action.option_strings),
            (action.help or "").replace("%%", "%"),
            _takes(action),
            tuple(map(str, action.choices or ())),
        )
        for action in command._actions
        if action.option_strings
    ]


def _takes(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "nothing"
    return "file" if "FILE" in str(action.metavar) else "text"


def _words(command: argparse.ArgumentParser) -> tuple[str, ...]:
    for action in command._actions:
        if not action.option_strings:
            if action.choices:
                return tuple(map(str, action.choices))
            if "KIND" in str(action.metavar):
                ending = "" if str(action.metavar).endswith("]") else "/"
                return tuple(f"{kind}{ending}" for kind in WRITTEN)
    return ()


def _has_files(command: argparse.ArgumentParser) -> bool:
    return any(not one.option_strings and one.metavar == "FILE" for one in command._actions)


# ── bash ────────────────────────────────────────────────────────────────────


def bash(commands: Mapping[str, Command]) -> str:
    """Return a function for bash's `complete`."""
    cases = "".join(f"    {name})\n{_bash_case(one)}      ;;\n" for name, one in commands.items())
    return f"""# completion of weir for bash
_weir() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  COMPREPLY=()
  # bash takes `--file=a` as three words.
  if [ "$word" = "=" ]; then
    word=""
  elif [ "$before" = "=" ]; then
    before="${{COMP_WORDS[COMP_CWORD-2]}}"
  fi
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(commands)} --help" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}  esac
}}
complete -o default -F _weir weir
"""


def _bash_case(command: Command) -> str:
    lines = ['      case "$before" in']
    for option in command.options:
        if option.takes == "nothing":
            continue
        given = f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word")); '
        files = 'COMPREPLY=($(compgen -f -- "$word")); '
        does = given if option.choices else files if option.takes == "file" else ""
        lines.append(f"        {'|'.join(option.names)}) {does}return ;;")
    names = [name for option in command.options for name in option.names]
    words = " ".join((*names, *command.words))
    lines += ["      esac", f'      COMPREPLY=($(compgen -W "{words}" -- "$word"))']
    if any(word.endswith("/") for word in command.words):
        lines.append("      case ${COMPREPLY[0]} in */) compopt -o nospace 2>/dev/null ;; esac")
    return "".join(f"{line}\n" for line in lines)


# ── zsh ─────────────────────────────────────────────────────────────────────


def zsh(commands: Mapping[str, Command]) -> str:
    """Return a file for zsh's `fpath`."""
    listed = "".join(f"    {_quoted(f'{n}:{one.says}')}\n" for n, one in commands.items())
    cases = "".join(f"    {name})\n{_zsh_case(one)}      ;;\n" for name, one in commands.items())
    return f"""#compdef weir
_weir() {{
  local -a commands
  commands=(
{listed}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  words=("${{(@)words[2,-1]}}")
  (( CURRENT -= 1 ))
  case $command in
{cases}  esac
}}
_weir "$@"
"""


def _zsh_case(command: Command) -> str:
    lines = ["      _arguments -s \\"]
    for option in command.options:
        takes = {"nothing": "", "file": ":file:_files", "text": ":value:"}[option.takes]
        if option.choices:
            takes = f":value:({' '.join(option.choices)})"
        said = option.says.replace("[", "(").replace("]", ")").replace(":", ",")
        joined = [_zsh_name(name) if takes else name for name in option.names]
        lines += [f"        {_quoted(f'{name}[{said}]{takes}')} \\" for name in joined]
    words = f"({' '.join(command.words)})" if command.words else "_files"
    if any(word.endswith("/") for word in command.words):
        # A name follows at once: no space is to be added.
        words = f'compadd -S "" -- {" ".join(command.words)}'
    lines.append(f"        {_quoted(f'*:word:{words}')}")
    return "".join(f"{line}\n" for line in lines)


def _zsh_name(name: str) -> str:
    """Return an option whose value may stand in the same word: `--kind=a`, `-fa`."""
    return f"{name}=" if name.startswith("--") else f"{name}+"


# ── fish ────────────────────────────────────────────────────────────────────


def fish(commands: Mapping[str, Command]) -> str:
    """Return a file for fish's folder of completions."""
    lines = ["# completion of weir for fish", "complete -c weir -f"]
    for name, command in commands.items():
        first = f"complete -c weir -n __fish_use_subcommand -a {name} -d {_quoted(command.says)}"
        here = f"complete -c weir -n '__fish_seen_subcommand_from {name}'"
        lines += [first, *(f"{here} {_fish_option(option)}" for option in command.options)]
        if command.words:
            lines.append(f"{here} -a {_quoted(' '.join(command.words))}")
        if command.has_files:
            lines.append(f"{here} -F")
    return "".join(f"{line}\n" for line in lines)


def _fish_option(option: Option) -> str:
    names = [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names]
    takes = {"nothing": "", "file": "-r -F", "text": "-x"}[option.takes]
    if option.choices:
        takes = f"-x -a {_quoted(' '.join(option.choices))}"
    return " ".join(part for part in (*names, takes, f"-d {_quoted(option.says)}") if part)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS: Final[dict[str, Callable[[Mapping[str, Command]], str]]] = {
    "bash": bash,
    "zsh": zsh,
    "fish": fish,
}
"""Shell -> what writes its completion."""
