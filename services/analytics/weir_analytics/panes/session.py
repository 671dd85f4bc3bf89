"""The Spark session of the panes job, and the stream's source options.

Each setting has the measurement that chose it in `docs/decisions`; those that
only keep a promise say so here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from weir_analytics.panes.compile import SETTINGS as EXPRESSION_SETTINGS
from weir_analytics.panes.pods import LIFE_BYTES, pods_config
from weir_analytics.panes.scratch import folder_of_jvm, scratch
from weir_analytics.settings import Settings

# The class moved in Spark 4: the path without `checkpointing` is gone.
# How long a broker may take for an answer; one that fails over takes a few seconds.
ANSWER_MS = 15_000
_CHECKPOINT_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
# Rules that changed nothing in a plan of 20 metrics and took a sixth of the time of planning.
_IDLE_RULES = tuple(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}"
    for rule in (
        "RemoveRedundantAliases",
        "PruneFilters",
        "SimplifyConditionals",
        "FoldablePropagation",
        "OptimizeCsvJsonExprs",
        "OptimizeOneRowRelationSubquery",
        "NullDownPropagation",
    )
)
# What a batch leaves is dead with the next one, but young space as it sizes itself has no room
# for what a batch is still at: that filled the old one, and under 8,000 events/s all was
# collected every 25 s, in pauses of 150 to 240 ms. Classes have room from the start on, or
# making it takes two such collections in the first seconds.
_SPACES = "-XX:NewRatio=1 -XX:SurvivorRatio=4 -XX:-UseAdaptiveSizePolicy -XX:MetaspaceSize=256m"
# G1's threads compete for two cores: a batch took 460 ms with it, 275 without.
# HotSpot interprets methods above 8,000 bytes unless told; with 20 metrics Spark makes
# some, and an event cost 22 µs of its tasks with them interpreted, 15 compiled.
_JVM = f"-XX:+UseParallelGC {_SPACES} -Xss4m -XX:-DontCompileHugeMethods"
# Where Python's workers count, the optimizing compiler takes more than what it compiles gives
# back (docs/decisions/0036). Without it a JVM has room for a fifth of the compiled code, and stops
# compiling once that is full; that of tiered compilation costs addresses only.
_COMPILED_ONCE = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
# Of Linux's, for threads: from -20, the first to run, to 19.
COMPILERS_NICE = 10
# An archive of other jars or another Java is left unused; that is no news.
_QUIET = "-Xlog:cds*=off -Xlog:class+path=off"
CLASSES = "spark.jsa"
"""The driver's classes, where somebody had them archived beside the connector's jars."""
# At the same path in every executor: driver and executors are of one image, or one machine.
EXECUTOR_LOGS = (
    f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
)
"""The option of a JVM that lets it log as an executor should."""
CONNECTOR = (
    "spark-sql-kafka-0-10_2.13-*.jar",
    "spark-token-provider-kafka-0-10_2.13-*.jar",
    "kafka-clients-*.jar",
    "commons-pool2-*.jar",
)


def connector_jars(folder: Path) -> list[Path]:
    """Return the four jars of Spark's Kafka connector.

    Raises:
        FileNotFoundError: If one is missing; names it.
    """
    found: list[Path] = []
    for pattern in CONNECTOR:
        jars = sorted(folder.glob(pattern))
        if not jars:
            msg = f"the Kafka connector must be in {folder}, found no {pattern}; run `make setup`"
            raise FileNotFoundError(msg)
        found.append(jars[-1])
    return found


def session_config(settings: Settings) -> Mapping[str, str]:
    """Return the Spark settings."""
    connector = os.pathsep.join(str(jar) for jar in connector_jars(settings.jars_dir))
    return {
        # 4 tries of a task: with one, a single killed Python worker ends the query.
        "spark.master": settings.master,
        "spark.app.name": "weir-panes",
        # Not `spark.jars`: that is copied at each start, and only a JVM's first session sees it.
        "spark.driver.extraClassPath": connector,
        "spark.executor.extraClassPath": connector,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": _driver_jvm(settings),
        "spark.executor.extraJavaOptions": f"{_jvm(settings)} {EXECUTOR_LOGS}",
        "spark.driver.host": settings.driver_name,
        "spark.driver.bindAddress": settings.driver_address,
        "spark.driver.port": str(settings.driver_port),
        "spark.blockManager.port": str(settings.blocks_port),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(settings.state_dir / "spark"),
        # TCP on loopback stalls a Python worker 40 ms a batch (delayed acknowledgements).
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.daemon.module": "weir_analytics.panes.daemon",
        # A task is silent while it counts, and judges by itself whether it hangs (`task_watch.py`).
        # Off by default, this is for a worker whose threads cannot run any more: it would hold its
        # batch for ever.
        "spark.python.worker.idleTimeoutSeconds": "1800",
        "spark.python.worker.killOnIdleTimeout": "true",
        # On, each function of a column asks the JVM five times who called it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.shuffle.partitions": str(settings.cores),
        "spark.sql.adaptive.enabled": "false",
        **EXPRESSION_SETTINGS,
        "spark.sql.optimizer.excludedRules": ",".join(_IDLE_RULES),
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        # The default, 128, sorts as soon as 129 groups carry sketches.
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINT_FILES,
        "spark.sql.streaming.pollingDelay": str(settings.polling_ms),
        # 0 by default: waiting for ever for a thread that may be waiting for us.
        "spark.sql.streaming.stopTimeout": "20s",
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.numRecentProgressUpdates": "5",
        "spark.cleaner.periodicGC.interval": "10min",
        **_idle_consumers(),
    }


def _idle_consumers() -> Mapping[str, str]:
    """Return how soon Spark closes a consumer that nothing uses, and drops what it had fetched.

    The log read in slices takes a new group for each, whose consumers nothing uses again: held
    for the five minutes of the default, a rebuild leaves dozens of them open.
    """
    pools = ("spark.kafka.consumer.cache", "spark.kafka.consumer.fetchedData.cache")
    return {
        f"{pool}.{name}": wait
        for pool in pools
        for name, wait in (("timeout", "30s"), ("evictorThreadRunInterval", "15s"))
    }


def _jvm(settings: Settings) -> str:
    """Return the options of every JVM; one that counts by columns optimizes what it runs."""
    return _JVM if settings.columns else f"{_JVM} {_COMPILED_ONCE}"


def _driver_jvm(settings: Settings) -> str:
    """Return the options of the driver's JVM.

    Its spaces have their size from the start on; what is not used of them takes no memory.
    With its classes mapped from an archive a start costs it a third less CPU.
    """
    archive, told = settings.jars_dir / CLASSES, f"{_jvm(settings)} -Xms{settings.driver_memory}"
    if not archive.exists():
        return told
    return f'{told} "-XX:SharedArchiveFile={archive}" {_QUIET}'


@contextmanager
def open_session(settings: Settings) -> Iterator[SparkSession]:
    """Start the JVM with the settings above; stop it afterwards, unless something failed."""
    # Unset, tasks take the `python3` on PATH, which has no pyarrow.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", settings.driver_address)
    config = dict(session_config(settings))
    if settings.in_pods:
        config |= pods_config(settings, token_hex(LIFE_BYTES))
    with scratch(settings.state_dir / "spark", "life-") as blocks:
        config["spark.local.dir"] = str(blocks)
        config["spark.driver.extraJavaOptions"] += f' "-Djava.io.tmpdir={folder_of_jvm()}"'
        builder: SparkSession.Builder = SparkSession.builder
        for name, value in config.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        _let_compilers_wait(session)
        yield session
        session.stop()


def _let_compilers_wait(session: SparkSession) -> None:
    """Have the JVM's compilers run on what batches leave of the cores.

    Who begins to send makes code hot that was not. Of two cores the compilers then took both, and
    the batches that everybody waits for took 500 to 640 ms in place of 280 to 400.

    JVMs have an option for it that asks for root to raise priorities, and says so to everybody
    else; to lower them nobody needs to be root. Outside of Linux a thread has none of its own.
    """
    jvm: Any = session.sparkContext._jvm
    for task in Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/task").glob("*"):
        with suppress(OSError):  # a thread that has ended meanwhile
            if "CompilerThre" in (task / "comm").read_text():
                os.setpriority(os.PRIO_PROCESS, int(task.name), COMPILERS_NICE)


def drop_callbacks(session: SparkSession) -> None:
    """Close the connections by which threads of the JVM have called Python.

    Py4J keeps one for each thread that ever did, also when the thread has ended, and closes
    none: each stream has a thread of its own. One by which Python is called just now is not among
    them, and who calls next opens another. Nor is one by which Python calls the JVM, as long as
    no thread that serves such a call calls back: here only streams do.

    Raises:
        Py4JError: If the JVM does not answer; the same for an OSError.
    """
    gateway: Any = session.sparkContext._gateway
    if gateway.get_callback_server() is None:
        return  # no stream has begun yet
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    former = server.getCallbackClient()
    server.resetCallbackClient(former.getAddress(), gateway._python_proxy_port)
    server.removeListener(former)  # it would be told of every connection for ever


def source_options(settings: Settings, starting: str) -> dict[str, str]:
    """Return the options of the stream that reads `weir.events`.

    Args:
        settings: The service's settings.
        starting: Exact offsets as JSON. Used only while the checkpoint is new.
    """
    told = settings.kafka.java_options(lambda path: Path(path).read_text(encoding="utf-8"))
    return {
        **{f"kafka.{name}": value for name, value in told.items()},
        # After each read Spark asks for the log's ends on the same connection, behind a fetch
        # that the consumer has sent ahead; the broker holds that, and so the answer, up to
        # half a second a partition while the log is quiet (1.4 s a batch of four).
        "kafka.fetch.max.wait.ms": "0",
        # On a link that has swallowed a question nothing is counted until its time is over: a
        # minute by itself, of which every number grows old.
        "kafka.request.timeout.ms": str(ANSWER_MS),
        "kafka.default.api.timeout.ms": str(ANSWER_MS + ANSWER_MS // 3),
        # Otherwise Spark's patience with its network, which is short where executors are pods:
        # a broker that fails over may take longer.
        "kafkaConsumer.pollTimeoutMs": "120000",
        "startingOffsets": starting,
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": str(settings.max_records),
    }
