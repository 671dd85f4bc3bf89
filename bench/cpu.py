"""Where the engine's CPU goes, phase by phase: the profile that a claim of speed comes with.

The engine counts the log of `engine.py` some times over, warm. async-profiler, which comes
with the jars of Flink, takes a sample of the JVM every few ms of CPU; each sample belongs to
the phase whose sign stands nearest to what ran. The steps of the Python workers are marked by
themselves. Both are shares of the CPU of the whole tree.

That is done for logs of few and of many series, in one session and in turn once all are warm,
and the phases that cost more where there are more are told beside them: of P8, where the line
bends.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import contest
import flink_peer
import harness
import marks
from contest import Engine
from weir_analytics.panes import session
from workload import draw, recount, wanted

INTERVAL = "2ms"
LIBRARY = "linux-x64/libasyncProfiler.so"

# A sample is of the phase whose sign stands nearest to what ran: steps call each other.
PHASES: Final[dict[str, tuple[str, ...]]] = {
    "JIT compiler": ("CompileBroker::", "C2 CompilerThre", "C1 CompilerThre"),
    "garbage collector": ("GCTaskManager", "ParallelGC", "PSParallel", "GC Thread", "VM Thread"),
    "compile generated code": ("org/codehaus/janino", "org/codehaus/commons"),
    "read from Kafka": ("KafkaDataConsumer", "org/apache/kafka/", "KafkaBatchPartitionReader"),
    "parse JSON": ("JsonToStructs", "JacksonParser", "fasterxml/jackson"),
    "values out of variants": ("types/variant/", "expressions/variant/", "VariantVal"),
    "sketches": ("datasketches", "HllSketchAgg", "KllSketch"),
    "hand over to Python": ("arrow/Arrow", "PythonRunner", "execution/python/", "HybridRowQueue"),
    "aggregate": ("ObjectAggregation", "HashAggregat", "AggregationIterator", "BytesToBytesMap"),
    "shuffle": (
        "execution/exchange/",
        "ShuffleWriter",
        "ShuffleExternalSorter",
        "apache/spark/shuffle",
    ),
    "rows of metrics, keys": ("GeneratedIteratorForCodegenStage", "execution/GenerateExec"),
    "plan": (
        "QueryExecution",
        "sql/catalyst/optimizer",
        "sql/catalyst/rules",
        "py4j/",
        "DAGScheduler",
    ),
    "tasks, the rest": ("Executor$TaskRunner",),
}


def phase_of(stack: str) -> str:
    """Return the phase of a sample; its frames are divided by semicolons, the innermost last."""
    for frame in reversed(stack.split(";")):
        for phase, signs in PHASES.items():
            if any(sign in frame for sign in signs):
                return phase
    return "rest of the JVM"


def phases_of(collapsed: str) -> Counter[str]:
    """Return the samples of each phase; a line is a stack and how often it was seen."""
    found: Counter[str] = Counter()
    for line in collapsed.splitlines():
        stack, _, count = line.rpartition(" ")
        found[phase_of(stack)] += int(count)
    return found


class Profiler:
    """async-profiler in the JVM of the session."""

    def __init__(self, spark: Any, folder: Path) -> None:
        """Load it."""
        with zipfile.ZipFile(next(flink_peer.JARS.glob("async-profiler-*.jar"))) as jar:
            library = jar.extract(LIBRARY, folder)
        self._profiler = spark._jvm.one.profiler.AsyncProfiler.getInstance(library)
        self._file = folder / "samples.txt"

    def start(self) -> None:
        """Begin to take samples."""
        self._profiler.execute(f"start,event=itimer,interval={INTERVAL},threads")

    def stop(self) -> str:
        """End; return the stacks, one a line with its count."""
        self._profiler.execute(f"stop,file={self._file},collapsed")
        return self._file.read_text()


def with_profiler(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a session whose JVM can be profiled and whose workers mark."""
    jar = next(flink_peer.JARS.glob("async-profiler-*.jar"))
    path = "spark.driver.extraClassPath"
    options = "spark.driver.extraJavaOptions"
    return dict(config) | {
        path: f"{config[path]}{os.pathsep}{jar}",
        # Else a sample between two safepoints is told as of the next one.
        options: f"{config[options]} -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints",
        "spark.python.daemon.module": "marked_daemon",
    }


