"""A chart repository and an OCI registry over plain HTTP, as their protocols say: real clients push to the latter."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import re
import threading
from pathlib import Path
from typing import Any


class _Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Served:
    def __init__(self, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.host = f"127.0.0.1:{self.http.server_address[1]}"
        self.url = f"http://{self.host}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


class ChartRepository(_Served):
    """Serves a folder with ETags; ``credentials`` as ``user:password``; ``observed``: path, Authorization, status."""

    def __init__(self, folder: Path, credentials: str = "", redirect: str = "") -> None:
        self.folder, self.credentials, self.redirect = folder, credentials, redirect
        self.observed: list[tuple[str, str, int]] = []
        wanted = "Basic " + base64.b64encode(credentials.encode()).decode() if credentials else ""

        class Handler(_Quiet):
            def do_GET(handler) -> None:
                given = handler.headers.get("authorization", "")
                path = handler.path.partition("?")[0]
                place = self.folder / path.lstrip("/")
                status, body, headers = 200, b"", {}
                if wanted and given != wanted:
                    status = 401
                elif self.redirect and not path.endswith("index.yaml"):
                    status, headers = 302, {"location": self.redirect + handler.path}
                elif not place.is_file():
                    status = 404
                else:
                    body = place.read_bytes()
                    headers = {"etag": f'"{hashlib.sha256(body).hexdigest()[:16]}"'}
                    if handler.headers.get("if-none-match") == headers["etag"]:
                        status, body = 304, b""
                self.observed.append((handler.path, given, status))
                handler.answer(status, body, **headers)

        super().__init__(Handler)

    def asked(self, status: int = 200) -> list[str]:
        """Paths that were answered with ``status`` since the last question."""
        found = [path for path, _, code in self.observed if code == status]
        self.observed.clear()
        return found


class OciRegistry(_Served):
    """Distribution API 1.1: uploads in one or two steps, manifests, tags in pages of two, and a place for tokens."""

    def __init__(self, credentials: str = "", *, basic: bool = False) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.tags: dict[str, dict[str, str]] = {}
        self.requests: list[tuple[str, str, str]] = []
        self.elsewhere = ""
        """Where blobs are redirected to."""
        self.damage: set[str] = set()
        self.credentials = credentials
        self.token = "t0k3n" if credentials and not basic else ""
        wanted = "Basic " + base64.b64encode(credentials.encode()).decode()

        class Handler(_Quiet):
            def handled(handler) -> None:
                given = handler.headers.get("authorization", "")
                path, _, query = handler.path.partition("?")
                self.requests.append((handler.command, path, given.partition(" ")[0]))
                length = int(handler.headers.get("content-length") or 0)
                body = handler.rfile.read(length)
                if path == "/token":
                    allowed = given == wanted
                    handler.answer(
                        200 if allowed else 401, json.dumps({"token": self.token}).encode() if allowed else b""
                    )
                elif credentials and given != (f"Bearer {self.token}" if self.token else wanted):
                    challenge = (
                        f'Bearer realm="{self.url}/token",service="s",scope="x"' if self.token else 'Basic realm="x"'
                    )
                    handler.answer(401, b"{}", www_authenticate=challenge)
                else:
                    self._serve(handler, path, query, body)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = handled

        super().__init__(Handler)

    def _serve(self, handler: Any, path: str, query: str, body: bytes) -> None:
        if path in ("/v2/", "/v2"):
            handler.answer(200, b"{}")
        elif found := re.fullmatch(r"/v2/(.+)/tags/list", path):
            self._list(handler, found[1], query)
        elif found := re.fullmatch(r"/v2/(.+)/manifests/([^/]+)", path):
            self._manifest(handler, found[1], found[2], body)
        elif found := re.fullmatch(r"/v2/(.+)/blobs/(sha256:\w+)", path):
            self._blob(handler, found[2])
        elif found := re.fullmatch(r"/v2/(.+)/blobs/uploads/(\d*)", path):
            self._upload(handler, found[1], query, body)
        else:
            handler.answer(404, b"{}")

    def _list(self, handler: Any, name: str, query: str) -> None:
        tags = sorted(self.tags.get(name, {}))
        last = re.search(r"last=([^&]*)", query)
        rest = [tag for tag in tags if last is None or tag > last[1]]
        more = {"link": f'</v2/{name}/tags/list?n=2&last={rest[1]}>; rel="next"'} if len(rest) > 2 else {}
        handler.answer(200, json.dumps({"name": name, "tags": rest[:2]}).encode(), **more)

    def _manifest(self, handler: Any, name: str, reference: str, body: bytes) -> None:
        if handler.command == "PUT":
            digest = self.keep(name, reference, body, handler.headers["content-type"])
            handler.answer(201, docker_content_digest=digest, location=f"/v2/{name}/manifests/{digest}")
            return
        digest = self.tags.get(name, {}).get(reference, reference)
        kind, content = self.manifests.get((name, digest), ("", b""))
        if not content:
            handler.answer(404, b"{}")
            return
        handler.answer(200, content, content_type=kind, docker_content_digest=digest)

    def _blob(self, handler: Any, digest: str) -> None:
        content = self.blobs.get(digest)
        if content is None:
            handler.answer(404, b"{}")
        elif self.elsewhere:
            handler.answer(307, location=f"{self.elsewhere}/{digest}")
        else:
            damaged = content[:-1] + b"x" if digest in self.damage else content
            handler.answer(200, damaged, content_type="application/octet-stream", docker_content_digest=digest)

    def _upload(self, handler: Any, name: str, query: str, body: bytes) -> None:
        digest = re.search(r"digest=(sha256(?::|%3[Aa])\w+)", query)
        if digest is None:
            handler.answer(202, location=f"/v2/{name}/blobs/uploads/1")
            return
        self.blobs[digest[1].replace("%3A", ":").replace("%3a", ":")] = body
        handler.answer(201, location=f"/v2/{name}/blobs/{digest[1]}")

    def keep(
        self, name: str, tag: str, manifest: bytes, kind: str = "application/vnd.oci.image.manifest.v1+json"
    ) -> str:
        digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
        self.manifests[name, digest] = (kind, manifest)
        if not tag.startswith("sha256:"):
            self.tags.setdefault(name, {})[tag] = digest
        return digest

    def artifact(self, name: str, tag: str, *layers: tuple[str, bytes], config: str = "application/x") -> str:
        """Publish layers of (media type, content); the digest of the manifest."""
        described = []
        for kind, content in layers:
            digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
            self.blobs[digest] = content
            described.append({"mediaType": kind, "digest": digest, "size": len(content)})
        manifest = {"schemaVersion": 2, "config": {"mediaType": config, "digest": "sha256:0", "size": 2}}
        return self.keep(name, tag, json.dumps(manifest | {"layers": described}).encode())
