"""Credentials: which Secret decides, and that git gets its values without anybody else."""

from __future__ import annotations

import base64
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sources.conftest import Upstream
from tests.sources.githttp import Server

from syncline.base.secret import Secret
from syncline.kube.objects import Obj
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.access import git_environment, out_of_arguments
from syncline.sources.git.mirrors import Git, GitSettings
from syncline.sources.remote.credentials import CredentialStore, RepositoryAccess, credential_store

CANARY = "c4n4ry-p4ssw0rd"


def secret(name: str, kind: str, **data: str) -> Obj:
    return {
        "metadata": {"name": name, "labels": {"argocd.argoproj.io/secret-type": kind}},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def book(*secrets: Obj, **maps: dict[str, str]) -> CredentialStore:
    named = {"hosts": "argocd-ssh-known-hosts-cm", "certificates": "argocd-tls-certs-cm"}
    return credential_store(secrets, [{"metadata": {"name": named[key]}, "data": data} for key, data in maps.items()])


def deciding(book: CredentialStore, url: str, project: str = "") -> str:
    access = book.access(url, project)
    return access.name if access is not None else ""


# -- which Secret decides -------------------------------------------------------------------------------------------


def test_addresses_of_one_repository_share_its_credentials() -> None:
    found = book(secret("a", "repository", url="https://Git.example.com/Org/app.git", password=CANARY))
    assert deciding(found, "https://git.example.com/org/app") == "a"
    assert deciding(found, "https://git.example.com/org/other") == ""


def test_85_the_longest_prefix_fills_a_repository_without_credentials_of_its_own() -> None:
    found = book(
        secret("all", "repo-creds", url="https://git.example.com", password="1"),
        secret("org", "repo-creds", url="https://git.example.com/org", password="2"),
        secret("own", "repository", url="https://git.example.com/org/own", password="3"),
        secret("bare", "repository", url="https://git.example.com/org/bare", insecure="true"),
    )
    assert deciding(found, "https://git.example.com/org/app") == "org"
    assert deciding(found, "https://git.example.com/other") == "all"
    assert deciding(found, "https://git.example.com/org/own") == "own"
    filled = found.access("https://git.example.com/org/bare")
    assert filled is not None
    assert (filled.name, filled.insecure, filled.password) == ("org", True, Secret("2"))


def test_a_prefix_that_is_only_a_host_never_reaches_another_host() -> None:
    found = book(secret("all", "repo-creds", url="https://git.example.com", password=CANARY))
    assert deciding(found, "https://git.example.com.evil.org/x") == ""
    assert deciding(found, "https://git.example.com:8443/x") == "all"


def test_ssh_addresses_of_both_forms_share_a_prefix() -> None:
    found = book(secret("ssh", "repo-creds", url="git@git.example.com:org", sshPrivateKey="K"))
    assert deciding(found, "git@git.example.com:org/app.git") == "ssh"
    assert deciding(found, "ssh://git@git.example.com/org/app") == "ssh"


def test_credentials_of_a_project_are_for_its_applications_and_come_first() -> None:
    url = "https://git.example.com/org/app"
    found = book(
        secret("a-everybody", "repository", url=url, password="1"),
        secret("b-team", "repository", url=url, password="2", project="team"),
    )
    assert deciding(found, url, "team") == "b-team"
    assert deciding(found, url, "other") == "a-everybody"
    assert deciding(book(secret("b", "repository", url=url, password="2", project="team")), url, "other") == ""


def test_secrets_of_other_types_are_not_for_git() -> None:
    url = "https://git.example.com/org/app"
    assert deciding(book(secret("h", "repository", url=url, password="1", type="helm")), url) == ""
    assert deciding(book(secret("c", "cluster", url=url, password="1")), url) == ""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"azureServicePrincipalClientId": CANARY}, "a service principal needs azureServicePrincipalClientSecret"),
        ({"username": "u", "password": CANARY + "\n"}, "password contains a line break"),
        ({"bearerToken": CANARY + "\r\nX: y"}, "bearerToken contains a line break"),
    ],
)
def test_a_secret_that_cannot_be_used_is_named_where_it_decides(data: dict[str, str], why: str) -> None:
    url = "https://git.example.com/org/app"
    with pytest.raises(SourceError, match=f"Secret s: {why}") as caught:
        book(secret("s", "repository", url=url, **data)).access(url)
    assert caught.value.problem is Problem.DENIED
    assert CANARY not in str(caught.value)


