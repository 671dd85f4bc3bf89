"""Where things are in the checkout that this package was installed from."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TOOLS = ROOT / ".tools"
KAFKA_JARS = TOOLS / "jars" / "kafka"
SPARK_JARS = TOOLS / "jars" / "spark"
# Written by `class_archives.py`; the panes job finds its own beside the jars that it is given.
KAFKA_CLASSES = KAFKA_JARS / "kafka.jsa"
SPARK_CLASSES = SPARK_JARS / "spark.jsa"
KAFKA_LOGGING = ROOT / "infra" / "local" / "kafka" / "log4j2.properties"
DEFINITIONS = ROOT / "infra" / "local" / "definitions"
ACCESS_LOG = ROOT / "data" / "web-access.log.gz"
WEB_BUILD = ROOT / "services" / "dashboard" / "web" / "dist"
