"""Two ``syncline controller`` processes on one API through a faulty proxy: stopped, cut off, answered for.

Started by ``python -m bench overlapping``. A hundred syncs, each with a PreSync and a PostSync hook, run while faults
come and go; counted are hooks by operation (from the audit log), syncs that ended, and the time from the end of the
faults until all is done. Who counts does not ask through the proxy. Clock jumps are in ``tests/base/test_clock.py``:
one process cannot be given another clock from outside without rights over the machine's.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.faultproxy import CUT, DELAY, FREEZE, PASS, FaultProxy
from bench.processes import free_port, syncline
from bench.table import Table

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases/syncline-application-controller"
REST_LIMIT_S = 180.0
HOOK = """apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  annotations: {{argocd.argoproj.io/hook: {hook}, argocd.argoproj.io/hook-delete-policy: BeforeHookCreation}}
spec:
  template:
    spec: {{restartPolicy: Never, containers: [{{name: c, image: busybox, command: ["true"]}}]}}
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: '1'}\n"
FAULTS = (
    ("login page", 4.0),
    (DELAY, 6.0),
    ("500", 4.0),
    (CUT, 4.0),
    (FREEZE, 20.0),
    ("busy", 4.0),
    ("truncated", 4.0),
)
CALM_S = 6.0
"""Between two faults."""
STOPPED_S = 20.0
"""Longer than a Lease (15 s): the other replica takes over while the first one stands still."""


class Api:
    """Plain HTTP on loopback, past the proxy."""

    def __init__(self, port: int) -> None:
        self._port = port

    def send(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        link.request(method, path, None if body is None else json.dumps(body), {"Content-Type": content})
        answer = link.getresponse()
        text = answer.read()
        link.close()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text)

    def ready(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
            link.request("GET", "/readyz")
            return link.getresponse().status == 200
        return False


@contextlib.contextmanager
def process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        started = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            started.send_signal(signal.SIGCONT)
            started.send_signal(signal.SIGTERM)
        try:
            started.wait(40)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def repository(folder: Path) -> str:
    (folder / "app").mkdir(parents=True)
    (folder / "app" / "before.yaml").write_text(HOOK.format(name="before", hook="PreSync"))
    (folder / "app" / "after.yaml").write_text(HOOK.format(name="after", hook="PostSync"))
    (folder / "app" / "map.yaml").write_text(MAP)
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", *identity, "-C", str(folder), *command], check=True)
    return str(folder)


def application(name: str, repo: str) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {"repoURL": repo, "path": "app"},
            "destination": {"name": "in-cluster", "namespace": name},
            "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
        },
    }


class Syncs:
    """Asks for syncs one after the other on each Application, until there were enough."""

    def __init__(self, api: Api, names: list[str], wanted: int) -> None:
        self.api, self.names, self.left = api, names, wanted
        self.phases: Counter[str] = Counter()
        self.running: set[str] = set()
        self.messages: Counter[str] = Counter()
        self.failed: list[str] = []

    def look(self) -> bool:
        """Whether all have ended."""
        for app in self.api.send("GET", APPS)["items"]:
            name, state = app["metadata"]["name"], (app.get("status") or {}).get("operationState") or {}
            if "operation" in app:
                continue
            if name in self.running:
                self.running.discard(name)
                self.phases[str(state.get("phase"))] += 1
                if state.get("phase") != "Succeeded":
                    self.failed.append(f"{name}: {state.get('message')}")
            if self.left:
                self.left -= 1
                self.running.add(name)
                body = {"operation": {"sync": {"syncStrategy": {"hook": {}}}}}
                self.api.send("PATCH", f"{APPS}/{name}", body, "application/merge-patch+json")
        return not self.left and not self.running


def hooks_made(audit: Path) -> Counter[str]:
    """How often each hook of each operation was created, from the audit log: also those that are gone."""
    made: Counter[str] = Counter()
    for line in audit.read_text().splitlines():
        event = json.loads(line)
        stage, code = event.get("stage"), (event.get("responseStatus") or {}).get("code")
        if event.get("verb") != "create" or stage != "ResponseComplete" or code != 201:
            continue
        ref = event.get("objectRef") or {}
        if ref.get("resource") != "jobs" or event.get("user", {}).get("username", "").startswith("system:kube"):
            continue
        sent = event.get("requestObject") or {}
        notes = (sent.get("metadata") or {}).get("annotations") or {}
        if "dryRun" not in event.get("requestURI", ""):
            made[f"{ref.get('namespace')}/{ref.get('name')} {notes.get('syncline.dev/operation')}"] += 1
    return made