def test_known_hosts_and_certificates_go_with_any_repository_of_the_host() -> None:
    found = book(certificates={"git.example.com": "PEM"}, hosts={"ssh_known_hosts": "H"})
    access = found.access("https://git.example.com:8443/x")
    assert access is not None
    assert (access.ca_pem, access.known_hosts) == ("PEM", "H")
    assert book().access("https://git.example.com/x") is None


def test_an_access_shows_no_value_when_it_is_printed() -> None:
    access = RepositoryAccess("https://h/x", password=Secret(CANARY), ssh_key=Secret(CANARY), proxy=Secret(CANARY))
    assert CANARY not in f"{access} {access!r}"
    assert access.mask(f"fatal: {CANARY}!") == "fatal: ***!"
    header = base64.b64encode(f"{access.username}:{CANARY}".encode()).decode()
    assert header not in access.mask(f"sent {header}"), "the header that it makes is as secret"


# -- what git gets --------------------------------------------------------------------------------------------------


def test_settings_of_the_administrator_stay_before_ours() -> None:
    access = RepositoryAccess("https://h/x", bearer_token=Secret("t"))
    with git_environment(access, {"GIT_CONFIG_COUNT": "2"}) as values:
        assert values["GIT_CONFIG_COUNT"] == "3"
        assert values["GIT_CONFIG_KEY_2"] == "http.https://h/.extraHeader"


def test_files_of_a_call_are_private_and_gone_after_it() -> None:
    access = RepositoryAccess("git@h:x", ssh_key=Secret("KEY"), known_hosts="HOSTS")
    with git_environment(access) as values:
        words = values["GIT_SSH_COMMAND"].split()
        key = Path(words[words.index("-i") + 1])
        assert key.read_text() == "KEY\n"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
        assert "-oStrictHostKeyChecking=yes" in words
    assert not key.parent.exists()


BASIC = "Basic " + base64.b64encode(f"robot:{CANARY}".encode()).decode()


@pytest.fixture
def served(upstream: Upstream, tmp_path: Path) -> Iterator[list[Server]]:
    """A repository over HTTP: by password, by token, and by a server that sends callers on to the first."""
    upstream.commit({"a.yaml": "a: 1\n"})
    bare = tmp_path / "www" / "app.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(upstream.path), str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "update-server-info"], check=True)
    first = Server(tmp_path / "www", BASIC)
    servers = [first, Server(tmp_path / "www", f"Bearer {CANARY}"), Server(tmp_path / "www", "", first.url)]
    yield servers
    for server in servers:
        server.close()


def with_book(tmp_path: Path, found: CredentialStore) -> Git:
    git = Git(GitSettings(tmp_path / "cache"))
    git.learn(found)
    return git


def test_git_reads_a_repository_with_user_and_password(served: list[Server], tmp_path: Path) -> None:
    url = f"{served[0].url}/app.git"
    git = with_book(tmp_path, book(secret("s", "repository", url=url, username="robot", password=CANARY)))
    repository = git.repository(url)
    assert [entry.path for entry in repository.tree(repository.resolve("main")).entries] == ["a.yaml"]


