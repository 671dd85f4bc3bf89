"""The page of every setting, made of the services' settings classes and of what images set.

`python -m tests.images.settings_page` writes docs/settings.md; a test holds it to the code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Final

from pydantic_settings import BaseSettings
from weir.definitions.durations import format_duration
from weir_analytics.alerts.settings import Settings as AlertsSettings
from weir_analytics.settings import Settings as AnalyticsSettings
from weir_dashboard.settings import Settings as DashboardSettings
from weir_ingest.settings import Settings as IngestSettings
from weir_ingest.topics.settings import Settings as TopicsSettings
from weir_service.settings import KafkaSettings, ServiceSettings

from .dockerfiles import ROOT, SERVICES, environment

PAGE: Final = ROOT / "docs/settings.md"
TITLES: Final[dict[type[BaseSettings], str]] = {
    IngestSettings: "Ingest",
    TopicsSettings: "The topics (`python -m weir_ingest.topics apply`)",
    AnalyticsSettings: "The engine (panes)",
    AlertsSettings: "Alerts",
    DashboardSettings: "Dashboard",
}
FIRST_TABLES: Final = "\n## What all of them have\n"
EACH: Final = "WEIR_…_"
"""Stands for the prefix where every process has the setting."""
MADE: Final = {"instance": "host name and process id"}
"""What a class makes at the start, where its default cannot be written down."""
UNITS: Final = {
    "_events_per_s": "events a second",
    "_per_hour": "changes an hour",
    "_bytes": "bytes",
    "_days": "days",
    "_hours": "hours",
    "_ms": "milliseconds",
    "_s": "seconds",
}
"""How a name ends -> its unit; the first that fits."""
SIZES: Final = {2**30: "GiB", 2**20: "MiB", 2**10: "KiB"}
_KINDS: Final = {
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "array": "texts, comma-separated",
    "string": "text",
}
_MINUTE_MS: Final = 60_000
Field = dict[str, Any]


def page() -> str:
    """Return the whole page: what people wrote above the tables, and the tables."""
    parts = [PAGE.read_text(encoding="utf-8").partition(FIRST_TABLES)[0], _common()]
    for kind, title in TITLES.items():
        own = [name for name in kind.model_fields if name not in ServiceSettings.model_fields]
        parts.append(f"## {title}\n\n{_table(kind, own, prefix_of(kind))}")
    return "\n".join(parts)


def prefix_of(kind: type[BaseSettings]) -> str:
    """Return how the variables of a class begin."""
    return str(kind.model_config.get("env_prefix"))


def _common() -> str:
    services = [
        name for name in ServiceSettings.model_fields if name not in KafkaSettings.model_fields
    ]
    prefixes = ", ".join(f"`{prefix_of(kind)}`" for kind in TITLES)
    return f"""{FIRST_TABLES.lstrip()}
A process reads each of these under a prefix of its own: {prefixes}.

{_table(KafkaSettings, KafkaSettings.model_fields, EACH)}
These as well, but for `{prefix_of(TopicsSettings)}`:

{_table(ServiceSettings, services, EACH)}"""


def _table(kind: type[BaseSettings], names: Iterable[str], prefix: str) -> str:
    schema = kind.model_json_schema()
    rows = ["| variable | takes | default | bounds | meaning |", "|---|---|---|---|---|"]
    for name in names:
        field = _present(schema["properties"][name])
        cells = (
            f"`{prefix}{name.upper()}`",
            _takes(name, field),
            _default(name, field, schema.get("required", ()), _in_images(prefix, name)),
            _bounds(name, field) or "none",
            field["description"],
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _present(field: Field) -> Field:
    """Return the schema of a setting that is there, where it may also be absent."""
    for one in field.get("anyOf", ()):
        field = field | one if one["type"] != "null" else field
    return field


def _takes(name: str, field: Field) -> str:
    """Return what is written into a variable, with its unit."""
    if "enum" in field:
        return " or ".join(f"`{one}`" for one in field["enum"])
    if name == "port" or name.endswith("_port"):
        return "port"
    if field.get("format") == "path":
        return "path"
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
    return f"{_KINDS[field['type']]}, {unit}" if unit else _KINDS[field["type"]]


def _default(name: str, field: Field, required: Collection[str], in_images: set[str]) -> str:
    value = field.get("default")
    if name in required:
        text = "required"
    elif value in (None, "", []):
        text = MADE.get(name, "none")
    elif isinstance(value, bool):
        text = f"`{str(value).lower()}`"
    else:
        text = _shown(name, value)
    differ = sorted(in_images - {str(value)})
    return "; ".join((text, *(f"in the image `{one}`" for one in differ)))


def _shown(name: str, value: Any) -> str:
    """Return a value as it is written into a variable, and beside it as people read it."""
    read = ""
    if name.endswith("_ms") and value >= _MINUTE_MS:
        read = f" ({format_duration(value)})"
    if name.endswith("_bytes"):
        sizes = [(size, unit) for size, unit in SIZES.items() if value and value % size == 0]
        read = f" ({value // sizes[0][0]} {sizes[0][1]})" if sizes else ""
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`{read}"


def _in_images(prefix: str, name: str) -> set[str]:
    """Return what images set a variable to."""
    pattern = re.compile(prefix.replace("…", "[A-Z]+") + name.upper())
    return {
        value
        for service in SERVICES
        for variable, value in environment(service).items()
        if pattern.fullmatch(variable)
    }


def _bounds(name: str, field: Field) -> str:
    """Return the limits of a setting in words; empty if it has none."""
    least, above = field.get("minimum"), field.get("exclusiveMinimum")
    if above is not None and field["type"] == "integer":
        least, above = above + 1, None
    limits = (("above", above), ("at least", least), ("at most", field.get("maximum")))
    found = [f"{word} {_shown(name, limit)}" for word, limit in limits if limit is not None]
    if "maxLength" in field:
        found.append(f"at most {field['maxLength']} characters")
    if "pattern" in field:
        found.append(f"must match `{field['pattern']}`")
    return ", ".join(found)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
