"""How Kafka is reached: where the brokers are, how they are spoken to, and as whom.

One value for every client that Weir has, in the words of two libraries: librdkafka, which
the Python processes use, and Kafka's Java client inside Spark. Where its parts come from
(variables and files of secrets) is not known here, and no file is opened.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

USER: Final = "kafka_user"
PASSWORD: Final = "kafka_password"  # noqa: S105  the name of a file
CA: Final = "kafka_ca"
CERTIFICATE: Final = "kafka_certificate"
KEY: Final = "kafka_key"
SECRETS: Final = (USER, PASSWORD, CA, CERTIFICATE, KEY)
"""Names of the files that say as whom brokers are spoken to, and whom to trust."""

_CERTIFICATE_BEGINS = "-----BEGIN CERTIFICATE-----"
_KEY_BEGINS = "-----BEGIN PRIVATE KEY-----"
_KEY_TEXT = re.compile(f"{_KEY_BEGINS}(.*?)-----END PRIVATE KEY-----", re.DOTALL)
_RSA = bytes.fromhex("06092a864886f70d010101")
_EC = bytes.fromhex("06072a8648ce3d0201")
# The curves that Java's provider signs with since Java 16, named: it reads no spelt-out ones.
_CURVES = ("06082a8648ce3d030107", "06052b81040022", "06052b81040023")
_ALGORITHMS: Final = (_RSA, *(_EC + bytes.fromhex(curve) for curve in _CURVES))
"""How the algorithm of a key begins, in DER, that both libraries read and sign with."""
_SHORTEST_KEY: Final = 16
"""In bytes: what is shorter was cut off."""
_LOGIN_MODULES: Final[Mapping[SaslMechanism, str]] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def has_sasl(protocol: SecurityProtocol) -> bool:
    """Return whether clients say who they are by name and password."""
    return protocol.startswith("SASL_")


def has_tls(protocol: SecurityProtocol) -> bool:
    """Return whether connections are encrypted."""
    return protocol.endswith("SSL")


@dataclass(frozen=True)
class Kafka:
    """How Kafka is reached. `Kafka("host:9092")` is one without TLS and SASL.

    Attributes:
        bootstrap: Brokers, `host:port[,host:port]`.
        protocol: How they are spoken to.
        mechanism: Of SASL; None without.
        user: Of SASL; None without.
        password: Of SASL; never shown.
        ca_file: Certificates in PEM that vouch for the brokers; None: those of the system.
        certificate_file: This client's certificate in PEM, with those between it and its CA.
        key_file: Its private key, PKCS#8 in PEM.
    """

    bootstrap: str
    protocol: SecurityProtocol = "PLAINTEXT"
    mechanism: SaslMechanism | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None

    def client_options(self) -> dict[str, str]:
        """Return what a client of librdkafka is told."""
        told = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.protocol,
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file,
        }
        return {name: value for name, value in told.items() if value is not None}

    def java_options(self, read: Callable[[str], str]) -> dict[str, str]:
        """Return what a client of Java is told.

        Its stores are given as texts: as a file it takes key and certificate only in one.

        Args:
            read: Returns the text of a file.
        """
        told = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        if self.mechanism is not None:
            told["sasl.mechanism"] = self.mechanism
            told["sasl.jaas.config"] = _jaas(self.mechanism, self.user or "", self.password or "")
        if self.ca_file is not None:
            told["ssl.truststore.type"] = "PEM"
            told["ssl.truststore.certificates"] = read(self.ca_file)
        if self.certificate_file is not None and self.key_file is not None:
            told["ssl.keystore.type"] = "PEM"
            told["ssl.keystore.certificate.chain"] = read(self.certificate_file)
            told["ssl.keystore.key"] = read(self.key_file)
        return told


def _jaas(mechanism: SaslMechanism, user: str, password: str) -> str:
    return (
        f"{_LOGIN_MODULES[mechanism]} required"
        f" username={_quoted(user)} password={_quoted(password)};"
    )


def _quoted(text: str) -> str:
    """Return a text as Java reads it between quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def mechanism_fault(protocol: SecurityProtocol, mechanism: SaslMechanism | None) -> str | None:
    """Return what is wrong with a mechanism of SASL; None if it fits."""
    if has_sasl(protocol) and mechanism is None:
        return (
            "must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 while the security protocol is"
            f" {protocol}, got none; set it to what the brokers offer"
        )
    if mechanism is not None and not has_sasl(protocol):
        return (
            f"must be left out while the security protocol is {protocol}, which asks for no name,"
            f" got {mechanism}; remove it, or set the protocol to SASL_SSL"
        )
    return None


