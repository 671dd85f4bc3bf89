"""Settings: from the environment, all faults at once, secrets as files."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import pytest
import structlog
from pydantic import Field
from pydantic_settings import SettingsConfigDict
from weir.kafka import Kafka
from weir_service.settings import Listed, Port, ServiceSettings, read

CA = """
-----BEGIN CERTIFICATE-----
MIIBfDCCASGgAwIBAgIUdntdyJc5FhbBuhP4PQK1ca04QhMwCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHYnJva2VyczAgFw0yNjExMjIwMzQyMjJaGA8yMTI2MTAyOTAz
NDIyMlowEjEQMA4GA1UEAwwHYnJva2VyczBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABDuFMvhGVGNPz0Ew8r2Q4ykpnSJ3V7hLAS76lK0Mldxa39nE0ybplybf1deU
4ThU0F2UVZ1O2wcw+JMg6Kxxaz+jUzBRMB0GA1UdDgQWBBSnw6ZAoPvlYLADA2Bo
CZSz3+OPXDAfBgNVHSMEGDAWgBSnw6ZAoPvlYLADA2BoCZSz3+OPXDAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQDqKkLLqGuWYT6mIrJUSPmNIDHr
QkzA5G2jkYssLyGsyQIhAIt75W0mctMXj7ZGhzgjsJFk5XOiGerKDnQiBE5mhTZR
-----END CERTIFICATE-----
"""
CERTIFICATE = """
-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUBmh1UbSDvHaDZJeOKAnxSGI9Ns0wCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEd2VpcjAgFw0yNjExMjIwNDU4NTJaGA8yMTI2MTAyOTA0NTg1
MlowDzENMAsGA1UEAwwEd2VpcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABBZT
WMhP3c52eZ3kB9OpZ8ylbiXwnmbS/hNdoiW3iXTXRWCXs8LdZBwVpFciCqr6HRhJ
Urk/hlNdzqy7M5pLJdqjUzBRMB0GA1UdDgQWBBR3K3Q0eGbODAiFK5iutsxUjc5Z
JTAfBgNVHSMEGDAWgBR3K3Q0eGbODAiFK5iutsxUjc5ZJTAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIESmRSUjTKLA6co6WkGNdBMMgd8QC9M3fVjl
WEinvZ/UAiEAkJrpzMK4R78jZs7N+PTVsFoUqum2nSiiGobZgxQXBR0=
-----END CERTIFICATE-----
"""
KEY = """
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgtAZMlEGdIuxcXjte
Q3z+sipJs3X+Eg7UdrKOlb5Pr7qhRANCAAQWU1jIT93Odnmd5AfTqWfMpW4l8J5m
0v4TXaIlt4l010Vgl7PC3WQcFaRXIgqq+h0YSVK5P4ZTXc6suzOaSyXa
-----END PRIVATE KEY-----
"""


class Sample(ServiceSettings):
    """Settings of no service."""

    model_config = SettingsConfigDict(env_prefix="WEIR_SAMPLE_", frozen=True)
    needed_secrets = ("hash_key",)

    port: Port = Field(default=1)
    origins: Listed = Field(default=())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of secrets of an environment in which nothing is wrong."""
    (tmp_path / "hash_key").write_text(" k3y\n")
    monkeypatch.setenv("WEIR_SAMPLE_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("WEIR_SAMPLE_REDIS_URL", "redis://me:s3cret@127.0.0.1:2/0")
    monkeypatch.setenv("WEIR_SAMPLE_SECRETS_DIR", str(tmp_path))
    return tmp_path


def test_what_the_environment_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are split at commas; secrets come without the line end."""
    monkeypatch.setenv("WEIR_SAMPLE_ORIGINS", "http://a, ,http://b")
    settings = read(Sample)
    assert settings is not None
    assert settings.origins == ("http://a", "http://b")
    assert (settings.hash_key, settings.redis_password) == (b"k3y", None)
    (folder / "redis_password").write_text("p4ss\n")
    assert settings.secret("redis_password") == settings.redis_password == "p4ss"


def test_what_is_logged_holds_no_credential(folder: Path) -> None:
    """Addresses are told without user and password, files of secrets by their folder."""
    settings = read(Sample)
    assert settings is not None
    told = settings.told()
    assert told["redis_url"] == "redis://***@127.0.0.1:2/0"
    assert told["secrets_dir"] == str(folder)
    assert not {"s3cret", "k3y"} & set(json.dumps(told).split('"'))


def test_all_faults_are_told_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing setting, one out of bounds and a missing secret: three lines, by their names."""
    monkeypatch.delenv("WEIR_SAMPLE_REDIS_URL")
    monkeypatch.setenv("WEIR_SAMPLE_PORT", "99999")
    (folder / "hash_key").write_text("\n")
    with structlog.testing.capture_logs() as said:
        assert read(Sample) is None
    faults = {line["name"]: line["why"] for line in said if line["event"] == "bad_setting"}
    assert faults.keys() == {
        "WEIR_SAMPLE_REDIS_URL",
        "WEIR_SAMPLE_PORT",
        "WEIR_SAMPLE_SECRETS_DIR",
    }
    assert "a folder with a file hash_key that is not empty" in faults["WEIR_SAMPLE_SECRETS_DIR"]


class TestKafka:
    @pytest.mark.usefixtures("folder")
    def test_is_plain_by_default(self) -> None:
        """Who says nothing speaks to brokers without TLS and SASL."""
        settings = read(Sample)

        assert settings is not None
        assert settings.kafka == Kafka("127.0.0.1:1")

    def test_is_put_together_from_variables_and_files(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Protocol and mechanism are variables; name, password and CA are files, and not told."""
        monkeypatch.setenv("WEIR_SAMPLE_KAFKA_SECURITY_PROTOCOL", "SASL_SSL")
        monkeypatch.setenv("WEIR_SAMPLE_KAFKA_SASL_MECHANISM", "PLAIN")
        (folder / "kafka_user").write_text("ingest\n")
        (folder / "kafka_password").write_text("hunter2\n")
        (folder / "kafka_ca").write_text(CA)

        settings = read(Sample)

        assert settings is not None
        ca_file = str(folder / "kafka_ca")
        assert settings.kafka == Kafka(
            "127.0.0.1:1", "SASL_SSL", "PLAIN", "ingest", "hunter2", ca_file=ca_file
        )
        assert "hunter2" not in json.dumps(settings.told()) + repr(settings)

    @pytest.mark.usefixtures("folder")
    def test_all_that_is_wrong_is_told_in_lines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """SASL without mechanism, name and password: three lines, two of them of one setting."""
        monkeypatch.setenv("WEIR_SAMPLE_KAFKA_SECURITY_PROTOCOL", "SASL_SSL")

        with structlog.testing.capture_logs() as said:
            assert read(Sample) is None

        assert sorted(line["name"] for line in said) == [
            "WEIR_SAMPLE_KAFKA_SASL_MECHANISM",
            "WEIR_SAMPLE_SECRETS_DIR",
            "WEIR_SAMPLE_SECRETS_DIR",
        ]
        assert [line["why"] for line in said if "kafka_password" in line["why"]]

    @pytest.mark.usefixtures("folder")
    def test_a_protocol_that_there_is_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A misspelt protocol is one fault; what depends on it is not guessed."""
        monkeypatch.setenv("WEIR_SAMPLE_KAFKA_SECURITY_PROTOCOL", "TLS")

        with structlog.testing.capture_logs() as said:
            assert read(Sample) is None

        assert [line["name"] for line in said] == ["WEIR_SAMPLE_KAFKA_SECURITY_PROTOCOL"]

    def test_certificates_are_tried_at_the_start(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One that is cut off, or belongs to another key, is told before a client meets it."""
        monkeypatch.setenv("WEIR_SAMPLE_KAFKA_SECURITY_PROTOCOL", "SSL")
        (folder / "kafka_ca").write_text(CA[:200])
        (folder / "kafka_certificate").write_text(CA)
        (folder / "kafka_key").write_text("-----BEGIN PRIVATE KEY-----\nMII\n")

        with structlog.testing.capture_logs() as said:
            assert read(Sample) is None

        first, second = (line["why"] for line in said)
        assert "must hold kafka_ca as a client can use, got" in first
        assert "must hold kafka_certificate and kafka_key, which belong together" in second

    @pytest.mark.parametrize("name", ["kafka_ca", "kafka_certificate", "kafka_key"])
    def test_a_file_in_der_is_named(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """Bytes that are no text are told by the file's name, once, beside all other faults."""
        monkeypatch.setenv("WEIR_SAMPLE_KAFKA_SECURITY_PROTOCOL", "SASL_SSL")
        monkeypatch.setenv("WEIR_SAMPLE_KAFKA_SASL_MECHANISM", "PLAIN")
        (folder / "kafka_user").write_text("ingest\n")
        (folder / "kafka_certificate").write_text(CERTIFICATE)
        (folder / "kafka_key").write_text(KEY)
        (folder / name).write_bytes(ssl.PEM_cert_to_DER_cert(CA.strip()))

        with structlog.testing.capture_logs() as said:
            assert read(Sample) is None

        first, second = (line["why"] for line in said)
        assert f"must hold {name} as text in UTF-8, found other bytes; write it anew" in first
        assert "must hold a file kafka_password" in second

    def test_a_file_that_cannot_be_read_is_named(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the system says of a file stands beside its name; others are told as well."""
        monkeypatch.setenv("WEIR_SAMPLE_KAFKA_SECURITY_PROTOCOL", "SSL")
        (folder / "hash_key").unlink()
        (folder / "kafka_user").write_text("ingest\n")
        for name in ("hash_key", "redis_password", "kafka_ca"):
            # A file that also root finds, and cannot read.
            (folder / name).symlink_to("/proc/self/mem")

        with structlog.testing.capture_logs() as said:
            assert read(Sample) is None

        *closed, unused = (line["why"] for line in said)
        assert [why.split(";")[0].removeprefix("Value error, ") for why in closed] == [
            f"must hold {name} as a file that this process may read, got Input/output error"
            for name in ("hash_key", "redis_password", "kafka_ca")
        ]
        assert "must hold no file kafka_user while the security protocol is SSL" in unused

    def test_an_empty_file_is_none(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A CA of nothing but white space leaves it to the system's."""
        monkeypatch.setenv("WEIR_SAMPLE_KAFKA_SECURITY_PROTOCOL", "SSL")
        (folder / "kafka_ca").write_text("\n")

        settings = read(Sample)

        assert settings is not None
        assert settings.kafka == Kafka("127.0.0.1:1", "SSL")
