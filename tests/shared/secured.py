"""A broker that asks who comes: TLS, names and passwords, certificates, and rights.

Its plain listener is there for the test alone, which may do everything through it. Whoever
comes by another one may do what the users of `infra/kubernetes/strimzi` may, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certificates import PASSWORD as STORE_PASSWORD
from certificates import Authority, authority
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from ruamel.yaml import YAML
from weir_local import ports
from weir_local.kafka import Broker
from weir_local.repository import ROOT

USERS = ROOT / "infra" / "kubernetes" / "strimzi" / "users.yaml"
# What Java reads between quotes, and a shell or a URL would not leave alone.
PASSWORD = 'p"a\\ss; $word=ö'  # noqa: S105  of a broker in a folder of the test
OPERATIONS = {
    "Alter": AclOperation.ALTER,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
    "Create": AclOperation.CREATE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
}


def users() -> dict[str, list[dict[str, Any]]]:
    """Return the users for Strimzi by name, with their rights."""
    found = YAML(typ="safe").load_all(USERS.read_text())
    return {one["metadata"]["name"]: one["spec"]["authorization"]["acls"] for one in found}


class SecuredBroker(Broker):
    """One broker with listeners for names and passwords, and for certificates.

    Attributes:
        authority: Signed the broker's certificate, and may sign clients'.
        by_password: `host:port` of SASL_SSL with SCRAM-SHA-512 and PLAIN.
        by_certificate: `host:port` of SSL that asks for a client's certificate.
    """

    def __init__(self, folder: Path, authority: Authority) -> None:
        self.authority = authority
        self.by_password = f"{ports.HOST}:{ports.free_port()}"
        self.by_certificate = f"{ports.HOST}:{ports.free_port()}"
        self._store = authority.store("broker", f"san=ip:{ports.HOST}")
        super().__init__(folder)

    def _server_settings(self) -> dict[str, str]:
        told = super()._server_settings()
        more = f",SASL_SSL://{self.by_password},SSL://{self.by_certificate}"
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
        return {
            **told,
            "listeners": told["listeners"] + more,
            "advertised.listeners": told["advertised.listeners"] + more,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SASL_SSL:SASL_SSL,SSL:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{scram} required;",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{plain} required user_plain="p4ss";',
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]*).*$/$1/",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self._store),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    def admit(self) -> None:
        """Make the users, each with the same password and with its own rights."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        told = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        made: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(name, told, PASSWORD.encode(), b"salt" * 4)
            for name in users()
        ]
        for future in admin.alter_user_scram_credentials(made).values():
            future.result()
        bindings = [one for name, acls in users().items() for one in _bindings(name, acls)]
        for future in admin.create_acls(bindings).values():
            future.result()


def _bindings(user: str, acls: list[dict[str, Any]]) -> Iterator[AclBinding]:
    for one in acls:
        resource = one["resource"]
        kind = ResourceType.GROUP if resource["type"] == "group" else ResourceType.TOPIC
        is_prefix = resource.get("patternType") == "prefix"
        pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
        for operation in one["operations"]:
            yield AclBinding(
                kind,
                resource["name"],
                pattern,
                f"User:{user}",
                "*",
                OPERATIONS[operation],
                AclPermissionType.ALLOW,
            )


@contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    """Yield a broker with the users for Strimzi and no topics; it ends with the block."""
    with authority(folder / "authority") as own:
        broker = SecuredBroker(folder / "kafka", own)
        broker.start()
        try:
            broker.admit()
            yield broker
        finally:
            broker.kill()
