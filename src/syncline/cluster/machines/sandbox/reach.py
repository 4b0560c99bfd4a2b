"""Probe a port as the kubelet does: by a connection, or by an HTTP request.

Runs in the network of a sandbox; the other side is untrusted, so little is read from it. Source of the messages:
Kubernetes ``pkg/probe/http`` and ``pkg/probe/tcp``.
"""

from __future__ import annotations

import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 10 * 1024
AGENT = "kube-probe/1.36"
HOST = "127.0.0.1"


def reach(wish: dict[str, Any]) -> str:
    """Return the error, or "". ``wish`` has ``port`` and ``timeout_s``; for a request also ``path``, ``headers``
    (pairs) and ``tls``."""
    port, timeout_s = int(wish["port"]), float(wish["timeout_s"])
    where = f"dial tcp {HOST}:{port}: connect: "
    try:
        with socket.socket(socket.AF_INET) as plain:
            plain.settimeout(timeout_s)
            plain.connect((HOST, port))
            return _request(plain, wish) if "path" in wish else ""
    except TimeoutError:
        late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        return f'Get "{_address(wish)}": {late}' if "path" in wish else f"dial tcp {HOST}:{port}: i/o timeout"
    except ConnectionRefusedError:
        refused = where + "connection refused"
        return f'Get "{_address(wish)}": {refused}' if "path" in wish else refused
    except (OSError, ValueError) as error:
        return f'Get "{_address(wish)}": {error}' if "path" in wish else f"{where}{error}"


def _address(wish: dict[str, Any]) -> str:
    return f"{'https' if wish.get('tls') else 'http'}://{HOST}:{wish['port']}{wish['path']}"


def _request(plain: socket.socket, wish: dict[str, Any]) -> str:
    connection = plain
    if wish.get("tls"):
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # as in the kubelet: no verification
        connection = context.wrap_socket(plain)
    headers = {"Host": f"{HOST}:{wish['port']}", "User-Agent": AGENT, "Accept": "*/*", "Connection": "close"}
    for name, value in wish.get("headers") or ():
        headers[name] = value
    lines = [f"GET {wish['path']} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    if any(letter in line for line in lines for letter in "\r\n"):
        raise ValueError("a header has a line break")
    connection.sendall("\r\n".join(lines).encode())
    said = b""
    while b"\n" not in said and len(said) < MOST_BYTES and (more := connection.recv(MOST_BYTES)):
        said += more
    words = said.split(b"\n", 1)[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ValueError(f"malformed HTTP response {said[:40]!r}")
    code = int(words[1])
    return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"
