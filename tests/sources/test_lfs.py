"""Large files: pointers become what they promise, or one sentence."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import Upstream

from syncline.sources.errors import SourceError
from syncline.sources.git.lfs import LargeFiles, parse_pointer
from syncline.sources.git.mirrors import Git, GitSettings
from syncline.sources.remote.credentials import credential_store

CONTENT = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\n"
OID = hashlib.sha256(CONTENT).hexdigest()
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize {len(CONTENT)}\n"
MEDIA = "application/vnd.git-lfs+json"


class LfsHost:
    """A Git host over dumb HTTP with the batch API of large files beside each repository; objects lie at ``/store``."""

    def __init__(self, folder: Path) -> None:
        self.objects = {OID: CONTENT}
        self.observed: list[tuple[str, str]] = []
        self.wanted = "Basic " + base64.b64encode(b"me:pw").decode()
        self.header: dict[str, str] = {}
        self.store = ""

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(handler) -> None:
                given = handler.headers.get("authorization", "")
                self.observed.append((handler.path, given))
                if handler.path.startswith("/store/"):
                    body = self.objects.get(handler.path.rpartition("/")[2], b"")
                    handler.reply(200 if body else 404, body)
                elif given != self.wanted:
                    handler.reply(401, b"")
                else:
                    super().do_GET()

            def do_POST(handler) -> None:
                given = handler.headers.get("authorization", "")
                self.observed.append((handler.path, given))
                asked = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
                if given != self.wanted or handler.headers["accept"] != MEDIA or asked["operation"] != "download":
                    handler.reply(401, b"")
                    return
                answer = [self.described(one) for one in asked["objects"]]
                handler.reply(200, json.dumps({"transfer": "basic", "objects": answer}).encode())

            def reply(handler, status: int, body: bytes) -> None:
                handler.send_response(status)
                handler.send_header("www-authenticate", 'Basic realm="git"')
                handler.send_header("content-length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        def handler(*arguments: object) -> Handler:
            return Handler(*arguments, directory=str(folder))  # type: ignore[arg-type]

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def described(self, one: dict[str, Any]) -> dict[str, Any]:
        if one["oid"] not in self.objects:
            return {"oid": one["oid"], "size": one["size"], "error": {"code": 404, "message": "Object does not exist"}}
        href = f"{self.store or self.url}/store/{one['oid']}"
        return {"oid": one["oid"], "size": one["size"], "actions": {"download": {"href": href, "header": self.header}}}

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LfsHost]:
    served = LfsHost(tmp_path / "host")
    yield served
    served.close()


def served(host: LfsHost, upstream: Upstream, tmp_path: Path, git: Git, **files: str) -> tuple[str, str]:
    """Address and commit of a repository on the host, opened with the right password and with large files on."""
    sha = upstream.commit({"app/big.yaml": POINTER, "app/small.yaml": "a: 1\n", **files})
    bare = tmp_path / "host" / "app.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(upstream.path), str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "update-server-info"], check=True)
    url = f"{host.url}/app.git"
    learn(git, url, enableLfs="true", username="me", password="pw")
    return url, sha


def learn(git: Git, url: str, **data: str) -> None:
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in {"url": url, **data}.items()}
    git.learn(credential_store([{"metadata": {"name": "s", "labels": labels}, "data": encoded}], []))


def read(git: Git, url: str, sha: str) -> dict[str, bytes]:
    tree = git.repository(url).tree(sha, "app")
    return tree.read(tree.entries)


def test_pointers_become_the_content_of_their_object(
    host: LfsHost, upstream: Upstream, git: Git, tmp_path: Path
) -> None:
    url, sha = served(host, upstream, tmp_path, git)
    assert read(git, url, sha) == {"big.yaml": CONTENT, "small.yaml": b"a: 1\n"}
    host.observed.clear()
    assert read(git, url, sha)["big.yaml"] == CONTENT
    assert host.observed == [], "an object is brought once"


def test_without_enable_lfs_pointers_stay_pointers(host: LfsHost, upstream: Upstream, git: Git, tmp_path: Path) -> None:
    url, sha = served(host, upstream, tmp_path, git)
    learn(git, url, username="me", password="pw")
    assert read(git, url, sha)["big.yaml"] == POINTER.encode()


def test_headers_of_the_batch_replace_the_password_and_no_other_host_sees_it(
    host: LfsHost, upstream: Upstream, git: Git, tmp_path: Path
) -> None:
    elsewhere = LfsHost(tmp_path / "host")
    host.store = elsewhere.url
    url, sha = served(host, upstream, tmp_path, git)
    assert read(git, url, sha)["big.yaml"] == CONTENT
    assert elsewhere.observed == [(f"/store/{OID}", "")]
    host.store, host.header = "", {"Authorization": "RemoteAuth x"}
    other = Git(GitSettings(tmp_path / "other"))
    learn(other, url, enableLfs="true", username="me", password="pw")
    assert read(other, url, sha)["big.yaml"] == CONTENT
    assert host.observed[-1] == (f"/store/{OID}", "RemoteAuth x")
    elsewhere.close()


def test_an_object_that_is_not_what_its_pointer_says_is_refused(
    host: LfsHost, upstream: Upstream, git: Git, tmp_path: Path
) -> None:
    url, sha = served(host, upstream, tmp_path, git)
    host.objects[OID] = CONTENT[:-1] + b" "
    with pytest.raises(SourceError, match=f"the content of {OID} is another"):
        read(git, url, sha)
    host.objects.clear()
    with pytest.raises(SourceError, match=f"the object {OID}: Object does not exist"):
        read(git, url, sha)


def test_an_object_beyond_the_limit_is_never_asked_for(
    host: LfsHost, upstream: Upstream, git: Git, tmp_path: Path
) -> None:
    url, sha = served(
        host, upstream, tmp_path, git, **{"app/huge.bin": POINTER.replace(f"size {len(CONTENT)}", "size " + "9" * 12)}
    )
    with pytest.raises(SourceError, match=r"huge\.bin has 999999999999 bytes, at most 100000000 are read"):
        read(git, url, sha)
    assert not [path for path, _ in host.observed if "/objects/batch" in path]


def test_a_place_that_the_repository_names_gets_no_password(
    host: LfsHost, upstream: Upstream, git: Git, tmp_path: Path
) -> None:
    elsewhere = LfsHost(tmp_path / "host")
    url, sha = served(host, upstream, tmp_path, git, **{".lfsconfig": f"[lfs]\n\turl = {elsewhere.url}/x\n"})
    with pytest.raises(SourceError, match="/x/objects/batch: 401"):
        read(git, url, sha)
    assert elsewhere.observed == [("/x/objects/batch", "")]
    elsewhere.close()


def test_a_repository_of_this_machine_has_its_objects_beside_it(upstream: Upstream, git: Git) -> None:
    sha = upstream.commit({"app/big.yaml": POINTER})
    learn(git, str(upstream.path), enableLfs="true")
    with pytest.raises(SourceError, match=f"the object {OID} is not there"):
        read(git, str(upstream.path), sha)
    place = upstream.path / ".git" / "lfs" / "objects" / OID[:2] / OID[2:4]
    place.mkdir(parents=True)
    (place / OID).write_bytes(CONTENT)
    assert read(git, str(upstream.path), sha)["big.yaml"] == CONTENT


def test_over_ssh_the_host_tells_where_and_with_what(
    host: LfsHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = json.dumps({"href": f"{host.url}/app.git/info/lfs", "header": {"Authorization": host.wanted}})
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/asked\necho '{answer}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    found = LargeFiles("git@example.com:org/app.git", None, tmp_path / "lfs").smudged({"a": POINTER.encode()})
    assert found == {"a": CONTENT}
    assert (tmp_path / "asked").read_text().splitlines()[-2:] == [
        "git@example.com",
        "git-lfs-authenticate org/app.git download",
    ]


@pytest.mark.parametrize(
    "text", ["", "version https://git-lfs.github.com/spec/v1\n", POINTER + "x", POINTER.replace("sha256", "md5")]
)
def test_other_texts_are_no_pointers(text: str) -> None:
    assert parse_pointer(text.encode()) is None
