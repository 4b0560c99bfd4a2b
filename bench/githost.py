"""``python -m bench.githost FOLDER PORT LOOKS [ANSWERS]``: a Git host over HTTP on the loopback, in one process.

Serves the bare repositories ``FOLDER/**/*.git`` through git's own ``http-backend``, and appends the path of each look
at a remote (``info/refs``) to the file LOOKS. ANSWERS names a JSON file of other answers, ``"METHOD /path?query"`` or
``"METHOD /path"`` → ``{"status", "headers", "body"}``, read again for each request: a plugin, or the API of a host.
``@url@`` in them is this host. Repositories below ``private/`` want user ``user`` and password ``pass``.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.processes import free_port, running_plain

WHO = ("-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "init.defaultBranch=main")
PRIVATE = "Basic " + base64.b64encode(b"user:pass").decode()
TIMES = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}


def git(where: Path, *arguments: str) -> str:
    """At a fixed time, so that the same files make the same commits."""
    command = ["git", *WHO, "-C", str(where), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | TIMES)
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class GitHost:
    """``folder`` holds bare repositories, ``work`` their work trees."""

    folder: Path
    url: str

    def looks(self) -> int:
        """How often clients have asked for the refs of a repository."""
        return len((self.folder / "looks").read_text().splitlines())

    def publish(self, name: str, work: Path, message: str = "A change") -> str:
        """Commit all of ``work`` and push it to ``name``.git, made when it is missing. Returns the commit."""
        bare = self.folder / f"{name}.git"
        if not bare.exists():
            bare.mkdir(parents=True)
            git(bare, "init", "-q", "--bare", "-b", "main")
            git(work, "init", "-q", "-b", "main")
        git(work, "add", "-A")
        git(work, "commit", "-q", "--allow-empty", "-m", message)
        git(work, "push", "-q", str(bare), "main")
        return git(work, "rev-parse", "HEAD")

    def answer(self, answers: dict[str, Any]) -> None:
        """Answer these from now on, beside Git."""
        (self.folder / "answers.json").write_text(json.dumps(answers))


@contextlib.contextmanager
def git_host(folder: Path) -> Iterator[GitHost]:
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    looks, answers = folder / "looks", folder / "answers.json"
    looks.write_text("")
    answers.write_text("{}")
    command = [sys.executable, "-m", "bench.githost", str(folder), str(port), str(looks), str(answers)]
    host = GitHost(folder, f"http://127.0.0.1:{port}")
    with running_plain(command, folder / "output", lambda: _answers(host.url)):
        yield host


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/-/ready") as answer:
        return bool(answer.status == 200)
    return False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path
    looks: Path
    answers: Path | None

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self._body()
        parts = urlsplit(self.path)
        if parts.path == "/-/ready":
            self._send(200, {}, b"ready")
        elif parts.path.startswith("/private/") and self.headers.get("Authorization") != PRIVATE:
            self._send(401, {"WWW-Authenticate": 'Basic realm="private"'}, b"who are you?")
        elif ".git/" in parts.path:
            self._git(parts.path, parts.query, body)
        else:
            self._other(parts.path)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _git(self, path: str, query: str, body: bytes) -> None:
        if path.endswith("/info/refs"):
            with self.looks.open("a") as looks:
                looks.write(path + "\n")
        environment = os.environ | {
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=environment, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self._send(int(headers.pop("Status", "200").split()[0]), headers, content)

    def _other(self, path: str) -> None:
        known = json.loads(self.answers.read_text()) if self.answers is not None else {}
        verb = "GET" if self.command == "HEAD" else self.command
        found = known.get(f"{verb} {self.path}", known.get(f"{verb} {path}"))
        if found is None:
            sys.stderr.write(f"no answer to {self.command} {self.path}\n")
            found = {"status": 404, "body": {"message": "Not Found"}}
        url = f"http://{self.headers.get('Host')}"
        body, headers = found.get("body"), found.get("headers") or {}
        text = body if isinstance(body, str) else json.dumps(body)
        sent = {name: value.replace("@url@", url) for name, value in headers.items()}
        self._send(
            found.get("status", 200), {"Content-Type": "application/json"} | sent, text.replace("@url@", url).encode()
        )

    def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Only what has no answer is written."""


def _main(folder: str, port: str, looks: str, answers: str | None = None) -> None:
    _Handler.folder, _Handler.looks = Path(folder).resolve(), Path(looks)
    _Handler.answers = Path(answers) if answers else None
    ThreadingHTTPServer(("127.0.0.1", int(port)), _Handler).serve_forever()


if __name__ == "__main__":
    _main(*sys.argv[1:])
