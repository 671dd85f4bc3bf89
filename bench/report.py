"""Makes bench/README.md from the files in bench/results/.

The page begins with what is missed, and with what each result was measured on: figures of
two commits, or of two processors, are not of one product on one machine, and it says so.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bars import Reached, judge

RESULTS = Path(__file__).parent / "results"
HEAD = """# Benchmarks

Made by `python bench/report.py` from `results/*.json`; do not edit. Each figure was measured by
the command beside it, on the machine named there. Ratios carry over to others, absolutes do not.
"""
WORDS = {
    Reached.MISSED: "missed",
    Reached.UNREADABLE: "not judged",
    Reached.YES: "reached",
    Reached.RECORD: "with record",
}
# Which benchmark measures what a release is judged by.
ASKED = {
    **{"P1": "flink", "P2": "engine", "P7": "rows", "P8": "growth"},
    **{"P11": "engine", "P12": "sketches", "P13": "rebuild", "P15": "rest"},
}


def page(results: Sequence[dict[str, Any]]) -> str:
    """Return the page for a list of results."""
    return "\n".join([HEAD, *_summary(results), *(_section(result) for result in results)])


def warnings(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return what keeps results from being figures of one product on one machine."""
    found = []
    commits = {piece["commit"] for result in results for piece in _pieces(result)}
    if len(commits) > 1:
        listed = ", ".join(f"`{commit}`" for commit in sorted(commits))
        found.append(f"The results are of {len(commits)} commits: {listed}.")
    if changed := sorted(commit for commit in commits if commit.endswith("+")):
        found.append(f"Beyond its commit the tree had changes: {', '.join(changed)}.")
    machines = [piece["machine"] for result in results for piece in _pieces(result)]
    hosts = {f"{host['cores']} cores of {host['cpu']}" for host in machines}
    if len(hosts) > 1:
        found.append(f"They were measured on different machines: {', '.join(sorted(hosts))}.")
    return found


def unmeasured(measured: Collection[str]) -> str:
    """Return which bars have no result, each with what measures it; empty if all have one."""
    missing = (f"{one} (`make bench-{by}`)" for one, by in ASKED.items() if one not in measured)
    return ", ".join(missing)


def _pieces(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a result was put together from; by default it is one piece."""
    pieces: list[dict[str, Any]] = list(result.get("pieces", {}).values())
    return pieces or [result]


def _summary(results: Sequence[dict[str, Any]]) -> list[str]:
    judged = [
        (result["name"], bar, judge(bar["reach"], bar["got"]))
        for result in results
        for bar in result["figures"].get("bars", [])
    ]
    counts = [(word, sum(v.reached is how for _n, _b, v in judged)) for how, word in WORDS.items()]
    lines = ["Bars: " + ", ".join(f"{n} {word}" for word, n in counts if n) + ".", ""]
    for name, bar, verdict in judged:
        if verdict.reached <= Reached.UNREADABLE:
            lines.append(f"- {bar['id']} ({name}), {bar['what']}: {verdict.words}")
    if missing := unmeasured({str(bar["id"]) for _name, bar, _verdict in judged}):
        lines.append(f"- without a result: {missing}")
    lines += ["", *(f"**Beware.** {text}" for text in warnings(results)), ""]
    lines += ["| result | measured | commit | on |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {_at(piece)} | `{piece['commit']}` | {piece['machine']['cpu']} |"
        for result in results
        for name, piece in _named(result)
    ]
    return [*lines, ""]


def _named(result: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    pieces: dict[str, dict[str, Any]] = result.get("pieces", {})
    found = [(f"{result['name']}: {name}", piece) for name, piece in pieces.items()]
    return found or [(result["name"], result)]


def _at(piece: dict[str, Any]) -> str:
    return f"{datetime.fromtimestamp(piece['at_ms'] / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _section(result: dict[str, Any]) -> str:
    host = result["machine"]
    lines = [
        f"## {result['name']}",
        "",
        f"`make bench-{result['name']}` · {_at(result)} · commit `{result['commit']}` · "
        f"{host['cores']} cores of {host['cpu']}, {host['memory_gib']} GiB",
        "",
    ]
    figures = dict(result["figures"])
    bars = figures.pop("bars", [])
    if bars:
        lines += ["| bar | what | to reach | measured | |", "|---|---|---|---|---|"]
        lines += [
            f"| {b['id']} | {b['what']} | {b['reach']} | {b['got']} | "
            f"{judge(b['reach'], b['got']).words} |"
            for b in bars
        ]
        lines.append("")
    notes = [*figures.pop("notes", []), *warnings([result])]
    lines += [f"- {note}" for note in notes] + [""] * bool(notes)
    lines += ["```json", json.dumps({"settings": result["settings"], **figures}, indent=1), "```"]
    return "\n".join([*lines, ""])


def main(results: Path = RESULTS) -> None:
    """Write the page of a folder of results, into the folder above it."""
    found = [json.loads(path.read_text()) for path in sorted(results.glob("*.json"))]
    (results.parent / "README.md").write_text(page(found))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