def secret_faults(
    protocol: SecurityProtocol, found: Mapping[str, str], closed: Collection[str] = ()
) -> list[str]:
    """Return what is wrong with the secrets that a client would use.

    One that would not be used is a fault, too: whoever put a password there counts on it.

    Args:
        protocol: How the brokers are spoken to.
        found: The texts of those `SECRETS` that are there, without the white space around them.
        closed: Names of those that are there and could not be read. That they could not is
            not told here.
    """
    texts = {name: text for name, text in found.items() if text}
    there = {*texts, *closed}
    faults = [*_unused(protocol, there), *_wrong(texts)]
    if has_sasl(protocol):
        faults += [
            f"must hold a file {name} while the security protocol is {protocol}, found none;"
            " write it, or choose a protocol without SASL"
            for name in (USER, PASSWORD)
            if name not in there
        ]
    for one, other in ((CERTIFICATE, KEY), (KEY, CERTIFICATE)):
        if one in there and other not in there:
            faults.append(f"must hold {CERTIFICATE} and {KEY} or none, found no {other}; add it")
    return faults


def _unused(protocol: SecurityProtocol, there: Collection[str]) -> list[str]:
    unused = [] if has_sasl(protocol) else [USER, PASSWORD]
    unused += [] if has_tls(protocol) else [CA, CERTIFICATE, KEY]
    return [
        f"must hold no file {name} while the security protocol is {protocol}, which does not use"
        " it, found one; set the protocol, or remove the file"
        for name in unused
        if name in there
    ]


def _wrong(there: Mapping[str, str]) -> list[str]:
    """Return what is wrong within a file."""
    faults = [
        f"must hold {name} as one line, found several; write it anew"
        for name in (USER, PASSWORD)
        if len(there.get(name, "").splitlines()) > 1
    ]
    faults += [
        f"must hold {name} as certificates in PEM ({_CERTIFICATE_BEGINS}), found something else;"
        " convert it"
        for name in (CA, CERTIFICATE)
        if name in there and _CERTIFICATE_BEGINS not in there[name]
    ]
    if KEY in there and _KEY_BEGINS not in there[KEY]:
        faults.append(
            f"must hold {KEY} as PKCS#8 in PEM without a passphrase ({_KEY_BEGINS}), the one form"
            " that every client here reads, found something else; convert it with"
            " `openssl pkcs8 -topk8 -nocrypt`"
        )
    elif KEY in there and not _is_read_by_all(there[KEY]):
        faults.append(
            f"must hold {KEY} as a key of RSA, or of EC on the curve P-256, P-384 or P-521, since"
            " Kafka's Java client in analytics reads no other, found another; have the certificate"
            " made for such a key"
        )
    return faults


def _is_read_by_all(key: str) -> bool:
    """Return whether a private key is of a kind that both libraries read.

    True also for what is no key at all: whoever loads it says so.
    """
    found = _KEY_TEXT.search(key)
    try:
        der = base64.b64decode(found[1]) if found else b""
    except ValueError:
        return True
    if len(der) < _SHORTEST_KEY:
        return True
    # A sequence of version and algorithm (a sequence, too); lengths above 127 take more bytes.
    version = 2 + (der[1] & 0x7F if der[1] & 0x80 else 0)
    return der.startswith(_ALGORITHMS, version + 5)


_UNKNOWN: Final = (
    f"the brokers must know the user and the password of {USER} and {PASSWORD}, and refused them;"
    " mend the files, or the user at the brokers"
)
_UNTRUSTED: Final = (
    f"the brokers' certificates must be signed by one in {CA} (without it: one that the system"
    " trusts) for the host that is called, and this client's by one that they trust; mend the"
    " files, or the brokers' certificates"
)
_FORBIDDEN: Final = (
    "the brokers must let this client do what it does, and refused it; grant it, as"
    " infra/kubernetes/strimzi/users.yaml lists it for each component"
)
_REFUSALS: Final = {
    "_AUTHENTICATION": _UNKNOWN,
    "SASL_AUTHENTICATION_FAILED": _UNKNOWN,
    "_SSL": _UNTRUSTED,
    "TOPIC_AUTHORIZATION_FAILED": _FORBIDDEN,
    "GROUP_AUTHORIZATION_FAILED": _FORBIDDEN,
    "CLUSTER_AUTHORIZATION_FAILED": _FORBIDDEN,
}


def refusal(name: str, said: str) -> str | None:
    """Return, in words, why brokers refuse this client, or it them.

    Args:
        name: Of an error of librdkafka.
        said: Its text.

    Returns:
        None if it is another error: one that may pass by itself.
    """
    why = _REFUSALS.get(name)
    return None if why is None else f"{why}: {said}"
