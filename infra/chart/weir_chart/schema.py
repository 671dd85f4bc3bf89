"""`values.schema.json`: which values the chart takes.

A frame written here, and in it one `config` for each component made from the settings class
of its service: so every setting can be reached, and one that is not there stops the
installation. Settings that the chart itself gives (addresses, ports, folders) are left out.
"""

from __future__ import annotations

import json
from typing import Any, Final, get_args

from pydantic_settings import BaseSettings
from weir.kafka import SaslMechanism, SecurityProtocol
from weir_analytics.alerts.settings import Settings as AlertsSettings
from weir_analytics.settings import Settings as AnalyticsSettings
from weir_dashboard.settings import Settings as DashboardSettings
from weir_ingest.settings import Settings as IngestSettings
from weir_ingest.topics.settings import Settings as TopicsSettings

from weir_chart.render import CHART

SCHEMA = CHART / "values.schema.json"
SETTINGS: Final[dict[str, type[BaseSettings]]] = {
    "ingest": IngestSettings,
    "analytics": AnalyticsSettings,
    "alerts": AlertsSettings,
    "dashboard": DashboardSettings,
    "topics": TopicsSettings,
}
# Given by the chart to every component that has them; so are all folders.
GIVEN: Final = frozenset(
    {
        *("kafka_bootstrap", "kafka_security_protocol", "kafka_sasl_mechanism", "redis_url"),
        *("host", "instance", "port", "ops_port"),
    }
)
# What says how a setting is checked; the rest of pydantic's schema is for other readers.
KEPT: Final = (
    "description",
    "type",
    "anyOf",
    "items",
    "default",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "enum",
    "pattern",
)
# Given to the driver, so that it and the executors that it makes find each other.
OF_EXECUTORS: Final = frozenset(
    name
    for name in AnalyticsSettings.model_fields
    if name.startswith("executor_") or name in ("namespace", "driver_pod")
) | {"driver_address", "driver_name", "driver_port", "blocks_port"}
Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
TEXTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
FREE: Final[Schema] = {"type": "object"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 1}
HEAP: Final[Schema] = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?([KMGT]i?|[kmgt])$"}
CPU: Final[Schema] = {
    "type": ["string", "number"],
    "pattern": r"^([0-9]+(\.[0-9]+)?|[0-9]+m)$",
}
SIZE: Final[Schema] = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?([KMGT]i?|k)?$"}


def config(kind: type[BaseSettings]) -> Schema:
    """Return the schema of a component's `config`, from the class of its settings."""
    fields = kind.model_json_schema()["properties"]
    settings = {
        name: {word: field[word] for word in KEPT if word in field}
        for name, field in fields.items()
        if name not in GIVEN | OF_EXECUTORS and not _is_folder(field)
    }
    return closed(settings)


def _is_folder(field: Schema) -> bool:
    return any(one.get("format") == "path" for one in (field, *field.get("anyOf", ())))


def closed(properties: Schema, required: tuple[str, ...] = ()) -> Schema:
    """Return an object that has no other members: a misspelt value is refused."""
    found: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    if required:
        found["required"] = list(required)
    return found


def items(of: Schema) -> Schema:
    """Return a list."""
    return {"type": "array", "items": of}


