"""``syncline hub token``, ``join``, ``agent`` and ``leave``: what they refuse, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncline.base.secret import Secret
from syncline.cli.main import main
from syncline.fleet.spoke.registration.invitation import Invitation
from syncline.hosts.fleet.places import Joining, place_of

LINE = Invitation("https://hub.test:6443", Secret("t0ken"), "").line()
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: t}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYNCLINE_HOME", str(tmp_path))
    (tmp_path / "own").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "own"))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["join", "hello", "--name", "c1"], 2, "this is no line to join with"),
        (["join", LINE, "--name", "a.b"], 2, "--name a.b: "),
        (["join", LINE, "--name", "c1", "--certificate-seconds", "60"], 2, "at least 3600, it is 60"),
        (["join", LINE, "--name", "c1", "--proxy-url", "https://p"], 2, "only proxies at http://"),
        (["agent"], 1, "nothing was joined from here"),
        (["agent", "--in-cluster"], 2, "--in-cluster: not inside a pod"),
        (["leave"], 1, "nothing was joined from here"),
        (["hub", "token", "--ttl", "1m"], 2, "valid for at least 10m"),
        (["hub", "token", "--ttl", "soon"], 2, "write 30m or 24h"),
        (["hub", "token", "--server", "hub"], 2, "write https://HOST:PORT"),
        (["up", "--join", LINE], 2, "--join LINE needs --name NAME"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_fix(
    home: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    assert main(words) == code
    assert says in capsys.readouterr().err


def test_one_of_several_hubs_must_be_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for hub in ("https://one.test:6443", "https://two.test:6443"):
        place_of(home, hub, "c1").keep_joining(Joining(hub, "c1", "a1"))
    assert main(["leave"]) == 2
    assert "which one? c1 at https://one.test:6443, c1 at https://two.test:6443" in capsys.readouterr().err
    assert main(["agent", "--hub-url", "https://three.test"]) == 2
    assert "say which hub with --hub and --name" in capsys.readouterr().err
    assert main(["agent", "--hub", "four"]) == 2
    assert "no such cluster or hub was joined from here" in capsys.readouterr().err


def test_files_of_another_form_are_refused_with_their_name(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = place_of(home, "https://one.test:6443", "c1")
    place.keep_joining(Joining("https://one.test:6443", "c1", "a1"))
    (place.folder / "agent.json").write_text("[]")
    assert main(["agent"]) == 1
    assert f"{place.folder}/agent.json is not what `syncline join` writes" in capsys.readouterr().err
