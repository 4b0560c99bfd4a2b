"""Our own oc against the embedded API: requests like kubectl's, words like kubectl's."""

from __future__ import annotations

import json

import pytest
from machine_world import MachineWorld

from syncline.cluster.machines.tools.oc import run
from syncline.cluster.machines.tools.steps import Output, Session, Sleep
from syncline.kube.client import Request

POOL_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "machineconfigpools.machineconfiguration.openshift.io"},
    "spec": {
        "group": "machineconfiguration.openshift.io",
        "scope": "Cluster",
        "names": {
            "kind": "MachineConfigPool",
            "plural": "machineconfigpools",
            "singular": "machineconfigpool",
            "shortNames": ["mcp"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
API = {"apiVersion": "apps/v1"}
POOLS = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"


class Shell:
    """Runs command lines of the tool in virtual time."""

    def __init__(self, world: MachineWorld) -> None:
        self.world = world
        self.files: dict[str, bytes] = {}
        self.out = self.err = ""
        self.code = 0

    def __call__(self, *argv: str) -> str:
        """The standard output; ``err`` and ``code`` tell the rest."""
        self.out = self.err = ""
        steps = run(list(argv), Session(read=self._read))
        answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as stop:
                self.code = stop.value
                return self.out
            answer = None
            match step:
                case Request():
                    answer = self.world.transport.send(step)
                case Sleep(seconds=seconds):
                    self.world.advance(seconds)
                case Output(text=text, error=True):
                    self.err += text
                case Output(text=text):
                    self.out += text

    def _read(self, name: str) -> bytes:
        if name not in self.files:
            raise FileNotFoundError(2, "No such file or directory")
        return self.files[name]


@pytest.fixture
def oc(world: MachineWorld) -> Shell:
    return Shell(world)


def _pool(world: MachineWorld) -> None:
    world.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", POOL_CRD)
    world.settle()
    pool = {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool"}
    world.post(POOLS, pool | {"metadata": {"name": "worker"}, "spec": {"paused": False}})


def test_patch_says_what_it_patched_and_whether_anything_changed(world: MachineWorld, oc: Shell) -> None:
    _pool(world)
    line = ("patch", "--type=merge", '--patch={"spec":{"paused":true}}', "machineconfigpool/worker")
    assert oc(*line) == "machineconfigpool.machineconfiguration.openshift.io/worker patched\n"
    assert world.get(f"{POOLS}/worker")["spec"]["paused"] is True
    assert oc(*line).endswith("/worker patched (no change)\n")
    assert oc.code == 0


@pytest.mark.parametrize("kind", ["mcp", "MachineConfigPool", "machineconfigpools.machineconfiguration.openshift.io"])
def test_a_type_is_found_by_any_of_its_names(world: MachineWorld, oc: Shell, kind: str) -> None:
    _pool(world)
    assert oc("get", kind, "worker", "-o", "jsonpath={.spec.paused}") == "false"


def test_a_json_patch_with_a_short_flag(world: MachineWorld, oc: Shell) -> None:
    _pool(world)
    body = '[{"op":"replace","path":"/spec/paused","value":true}]'
    oc("patch", "mcp", "worker", "--type", "json", "-p", body)
    assert world.get(f"{POOLS}/worker")["spec"]["paused"] is True


def test_a_refusal_is_worded_like_kubectl(oc: Shell) -> None:
    oc("get", "pod", "nope")
    assert (oc.code, oc.err) == (1, 'Error from server (NotFound): pods "nope" not found\n')
    oc("get", "widgets")
    assert oc.err == 'error: the server doesn\'t have a resource type "widgets"\n'
    oc("get", "pods", "--frobnicate")
    assert oc.err == "error: unknown flag: --frobnicate\n"
    oc("adm", "drain")
    assert oc.code == 1 and 'unknown command "adm"' in oc.err


def test_apply_creates_then_configures_then_leaves_alone(world: MachineWorld, oc: Shell) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}}
    oc.files["a.yaml"] = json.dumps(manifest).encode()
    assert oc("apply", "-f", "a.yaml") == "configmap/a created\n"
    assert oc("apply", "-f", "a.yaml") == "configmap/a unchanged\n"
    oc.files["a.yaml"] = json.dumps(manifest | {"data": {"x": "3"}}).encode()
    assert oc("apply", "-f", "a.yaml") == "configmap/a configured\n"
    assert world.get("/api/v1/namespaces/default/configmaps/a")["data"] == {"x": "3"}


def test_apply_on_the_server_side(world: MachineWorld, oc: Shell) -> None:
    oc.files["-"] = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
    assert oc("apply", "--server-side", "-f", "-") == "configmap/a serverside-applied\n"
    assert world.get("/api/v1/namespaces/default/configmaps/a")["metadata"]["managedFields"][0]["operation"] == "Apply"


def test_several_documents_and_a_dry_run(world: MachineWorld, oc: Shell) -> None:
    oc.files["two.yaml"] = (
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"
        b"apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n"
    )
    assert oc("create", "-f", "two.yaml", "--dry-run=client") == (
        "configmap/a created (dry run)\nsecret/b created (dry run)\n"
    )
    assert not world.exists("/api/v1/namespaces/default/configmaps/a")
    assert oc("create", "-f", "two.yaml") == "configmap/a created\nsecret/b created\n"


def test_simple_objects_are_created_from_the_command_line(world: MachineWorld, oc: Shell) -> None:
    oc("create", "namespace", "extra")
    oc("create", "configmap", "c", "-n", "extra", "--from-literal=a=1")
    oc("create", "job", "j", "--image=x", "--", "sleep", "3")
    assert world.get("/api/v1/namespaces/extra/configmaps/c")["data"] == {"a": "1"}
    container = world.get("/apis/batch/v1/namespaces/default/jobs/j")["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["sleep", "3"]


def test_delete_waits_until_the_object_is_gone(world: MachineWorld, oc: Shell) -> None:
    world.make_pod(annotations={"syncline.dev/stop-seconds": "5"})
    world.idle()
    assert oc("delete", "pod", "p") == 'pod "p" deleted from default namespace\n'
    assert not world.exists("/api/v1/namespaces/default/pods/p")
    oc("delete", "pod", "p")
    assert oc.code == 1
    oc("delete", "pod", "p", "--ignore-not-found")
    assert oc.code == 0


@pytest.mark.parametrize("aim", ["condition=Ready", "jsonpath={.status.phase}=Running", "condition=ready=true"])
def test_wait_returns_when_it_is_so(world: MachineWorld, oc: Shell, aim: str) -> None:
    world.make_pod(annotations={"syncline.dev/start-seconds": "20"})
    assert oc("wait", f"--for={aim}", "pod/p", "--timeout=60s") == "pod/p condition met\n"
    assert oc.code == 0


def test_wait_gives_up_at_its_timeout(world: MachineWorld, oc: Shell) -> None:
    world.make_pod(annotations={"syncline.dev/ready": "never"})
    before = world.clock.now()
    oc("wait", "--for=condition=Ready", "pod/p", "--timeout=10s")
    assert (oc.code, oc.err) == (1, "error: timed out waiting for the condition on pods/p\n")
    assert (world.clock.now() - before).total_seconds() == pytest.approx(10)


def test_labels_and_annotations_are_set_removed_and_guarded(world: MachineWorld, oc: Shell) -> None:
    world.make_pod()
    assert oc("label", "pod", "p", "a=1") == "pod/p labeled\n"
    oc("label", "pod", "p", "a=2")
    assert oc.err == "error: 'a' already has a value (1), and --overwrite is false\n"
    oc("label", "pod/p", "a=2", "--overwrite")
    oc("annotate", "pod/p", "b=x")
    assert world.pod()["metadata"]["labels"] == {"a": "2"}
    oc("annotate", "pod/p", "b-")
    assert "b" not in world.pod()["metadata"].get("annotations", {})


def test_scale_and_rollout_status(world: MachineWorld, oc: Shell) -> None:
    from machine_world import deployment

    world.post("/apis/apps/v1/namespaces/default/deployments", deployment(replicas=1))
    world.idle()
    assert oc("scale", "deployment/web", "--replicas=3") == "deployment.apps/web scaled\n"
    assert oc("rollout", "status", "deployment/web").endswith('deployment "web" successfully rolled out\n')
    assert world.get("/apis/apps/v1/namespaces/default/deployments/web")["status"]["readyReplicas"] == 3


def test_rollout_status_of_daemon_sets_and_of_all_that_a_selector_chooses(world: MachineWorld, oc: Shell) -> None:
    _workload(world, "daemonsets", "DaemonSet")
    world.advance(1)
    assert oc("rollout", "status", "ds/own", "--timeout=300s").endswith('daemon set "own" successfully rolled out\n')
    assert oc("rollout", "status", "ds", "-l", "of=me") == 'daemon set "own" successfully rolled out\n'
    oc("rollout", "status", "namespace/default")
    assert (oc.code, oc.err) == (1, "error: no status viewer has been implemented for Namespace\n")


def test_rollout_status_of_a_stateful_set_waits_for_its_pods(world: MachineWorld, oc: Shell) -> None:
    _workload(world, "statefulsets", "StatefulSet", serviceName="own")
    assert oc("rollout", "status", "statefulset/own", "--timeout=60s").splitlines()[-2:] == [
        "Waiting for 1 pods to be ready...",
        "partitioned roll out complete: 1 new pods have been updated...",
    ]
    assert oc.code == 0


def _workload(world: MachineWorld, plural: str, kind: str, **more: str) -> None:
    from machine_world import deployment

    template = deployment()["spec"]["template"]
    spec = {"selector": {"matchLabels": template["metadata"]["labels"]}, "template": template, **more}
    meta = {"name": "own", "labels": {"of": "me"}}
    world.post(f"/apis/apps/v1/namespaces/default/{plural}", {"kind": kind, "metadata": meta, "spec": spec} | API)


def test_extract_prints_the_values_of_a_secret(oc: Shell) -> None:
    oc("create", "secret", "generic", "keys", "--from-literal=user=me", "--from-literal=word=open")
    assert oc("extract", "secret/keys", "--to=-") == "me\nopen\n"
    assert oc.err == "# user\n# word\n"
    assert oc("extract", "secret/keys", "--to=-", "--keys=word") == "open\n"
    oc("extract", "secret/keys", "--to=/tmp")
    assert (oc.code, oc.err) == (1, "error: this tool extracts to the standard output only: give --to=-\n")


def test_get_prints_columns_of_ones_own(world: MachineWorld, oc: Shell) -> None:
    world.make_pod("a")
    world.make_pod("longer-name")
    world.idle()
    form = "custom-columns=NAME:.metadata.name,PHASE:status.phase,NONE:.spec.no.such"
    assert oc("get", "pods", "-o", form).splitlines() == [
        "NAME          PHASE     NONE",
        "a             Running   <none>",
        "longer-name   Running   <none>",
    ]
    assert oc("get", "pod", "a", "--no-headers", "-o", "custom-columns=:metadata.name") == "a\n"
    oc("get", "pods", "-o", "custom-columns=NAME")
    assert oc.code == 1 and "expected <header>:<json-path-expr>" in oc.err


def test_get_prints_tables_lists_and_names(world: MachineWorld, oc: Shell) -> None:
    world.make_pod("a")
    world.make_pod("b")
    world.idle()
    lines = oc("get", "pods").splitlines()
    assert lines[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [line.split()[0] for line in lines[1:]] == ["a", "b"] and lines[1].split()[2] == "Running"
    assert oc("get", "po", "-o", "name") == "pod/a\npod/b\n"
    assert [each["metadata"]["name"] for each in json.loads(oc("get", "pods", "-o", "json"))["items"]] == ["a", "b"]
    assert oc("get", "pods", "-A").splitlines()[1].split()[:2] == ["default", "a"]
    assert oc("get", "pod", "a", "-o", "yaml").startswith("apiVersion: v1\nkind: Pod\n")
    assert oc("get", "configmaps", "-n", "kube-public", "-l", "no=such") == ""
    assert oc.err == "No resources found in kube-public namespace.\n"


def test_whoami_names_the_user(oc: Shell) -> None:
    assert oc("whoami") == "kubernetes-admin\n"
