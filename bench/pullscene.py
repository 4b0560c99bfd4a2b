"""The scene ``pull-model``, unchanged, with a hub and three clusters as processes over TLS.

Started by ``python -m bench scene``. The scenes are those beside the checkout, or in ``$SYNCLINE_SCENES``. What the
scene leaves to an administrator is made here: the ConfigMap of its generator, Placements, a binding, a Service of Argo
CD. The repository that it names is a local copy. One cluster may write only in managed namespaces
(``--rights managed-by``), and its namespace ``guestbook`` has no label: what is refused there has to be in the report,
word for word. Then the label is given, and commits go out in two waves, and back.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.processes import Blocking, Running, free_port, running, syncline
from bench.table import Table
from syncline.kube.yaml.loading import load_all

NAMESPACE = "openshift-gitops"
CLUSTERS = ("aws-1", "aws-2", "gcp-1")
REFUSED, LAST = "gcp-1", "aws-2"
SET = "guestbook-allclusters-app-set"
SETS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applicationsets/{SET}"
HEALTHY_S = 5
MERGE = "application/merge-patch+json"
LABEL = {"metadata": {"labels": {"argocd.argoproj.io/managed-by": NAMESPACE}}}
SECOND = {"syncline.dev/cluster-wave": "1"}
URL = "https://github.com/argoproj/argocd-example-apps.git"
OCM = "cluster.open-cluster-management.io"
APPS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications"
REPORT = (
    f"/apis/apps.open-cluster-management.io/v1alpha1/namespaces/{NAMESPACE}/multiclusterapplicationsetreports/{SET}"
)
DEPLOYMENT = "/apis/apps/v1/namespaces/guestbook/deployments/guestbook-ui"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:openshift-gitops-argocd-application-controller"
FORBIDDEN = (
    f'services is forbidden: User "{ACCOUNT}" cannot create resource "services" in API group "" in the namespace '
    '"guestbook"'
)
LIMIT_S = 90.0

Agent = Callable[[str, Running, Running, Path], contextlib.AbstractContextManager[object]]


@dataclass
class Scene:
    table: Table
    folder: Path
    """With ``pull-model`` and ``argocd-example-apps``."""
    repo: Path
    hub: Running
    api: Blocking
    spokes: dict[str, Running] = field(default_factory=dict)

    def until(self, what: str, holds: Callable[[], Any], begun: float) -> Any:
        """Wait until something holds; a row says after how many seconds."""
        while not (found := holds()):
            if time.perf_counter() - begun > LIMIT_S:
                said = [self.run(*one, SET, "-n", NAMESPACE) for one in (("report",), ("rollout", "get"))]
                raise SystemExit("\n".join([f"{what}: not within {LIMIT_S:g} s", *said]))
            time.sleep(0.2)
        self.table.row(what, f"{time.perf_counter() - begun:.1f} s")
        return found

    def run(self, *arguments: str) -> str:
        """Run a command against the hub; return what it prints, or its error."""
        env = {**os.environ, "KUBECONFIG": str(self.hub.kubeconfig)}
        done = subprocess.run(syncline(*arguments), capture_output=True, text=True, env=env, check=False)
        return done.stdout or done.stderr

    def applications(self) -> list[Any]:
        found: list[Any] = self.api.send("GET", APPS)["items"]
        return found

    def at(self, revision: str) -> bool:
        """Return whether the hub knows that each cluster that may, runs this revision."""
        found = {one["metadata"]["name"]: one.get("status", {}).get("sync", {}) for one in self.applications()}
        mine = [found.get(f"{name}-guestbook-app", {}) for name in CLUSTERS if name != REFUSED]
        return all((one.get("status"), one.get("revision")) == ("Synced", revision) for one in mine)

    def replicas(self, wanted: int) -> bool:
        return all(self.ready(name) == wanted for name in CLUSTERS if name != REFUSED)

    def ready(self, name: str) -> int:
        """Return the ready pods of the guestbook in a cluster."""
        found = Blocking(self.spokes[name]).find(DEPLOYMENT) or {}
        return int(found.get("status", {}).get("readyReplicas") or 0)

    def commit(self, before: int, after: int) -> float:
        """Commit another number of replicas; return when."""
        file = self.repo / "guestbook" / "guestbook-ui-deployment.yaml"
        file.write_text(file.read_text().replace(f"replicas: {before}", f"replicas: {after}"))
        _git(self.repo, "commit", "-q", "-am", f"{after} replicas")
        return time.perf_counter()

    def head(self) -> str:
        return _git(self.repo, "rev-parse", "HEAD")

    def phase(self) -> str:
        found = self.api.find(f"/apis/syncline.dev/v1alpha1/namespaces/{NAMESPACE}/fleetrollouts/{SET}") or {}
        return str(found.get("status", {}).get("phase") or "")

    def refused(self) -> bool:
        said = [
            each["message"]
            for one in (self.api.find(REPORT) or {}).get("statuses", {}).get("clusterConditions", ())
            for each in one.get("conditions", ())
            if one["cluster"] == REFUSED
        ]
        return any(FORBIDDEN in one for one in said)


def figures(table: Table, *, quick: bool) -> None:
    """``quick``: nothing is shorter; one run takes about a minute."""
    folder = scenes()
    table.title("The scene pull-model: a hub and three clusters as processes over TLS")
    with tempfile.TemporaryDirectory(prefix="bench-") as place, played(table, folder, Path(place)) as scene:
        begun = begin(scene)
        scene.until("an Application for each cluster", lambda: len(scene.applications()) == len(CLUSTERS), begun)
        scene.until("the guestbook runs where it may", lambda: scene.replicas(1), begun)
        scene.until("the hub knows it", lambda: scene.at(scene.head()), begun)
        scene.until("the refusal is in the report, word for word", scene.refused, begun)
        begun = scene.commit(1, 2)
        scene.until("commit to two ready pods in each cluster", lambda: scene.replicas(2), begun)
        scene.until("commit to the last report", lambda: scene.at(scene.head()), begun)
        print(scene.run("report", SET, "-N", NAMESPACE))
        print(scene.run("explain", f"app/{REFUSED}-guestbook-app", "-N", NAMESPACE))
        _in_order(scene)
        for name, one in {"hub": scene.hub, **scene.spokes}.items():
            table.row(f"resident: {name}", f"{one.resident_mib():.0f} MiB", f"{one.cpu_s():.1f} s of CPU")


def begin(scene: Scene) -> float:
    """Make what an administrator makes, and the objects of the scene; return when."""
    administrate(scene)
    begun = time.perf_counter()
    for file, plural in (("gitopscluster.yaml", "gitopsclusters"), ("applicationset.yaml", "applicationsets")):
        for one in load_all((scene.folder / "pull-model" / file).read_text()).values:
            scene.api.send("POST", f"/apis/{one['apiVersion']}/namespaces/{NAMESPACE}/{plural}", one)
    return begun


def _in_order(scene: Scene) -> None:
    """Give the namespace its label, put one cluster into a second wave, and roll a commit out and back."""
    Blocking(scene.spokes[REFUSED]).send("PATCH", "/api/v1/namespaces/guestbook", LABEL, MERGE)
    scene.api.send("PATCH", f"/apis/{OCM}/v1/managedclusters/{LAST}", {"metadata": {"labels": SECOND}}, MERGE)
    template = {"metadata": {"annotations": {"syncline.dev/healthy-for": f"{HEALTHY_S}s"}}}
    scene.api.send("PATCH", SETS, {"spec": {"template": template}}, MERGE)
    # Until a cluster has its first release of the order it follows the branch by itself.
    scene.until("an order is in force, all have proved it", lambda: scene.phase() == "Done", time.perf_counter())
    begun = scene.commit(2, 3)
    scene.until("in order: the first wave has the commit", lambda: scene.ready("aws-1") == 3, begun)
    first = time.perf_counter()
    if scene.ready(LAST) == 3:
        raise SystemExit(f"{LAST} has the commit with the first wave")
    print(scene.run("rollout", "get", SET, "-n", NAMESPACE))
    scene.until(f"the second wave, healthy for {HEALTHY_S} s later", lambda: scene.ready(LAST) == 3, begun)
    if time.perf_counter() - first < HEALTHY_S:
        raise SystemExit(f"{LAST} did not wait for the first wave to be healthy for {HEALTHY_S} s")
    scene.until("the roll-out is done", lambda: scene.phase() == "Done", begun)
    begun = time.perf_counter()
    print(scene.run("rollout", "roll-back", SET, "-n", NAMESPACE, "--yes"))
    scene.until("rolled back, in reverse", lambda: scene.phase() == "RolledBack", begun)
    scene.until("two pods again in each cluster", lambda: scene.replicas(2), begun)
    print(scene.run("rollout", "history", SET, "-n", NAMESPACE))


def scenes() -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "scenes"
    folder = Path(os.environ.get("SYNCLINE_SCENES") or beside)
    if not (folder / "pull-model").is_dir():
        raise SystemExit(f"{folder} has no folder pull-model; SYNCLINE_SCENES names the folder of scenes")
    return folder


def _git(repo: Path, *arguments: str) -> str:
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
    return subprocess.run(
        ["git", *who, *arguments], cwd=repo, check=True, capture_output=True, text=True
    ).stdout.strip()


@contextlib.contextmanager
def played(
    table: Table, folder: Path, place: Path, agent: Agent | None = None, *, refusing: bool = True
) -> Iterator[Scene]:
    """Start the hub and the clusters; all have joined when it yields. ``agent`` starts the agent of a cluster; None:
    the process of each cluster has its own. ``refusing``: whether one cluster writes in managed namespaces only."""
    repo = place / "repo"
    shutil.copytree(folder / "argocd-example-apps", repo)
    for path in (repo, *repo.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    _git(repo, "init", "-q", "-b", "master")
    _git(repo, "add", ".")
    _git(repo, "commit", "-q", "-m", "as upstream")
    (place / "gitconfig").write_text(f'[url "file://{repo}"]\n\tinsteadOf = {URL}\n')
    os.environ["GIT_CONFIG_GLOBAL"] = str(place / "gitconfig")
    with contextlib.ExitStack() as stack:
        hub = stack.enter_context(_up(place / "hub", "--hub"))
        scene = Scene(table, folder, repo, hub, Blocking(hub))
        for name in CLUSTERS:
            more: tuple[str, ...] = ("--rights", "managed-by") if refusing and name == REFUSED else ()
            if agent is None:
                more = (*more, "--join", scene.run("hub", "token", "--server", hub.url).strip(), "--name", name)
            scene.spokes[name] = stack.enter_context(_up(place / name, *more))
            if agent is not None:
                stack.enter_context(agent(name, hub, scene.spokes[name], place / f"{name}-agent"))
        begun = time.perf_counter()
        for name in CLUSTERS:
            while "proposed" in (said := scene.run("cluster", "accept", name)) or "error" in said:
                if time.perf_counter() - begun > LIMIT_S:
                    raise SystemExit(f"{name}: {said}")
                time.sleep(0.5)
        listed = f"/apis/{OCM}/v1/managedclusters"
        scene.until("three clusters have joined", lambda: _available(scene.api.send("GET", listed)["items"]), begun)
        yield scene


def _available(clusters: list[Any]) -> bool:
    good = [
        one
        for one in clusters
        if any(
            (each["type"], each["status"]) == ("ManagedClusterConditionAvailable", "True")
            for each in one.get("status", {}).get("conditions", ())
        )
    ]
    return len(good) == len(CLUSTERS)


@contextlib.contextmanager
def _up(folder: Path, *more: str) -> Iterator[Running]:
    folder.mkdir()
    port = free_port()
    given = ("--memory", "--listen", f"127.0.0.1:{port}", "--kubeconfig-out", str(folder / "kubeconfig"))
    os.environ["SYNCLINE_HOME"] = str(folder)
    with running(syncline("up", *given, "--namespace", NAMESPACE, "--poll", "5", *more), folder, port) as found:
        yield found


def administrate(scene: Scene) -> None:
    """Make what the scene leaves to an administrator, and a namespace without its label on one cluster."""
    there = f"namespaces/{NAMESPACE}"
    binding = {"apiVersion": f"{OCM}/v1beta2", "kind": "ManagedClusterSetBinding", "metadata": {"name": "global"}}
    placement = {"apiVersion": f"{OCM}/v1beta1", "kind": "Placement", "spec": {}}
    generator = {
        "apiVersion": f"{OCM}/v1beta1",
        "kind": "placementdecisions",
        "statusListKey": "decisions",
        "matchKey": "clusterName",
    }
    labels = {"app.kubernetes.io/component": "server", "app.kubernetes.io/part-of": "argocd"}
    made = [
        (f"/apis/{OCM}/v1beta2/{there}/managedclustersetbindings", {**binding, "spec": {"clusterSet": "global"}}),
        *(
            (f"/apis/{OCM}/v1beta1/{there}/placements", {**placement, "metadata": {"name": name}})
            for name in ("aws-app-placement", "bgdk-app-placement")
        ),
        (
            f"/api/v1/{there}/configmaps",
            {"metadata": {"name": "ocm-placement-generator"}, "data": generator},
        ),
        (
            f"/api/v1/{there}/services",
            {"metadata": {"name": "argocd-server", "labels": labels}, "spec": {"ports": [{"port": 443}]}},
        ),
    ]
    for path, one in made:
        scene.api.send("POST", path, one)
    Blocking(scene.spokes[REFUSED]).send("POST", "/api/v1/namespaces", {"metadata": {"name": "guestbook"}})
