"""Whose certificates are trusted: those of the system, of the administrator and of the generator; proxies."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.sources.providers.conftest import Serve
from tests.sources.providers.replay import Replay, ReplayHost

from syncline.base.secret import Secret
from syncline.sources.errors import Problem, SourceError
from syncline.sources.providers.asking import pull_requests
from syncline.sources.providers.model import SecretReference
from syncline.sources.providers.reach import Reach

PATH = "/api/v4/projects/7/merge_requests"
CA_REF = {"configMapName": "ca", "key": "pem"}
CA_REFERENCE = SecretReference("team", "ca", "pem", kind="ConfigMap")


def certificate(folder: Path) -> tuple[str, ssl.SSLContext]:
    """A certificate of its own authority for the loopback, and a server's settings with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
    now = datetime.now(UTC)
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(place, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(pem + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return pem.decode(), context


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ReplayHost, str]]:
    pem, context = certificate(tmp_path_factory.mktemp("tls"))
    host = ReplayHost({PATH: Replay([])}, tls=context)
    yield host, pem
    host.close()


def ask(host: ReplayHost, reach: Reach | None = None, pem: str = "", **more: Any) -> None:
    spec = {"project": "7", "api": host.url, **({"caRef": CA_REF} if pem else {}), **more}
    assert pull_requests({"gitlab": spec}, {CA_REFERENCE: Secret(pem)} if pem else {}, reach or Reach()) == ()


def test_a_certificate_of_an_unknown_authority_is_refused(secure: tuple[ReplayHost, str]) -> None:
    with pytest.raises(SourceError, match="the certificate cannot be verified") as error:
        ask(secure[0])
    assert error.value.problem is Problem.UNREACHABLE


def test_the_generator_or_the_administrator_may_trust_it(secure: tuple[ReplayHost, str], tmp_path: Path) -> None:
    host, pem = secure
    ask(host, pem=pem)
    ask(host, Reach(ca_pem=pem))
    ask(host, Reach(ca_pem=certificate(tmp_path)[0]), pem)
    with pytest.raises(SourceError, match="the certificate cannot be verified"):
        ask(host, pem=certificate(tmp_path)[0])


def test_insecure_takes_any_certificate(secure: tuple[ReplayHost, str]) -> None:
    ask(secure[0], insecure=True)


def test_an_authority_that_is_no_certificate_is_an_error(secure: tuple[ReplayHost, str]) -> None:
    with pytest.raises(SourceError, match="GitLab: https://127"):
        ask(secure[0], pem="-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")


def test_the_administrators_proxy_is_used_and_sees_no_more_than_it_must(serve: Serve) -> None:
    proxy = serve({PATH: Replay([])})
    reach = Reach(proxy=Secret(proxy.url.replace("http://", "http://me:pass@")), no_proxy="direct.example")
    spec = {"gitlab": {"project": "7", "api": "http://gitlab.example/"}}
    assert pull_requests(spec, {}, reach) == ()
    assert proxy.asked[0].headers["host"] == "gitlab.example:80"
    assert "proxy-authorization" in proxy.asked[0].headers
