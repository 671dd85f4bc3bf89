"""The metrics as Flink SQL: one table of events, and for each metric one INSERT; pure text."""

from __future__ import annotations

from collections.abc import Sequence

from workload import Wanted

PANE = "INTERVAL '10' SECOND"
_NUMBERS = "n BIGINT, `sum` DOUBLE, `min` DOUBLE, `max` DOUBLE"
_SKETCHES = ", distinct_users BYTES, percentiles BYTES"


def script(bootstrap: str, topic: str, ends: dict[int, int], metrics: Sequence[Wanted]) -> str:
    """Return the statements of a job over a range of a topic, divided by empty lines.

    Every metric is a query of its own, as every metric of Weir is a definition of its own;
    together they are one job, so that Flink reads and parses each event once.

    Args:
        bootstrap: Where the broker is.
        topic: The topic.
        ends: Where the range ends in each partition; it begins at the first record.
        metrics: The metrics.
    """
    functions = [
        "CREATE TEMPORARY FUNCTION kll AS 'dev.weir.bench.Kll'",
        "CREATE TEMPORARY FUNCTION hll AS 'dev.weir.bench.Hll'",
    ]
    sinks = [_sink(one) for one in metrics]
    return "\n\n".join(
        [*functions, _events(bootstrap, topic, ends), *sinks, *map(_insert, metrics)]
    )


def _events(bootstrap: str, topic: str, ends: dict[int, int]) -> str:
    upto = ";".join(f"partition:{partition},offset:{end}" for partition, end in ends.items())
    options = {
        "connector": "kafka",
        "properties.bootstrap.servers": bootstrap,
        "topic": topic,
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "specific-offsets",
        "scan.bounded.specific-offsets": upto,
        "format": "json",
    }
    told = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    return f"""CREATE TEMPORARY TABLE events (
  `type` STRING,
  weirms STRING,
  data ROW<`region` STRING, `route` STRING, `env` STRING, `status` INT, `latency_ms` DOUBLE,
    `bytes` DOUBLE, `user` STRING>,
  happened AS TO_TIMESTAMP_LTZ(CAST(weirms AS BIGINT), 3),
  WATERMARK FOR happened AS happened - INTERVAL '1' SECOND
) WITH ({told})"""


def _sink(one: Wanted) -> str:
    columns = _NUMBERS + _SKETCHES * one.sketches
    options = f"'metric' = '{one.number}', 'sketches' = '{str(one.sketches).lower()}'"
    return (
        f"CREATE TEMPORARY TABLE m{one.number} ({columns}) WITH ('connector' = 'counting', "
        f"{options})"
    )


def _insert(one: Wanted) -> str:
    value = f"data.`{one.value}`"
    asked = f"COUNT(*), SUM({value}), MIN({value}), MAX({value})"
    asked += f", hll(data.`user`), kll({value})" * one.sketches
    where = f"`type` = '{one.type}'"
    where += " AND data.status < 500 AND data.env = 'prod'" * one.filtered
    return f"""INSERT INTO m{one.number}
SELECT {asked}
FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(happened), {PANE}))
WHERE {where}
GROUP BY window_start, window_end, data.region, data.route, data.status"""  # noqa: S608  of our own metrics
