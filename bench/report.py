"""Makes bench/README.md from the files in bench/results/.

The page begins with what is missed, and with what each result was measured on: figures of
two commits, or of two processors, are not of one product on one machine, and it says so. It
says which results are not of the script that stands here, too: what they measured may be
something else. And under a bar that is missed, or its record, where the reason is written down.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sources
from bars import Reached, Verdict, judge

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

DECISIONS = "../docs/decisions"
BATCH_BY_BATCH = (
    "The engine here is its plan and its tasks, which the benchmark's own process runs batch by"
    " batch, with Kafka and Redis as they are; the stream around them, its checkpoint, batch"
    " records and ticks, and the start of the job are no part of it."
)
# What is said of a benchmark beside its bars, whenever it was run.
SAID = {
    **dict.fromkeys(("cpu", "engine", "flink", "growth"), BATCH_BY_BATCH),
    "sketches": (
        "Parts of which it is not said that they were merged one after another went into one union"
        " that stayed open, as where panes are read as one window. One after another, what is"
        " merged is written and read again after each, as a pane that commits add to."
    ),
}
PRESENT, EARLIER = "as it is here", "an earlier one"


@dataclass(frozen=True)
class Reason:
    """Where it is written down why a bar is missed, or its record.

    Attributes:
        bar: Its id.
        about: What the bar's text must have in it.
        text: The reason, short; with a link to the profile, or that there is none.
    """

    bar: str
    about: str
    text: str


REASONS = (
    Reason(
        "P1",
        "",
        "where the CPU goes is in"
        f" [0030]({DECISIONS}/0030-what-holds-the-engine-behind-flink.md) and"
        f" [0032]({DECISIONS}/0032-counted-by-the-workers.md), and by phase in `cpu`",
    ),
    Reason(
        "P7",
        "",
        "of full doubles the packed row alone is 27.0 B (`rows`), which leaves Redis"
        " 1.0 B of the record; it takes 7.7",
    ),
    Reason(
        "P8",
        "series",
        "what grows with the series is what is done for each row of a pane: taken, merged,"
        " committed and stored; reading and decoding do not (`cpu`, of logs of 1 to 10,000"
        " combinations)",
    ),
    Reason(
        "P11",
        "behind",
        "what a task does for dedup behind such an hour is 1.1 µs of CPU an event in large batches"
        " and 1.6 in small ones: looks into two or three sieves of 32 MB, what passes them, merges,"
        f" and the sieves' making ([0040]({DECISIONS}/0040-large-runs-share-a-sieve.md), by step)",
    ),
    Reason(
        "P12",
        "bytes a group",
        "a matter of the kind of sketch (`sketches`). KLL carries a p99 from k 800 on, which are"
        " 2,300 doubles, and bounds ranks: the p99 of lognormal data moves by 1 % of its value"
        " within 0.03 % of the ranks. In 4 KB the value is bounded by a sketch of logarithmic"
        " buckets (DDSketch, Masson and others, VLDB 2019), which `datasketches` does not have",
    ),
    Reason(
        "P13",
        "",
        f"where the time goes is in [0034]({DECISIONS}/0034-what-a-rebuild-takes.md)",
    ),
    Reason(
        "P15",
        "",
        "by process in `rest`: at rest the panes job has 1.42 of the 2.03 GB, its JVM 0.9 of them"
        " and its workers 0.33 (what they share counts in each); at 1,000 events/s and 20 metrics"
        " its JVM takes 0.18 core, its workers 0.15, Kafka 0.08, ingest 0.05. What a small batch"
        f" costs is in [0014]({DECISIONS}/0014-a-small-batch-plans-nothing.md), by phase in"
        " `phases`",
    ),
)
NO_REASON = "not profiled: who measures next says where it goes"


def page(results: Sequence[dict[str, Any]], scripts: Mapping[str, str]) -> str:
    """Return the page for a list of results.

    Args:
        results: As their files have them.
        scripts: Of each benchmark the digest of its script as it is now.
    """
    sections = (_section(result) for result in results)
    return "\n".join([HEAD, *_summary(results, scripts), *sections])


def reason_of(bar: Mapping[str, Any], verdict: Verdict) -> str | None:
    """Return why a bar is missed, or its record; None if neither is."""
    if verdict.reached is not Reached.MISSED and "record missed" not in verdict.words:
        return None
    found = (one.text for one in REASONS if one.bar == bar["id"] and one.about in bar["what"])
    return next(found, NO_REASON)


def machine_of(host: Mapping[str, Any]) -> str:
    """Return what tells a machine from another one: processor, memory, kernel."""
    told = [f"{name} {value}" for name, value in host.get("cpu_details", {}).items()]
    details = f" ({', '.join(told)})" if told else ""
    size = f"{host['memory_gib']} GiB, {host['system']}"
    return f"{host['cores']} cores of {host['cpu']}{details}, {size}"


def earlier(results: Sequence[dict[str, Any]], scripts: Mapping[str, str]) -> list[str]:
    """Return the names of the results that an earlier script made, or one that did not say."""
    return [
        name
        for result in results
        for name, piece in _named(result)
        if not _is_present(result, piece, scripts)
    ]


def _is_present(
    result: Mapping[str, Any], piece: Mapping[str, Any], scripts: Mapping[str, str]
) -> bool:
    return bool(piece.get("script")) and piece["script"] == scripts.get(result["name"])


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
    hosts = sorted({machine_of(host) for host in machines})
    if len(hosts) > 1:
        found.append(f"They were measured on different machines: {'; '.join(hosts)}.")
    return found


def unmeasured(measured: Collection[str]) -> str:
    """Return which bars have no result, each with what measures it; empty if all have one."""
    missing = (f"{one} (`make bench-{by}`)" for one, by in ASKED.items() if one not in measured)
    return ", ".join(missing)


def _pieces(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a result was put together from; by default it is one piece."""
    pieces: list[dict[str, Any]] = list(result.get("pieces", {}).values())
    return pieces or [result]