IMAGE: Final = closed(
    {
        "registry": TEXT,
        "repository": TEXT,
        "tag": {"type": "string", "not": {"const": "latest"}},
        "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
        "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    }
)
# Not Weir's: without a tag it would get Weir's version.
OTHERS_IMAGE: Final = {
    **IMAGE,
    "anyOf": [{"properties": {word: {"minLength": 1}}} for word in ("tag", "digest")],
}
RESOURCES: Final = closed(
    {
        "requests": closed({"cpu": CPU, "memory": SIZE}, ("memory",)),
        "limits": closed(
            {"cpu": CPU, "memory": SIZE, "ephemeral-storage": SIZE},
            ("memory",),
        ),
    },
    ("requests", "limits"),
)
PROBE: Final = closed(
    dict.fromkeys(("periodSeconds", "timeoutSeconds", "failureThreshold"), COUNT)
    | {"initialDelaySeconds": {"type": "integer", "minimum": 0}}
)
POD: Final[Schema] = {
    "extraEnv": items(closed({"name": TEXT, "value": TEXT}, ("name", "value"))),
    "resources": RESOURCES,
    "podSecurityContext": FREE,
    "securityContext": FREE,
    "podLabels": TEXTS,
    "podAnnotations": TEXTS,
    "nodeSelector": TEXTS,
    "tolerations": items(FREE),
    "affinity": FREE,
    "topologySpreadConstraints": items(FREE),
    "priorityClassName": TEXT,
    "terminationGracePeriodSeconds": COUNT,
    "extraVolumes": items(FREE),
    "extraVolumeMounts": items(FREE),
}
SERVER: Final[Schema] = {
    **POD,
    "enabled": FLAG,
    "replicaCount": COUNT,
    "image": IMAGE,
    "existingSecret": TEXT,
    "probes": closed(dict.fromkeys(("startup", "liveness", "readiness"), PROBE)),
}
SERVICE: Final[Schema] = {**SERVER, "kafkaSecret": TEXT}
PUBLIC: Final[Schema] = {
    "service": closed(
        {
            "type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
            "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            "annotations": TEXTS,
        }
    ),
    "autoscaling": closed(
        {
            "enabled": FLAG,
            "minReplicas": COUNT,
            "maxReplicas": COUNT,
            "targetCPUUtilizationPercentage": COUNT,
            "extraMetrics": items(FREE),
        }
    ),
    "podDisruptionBudget": closed({"enabled": FLAG}),
}
VOLUME: Final = closed(
    {
        "size": SIZE,
        "storageClass": TEXT,
        "accessModes": items(TEXT),
        "annotations": TEXTS,
    }
)
DRIVER: Final[Schema] = {
    "mode": {"enum": ["local", "kubernetes"]},
    "driverAccount": TEXT,
    "executors": closed(
        {name: of for name, of in POD.items() if name != "resources"}
        | dict.fromkeys(("instances", "cores"), COUNT)
        | dict.fromkeys(("memory", "memoryOverhead"), HEAP)
        | {"cpu": CPU}
    ),
}
EXPOSED: Final = closed({"host": TEXT, "annotations": TEXTS})


def components() -> Schema:
    """Return the schemas of all that runs as a pod."""
    configs = {name: {"config": config(kind)} for name, kind in SETTINGS.items()}
    alerts = {"channelSecrets": items(TEXT), "egress": items(FREE)}
    return {
        "ingest": closed(SERVICE | PUBLIC | configs["ingest"]),
        "analytics": closed(
            SERVICE | DRIVER | {"persistence": VOLUME, "workSize": SIZE} | configs["analytics"]
        ),
        "alerts": closed(SERVICE | alerts | configs["alerts"]),
        "dashboard": closed(SERVICE | PUBLIC | configs["dashboard"]),
        "redis": closed(SERVER | {"image": OTHERS_IMAGE, "persistence": VOLUME}),
        "topics": closed(POD | {"enabled": FLAG, "kafkaSecret": TEXT} | configs["topics"]),
        "apply": closed(POD),
        "check": closed(POD),
    }


def external_kafka() -> Schema:
    """Return the schema of how brokers outside of the chart are reached."""
    key: Schema = {"type": "string", "minLength": 1}
    client = closed({"existingSecret": TEXT, "certificateKey": key, "keyKey": key})
    sasl = {"existingSecret": TEXT, "userKey": key, "passwordKey": key}
    return closed(
        {
            "brokers": {"type": "string", "pattern": "^([^:, ]+:[0-9]+(,[^:, ]+:[0-9]+)*)?$"},
            "securityProtocol": {"enum": list(get_args(SecurityProtocol))},
            "sasl": closed({**sasl, "mechanism": {"enum": list(get_args(SaslMechanism))}}),
            "tls": closed({"existingSecret": TEXT, "caKey": key, "client": client}),
        }
    )


def surroundings() -> Schema:
    """Return the schemas of what is around the pods."""
    monitor = closed({"enabled": FLAG, "interval": TEXT, "labels": TEXTS})
    rule = closed({"enabled": FLAG, "labels": TEXTS, "runbookBase": TEXT})
    ingress = closed({"className": TEXT, "tlsSecretName": TEXT})
    return {
        "serviceAccount": closed({"create": FLAG, "name": TEXT, "annotations": TEXTS}),
        "definitions": {
            **TEXTS,
            # Other files are passed over by the command that applies them.
            "propertyNames": {"pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]*\.(yaml|yml|json)$"},
        },
        "bootstrap": closed({"existingSecret": TEXT}),
        "externalRedis": closed(
            {
                # A password in an address would stand in the pod's environment.
                "url": {
                    "type": "string",
                    "pattern": "^(rediss?://([^:@/]+@)?[^:@/]+(:[0-9]+)?(/[0-9]+)?)?$",
                },
                "existingSecret": TEXT,
            }
        ),
        "externalKafka": external_kafka(),
        "expose": closed(
            {
                "kind": {"enum": ["none", "ingress", "httpRoute"]},
                "scheme": {"enum": ["http", "https"]},
                "ingest": EXPOSED,
                "dashboard": EXPOSED,
                "ingress": ingress,
                "httpRoute": closed({"parentRefs": items(FREE)}),
            }
        ),
        "networkPolicy": closed(
            {
                "enabled": FLAG,
                # A rule without ports is one for all of them.
                "api": closed(
                    {"cidrs": items(TEXT), "ports": items(COUNT) | {"minItems": 1}}, ("ports",)
                ),
            }
        ),
        "metrics": closed(
            {
                "namespaceSelector": FREE,
                "serviceMonitor": monitor,
                "prometheusRule": rule,
                "dashboards": closed({"enabled": FLAG, "labels": TEXTS}),
            }
        ),
    }


def schema() -> Schema:
    """Return the schema of all values."""
    top = {
        "nameOverride": TEXT,
        "fullnameOverride": TEXT,
        "commonLabels": TEXTS,
        "imagePullSecrets": items(TEXT),
        "secretsRevision": {"type": ["string", "integer"]},
        # Helm hands these to the dependency, which checks them itself.
        "global": FREE,
        "kafka": FREE,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Values of the chart weir",
        **closed(top | components() | surroundings()),
    }


def text() -> str:
    """Return the schema as the text of its file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
