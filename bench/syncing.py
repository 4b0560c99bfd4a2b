"""The main job beside the tool that people use for it: one Application, and ``kubectl`` over the same files."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.processes import Blocking, Running, free_port, running, syncline
from bench.table import Table

APPLICATIONS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
REFRESH = "argocd.argoproj.io/refresh"
LOOK_EVERY_S = 0.01
LONGEST_S = 60.0
MANIFEST = """apiVersion: v1
kind: ConfigMap
metadata:
  name: object-{number}
data:
  text: {text}
"""


def figures(table: Table, folder: Path, *, objects: int) -> None:
    place = folder / "sync"
    place.mkdir()
    repository = _repository(place, objects)
    port = free_port()
    command = syncline(
        *("up", "--memory", "--nodes", "0", "--poll", "3600", "--listen", f"127.0.0.1:{port}"),
        *("--kubeconfig-out", str(place / "kubeconfig")),
    )
    os.environ["SYNCLINE_HOME"] = str(place / "home")
    table.title(f"Sync of one Application with {objects} ConfigMaps")
    with running(command, place, port) as server:
        link = Blocking(server)
        for name in ("synced", "by-kubectl"):
            link.send("POST", "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": name}})
        first = _first_sync(link, repository)
        again = _refresh(link)
        apply, diff = _kubectl(server, repository / "manifests")
        table.row("first sync, from the request to Succeeded", f"{first:.2f} s", _beside("kubectl apply", first, apply))
        table.row("refresh that finds nothing to do", f"{again:.2f} s", _beside("kubectl diff", again, diff))


def _beside(tool: str, ours: float, theirs: float | None) -> str:
    return f"{ours / theirs:.2f} × {tool} ({theirs:.2f} s)" if theirs else f"{tool}: kubectl is not installed"


def _repository(place: Path, objects: int) -> Path:
    repository = place / "repository"
    manifests = repository / "manifests"
    manifests.mkdir(parents=True)
    for number in range(objects):
        (manifests / f"{number:04}.yaml").write_text(MANIFEST.format(number=number, text="x" * 800))
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "Objects")):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    return repository


def _first_sync(link: Blocking, repository: Path) -> float:
    spec = {
        "project": "default",
        "source": {"repoURL": str(repository), "path": "manifests", "targetRevision": "HEAD"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "synced"},
    }
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "bench"}}
    begun = time.perf_counter()
    link.send("POST", APPLICATIONS, kind | {"spec": spec, "operation": {"sync": {"revision": "HEAD"}}})
    observed = _until(link, lambda app: _phase(app) not in ("", "Running") and _sync_status(app) == "Synced")
    spent = time.perf_counter() - begun
    if _phase(observed) != "Succeeded":
        raise SystemExit(f"the sync ended as {observed['status']['operationState']}")
    return spent


def _refresh(link: Blocking) -> float:
    begun = time.perf_counter()
    body = {"metadata": {"annotations": {REFRESH: "normal"}}}
    link.send("PATCH", f"{APPLICATIONS}/bench", body, "application/merge-patch+json")
    _until(link, lambda app: REFRESH not in (app["metadata"].get("annotations") or {}))
    return time.perf_counter() - begun


def _phase(app: Any) -> str:
    return str(((app.get("status") or {}).get("operationState") or {}).get("phase") or "")


def _sync_status(app: Any) -> str:
    return str(((app.get("status") or {}).get("sync") or {}).get("status") or "")


def _until(link: Blocking, holds: Any) -> Any:
    stop = time.perf_counter() + LONGEST_S
    while time.perf_counter() < stop:
        app = link.send("GET", f"{APPLICATIONS}/bench")
        if holds(app):
            return app
        time.sleep(LOOK_EVERY_S)
    raise SystemExit(f"the Application is not there in {LONGEST_S} s: {str(app.get('status'))[:400]}")


def _kubectl(server: Running, manifests: Path) -> tuple[float | None, float | None]:
    if shutil.which("kubectl") is None:
        return None, None
    times = []
    for verb in ("apply", "diff"):
        command = ["kubectl", "--kubeconfig", str(server.kubeconfig), "-n", "by-kubectl", verb, "-f", str(manifests)]
        begun = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"kubectl {verb}: {done.stderr[:400]}")
        times.append(time.perf_counter() - begun)
    return times[0], times[1]
