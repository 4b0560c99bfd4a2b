"""A plain HTTP server of repositories, as Git hosts are: closed to those who do not show what it wants."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from pathlib import Path


class Server:
    """Serves a folder to those who show ``authorization``; ``elsewhere`` answers each request with a redirect."""

    def __init__(self, folder: Path, authorization: str, elsewhere: str = "") -> None:
        self.observed: list[str] = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(handler) -> None:
                given = handler.headers.get("authorization", "")
                self.observed.append(given)
                if elsewhere:
                    handler.send_response(302)
                    handler.send_header("location", elsewhere + handler.path)
                elif given != authorization:
                    handler.send_response(401)
                    handler.send_header("www-authenticate", 'Basic realm="git"')
                else:
                    super().do_GET()
                    return
                handler.send_header("content-length", "0")
                handler.end_headers()

            def log_message(self, *_: object) -> None: ...

        def handler(*arguments: object) -> Handler:
            return Handler(*arguments, directory=str(folder))  # type: ignore[arg-type]

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


class PushServer:
    """A Git host over HTTP (``git http-backend``) for the repositories below a folder. ``readers`` may fetch,
    ``writers`` push too, by their authorization header; ``anybody``: fetches need none."""

    def __init__(self, folder: Path, *, writers: tuple[str, ...], readers: tuple[str, ...] = (), anybody: bool = False):
        self.observed: list[tuple[str, str]] = []
        """Authorization and what was asked, in order."""

        class Handler(http.server.BaseHTTPRequestHandler):
            def _serve(handler) -> None:
                body = handler._body()
                path, _, query = handler.path.partition("?")
                given = handler.headers.get("authorization", "")
                pushes = "git-receive-pack" in handler.path
                self.observed.append((given, f"{'push' if pushes else 'fetch'} {handler.command}"))
                if not (given in writers or (not pushes and (anybody or given in readers))):
                    handler.send_response(403 if given in readers else 401)
                    handler.send_header("www-authenticate", 'Basic realm="git"')
                    handler.send_header("content-length", "0")
                    handler.end_headers()
                    return
                answer = subprocess.run(
                    ["git", "-c", "http.receivepack=true", "http-backend"],
                    input=body,
                    capture_output=True,
                    check=True,
                    env={
                        **os.environ,
                        "GIT_PROJECT_ROOT": str(folder),
                        "GIT_HTTP_EXPORT_ALL": "1",
                        "PATH_INFO": path,
                        "QUERY_STRING": query,
                        "REQUEST_METHOD": handler.command,
                        "CONTENT_TYPE": handler.headers.get("content-type", ""),
                        "HTTP_CONTENT_ENCODING": handler.headers.get("content-encoding", ""),
                        "REMOTE_USER": "somebody",
                    },
                ).stdout
                head, _, content = answer.partition(b"\r\n\r\n")
                headers = [line.split(": ", 1) for line in head.decode().split("\r\n")]
                status = next((value for name, value in headers if name == "Status"), "200")
                handler.send_response(int(status.split()[0]))
                for name, value in headers:
                    if name != "Status":
                        handler.send_header(name, value)
                handler.send_header("content-length", str(len(content)))
                handler.end_headers()
                handler.wfile.write(content)

            do_GET = do_POST = _serve

            def _body(handler) -> bytes:
                if handler.headers.get("transfer-encoding") != "chunked":
                    return handler.rfile.read(int(handler.headers.get("content-length") or 0))
                parts = []
                while size := int(handler.rfile.readline(), 16):
                    parts.append(handler.rfile.read(size))
                    handler.rfile.readline()
                handler.rfile.readline()
                return b"".join(parts)

            def log_message(self, *_: object) -> None: ...

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
