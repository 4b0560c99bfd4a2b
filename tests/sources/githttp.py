"""A plain HTTP server of repositories, as Git hosts are: closed to those who do not show what it wants."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path


class Server:
    """Serves a folder to those who show ``authorization``; ``elsewhere`` answers each request with a redirect."""

    def __init__(self, folder: Path, authorization: str, elsewhere: str = "") -> None:
        self.seen: list[str] = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(handler) -> None:
                given = handler.headers.get("authorization", "")
                self.seen.append(given)
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
