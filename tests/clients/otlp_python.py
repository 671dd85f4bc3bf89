"""Exports log records with `opentelemetry-exporter-otlp-proto-http`; says which it gave up."""

from __future__ import annotations

import json
import sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource

url, key, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
records = InMemoryLogRecordExporter()
provider = LoggerProvider(Resource.create({"service.name": "otlp_python"}))
provider.add_log_record_processor(SimpleLogRecordProcessor(records))
logger = provider.get_logger("clients")
for n in range(count):
    logger.emit(body="otlp_python", attributes={"n": n})
made = records.get_finished_logs()
exporter = OTLPLogExporter(
    endpoint=f"{url}/v1/logs",
    headers={"Authorization": f"Bearer {key}"},
    compression=Compression.Gzip,
)
gave_up: list[int] = []
for start in range(0, count, 10):
    batch = made[start : start + 10]
    if exporter.export(batch).name != "SUCCESS":
        gave_up.extend(range(start, start + len(batch)))
sys.stdout.write(json.dumps({"sent": count, "gave_up": gave_up}))
