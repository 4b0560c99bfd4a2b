"""What every client of an API server needs: headers, trust, and words for a server that is not there.

Called by ``kube/http.py`` and ``kube/http_blocking.py``. Opens no connection.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from syncline.base.secret import Secret
from syncline.kube.client import Request
from syncline.kube.errors import Unavailable
from syncline.kube.kubeconfig import ClusterAccess

__all__ = ["request_headers", "tls_context", "unreachable"]


def request_headers(access: ClusterAccess, request: Request) -> list[tuple[str, str]]:
    """The request's own headers, and credentials, content type and accept where it has none."""
    headers = dict(request.headers)
    if request.body is not None:
        headers.setdefault("content-type", "application/json")
    headers.setdefault("accept", "application/json")
    headers.setdefault("user-agent", "syncline")
    token = _token(access)
    if token is not None:
        headers.setdefault("authorization", f"Bearer {token.reveal()}")
    listed = list(headers.items())
    if access.impersonate_user and "impersonate-user" not in headers:
        listed.append(("impersonate-user", access.impersonate_user))
        listed += [("impersonate-group", group) for group in access.impersonate_groups]
    return listed


def _token(access: ClusterAccess) -> Secret | None:
    """A token file is read for each request: the kubelet replaces it before the old token ends."""
    if access.token is not None or access.token_file is None:
        return access.token
    try:
        return Secret(access.token_file.read_text().strip())
    except OSError:
        return None  # The server answers 401, which says more than we could here.


def tls_context(access: ClusterAccess) -> ssl.SSLContext | None:
    """How to trust the server and show a client certificate; None for plain HTTP. Raises ssl.SSLError on bad PEM."""
    if urlsplit(access.server).scheme != "https":
        return None
    context = ssl.create_default_context(cadata=access.ca_pem or None)
    context.set_alpn_protocols(["http/1.1"])
    if access.skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.certificate_pem and access.key_pem is not None:
        # The ssl module reads keys from files only; this one is readable by us alone and gone at once.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{access.certificate_pem.rstrip()}\n{access.key_pem.reveal()}")
            file.flush()
            context.load_cert_chain(Path(file.name))
    return context


def unreachable(server: str, error: BaseException) -> Unavailable:
    """One sentence for a server that is not there, is not who it should be, or does not answer.

    aiohttp wraps the system's error as ``os_error`` or ``certificate_error``; the standard library raises it bare.
    """
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, TimeoutError):
        why = "it did not answer in time"
    elif isinstance(cause, ssl.SSLCertVerificationError):
        why = f"its certificate is not trusted ({cause.verify_message})"
    elif isinstance(cause, ConnectionRefusedError):
        why = "nothing listens there"
    else:
        why = str(error) or type(error).__name__
    return Unavailable(f"the server {server} cannot be reached: {why}; check the address and that the server runs")
