"""Executors that are pods: what Spark is told, so that the driver makes them in its own namespace.

The driver asks the cluster's API for them with the token of its pod's account, as the client
of that API finds it; read again when it is refused, so that a long life outlives a token. All
that can be said in a pod stands in the template; what is here is what Spark takes from its
settings only. They go when the driver's pod goes, whose property they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from weir_analytics.settings import SPARK_SECRET, Settings

CONTAINER = "spark-kubernetes-executor"
"""The container of the template that is the executor."""
DRIVER_LABEL = "weir/driver"
"""Every executor's pod has it, with the driver's pod: by it the driver's next life finds them."""
LIFE_BYTES = 3
"""So many bytes tell one life of a driver from the next, in the names of its executors."""

PATIENCE: Mapping[str, str] = {
    # A host that vanishes closes no connection: its executor is lost, and its tasks begin
    # anew elsewhere, once it was silent this long. Spark waits 120 s, and looks each 60 s.
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "5s",
}


def pods_config(settings: Settings, life: str) -> Mapping[str, str]:
    """Return Spark's settings for executors in pods.

    Args:
        settings: Of a driver whose `in_pods` is true.
        life: Another text in each life of the driver: pods of the last one may still be there,
            and a name is taken once.
    """
    return {
        "spark.kubernetes.namespace": settings.namespace,
        "spark.kubernetes.driver.pod.name": settings.driver_pod,
        "spark.kubernetes.executor.podTemplateFile": str(settings.executor_template),
        "spark.kubernetes.executor.podTemplateContainerName": CONTAINER,
        "spark.kubernetes.executor.podNamePrefix": f"{settings.executor_prefix}-{life}",
        f"spark.kubernetes.executor.label.{DRIVER_LABEL}": settings.driver_pod,
        "spark.kubernetes.container.image": settings.executor_image,
        "spark.kubernetes.container.image.pullPolicy": settings.executor_pull_policy,
        **_size(settings),
        **_secret(settings),
        **PATIENCE,
        # The image has no scripts to be told by files, nor does anything here make a Service or
        # a volume: without these the driver would need a right to all three.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        # Without it lost executors are counted for ever, and a few in a year end the driver.
        "spark.executor.failuresValidityInterval": "1h",
    }


def _size(settings: Settings) -> Mapping[str, str]:
    return {
        "spark.executor.instances": str(settings.executor_instances),
        "spark.executor.cores": str(settings.executor_cores),
        "spark.executor.memory": settings.executor_memory,
        "spark.executor.memoryOverhead": settings.executor_overhead,
        "spark.kubernetes.executor.request.cores": settings.executor_cpu,
    }


def _secret(settings: Settings) -> Mapping[str, str]:
    """Who does not know the secret is no executor, and reads nothing of what one is sent."""
    return {
        "spark.authenticate": "true",
        "spark.authenticate.secret.file": f"{settings.secrets_dir}/{SPARK_SECRET}",
        "spark.network.crypto.enabled": "true",
    }
