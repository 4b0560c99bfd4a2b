"""One short story for each built-in controller: acts, each followed by time until nothing is left to do.

``simulate`` runs one on a cluster in virtual time, with a test as the kubelet; ``outline`` says what is there at the
end, without names, times and addresses that are drawn. Used by ``test_convergence`` and ``test_planners``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.cluster.world import World, deployment, job

from syncline.kube.client import Request
from syncline.kube.objects import Obj, dig, labels_of, meta, name_of
from syncline.rehearsal.seams import Killed

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
PODS = f"{CORE}/pods"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
VOLUMES = "/api/v1/persistentvolumes"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"

Act = Callable[[World], Any]
Story = tuple[Act, ...]


def workload(kind: str, name: str = "w", **spec: Any) -> Obj:
    made = deployment(name, **spec)
    return made | {"kind": kind}


def post(path: str, body: Callable[[], Obj]) -> Act:
    return lambda world: world.post(path, body())


def merge(path: str, body: Obj) -> Act:
    return lambda world: world.merge(path, body)


def delete(path: str, policy: str = "") -> Act:
    return lambda world: world.delete(path, policy)


def image(path: str, text: str) -> Act:
    return lambda world: world.strategic(
        path, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": text}]}}}}
    )


def finish(phase: str, most: int, index: str = "") -> Act:
    """Running pods of Jobs end, at most so many, of one index if one is named."""

    def act(world: World) -> None:
        running = [
            pod
            for pod in world.items(PODS)
            if pod["status"].get("phase") == "Running" and "job-name" in labels_of(pod) and _index(pod, index)
        ]
        for pod in running[:most]:
            world.pod_status("default", name_of(pod), {"phase": phase})

    return act


def _index(pod: Obj, index: str) -> bool:
    return not index or labels_of(pod).get("batch.kubernetes.io/job-completion-index") == index


def config(name: str, *owners: str, blocks: bool = False) -> Act:
    """A ConfigMap that ConfigMaps own."""

    def act(world: World) -> None:
        references = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner,
                "uid": meta(world.get(f"{CORE}/configmaps/{owner}"))["uid"],
                "blockOwnerDeletion": blocks,
            }
            for owner in owners
        ]
        metadata: Obj = {"name": name} | ({"ownerReferences": references} if references else {})
        world.post(f"{CORE}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    return act


def evict_one(world: World) -> None:
    pod = name_of(world.items(PODS)[0])
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    world.transport.send(Request("POST", f"{PODS}/{pod}/eviction", {}, {}, body))


def a_cronjob() -> Obj:
    template = {"metadata": {"labels": {"from": "tick"}}, "spec": job()["spec"]}
    spec = {"schedule": "0 0 1 * *", "jobTemplate": template}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec}


def a_minute(world: World) -> None:
    world.advance(61)


def a_service(name: str = "w", **spec: Any) -> Obj:
    spec = {"ports": [{"port": 80}]} | spec
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def some_endpoints() -> Obj:
    subsets = [{"addresses": [{"ip": "192.0.2.9"}, {"ip": "192.0.2.8"}], "ports": [{"port": 80, "protocol": "TCP"}]}]
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "ext"}, "subsets": subsets}


def an_autoscaler() -> Obj:
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w"}
    spec = {"scaleTargetRef": target, "minReplicas": 4, "maxReplicas": 5}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "w"}, "spec": spec}


def a_budget() -> Obj:
    spec = {"minAvailable": "50%", "selector": {"matchLabels": {"app": "w"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "w"}, "spec": spec}


def a_volume() -> Obj:
    spec = {"storageClassName": "s", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    spec |= {"hostPath": {"path": "/data"}, "persistentVolumeReclaimPolicy": "Retain"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}


def a_claim() -> Obj:
    spec = {"storageClassName": "s", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}


def a_quota() -> Obj:
    spec = {"hard": {"pods": "3", "count/configmaps": "9"}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": spec}


def a_role(name: str, aggregated: bool) -> Obj:
    made: Obj = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    if aggregated:
        return made | {"rules": [], "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}}
    made["metadata"]["labels"] = {"part": "yes"}
    return made | {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}


def a_namespace() -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}


def a_statefulset() -> Obj:
    made = workload(
        "StatefulSet", replicas=2, serviceName="w", persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"}
    )
    claim = {"metadata": {"name": "data"}, "spec": a_claim()["spec"]}
    made["spec"]["volumeClaimTemplates"] = [claim]
    return made


def a_daemonset() -> Obj:
    made = workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    del made["spec"]["replicas"]
    return made


def an_indexed_job() -> Obj:
    rules = [{"action": "FailIndex", "onPodConditions": [{"type": "Broken", "status": "True"}]}]
    limits = {"backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": rules}}
    return job(completions=3, parallelism=3, completionMode="Indexed", **limits)


def a_controller() -> Obj:
    template = deployment("w")["spec"]["template"]
    spec = {"replicas": 2, "selector": {"app": "w"}, "template": template}
    return {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "w"}, "spec": spec}


def a_taint(world: World) -> None:
    taints = [{"key": "gone", "effect": "NoExecute"}]
    world.merge("/api/v1/nodes/n1", {"spec": {"taints": taints}})


MISSED = {"status": {"lastScheduleTime": "2024-06-01T00:00:00Z"}}
RECREATE = {"type": "Recreate", "rollingUpdate": None}
SET = (post(f"{APPS}/replicasets", lambda: workload("ReplicaSet")),)
STORIES: dict[str, Story] = {
    "deployment": (
        post(f"{APPS}/deployments", lambda: workload("Deployment")),
        image(f"{APPS}/deployments/w", "x:2"),
        merge(
            f"{APPS}/deployments/w", {"spec": {"replicas": 3, "strategy": {"type": "Recreate", "rollingUpdate": None}}}
        ),
        image(f"{APPS}/deployments/w", "x:1"),
    ),
    "replicaset": (*SET, merge(f"{APPS}/replicasets/w", {"spec": {"replicas": 1}}), delete(f"{APPS}/replicasets/w")),
    "replicationcontroller": (
        post(f"{CORE}/replicationcontrollers", a_controller),
        merge(f"{CORE}/replicationcontrollers/w", {"spec": {"replicas": 1}}),
    ),
    "statefulset": (
        post(f"{APPS}/statefulsets", a_statefulset),
        image(f"{APPS}/statefulsets/w", "x:2"),
        merge(f"{APPS}/statefulsets/w", {"spec": {"replicas": 1}}),
    ),
    "daemonset": (post(f"{APPS}/daemonsets", a_daemonset), image(f"{APPS}/daemonsets/w", "x:2")),
    "job": (
        post(f"{BATCH}/jobs", lambda: job(completions=2, parallelism=2)),
        finish("Succeeded", 1),
        finish("Succeeded", 1),
    ),
    "job with failing indexes": (
        post(f"{BATCH}/jobs", an_indexed_job),
        finish("Failed", 1, "1"),
        finish("Succeeded", 1, "0"),
        a_minute,
        finish("Failed", 1, "1"),
        finish("Succeeded", 1, "2"),
    ),
    "job that is suspended": (
        post(f"{BATCH}/jobs", lambda: job(completions=2, parallelism=2)),
        merge(f"{BATCH}/jobs/work", {"spec": {"suspend": True}}),
        merge(f"{BATCH}/jobs/work", {"spec": {"suspend": False}}),
        finish("Succeeded", 2),
    ),
    "job with a time to live": (
        post(f"{BATCH}/jobs", lambda: job(ttlSecondsAfterFinished=5)),
        finish("Succeeded", 1),
        a_minute,
    ),
    "cronjob": (
        post(f"{BATCH}/cronjobs", a_cronjob),
        merge(f"{BATCH}/cronjobs/tick/status", MISSED),
        finish("Succeeded", 1),
        merge(f"{BATCH}/cronjobs/tick/status", MISSED),
    ),
    "disruption-budget": (*SET, post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", a_budget), evict_one),
    "horizontal-pod-autoscaler": (*SET, post(AUTOSCALERS, an_autoscaler), a_minute, a_minute),
    "endpoints": (
        *SET,
        post(f"{CORE}/services", lambda: a_service(selector={"app": "w"})),
        merge(f"{APPS}/replicasets/w", {"spec": {"replicas": 1}}),
    ),
    "endpointslice-mirroring": (
        post(f"{CORE}/services", lambda: a_service("ext")),
        post(f"{CORE}/endpoints", some_endpoints),
        merge(f"{CORE}/endpoints/ext", {"subsets": None}),
        delete(f"{CORE}/services/ext"),
    ),
    "resource-quota": (post(f"{CORE}/resourcequotas", a_quota), *SET, delete(f"{APPS}/replicasets/w", "Background")),
    "volumes": (
        post(VOLUMES, a_volume),
        post(f"{CORE}/persistentvolumeclaims", a_claim),
        delete(f"{CORE}/persistentvolumeclaims/c"),
        merge(f"{VOLUMES}/v", {"spec": {"claimRef": None}}),
    ),
    "garbage-collector in the foreground": (
        config("top"),
        config("middle", "top", blocks=True),
        config("leaf", "middle", "top", blocks=True),
        delete(f"{CORE}/configmaps/top", "Foreground"),
    ),
    "garbage-collector with orphans": (
        config("top"),
        config("leaf", "top"),
        delete(f"{CORE}/configmaps/top", "Orphan"),
    ),
    "garbage-collector with two owners": (
        *(config("one"), config("two"), config("leaf", "one", "two")),
        *(delete(f"{CORE}/configmaps/one"), delete(f"{CORE}/configmaps/two")),
    ),
    "namespace": (
        post("/api/v1/namespaces", a_namespace),
        post("/apis/apps/v1/namespaces/team/deployments", lambda: workload("Deployment")),
        delete("/api/v1/namespaces/team"),
    ),
    "namespace defaults": (
        delete(f"{CORE}/serviceaccounts/default"),
        merge(f"{CORE}/configmaps/kube-root-ca.crt", {"data": {"ca.crt": "changed"}}),
    ),
    "node-lifecycle": (*SET, merge("/api/v1/nodes/n2", {"spec": {"unschedulable": True}}), a_taint),
    "pod-garbage-collector": (*SET, delete("/api/v1/nodes/n1"), a_minute, a_minute),
    "clusterrole-aggregation": (
        post(ROLES, lambda: a_role("sum", aggregated=True)),
        post(ROLES, lambda: a_role("part", aggregated=False)),
        delete(f"{ROLES}/part"),
    ),
}

_LOOKED_AT = (
    *(f"{APPS}/{each}" for each in ("deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions")),
    *(f"{BATCH}/{each}" for each in ("jobs", "cronjobs")),
    *(f"{CORE}/{each}" for each in ("pods", "replicationcontrollers", "configmaps", "serviceaccounts", "endpoints")),
    *(f"{CORE}/{each}" for each in ("resourcequotas", "persistentvolumeclaims")),
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    AUTOSCALERS,
    *(VOLUMES, "/api/v1/nodes", "/api/v1/namespaces"),
)


def outline(world: World) -> Counter[str]:
    """Every object by its kind, its name as far as it is given, and what its status counts."""
    found: Counter[str] = Counter()
    for path in _LOOKED_AT:
        for each in world.items(path):
            found[f"{path.rsplit('/', 1)[1]} {_shape(each)}"] += 1
    for role in ("sum", "part"):
        if world.exists(f"{ROLES}/{role}"):
            found[f"clusterroles {role} {world.get(f'{ROLES}/{role}').get('rules')}"] += 1
    return found


def _shape(obj: Obj) -> str:
    name = meta(obj).get("generateName") or ("" if _is_hashed(obj) else name_of(obj))
    status = obj.get("status") or {}
    counts = {key: value for key, value in status.items() if isinstance(value, int) and key != "observedGeneration"}
    ends = [
        c["type"]
        for c in status.get("conditions") or ()
        if c["type"] in ("Complete", "Failed") and c["status"] == "True"
    ]
    more = [status.get("phase"), status.get("used"), status.get("failedIndexes"), status.get("completedIndexes"), ends]
    owners = sorted(str(each.get("kind")) for each in meta(obj).get("ownerReferences") or ())
    ready = [dig(each, "conditions", "ready") for each in obj.get("endpoints") or ()]
    return f"{name} {sorted(counts.items())} {more} {owners} {ready} {len(obj.get('subsets') or ())}"


def _is_hashed(obj: Obj) -> bool:
    labels = labels_of(obj)
    return "pod-template-hash" in labels or "controller.kubernetes.io/hash" in labels or "from" in labels


def a_world(**options: Any) -> World:
    world = World(**options)
    for name in ("n1", "n2"):
        world.node(name)
    world.settle()
    return world


def calm_down(world: World) -> None:
    """Until nothing is left to do, also in the namespace that a story makes."""
    world.run_until_ready("default")
    world.reap("team")
    world.run_until_ready("default")


def simulate(world: World, story: Story, calm: Act = calm_down) -> tuple[Counter[str], int]:
    """Act by act; when the controllers die, others take over. Returns what is there, and how often they died."""
    deaths = 0
    for act in story:
        for doing in (act, calm):
            try:
                doing(world)
            except Killed:
                deaths += 1
                world.restart()
                calm(world)
    return outline(world), deaths
