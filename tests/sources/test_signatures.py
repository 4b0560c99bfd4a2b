"""Signed commits and tags: who is trusted, what is refused, and in which words."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import Upstream

from syncline.assembly.sources.reading import GitSourceReader
from syncline.assembly.sources.source_rules import source_rules
from syncline.kube.objects import Obj
from syncline.sources.errors import SourceError
from syncline.sources.git.signatures import GitPolicy, policy_for
from syncline.sources.rendering.environment import RenderContext

pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="GnuPG is not installed")

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
CONTEXT = RenderContext("shop", "default", "prod")


@dataclass
class Signer:
    """A person with a PGP key in a home of their own."""

    home: Path
    key: str
    armour: str

    def sign(self, upstream: Upstream, *arguments: str) -> str:
        os.environ["GNUPGHOME"] = str(self.home)
        upstream.run("-c", f"user.signingkey={self.key}", *arguments)
        return upstream.run("rev-parse", "HEAD")

    def commit(self, upstream: Upstream, name: str) -> str:
        (upstream.path / "a.yaml").write_text(MAP % name.split()[0])
        upstream.run("add", "-A")
        return self.sign(upstream, "commit", "--quiet", "--allow-empty", "-S", "-m", name)


def person(home: Path, name: str, *expiry: str) -> Signer:
    home.mkdir(mode=0o700)
    environment = {**os.environ, "GNUPGHOME": str(home)}

    def gpg(*arguments: str) -> str:
        asked = ["gpg", "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback", *arguments]
        return subprocess.run(asked, check=True, capture_output=True, text=True, env=environment).stdout

    gpg("--quick-generate-key", f"{name} <{name}@example.com>", "ed25519", "sign", *(expiry or ("never",)))
    listed = gpg("--list-keys", "--with-colons")
    key = next(line.split(":")[4] for line in listed.splitlines() if line.startswith("pub"))
    return Signer(home, key, gpg("--armor", "--export"))


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Signer]]:
    folder = Path(tempfile.mkdtemp(prefix="g"))  # sockets of gpg-agent want short paths
    found = {name: person(folder / name, name) for name in ("jane", "mallory")}
    yield found
    os.environ.pop("GNUPGHOME", None)
    for one in found.values():
        ended = {**os.environ, "GNUPGHOME": str(one.home)}
        subprocess.run(["gpgconf", "--kill", "all"], env=ended, check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)  # an agent that ends takes its sockets along meanwhile


@pytest.fixture
def reader(tmp_path: Path) -> GitSourceReader:
    return GitSourceReader(tmp_path / "cache", allow_local=True)


def taught(reader: GitSourceReader, spec: Obj, *trusted: Signer, signers: str = "") -> GitSourceReader:
    project = {"metadata": {"name": "default"}, "spec": spec}
    keys = {"metadata": {"name": "argocd-gpg-keys-cm"}, "data": {one.key: one.armour for one in trusted}}
    more = {"metadata": {"name": "syncline-ssh-signers-cm"}, "data": {"allowed_signers": signers}}
    reader.learn_rules(source_rules([project], [keys, more]))
    return reader


def keys(*names: str) -> Obj:
    return {"signatureKeys": [{"keyID": name} for name in names]}


def policies(mode: str, url: str, *names: str) -> Obj:
    return {
        "sourceIntegrity": {"git": {"policies": [{"repos": [{"url": url}], "gpg": {"mode": mode, "keys": [*names]}}]}}
    }


def error(reader: GitSourceReader, upstream: Upstream, revision: str = "main", target: str = "") -> str:
    source = {"repoURL": str(upstream.path), "path": ".", "targetRevision": target or revision}
    return reader.read((source,), (revision,), NOW, CONTEXT).error


def test_a_commit_by_a_key_of_the_project_is_rendered(
    reader: GitSourceReader, upstream: Upstream, people: dict[str, Signer]
) -> None:
    jane = people["jane"]
    jane.commit(upstream, "a")
    assert error(taught(reader, keys(jane.key), jane), upstream) == ""


def test_each_reason_has_upstreams_words(
    reader: GitSourceReader, upstream: Upstream, people: dict[str, Signer]
) -> None:
    jane, mallory = people["jane"], people["mallory"]
    plain = upstream.commit({"a.yaml": MAP % "plain"})
    who = "by 't <t@example.com>'"
    unsigned = f"GIT/GPG: Failed verifying revision {plain} {who}: unsigned (key_id=)"
    assert unsigned in error(taught(reader, keys(jane.key), jane), upstream)
    sha = mallory.commit(upstream, "b")
    said = f"GIT/GPG: Failed verifying revision {sha} {who}: "
    missing = f"{said}signed with key not in keyring (key_id={mallory.key})"
    assert missing in error(taught(reader, keys(jane.key, mallory.key), jane), upstream)
    unallowed = f"{said}signed with unallowed key (key_id={mallory.key})"
    assert unallowed in error(taught(reader, keys(jane.key), jane, mallory), upstream)
    nobody = error(taught(reader, keys("not a key"), jane, mallory), upstream)
    assert unallowed in nobody


def test_a_commit_that_was_changed_after_it_was_signed_is_refused(
    reader: GitSourceReader, upstream: Upstream, people: dict[str, Signer]
) -> None:
    jane = people["jane"]
    sha = jane.commit(upstream, "a")
    raw = subprocess.run(["git", "-C", str(upstream.path), "cat-file", "commit", sha], capture_output=True, check=True)
    forged = subprocess.run(
        ["git", "-C", str(upstream.path), "hash-object", "-t", "commit", "-w", "--stdin"],
        input=raw.stdout.replace(b"\n\na\n", b"\n\nb\n"),
        capture_output=True,
        check=True,
    ).stdout.decode()
    upstream.run("reset", "--quiet", "--hard", forged.strip())
    assert f"bad signature (key_id={jane.key})" in error(taught(reader, keys(jane.key), jane), upstream)


@pytest.mark.parametrize("target", ["v1.0.0", "1.x"])
def test_an_annotated_tag_is_checked_instead_of_its_commit(
    reader: GitSourceReader, upstream: Upstream, people: dict[str, Signer], target: str
) -> None:
    jane = people["jane"]
    sha = upstream.commit({"a.yaml": MAP % "a"})
    upstream.run("tag", "-a", "v1.0.0", "-m", "unsigned")
    taught(reader, keys(jane.key), jane)
    assert "Failed verifying revision v1.0.0 by 't <t@example.com>': unsigned (key_id=)" in error(
        reader, upstream, target
    )
    jane.sign(upstream, "tag", "-f", "-s", "v1.0.0", "-m", "signed")
    assert error(reader, upstream, target) == "", "a tag that was made again is looked at again"
    assert error(reader, upstream, sha, target) == "", "an operation that has pinned the commit knows its tag"
    assert "unsigned" in error(reader, upstream, "main")
    strict = taught(reader, policies("strict", "*", jane.key), jane)
    assert f"Failed verifying revision {sha}" in error(strict, upstream, target)


def test_strict_looks_at_the_whole_history_up_to_a_seal(
    reader: GitSourceReader, upstream: Upstream, people: dict[str, Signer]
) -> None:
    jane = people["jane"]
    first = upstream.commit({"a.yaml": MAP % "a"})
    jane.commit(upstream, "b")
    head = taught(reader, policies("head", "*", jane.key), jane)
    assert error(head, upstream) == ""
    strict = taught(reader, policies("strict", "*", jane.key), jane)
    assert f"Failed verifying revision {first}" in error(strict, upstream)
    jane.commit(upstream, "seal\n\nArgocd-gpg-seal: looked at it all")
    assert error(strict, upstream) == ""
    jane.commit(upstream, "after")
    assert error(strict, upstream) == ""


def test_ssh_keys_are_trusted_by_their_fingerprint(reader: GitSourceReader, upstream: Upstream, tmp_path: Path) -> None:
    shown: dict[str, str] = {}
    lines: dict[str, str] = {}
    for name in ("jane", "mallory"):
        place = tmp_path / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(place)], check=True)
        public = place.with_suffix(".pub").read_text()
        lines[name] = f"{name}@example.com {public}"
        listed = subprocess.run(["ssh-keygen", "-lf", str(place)], check=True, capture_output=True, text=True).stdout
        shown[name] = listed.split()[1]

    def sign(name: str) -> None:
        place = tmp_path / name
        (upstream.path / "a.yaml").write_text(MAP % name)
        upstream.run("add", "-A")
        upstream.run("-c", "gpg.format=ssh", "-c", f"user.signingkey={place}", "commit", "-q", "-S", "-m", name)

    sign("jane")
    assert error(taught(reader, keys(shown["jane"]), signers=lines["jane"]), upstream) == ""
    assert "unallowed key" in error(taught(reader, keys(shown["mallory"]), signers=lines["jane"]), upstream)
    sign("mallory")
    untrusted = error(taught(reader, keys(shown["mallory"]), signers=lines["jane"]), upstream)
    assert f"signed with untrusted key (key_id={shown['mallory']})" in untrusted
    upstream.run("-c", "gpg.format=ssh", "-c", f"user.signingkey={tmp_path / 'jane'}", "tag", "-s", "v1", "-m", "x")
    assert error(taught(reader, keys(shown["jane"]), signers=lines["jane"]), upstream, "v1") == ""


def test_several_sources_are_told_apart(reader: GitSourceReader, upstream: Upstream, people: dict[str, Signer]) -> None:
    upstream.commit({"a.yaml": MAP % "a"})
    taught(reader, keys(people["jane"].key), people["jane"])
    source = {"repoURL": str(upstream.path), "path": ".", "targetRevision": "main"}
    assert reader.read((source, source), ("main", "main"), NOW, CONTEXT).error.startswith(
        "GIT/GPG: source 1 of 2: Failed"
    )


URL = "https://git.example.com/org/app.git"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, None),
        (keys("A" * 16), GitPolicy("head", ("A" * 16,))),
        (policies("none", "*", "B"), None),
        (policies("strict", "https://git.example.com/*", "B"), GitPolicy("strict", ("B",))),
        (policies("strict", "https://other.example.com/*", "B"), None),
        ({**keys("A"), **policies("strict", "*", "B")}, GitPolicy("strict", ("B",))),
        ({"sourceIntegrity": {"git": {"policies": []}}, **keys("A")}, None),
    ],
)
def test_the_policy_of_a_repository(spec: Obj, expected: Any) -> None:
    assert policy_for({"spec": spec}, URL) == expected


def test_a_denied_repository_leaves_a_policy_and_two_policies_refuse() -> None:
    one = {"repos": [{"url": "*"}, {"url": "!https://git.example.com/*"}], "gpg": {"mode": "head", "keys": ["A"]}}
    assert policy_for({"spec": {"sourceIntegrity": {"git": {"policies": [one]}}}}, URL) is None
    both = [policies("head", "*", name)["sourceIntegrity"]["git"]["policies"][0] for name in ("A", "B")]
    with pytest.raises(SourceError, match=r"multiple \(2\) git source integrity policies found for repo URL"):
        policy_for({"spec": {"sourceIntegrity": {"git": {"policies": both}}}}, URL)


def test_keys_are_named_by_id_or_fingerprint() -> None:
    key = "0123456789ABCDEF"
    assert [GitPolicy("head", (given,)).trusts(key) for given in (key, "F" * 24 + key, key.lower(), key[8:], "")] == [
        True,
        True,
        True,
        False,
        False,
    ]