def figures(table: Table, *, quick: bool) -> None:
    wanted, applications = (20, 5) if quick else (100, 10)
    faults = FAULTS[:3] if quick else FAULTS
    with tempfile.TemporaryDirectory(prefix="bench-") as place, contextlib.ExitStack() as stack:
        folder = Path(place)
        port = free_port()
        policy = folder / "policy.yaml"
        policy.write_text(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n"
            "- {level: Request, resources: [{group: batch, resources: [jobs]}], verbs: [create]}\n- {level: None}\n"
        )
        audit = folder / "audit.log"
        listen = ("--listen", f"127.0.0.1:{port}", "--no-tls", "--kubeconfig-out", str(folder / "kubeconfig"))
        logged = ("--audit-log", str(audit), "--audit-policy", str(policy), "--nodes", "1")
        stack.enter_context(process(syncline("apiserver", *listen, *logged), folder / "apiserver.log"))
        api = Api(port)
        kubeconfig = folder / "kubeconfig"
        _until(lambda: api.ready() and kubeconfig.exists(), 120, "the API server answers")
        proxy = FaultProxy(port)
        stack.callback(proxy.close)
        through = folder / "through"
        through.write_text(kubeconfig.read_text().replace(f":{port}", f":{proxy.port}"))
        controllers = []
        for number in (1, 2):
            options = ("--kubeconfig", str(through), "--allow-local-repos", "--cache", str(folder / f"cache-{number}"))
            log = folder / f"controller-{number}.log"
            controllers.append(stack.enter_context(process(syncline("controller", *options), log)))
        repo = repository(folder / "repository")
        names = [f"shop-{number}" for number in range(applications)]
        _until(lambda: _served(api), 120, "the controllers have installed what they need")
        for name in names:
            api.send("POST", APPS, application(name, repo))
        syncs = Syncs(api, names, wanted)
        begun = time.monotonic()
        _run_faults(syncs, proxy, controllers, faults)
        ended = time.monotonic()
        syncs.left += len(names)  # what comes after the faults shows how soon all is as before
        _until(syncs.look, REST_LIMIT_S, f"all syncs end ({syncs.left} to begin, running: {sorted(syncs.running)})")
        rest_s = time.monotonic() - ended
        alive = [one.poll() is None for one in controllers]
        made = hooks_made(audit)
        table.title(f"{wanted} syncs with two hooks each, two controllers, faults for {ended - begun:.0f} s")
        phases = ", ".join(f"{key} {count}" for key, count in sorted(syncs.phases.items()))
        table.row("syncs that ended, by phase", phases)
        table.row("hooks created", str(sum(made.values())), f"expected {2 * (wanted + applications)}")
        table.row("hooks created twice in one operation", str(sum(count > 1 for count in made.values())))
        table.row("connections that met a fault", str(proxy.refused))
        spec = api.send("GET", LEASE)["spec"]
        table.row("takeovers", str(spec["leaseTransitions"]))
        table.row("controllers that are alive", f"{sum(alive)} of {len(alive)}")
        table.row(f"end of faults until {applications} more syncs ended", f"{rest_s:.1f} s")
        for text in syncs.failed[:5]:
            table.row("  failed", text[:150])


def _served(api: Api) -> bool:
    with contextlib.suppress(SystemExit):
        api.send("GET", APPS)
        api.send("GET", "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/default")
        return True
    return False


def _run_faults(
    syncs: Syncs, proxy: FaultProxy, controllers: list[subprocess.Popen[bytes]], faults: tuple[tuple[str, float], ...]
) -> None:
    """Each fault in turn; between them one of the controllers stands still for longer than its Lease."""
    _for(CALM_S, syncs)
    for number, (fault, seconds) in enumerate(faults):
        proxy.set(fault)
        _for(seconds, syncs)
        proxy.set(PASS)
        if number % 2 == 0:
            stopped = controllers[(number // 2) % 2].pid
            os.kill(stopped, signal.SIGSTOP)
            _for(STOPPED_S, syncs)
            os.kill(stopped, signal.SIGCONT)
        _for(CALM_S, syncs)


def _for(seconds: float, syncs: Syncs) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        syncs.look()
        time.sleep(0.3)


def _until(reached: Any, limit_s: float, what: str) -> None:
    until = time.monotonic() + limit_s
    while not reached():
        if time.monotonic() > until:
            raise SystemExit(f"not reached in {limit_s:g} s: {what}")
        time.sleep(0.3)
