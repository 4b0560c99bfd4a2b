"""What a terminal would take for a command reaches no terminal: every command that reads, over objects whose texts hold
escapes, and the function that all output goes through."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.live import START_S, Served, served_cluster

from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings
from syncline.cli.frame.output import table
from syncline.cli.frame.terminal import LogLines, clean_output, one_cell, plain, print_exact
from syncline.cli.main import cli, main
from syncline.cli.views import progress
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import load

EVIL = (
    "a\x1b[31m\x1b]8;;http://evil/\x07link\x1b]8;;\x1b\\\x9b2J\x9d0;title\x9c\r\x08\u202e\u2066\u200b\ufeff[red]x[/red]"
)
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
PROJECTS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects"
STATUS: Obj = {
    "sync": {"status": EVIL, "revision": EVIL, "comparedTo": {"source": {"repoURL": EVIL}, "destination": {}}},
    "health": {"status": EVIL, "message": EVIL},
    "conditions": [{"type": EVIL, "message": f"{EVIL}\nFAKE Condition", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "resources": [{"kind": "ConfigMap", "version": "v1", "name": EVIL, "namespace": "x", "status": EVIL}],
    "summary": {"images": [EVIL], "externalURLs": [EVIL]},
    "history": [
        {"id": 0, "revision": EVIL, "deployedAt": "2026-01-01T00:00:00Z", "source": {"repoURL": EVIL, "path": EVIL}}
    ],
    "operationState": {
        "phase": "Failed",
        "message": EVIL,
        "operation": {"initiatedBy": {"username": EVIL}, "sync": {}},
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:01Z",
        "syncResult": {
            "revision": EVIL,
            "source": {"repoURL": EVIL},
            "resources": [
                {
                    "kind": "Job",
                    "version": "v1",
                    "group": "batch",
                    "name": EVIL,
                    "namespace": "x",
                    "status": "SyncFailed",
                }
                | {"message": f"{EVIL}\n12:00:00 Sync 0 ✔ FAKE", "hookPhase": "Failed", "syncPhase": EVIL}
            ],
        },
    },
}


def application(name: str, **spec: Any) -> Obj:
    """As nobody reconciles it, so that its status stays."""
    notes = {"argocd.argoproj.io/skip-reconcile": "true", "note": EVIL}
    wanted = {
        "project": "default",
        "source": {"repoURL": f"https://example.org/{EVIL}", "path": EVIL, "targetRevision": EVIL},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "info": [{"name": EVIL, "value": EVIL}],
    }
    metadata = {"name": name, "namespace": "argocd", "annotations": notes}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    return {**kind, "metadata": metadata, "spec": wanted | spec, "status": STATUS}


def objects() -> list[tuple[str, Obj]]:
    project = {"description": EVIL, "sourceRepos": [EVIL], "destinations": [{"server": EVIL, "namespace": EVIL}]}
    windows = [{"kind": "allow", "schedule": "* * * * *", "duration": "1h", "applications": [EVIL]}]
    ready = {"type": "Ready", "status": "False", "reason": "Evil", "message": EVIL}
    repository = {"type": "git", "url": f"https://example.org/{EVIL}", "name": EVIL, "username": EVIL}
    hold = {"pools": ["worker"], "owner": EVIL, "reason": EVIL, "expiresAt": "2099-01-01T00:00:00Z"}
    argo, core = "argoproj.io/v1alpha1", "v1"
    return [
        (APPS, application("evil")),
        (PROJECTS, {"apiVersion": argo, "kind": "AppProject", "metadata": {"name": "evil", "namespace": "argocd"}}
         | {"spec": project | {"syncWindows": windows, "roles": [{"name": "evil", "description": EVIL}]}}),
        ("/api/v1/nodes", {"apiVersion": core, "kind": "Node", "metadata": {"name": "evil", "annotations": {"n": EVIL}}}
         | {"status": {"conditions": [ready], "nodeInfo": {"kubeletVersion": EVIL, "osImage": EVIL}}}),
        ("/api/v1/namespaces/argocd/secrets", {"apiVersion": core, "kind": "Secret", "stringData": repository}
         | {"metadata": {"name": "evil", "labels": {"argocd.argoproj.io/secret-type": "repository"}}}),
        ("/apis/syncline.dev/v1alpha1/holds",
         {"apiVersion": "syncline.dev/v1alpha1", "kind": "Hold", "metadata": {"name": "evil"}, "spec": hold}),
        ("/api/v1/namespaces/default/events", {"apiVersion": core, "kind": "Event", "metadata": {"name": "evil"}}
         | {"type": "Warning", "reason": "Evil", "message": EVIL, "lastTimestamp": "2026-01-01T00:00:00Z"}
         | {"involvedObject": {"kind": "Node", "name": "evil"}}),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("terminal")
    gitops = GitOpsSettings(folder / "mirrors", allow_local_repos=True, application=AppSettings(poll_s=600))
    with served_cluster(folder, ClusterSettings(), gitops) as served:
        made(served)
        yield str(served.kubeconfig)


def made(served: Served) -> None:
    async def story() -> None:
        await served.cluster.start_machine_config("argocd")
        transport = served.cluster.core.transport(judged=False)
        for path, obj in objects():
            transport.send(Request("POST", path, body=obj)).or_raise()

    asyncio.run_coroutine_threadsafe(story(), served.loop).result(START_S)


COMMANDS = (
    ["app", "list"], ["app", "list", "-o", "wide"], ["app", "list", "-o", "json"], ["app", "list", "-o", "yaml"],
    ["app", "get", "evil"], ["app", "get", "evil", "-o", "tree"], ["app", "get", "evil", "-o", "json"],
    ["app", "get", "evil", "-o", "yaml"], ["app", "get", "evil", "--show-operation"], ["app", "history", "evil"],
    ["app", "history", "evil", "-o", "json"], ["app", "resources", "evil"], ["app", "resources", "evil", "-o", "tree"],
    ["app", "diff", "evil"], ["app", "manifests", "evil"], ["app", "logs", "evil"], ["plan", "evil"],
    ["plan", "evil", "-o", "json"], ["plan", "evil", "-o", "yaml"], ["explain", "app/evil"],
    ["explain", "app/evil", "-o", "json"], ["explain", "node/evil"], ["explain", "pool/worker"],
    ["explain", "hold/evil"], ["proj", "list"], ["proj", "get", "evil"], ["proj", "get", "evil", "-o", "yaml"],
    ["proj", "windows", "list", "evil"], ["repo", "list"], ["repo", "list", "-o", "yaml"], ["cluster", "list"],
    ["node", "list"], ["node", "list", "-o", "yaml"], ["pool", "list"], ["pool", "list", "-o", "json"],
    ["pool", "timeline", "worker"], ["pool", "timeline", "worker", "-o", "svg"], ["mc", "list"],
    ["app", "get", EVIL], ["explain", EVIL], [EVIL], ["plan", "--against", EVIL, "evil"], ["node", "list", EVIL],
)  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: plain(" ".join(words))[:40])
def test_no_command_prints_what_a_terminal_obeys(
    words: list[str], kubeconfig: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    main(words)
    out, err = capsys.readouterr()
    assert out + err, "it says something"
    found = HARMFUL.search(out + err)
    assert found is None, f"{found[0]!r} after {(out + err)[max(found.start() - 80, 0) : found.start()]!r}"
    assert not re.search(r"^(FAKE|12:00:00)", out, re.MULTILINE), "a line feed in a message makes no line of ours"
    if words[-1] in ("json", "yaml") and words[0] in ("app", "proj", "repo"):
        document = json.loads(out) if words[-1] == "json" else load(out)
        assert _holds(document, EVIL), "a document says exactly what the object holds"


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, dict):
        return any(_holds(one, text) for one in value.values())
    if isinstance(value, list):
        return any(_holds(one, text) for one in value)
    return isinstance(value, str) and text in value


def test_groups_of_commands_are_clean_however_they_are_run() -> None:
    done = CliRunner().invoke(cli, ["app", EVIL])
    assert HARMFUL.search(done.output) is None and "No such command" in done.output


def test_a_process_without_a_terminal_is_clean_too() -> None:
    command = [sys.executable, "-c", "import sys; from syncline.cli.main import main; sys.exit(main(sys.argv[1:]))"]
    done = subprocess.run([*command, "plan", "--nosuch" + EVIL], capture_output=True, timeout=120)
    assert done.returncode == 2 and HARMFUL.search(done.stderr.decode()) is None


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_any_stream_is_written_to_whatever_its_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    with clean_output():
        sys.stdout.write(f"naïve {EVIL} ✔ \udc80")
        click.echo(EVIL)
    assert sys.stdout is stream, "what was there before is there again"
    stream.flush()
    text = raw.getvalue().decode(encoding)
    assert HARMFUL.search(text) is None and "\\u001b[31m" in text


def test_a_document_reaches_a_pipe_byte_by_byte_and_a_terminal_in_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    with clean_output():
        print_exact("a: \u202ex\n")
        stream.isatty = lambda: True  # type: ignore[method-assign]
        print_exact(b"b: \x1b[1m\xff\n")
    assert raw.getvalue() == "a: \u202ex\n".encode() + b"b: \\u001b[1m\xff\n"


def test_a_cell_is_one_line() -> None:
    shown = table(("NAME", "MESSAGE"), [("web", "fine\nroot   everything is well")])
    assert shown.splitlines() == [
        "NAME   MESSAGE",
        "web    fine\\nroot   everything is well",
    ]
    assert one_cell("a\tb\r\nc") == "a\\tb\\u000d\\nc"


def test_a_live_tree_shows_markup_and_escapes_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.StringIO()
    raw.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", raw)
    with clean_output():
        tree = progress.TreeProgress()
        tree.update(application("evil"), datetime(2026, 1, 1, tzinfo=UTC))
        tree.close()
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", raw.getvalue())  # what the library itself draws with
    assert HARMFUL.search(drawn.replace("\r", "")) is None
    assert "[red]x[/red]" in drawn.replace("\n", ""), "markup is shown, not obeyed"
    assert "evil/" in drawn and "\x1b]8" not in raw.getvalue()


def test_a_record_of_the_log_is_one_line_without_credentials() -> None:
    def line(message: str, **more: Any) -> str:
        return LogLines("%(levelname)s %(message)s").format(
            logging.LogRecord("x", logging.INFO, "f", 1, message, (), more.get("exc_info"))
        )

    assert line("push to main\nERROR all is lost\x1b[2J") == "INFO push to main\\nERROR all is lost\\u001b[2J"
    assert "hunter2" not in line("fetch https://u:hunter2@host/x failed: password=hunter2")
    try:
        raise ValueError("first\nINFO forged")
    except ValueError:
        told = line("failed", exc_info=sys.exc_info())
    assert not any(one.startswith("INFO forged") for one in told.splitlines()), "no line looks like a record"
