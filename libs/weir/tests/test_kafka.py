"""How Kafka is reached: what both libraries are told, and which secrets fit together."""

from __future__ import annotations

import base64

import pytest
from weir.kafka import (
    CA,
    CERTIFICATE,
    KEY,
    PASSWORD,
    USER,
    Kafka,
    SaslMechanism,
    SecurityProtocol,
    mechanism_fault,
    refusal,
    secret_faults,
)

LOGIN = {USER: "ingest", PASSWORD: "p4ss"}
PEM = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----"


def pkcs8(algorithm: str, head: str = "3047") -> str:
    """Return a private key in PEM whose algorithm is given in hex of DER; the key is zeros."""
    der = bytes.fromhex(f"{head} 020100 30{len(bytes.fromhex(algorithm)):02x} {algorithm} 0422")
    text = base64.encodebytes(der + bytes(34)).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{text}-----END PRIVATE KEY-----"


PKCS8 = pkcs8("06092a864886f70d010101 0500", "308204bd")
PKCS1 = "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----"


class TestOptions:
    def test_plain(self) -> None:
        """Without TLS and SASL both libraries are told where, and nothing of secrets."""
        told = {"bootstrap.servers": "a:1,b:2", "security.protocol": "PLAINTEXT"}

        assert Kafka("a:1,b:2").client_options() == told
        assert Kafka("a:1,b:2").java_options(str) == told

    def test_name_and_password(self) -> None:
        """Each library is told name, password and CA in its own words."""
        kafka = Kafka("a:1", "SASL_SSL", "SCRAM-SHA-512", "ingest", "p4ss", ca_file="/s/ca")

        assert kafka.client_options() == {
            "bootstrap.servers": "a:1",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "ingest",
            "sasl.password": "p4ss",
            "ssl.ca.location": "/s/ca",
        }
        assert kafka.java_options("text of {}".format) == {
            "bootstrap.servers": "a:1",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
            ' username="ingest" password="p4ss";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": "text of {}".format("/s/ca"),
        }

    def test_certificate(self) -> None:
        """A client that shows a certificate tells librdkafka its files, Java their texts."""
        kafka = Kafka("a:1", "SSL", certificate_file="/s/cert", key_file="/s/key")

        told = kafka.client_options()
        java = kafka.java_options({"/s/cert": "CERT", "/s/key": "KEY"}.__getitem__)

        assert told["ssl.certificate.location"] == "/s/cert"
        assert told["ssl.key.location"] == "/s/key"
        assert java["ssl.keystore.type"] == "PEM"
        assert java["ssl.keystore.certificate.chain"] == "CERT"
        assert java["ssl.keystore.key"] == "KEY"
        assert "ssl.truststore.type" not in java  # the system's CAs

    @pytest.mark.parametrize(
        ("password", "written"),
        [('a"b', r'password="a\"b";'), ("a\\b", r'password="a\\b";'), ("a; b'ö", "a; b'ö")],
    )
    def test_password_is_quoted(self, password: str, written: str) -> None:
        """Quotes and backslashes of a password stay its own; nothing else is changed."""
        kafka = Kafka("a:1", "SASL_SSL", "PLAIN", "ingest", password)

        jaas = kafka.java_options(str)["sasl.jaas.config"]

        assert jaas.startswith("org.apache.kafka.common.security.plain.PlainLoginModule required ")
        assert written in jaas

    def test_password_is_never_shown(self) -> None:
        """The text of the value, as it stands in a message of an error, has no password."""
        kafka = Kafka("a:1", "SASL_SSL", "PLAIN", "ingest", "p4ss")

        assert "ingest" in repr(kafka)
        assert "p4ss" not in f"{kafka} {kafka!r}"


class TestMechanism:
    @pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT"])
    def test_is_asked_for_by_sasl(self, protocol: SecurityProtocol) -> None:
        """SASL without a mechanism is refused, and one with it is not."""
        assert mechanism_fault(protocol, None) == (
            "must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 while the security protocol is"
            f" {protocol}, got none; set it to what the brokers offer"
        )
        assert mechanism_fault(protocol, "PLAIN") is None

    @pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
    def test_is_of_no_use_without_sasl(self, protocol: SecurityProtocol) -> None:
        """Whoever names one without SASL would send no password, and is told so."""
        mechanism: SaslMechanism = "PLAIN"

        fault = mechanism_fault(protocol, mechanism)

        assert fault is not None
        assert fault.endswith("got PLAIN; remove it, or set the protocol to SASL_SSL")
        assert mechanism_fault(protocol, None) is None


