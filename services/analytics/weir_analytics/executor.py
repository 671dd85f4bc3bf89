"""An executor of Spark in a pod: the program `executor`, which Spark names when it makes one.

Spark tells an executor's pod what it is by environment variables and leaves the JVM's
command to the image; its own images have a shell script for it, the pyspark package has
nothing. This replaces itself by that JVM, so that signals reach it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

MAIN = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
JARS = Path(pyspark.__file__).parent / "jars"
OPTION = "SPARK_JAVA_OPT_"
# The backend's arguments, and the variables of Spark that carry them.
ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
MEMORY = "SPARK_EXECUTOR_MEMORY"
# The JVM reads the secret that driver and executors share from a file only if its master is
# Kubernetes, and it needs the secret to be told by the driver what its master is.
KIND = "-Dspark.master=k8s://"
EXIT_NOT_TOLD = 2


def command(environment: Mapping[str, str], java: str) -> list[str]:
    """Return the JVM's command.

    Args:
        environment: What Spark set in the pod.
        java: The program that runs the JVM.

    Raises:
        KeyError: If Spark did not set one of the variables; names it.
    """
    numbered = {
        int(name.removeprefix(OPTION)): value
        for name, value in environment.items()
        if name.startswith(OPTION) and name.removeprefix(OPTION).isdecimal()
    }
    options = [numbered[number] for number in sorted(numbered)]
    heap = environment[MEMORY]
    told = [environment.get(name, "") for name in ("SPARK_CONF_DIR", "SPARK_CLASSPATH")]
    classes = os.pathsep.join([*(path for path in told if path), f"{JARS}/*"])
    arguments = [word for pair in ARGUMENTS.items() for word in (pair[0], environment[pair[1]])]
    return [java, *options, KIND, f"-Xms{heap}", f"-Xmx{heap}", "-cp", classes, MAIN, *arguments]


def main() -> int:
    """Become the JVM; return the exit code only if that cannot be."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java")
    if java is None:
        sys.stderr.write("executor: java must be on PATH, found none; use the image of analytics\n")
        return EXIT_NOT_TOLD
    try:
        os.execv(java, command(os.environ, java))  # noqa: S606  no shell between Spark and the JVM
    except KeyError as error:
        sys.stderr.write(f"executor: Spark must set {error.args[0]} in this pod, found nothing\n")
    return EXIT_NOT_TOLD


if __name__ == "__main__":
    sys.exit(main())
