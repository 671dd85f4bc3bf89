"""An authority of a test's own, and what it signs, made by Java's keytool.

All in one JVM: as programs of their own, its dozen runs take longer than the test.
"""

from __future__ import annotations

from base64 import encodebytes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from weir_local.kafka import find_java

PASSWORD = "changeit"  # noqa: S105  of stores in a folder of the test


class Authority:
    """Signs certificates.

    Attributes:
        certificate: Its own, a file in PEM.
    """

    def __init__(self, folder: Path, gateway: JavaGateway) -> None:
        """Make it; `authority` does."""
        folder.mkdir(parents=True)
        self._folder, self._gateway = folder, gateway
        self._make("ca", "-ext", "bc:c")
        self.certificate = folder / "ca.pem"
        self._tool("ca", "-exportcert", "-rfc", "-file", str(self.certificate))

    def store(self, name: str, *extensions: str) -> Path:
        """Return a store (PKCS#12) with a key and a signed certificate for it."""
        signed = self._signed(name, *extensions)
        self._tool(name, "-importcert", "-noprompt", "-file", str(self.certificate), alias="ca")
        self._tool(name, "-importcert", "-noprompt", "-file", str(signed))
        return self._store(name)

    def client(self, name: str) -> tuple[Path, Path]:
        """Return a client's certificate and its key, files in PEM."""
        signed = self._signed(name, "eku=clientAuth")
        key = self._folder / f"{name}.key"
        text = encodebytes(self._key(name)).decode()
        key.write_text(f"-----BEGIN PRIVATE KEY-----\n{text}-----END PRIVATE KEY-----\n")
        return signed, key

    def _signed(self, name: str, *extensions: str) -> Path:
        self._make(name)
        asked, signed = self._folder / f"{name}.csr", self._folder / f"{name}.pem"
        self._tool(name, "-certreq", "-file", str(asked))
        words = [word for one in extensions for word in ("-ext", one)]
        files = ("-infile", str(asked), "-outfile", str(signed))
        self._tool("ca", "-gencert", "-rfc", "-validity", "2", *files, *words)
        return signed

    def _make(self, name: str, *words: str) -> None:
        kind = ("-keyalg", "EC", "-groupname", "secp256r1", "-validity", "2")
        self._tool(name, "-genkeypair", *kind, "-dname", f"CN={name}", *words)

    def _store(self, name: str) -> Path:
        return self._folder / f"{name}.p12"

    def _tool(self, name: str, *words: str, alias: str = "") -> None:
        told = [*words, "-alias", alias or name, "-storepass", PASSWORD]
        told += ["-keystore", str(self._store(name)), "-storetype", "PKCS12"]
        self._gateway.jvm.sun.security.tools.keytool.Main.main(self._array("String", told))

    def _key(self, name: str) -> bytes:
        """Return a private key as PKCS#8; keytool itself gives none away."""
        jvm = self._gateway.jvm
        password = self._array("char", list(PASSWORD))
        keys = jvm.java.security.KeyStore.getInstance("PKCS12")
        keys.load(jvm.java.io.FileInputStream(str(self._store(name))), password)
        form = jvm.java.lang.Class.forName("java.security.spec.PKCS8EncodedKeySpec")
        factory = jvm.java.security.KeyFactory.getInstance("EC")
        return bytes(factory.getKeySpec(keys.getKey(name, password), form).getEncoded())

    def _array(self, kind: str, items: list[str]) -> Any:
        jvm = self._gateway.jvm
        array = self._gateway.new_array(jvm.char if kind == "char" else jvm.String, len(items))
        for at, item in enumerate(items):
            array[at] = item
        return array


@contextmanager
def authority(folder: Path) -> Iterator[Authority]:
    """Yield a new authority with its files in a folder; its JVM ends with the block."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port = launch_gateway(
        jarpath=str(jar),
        java_path=find_java(),
        javaopts=["--add-exports", "java.base/sun.security.tools.keytool=ALL-UNNAMED"],
        die_on_exit=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield Authority(folder, gateway)
    finally:
        gateway.shutdown()
