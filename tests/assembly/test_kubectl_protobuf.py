"""What kubectl's generators send as protobuf is stored as if they had sent JSON.

Each command runs for one name, and its ``--dry-run=client -o json`` for another; the second is sent as JSON by a client
of our own. What the server keeps of both must be equal, fields' owners included.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.live import served_cluster

from syncline.assembly.settings import ClusterSettings
from syncline.kube.client import Request
from syncline.kube.objects import Obj, dig
from syncline.kube.transport.http import BlockingClient
from syncline.kube.transport.kubeconfig import load_kubeconfig

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")

CORE, APPS, BATCH = (
    "/api/v1/namespaces/default",
    "/apis/apps/v1/namespaces/default",
    "/apis/batch/v1/namespaces/default",
)
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PROTO, PLAIN = "sent-proto", "sent-plain"

GENERATORS = {
    "create namespace NAME": "/api/v1/namespaces",
    "create configmap NAME --from-literal=a=b --from-literal=empty=": f"{CORE}/configmaps",
    "create secret generic NAME --from-literal=a=b --type=syncline.dev/own": f"{CORE}/secrets",
    "create secret docker-registry NAME --docker-username=u --docker-password=p": f"{CORE}/secrets",
    "create serviceaccount NAME": f"{CORE}/serviceaccounts",
    "create service clusterip NAME --tcp=80:8080 --tcp=443": f"{CORE}/services",
    "create service nodeport NAME --tcp=5678:8080 --node-port=30100": f"{CORE}/services",
    "create service externalname NAME --external-name=example.com": f"{CORE}/services",
    "create service loadbalancer NAME --tcp=5678:8080": f"{CORE}/services",
    "create service clusterip NAME --clusterip=None": f"{CORE}/services",
    "create quota NAME --hard=cpu=1500m,memory=1G,pods=0 --scopes=NotTerminating": f"{CORE}/resourcequotas",
    "create deployment NAME --image=a --image=b:1": f"{APPS}/deployments",
    "create deployment NAME --image=a --replicas=0 --port=80 -- sleep 1": f"{APPS}/deployments",
    "create job NAME --image=a -- sleep 1": f"{BATCH}/jobs",
    "create cronjob NAME --image=a --schedule=0/5_*_*_*_? --restart=Never": f"{BATCH}/cronjobs",
    "create role NAME --verb=get,list --resource=pods,pods/log --resource-name=x": f"{RBAC}/namespaces/default/roles",
    "create rolebinding NAME --clusterrole=view --serviceaccount=default:x --user=u --group=g": (
        f"{RBAC}/namespaces/default/rolebindings"
    ),
    "create clusterrole NAME --verb=get --non-resource-url=/metrics": f"{RBAC}/clusterroles",
    "create clusterrole NAME --aggregation-rule=a=b": f"{RBAC}/clusterroles",
    "create clusterrolebinding NAME --clusterrole=view --user=u": f"{RBAC}/clusterrolebindings",
    "create poddisruptionbudget NAME --selector=a=b --min-available=0": (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    ),
    "create poddisruptionbudget NAME --selector=a=b --max-unavailable=50%": (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    ),
    "create priorityclass NAME --value=-7 --description=d --preemption-policy=Never": (
        "/apis/scheduling.k8s.io/v1/priorityclasses"
    ),
    "create ingress NAME --rule=a/b*=c:http,tls=x --default-backend=y:80 --annotation=a=b": (
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
    ),
    "run NAME --image=a --port=80 --env=A=b --restart=Never --labels=a=b": f"{CORE}/pods",
    "expose service kubernetes --name=NAME --selector=a=b --port=80 --target-port=http": f"{CORE}/services",
}

SENT_AS_JSON = ("run", "expose")
"""These build their objects from flags as well, but send them as JSON."""

CHOSEN_BY_SERVER = re.compile(r"\b10\.\d+\.\d+\.\d+\b|kube-api-access-\w{5}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass
class Cluster:
    client: BlockingClient
    kubeconfig: Path

    def kubectl(self, *arguments: str) -> str:
        """What it says, its log included; its success is asserted."""
        command = ["kubectl", f"--kubeconfig={self.kubeconfig}", "--cache-dir", str(self.kubeconfig.parent), *arguments]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout + answer.stderr

    def get(self, path: str) -> Obj:
        return self.client.send(Request("GET", path)).obj

    def post(self, path: str, obj: Obj, query: dict[str, str] | None = None) -> None:
        answer = self.client.send(Request("POST", path, query or {}, body=obj))
        assert answer.status == 201, answer.obj


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with served_cluster(tmp_path_factory.mktemp("kubectl"), ClusterSettings(controllers=())) as served:
        client = BlockingClient(load_kubeconfig(str(served.kubeconfig)))
        cluster = Cluster(client, served.kubeconfig)
        cluster.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        yield cluster
        client.close()


def kept(obj: Obj, name: str) -> Any:
    """An object without what differs between any two: identity, times, addresses, ports, names of token volumes."""
    metadata = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in ("uid", "resourceVersion", "creationTimestamp")
    }
    for entry in metadata.get("managedFields", ()):
        entry.pop("time")
    for port in dig(obj, "spec", "ports", default=()) or ():
        port.pop("nodePort", None)
    text = json.dumps({**obj, "metadata": metadata}, sort_keys=True)
    return json.loads(CHOSEN_BY_SERVER.sub("chosen", text).replace(name, "NAME"))


def arguments(command: str, name: str) -> list[str]:
    return [word.replace("_", " ").replace("NAME", name) for word in command.split()]


def run(cluster: Cluster, command: str, number: int) -> str:
    name = f"{PROTO}-{number}"
    verbosely, _, tail = " ".join(("-v=8", command)).partition(" -- ")
    words = arguments(verbosely, name) + (["--", *tail.split()] if tail else [])
    logged = cluster.kubectl(*words)
    assert ("Content-Type: application/vnd.kubernetes.protobuf" in logged) != command.startswith(SENT_AS_JSON)
    return name


@pytest.mark.parametrize("number,command", list(enumerate(GENERATORS)))
def test_a_generated_object_is_stored_as_if_it_were_sent_as_json(cluster: Cluster, number: int, command: str) -> None:
    collection, plain = GENERATORS[command], f"{PLAIN}-{number}"
    proto = run(cluster, command, number)
    head, _, tail = command.partition(" -- ")
    dry = [*arguments(head, plain), "--dry-run=client", "-o", "json", *(["--", *tail.split()] if tail else [])]
    document = json.loads(cluster.kubectl(*dry))
    if command.startswith("create service nodeport"):
        document["spec"]["ports"][0]["nodePort"] += 1
    manager = {"fieldManager": "kubectl-" + command.partition(" ")[0], "fieldValidation": "Strict"}
    cluster.post(collection, document, manager)
    given, expected = cluster.get(f"{collection}/{proto}"), cluster.get(f"{collection}/{plain}")
    assert kept(given, proto) == kept(expected, plain)


def test_autoscale_sends_a_target_and_bounds(cluster: Cluster) -> None:
    cluster.kubectl("create", "deployment", "scaled", "--image=a")
    cluster.kubectl("autoscale", "deployment", "scaled", "--min=2", "--max=3", "--cpu-percent=50")
    spec = cluster.get("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/scaled")["spec"]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"}
    assert (spec["minReplicas"], spec["maxReplicas"], spec["scaleTargetRef"]) == (2, 3, target)
    assert dig(spec["metrics"][0], "resource", "target", "averageUtilization") == 50


def test_a_pointer_to_zero_is_zero_and_not_the_default(cluster: Cluster) -> None:
    cluster.kubectl("create", "deployment", "none", "--image=a", "--replicas=0")
    assert cluster.get(f"{APPS}/deployments/none")["spec"]["replicas"] == 0


def test_reviews_and_token_requests_are_read(cluster: Cluster) -> None:
    cluster.kubectl("create", "serviceaccount", "asked")
    assert cluster.kubectl("create", "token", "asked", "--duration=600s", "--audience=x").count(".") == 2
    assert cluster.kubectl("auth", "can-i", "get", "pods/log").startswith("yes")
    assert "system:masters" in cluster.kubectl("auth", "whoami")