def warmed(bench: contest.Bench, options: argparse.Namespace) -> dict[int, Engine]:
    """Return the engine over each log, by combinations of the dimensions, all of them warm."""
    metrics = wanted(options.metrics, sketches=not options.plain)
    engines = {}
    for n in options.combinations:
        log = bench.fill(f"bench-{n}", draw(options.events, n))
        truths = recount(draw(options.events, n), metrics)
        engines[n] = Engine(bench, log, metrics, truths, options.batch)
    contest.warm_up({str(n): one for n, one in engines.items()}, options.warm)
    return engines


def measure(
    bench: contest.Bench, profiler: Profiler, engine: Engine, options: argparse.Namespace
) -> dict[str, Any]:
    """Return where the CPU of some rounds over one log went, in µs an event.

    Args:
        bench: The session and its servers.
        profiler: In the session's JVM.
        engine: Over a log, warm.
        options: The rest that is asked for.
    """
    file = Path(os.environ[marks.FILE])
    file.write_text("")
    gateway: Any = bench.spark.sparkContext._gateway
    own = {
        "JVM": gateway.proc.pid,
        "driver's Python": os.getpid(),
        "broker": bench.broker.part.pid() or 0,
        "Redis": bench.redis_pid,
    }
    before = {name: harness.own_cpu_s(pid) for name, pid in own.items()}
    profiler.start()
    took = [engine.run() for _ in range(options.rounds)]
    collapsed = profiler.stop()
    used = {name: harness.own_cpu_s(pid) - before[name] for name, pid in own.items()}
    engine.check()
    if options.stacks:
        Path(f"{options.stacks}-{engine.log.topic}").write_text(collapsed)
    events = sum(one.events for one in took)
    return _table(collapsed, used, marks.read(file), sum(one.cpu_s for one in took), events)


def _table(
    collapsed: str, used: dict[str, float], steps: list[marks.Mark], whole_s: float, events: int
) -> dict[str, Any]:
    samples = phases_of(collapsed)
    per_sample = used.pop("JVM") / samples.total()
    seconds = {f"JVM: {phase}": n * per_sample for phase, n in samples.items()}
    python: Counter[str] = Counter()
    for one in steps:
        python[f"Python: {one.step}"] += one.cpu
    seconds |= {step: cpu / 1e9 for step, cpu in python.items()} | used
    seconds["Python: Spark's workers around them"] = whole_s - sum(seconds.values())
    order = sorted(seconds.items(), key=lambda item: -item[1])
    return {
        "µs_an_event": round(whole_s * 1e6 / events, 2),
        "by_phase": {phase: round(s * 1e6 / events, 2) for phase, s in order},
        "samples": samples.total(),
    }


def grown(by_combinations: Mapping[int, Mapping[str, Any]]) -> dict[str, float]:
    """Return by how much each phase costs more where there are most series, in µs an event.

    Args:
        by_combinations: What `measure` found, by the number of combinations.
    """
    few, many = (by_combinations[of(by_combinations)]["by_phase"] for of in (min, max))
    more = {phase: many.get(phase, 0.0) - few.get(phase, 0.0) for phase in many | few}
    order = sorted(more.items(), key=lambda item: -item[1])
    return {phase: rounded for phase, µs in order if (rounded := round(µs, 2))}


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument(
        "--combinations",
        type=int,
        nargs="+",
        default=[1, 200, 1_000, 10_000],
        help="of the dimensions",
    )
    parser.add_argument("--metrics", type=int, default=20)
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--warm", type=int, default=4, help="rounds before, of each log")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="without sketches")
    parser.add_argument("--stacks", default="", help="files for the JVM's stacks, for flame graphs")
    options = parser.parse_args()
    flink_peer.install()
    configured = session.session_config
    session.session_config = lambda settings: with_profiler(configured(settings))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    )
    told = {name: value for name, value in vars(options).items() if name != "stacks"}
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        os.environ[marks.FILE] = str(Path(name) / "marks")
        with contest.bench(Path(name)) as bench:
            profiler = Profiler(bench.spark, Path(name))
            engines = warmed(bench, options)
            found = {n: measure(bench, profiler, one, options) for n, one in engines.items()}
    figures: dict[str, Any] = {f"{n} combinations": one for n, one in found.items()}
    if len(found) > 1:
        figures["more where there are most series"] = grown(found)
    sys.stdout.write(harness.write("cpu", settings=told, figures=figures).read_text())


if __name__ == "__main__":
    main()