def test_a_password_in_an_address_stands_in_no_list_of_processes(
    served: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed = tmp_path / "seen"
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\necho "$*" >> {observed}\nexec {shutil.which("git")} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    url = f"{served[0].url}/app.git".replace("://", f"://robot:{CANARY}@")
    repository = with_book(tmp_path, book()).repository(url)
    assert [entry.path for entry in repository.tree(repository.resolve("main")).entries] == ["a.yaml"]
    assert (
        "ls-remote" in observed.read_text() and "fetch" in observed.read_text() and CANARY not in observed.read_text()
    )


@pytest.mark.parametrize(
    ("url", "access", "plain", "found"),
    [
        ("https://u:p%40s@h:8443/x", None, "https://h:8443/x", ("u", "p@s")),
        ("https://token@h/x", None, "https://h/x", ("token", "")),
        ("https://u:p@h/x", ("other", "theirs"), "https://h/x", ("u", "p")),
        ("https://u@h/x", ("", "theirs"), "https://h/x", ("u", "theirs")),
        ("https://u@h/x", ("other", "theirs"), "https://h/x", ("other", "theirs")),
    ],
)
def test_whatever_an_address_says_of_its_user_goes_with_the_credentials(
    url: str, access: tuple[str, str] | None, plain: str, found: tuple[str, str]
) -> None:
    given = None if access is None else RepositoryAccess(plain, username=access[0], password=Secret(access[1]))
    address, meant = out_of_arguments(url, given)
    assert meant is not None and meant.password is not None
    assert (address, meant.username, meant.password.reveal()) == (plain, *found)


def test_addresses_without_a_user_and_of_ssh_stay_as_they_are() -> None:
    for url in ("https://h/x", "ssh://git@h/x", "git@h:x", "/srv/x"):
        assert out_of_arguments(url, None) == (url, None)


def test_git_reads_a_repository_with_a_bearer_token(served: list[Server], tmp_path: Path) -> None:
    url = f"{served[1].url}/app.git"
    git = with_book(tmp_path, book(secret("s", "repo-creds", url=served[1].url, bearerToken=CANARY)))
    repository = git.repository(url)
    assert [entry.path for entry in repository.tree(repository.resolve("main")).entries] == ["a.yaml"]


def test_a_wrong_password_is_told_without_it(served: list[Server], tmp_path: Path) -> None:
    url = f"{served[0].url}/app.git"
    git = with_book(tmp_path, book(secret("s", "repository", url=url, username="robot", password=CANARY + "x")))
    with pytest.raises(SourceError) as caught:
        git.repository(url).refs()
    assert caught.value.problem is Problem.DENIED
    assert CANARY not in str(caught.value)


def test_credentials_do_not_follow_a_redirect_to_another_host(served: list[Server], tmp_path: Path) -> None:
    url = f"{served[2].url}/app.git"
    git = with_book(tmp_path, book(secret("s", "repository", url=url, username="robot", password=CANARY)))
    with pytest.raises(SourceError):
        git.repository(url).refs()
    assert BASIC not in served[0].observed


def test_no_value_stands_in_an_argument_of_any_program(
    served: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program ``git`` that writes down its arguments stands before the real one, for git's own children too."""
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
    shim, log = tmp_path / "bin" / "git", tmp_path / "arguments"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {log}\ntr "\\0" "\\n" < /proc/$PPID/cmdline >> {log}\n'
                    f'exec {real} "$@"\n')  # fmt: skip
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    url = f"{served[0].url}/app.git"
    git = with_book(tmp_path, book(secret("s", "repository", url=url, username="robot", password=CANARY)))
    repository = git.repository(url)
    repository.tree(repository.resolve("main"))
    assert "ls-remote" in log.read_text()
    assert CANARY not in log.read_text()
    assert not [
        file for file in (tmp_path / "cache").rglob("*") if file.is_file() and CANARY.encode() in file.read_bytes()
    ]


def test_git_reads_a_repository_over_ssh_with_the_key_of_its_secret(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program ``ssh`` that looks at the key it is given and answers as the host would."""
    upstream.commit({"a.yaml": "a: 1\n"})
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        'while [ $# -gt 0 ]; do case "$1" in -i) key="$2"; shift 2;; -o) shift 2;; -o*) shift;; *) break;; esac; done\n'
        f'grep -q {CANARY} "$key" || {{ echo "Permission denied (publickey)." >&2; exit 255; }}\n'
        f'test "$1" = git@host || exit 9\nexec git-upload-pack {upstream.path}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    git = with_book(tmp_path, book(secret("s", "repo-creds", url="git@host:org", sshPrivateKey=f"-- {CANARY} --")))
    repository = git.repository("git@host:org/app.git")
    assert [entry.path for entry in repository.tree(repository.resolve("main")).entries] == ["a.yaml"]
    stranger = with_book(tmp_path, book(secret("s", "repo-creds", url="git@host:org", sshPrivateKey="other")))
    with pytest.raises(SourceError, match="Permission denied"):
        stranger.repository("git@host:org/app.git").refs()


def test_what_was_brought_for_one_project_is_not_read_by_another(served: list[Server], tmp_path: Path) -> None:
    url = f"{served[0].url}/app.git"
    found = book(secret("s", "repository", url=url, username="robot", password=CANARY, project="team"))
    git = with_book(tmp_path, found)
    mine = git.repository(url, "team")
    sha = mine.resolve("main").sha
    mine.tree(sha)
    with pytest.raises(SourceError):
        git.repository(url, "other").tree(sha)