def _summary(results: Sequence[dict[str, Any]], scripts: Mapping[str, str]) -> list[str]:
    judged = [
        (result["name"], bar, judge(bar["reach"], bar["got"]))
        for result in results
        for bar in result["figures"].get("bars", [])
    ]
    counts = [(word, sum(v.reached is how for _n, _b, v in judged)) for how, word in WORDS.items()]
    lines = ["Bars: " + ", ".join(f"{n} {word}" for word, n in counts if n) + ".", ""]
    for name, bar, verdict in judged:
        if verdict.reached <= Reached.UNREADABLE:
            why = reason_of(bar, verdict)
            lines.append(
                f"- {bar['id']} ({name}), {bar['what']}: {verdict.words}" + f"; {why}" * bool(why)
            )
    if missing := unmeasured({str(bar["id"]) for _name, bar, _verdict in judged}):
        lines.append(f"- without a result: {missing}")
    beware = warnings(results)
    if old := earlier(results, scripts):
        beware.append(f"Measured by an earlier script than the one here: {', '.join(old)}.")
    lines += ["", *(f"**Beware.** {text}" for text in beware), ""]
    return [*lines, *_table(results, scripts), ""]


def _table(results: Sequence[dict[str, Any]], scripts: Mapping[str, str]) -> list[str]:
    """Return what each result was measured by and on; machines are numbered, and told below."""
    pieces = [(result, *one) for result in results for one in _named(result)]
    hosts = list(dict.fromkeys(machine_of(piece["machine"]) for _result, _name, piece in pieces))
    lines = ["| result | measured | commit | script | machine |", "|---|---|---|---|---|"]
    for result, name, piece in pieces:
        script = PRESENT if _is_present(result, piece, scripts) else EARLIER
        number = hosts.index(machine_of(piece["machine"])) + 1
        lines.append(f"| {name} | {_at(piece)} | `{piece['commit']}` | {script} | {number} |")
    return [*lines, "", *(f"{n}. {host}" for n, host in enumerate(hosts, 1))]


def _named(result: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    pieces: dict[str, dict[str, Any]] = result.get("pieces", {})
    found = [(f"{result['name']}: {name}", piece) for name, piece in pieces.items()]
    return found or [(result["name"], result)]


def _at(piece: dict[str, Any]) -> str:
    return f"{datetime.fromtimestamp(piece['at_ms'] / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _section(result: dict[str, Any]) -> str:
    lines = [
        f"## {result['name']}",
        "",
        f"`make bench-{result['name']}` · {_at(result)} · commit `{result['commit']}` · "
        f"{machine_of(result['machine'])}",
        "",
    ]
    figures = dict(result["figures"])
    bars = figures.pop("bars", [])
    judged = [(bar, judge(bar["reach"], bar["got"])) for bar in bars]
    if bars:
        lines += ["| bar | what | to reach | measured | |", "|---|---|---|---|---|"]
        lines += [
            f"| {b['id']} | {b['what']} | {b['reach']} | {b['got']} | {verdict.words} |"
            for b, verdict in judged
        ]
        lines.append("")
    notes = [SAID[result["name"]]] if result["name"] in SAID else []
    notes += [*figures.pop("notes", []), *_reasons(judged), *warnings([result])]
    lines += [f"- {note}" for note in notes] + [""] * bool(notes)
    lines += ["```json", json.dumps({"settings": result["settings"], **figures}, indent=1), "```"]
    return "\n".join([*lines, ""])


def _reasons(judged: Sequence[tuple[dict[str, Any], Verdict]]) -> list[str]:
    """Return why bars or records are missed, each reason once."""
    found: dict[str, str] = {}
    for bar, verdict in judged:
        if why := reason_of(bar, verdict):
            found.setdefault(why, bar["id"])
    return [f"why {bar} is missed, or its record: {why}" for why, bar in found.items()]


def main(results: Path = RESULTS) -> None:
    """Write the page of a folder of results, into the folder above it."""
    found = [json.loads(path.read_text()) for path in sorted(results.glob("*.json"))]
    scripts = {result["name"]: sources.digest(result["name"]) for result in found}
    (results.parent / "README.md").write_text(page(found, scripts))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