class TestSecrets:
    @pytest.mark.parametrize(
        ("protocol", "found"),
        [
            ("PLAINTEXT", {}),
            ("PLAINTEXT", {CA: ""}),
            ("SSL", {}),
            ("SSL", {CA: PEM, CERTIFICATE: PEM, KEY: PKCS8}),
            ("SASL_PLAINTEXT", LOGIN),
            ("SASL_SSL", LOGIN | {CA: f"{PEM}\n{PEM}"}),
        ],
    )
    def test_that_fit(self, protocol: SecurityProtocol, found: dict[str, str]) -> None:
        """What a protocol uses may be there; without a CA the system's hold."""
        assert secret_faults(protocol, found) == []

    @pytest.mark.parametrize(
        ("protocol", "found", "fault"),
        [
            ("SASL_SSL", {USER: "a"}, f"must hold a file {PASSWORD} while"),
            ("SASL_SSL", {PASSWORD: "a"}, f"must hold a file {USER} while"),
            ("SSL", LOGIN, f"must hold no file {USER} while the security protocol is SSL"),
            ("PLAINTEXT", {CA: PEM}, f"must hold no file {CA} while"),
            ("SASL_PLAINTEXT", LOGIN | {KEY: PKCS8, CERTIFICATE: PEM}, f"no file {KEY} while"),
            ("SSL", {CERTIFICATE: PEM}, f"found no {KEY}; add it"),
            ("SSL", {KEY: PKCS8}, f"found no {CERTIFICATE}; add it"),
            ("SSL", {CERTIFICATE: PEM, KEY: PKCS1}, "openssl pkcs8 -topk8 -nocrypt"),
            ("SSL", {CA: "MII"}, f"must hold {CA} as certificates in PEM"),
            ("SASL_SSL", LOGIN | {PASSWORD: "a\nb"}, f"must hold {PASSWORD} as one line"),
        ],
    )
    def test_that_do_not_fit(
        self, protocol: SecurityProtocol, found: dict[str, str], fault: str
    ) -> None:
        """What is missing, of no use or of another form is named, with what to do."""
        faults = secret_faults(protocol, found)

        assert any(fault in one for one in faults), faults
        assert all(one.count(";") for one in faults)

    def test_all_are_told(self) -> None:
        """Two missing files are two faults."""
        assert len(secret_faults("SASL_SSL", {})) == 2

    @pytest.mark.parametrize("curve", ["06082a8648ce3d030107", "06052b81040022", "06052b81040023"])
    def test_a_key_on_a_curve_that_all_clients_read(self, curve: str) -> None:
        """P-256, P-384 and P-521, whether the length of the key takes one byte or two."""
        for head in ("3047", "308187"):
            key = pkcs8(f"06072a8648ce3d0201 {curve}", head)

            assert secret_faults("SSL", {CERTIFICATE: PEM, KEY: key}) == []

    @pytest.mark.parametrize(
        "algorithm",
        [
            pytest.param("06032b6570", id="Ed25519"),
            pytest.param("06032b6571", id="Ed448"),
            pytest.param("06092a864886f70d01010a", id="RSASSA-PSS"),
            pytest.param("06072a8648ce3d0201 06052b8104000a", id="secp256k1"),
            pytest.param("06072a8648ce3d0201 06092b2403030208010107", id="brainpoolP256r1"),
        ],
    )
    def test_a_key_that_java_does_not_read(self, algorithm: str) -> None:
        """What only librdkafka reads is refused, with the reason and what to do."""
        (fault,) = secret_faults("SSL", {CERTIFICATE: PEM, KEY: pkcs8(algorithm)})

        assert fault == (
            f"must hold {KEY} as a key of RSA, or of EC on the curve P-256, P-384 or P-521, since"
            " Kafka's Java client in analytics reads no other, found another; have the certificate"
            " made for such a key"
        )

    @pytest.mark.parametrize("text", ["", "MII", "MIIB", "ö"])
    def test_what_is_no_key_is_left_to_who_loads_it(self, text: str) -> None:
        """Of a key that is cut off nothing is said about its kind."""
        key = f"-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----"

        assert secret_faults("SSL", {CERTIFICATE: PEM, KEY: key}) == []

    def test_a_file_that_could_not_be_read_is_there(self) -> None:
        """It counts as found, where it is needed and where it is of no use."""
        assert secret_faults("SSL", {KEY: PKCS8}, {CERTIFICATE}) == []
        assert len(secret_faults("PLAINTEXT", {}, {CA})) == 1


class TestRefusal:
    def test_in_words(self) -> None:
        """A refused password and an unknown CA are told by the files to look at."""
        password, ca = refusal("_AUTHENTICATION", "no"), refusal("_SSL", "self-signed")

        assert password is not None
        assert f"{USER} and {PASSWORD}" in password
        assert password.endswith(": no")
        assert ca is not None
        assert CA in ca
        assert ca.endswith(": self-signed")

    @pytest.mark.parametrize("what", ["TOPIC", "GROUP", "CLUSTER"])
    def test_missing_rights(self, what: str) -> None:
        """A right that is missing is told with where all of them are listed."""
        why = refusal(f"{what}_AUTHORIZATION_FAILED", "weir.events")

        assert why is not None
        assert why.startswith("the brokers must let this client do what it does")
        assert why.endswith("users.yaml lists it for each component: weir.events")

    def test_an_absent_broker_refuses_nothing(self) -> None:
        """That a broker is away is no refusal: it may pass by itself."""
        assert refusal("_TRANSPORT", "connection refused") is None
