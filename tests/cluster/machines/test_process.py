"""Commands of pods as sandboxed local processes, on a served cluster over TLS."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.cluster.machines.launching import sandbox_problem
from syncline.kube.objects import Obj

sys.path.insert(0, str(Path(__file__).parents[2]))
from live import served_cluster

PROBLEM = sandbox_problem()
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)
LONGEST_S = 300
WAIT = f"--timeout={LONGEST_S}s"
"""A bound for what hangs: each wait ends with what it waits for."""


class Cluster:
    """Speaks to the served cluster by our own oc, as a user does."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._environ = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    def oc(self, *argv: str, stdin: str = "", check: bool = True) -> str:
        command = [sys.executable, "-m", "syncline.cluster.machines.tools", *argv]
        limit_s = 2 * LONGEST_S
        done = subprocess.run(
            command, input=stdin, env=self._environ, capture_output=True, text=True, timeout=limit_s, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout + ("" if check else done.stderr)

    def start(self, name: str, *command: str, **spec: Any) -> None:
        container: Obj = {"name": "c", "image": "none", "command": list(command)} | spec.pop("container", {})
        body = {"restartPolicy": "Never", "containers": [container]} | spec
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}
        self.oc("create", "-f", "-", stdin=json.dumps(pod))

    def end(self, name: str) -> tuple[str, int, str]:
        """Phase, exit code and log of a pod that has ended."""
        self.oc("wait", f"pod/{name}", "--for=jsonpath={.status.containerStatuses[0].state.terminated}", WAIT)
        pod = json.loads(self.oc("get", "pod", name, "-o", "json"))
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        return pod["status"]["phase"], ended["exitCode"], self.oc("logs", name)

    def run(self, name: str, *command: str, **spec: Any) -> tuple[str, int, str]:
        self.start(name, *command, **spec)
        return self.end(name)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = ClusterSettings(nodes=1, run_commands=RunCommands.SANDBOXED)
    folder = tmp_path_factory.mktemp("served")
    with served_cluster(folder, settings) as served:
        mine = Cluster(served.kubeconfig)
        mine.oc("wait", "node/node-1", "--for=condition=Ready", WAIT)
        mine.oc("wait", "serviceaccount/default", "--for=create", WAIT)
        yield mine


def test_output_exit_code_and_variables(cluster: Cluster) -> None:
    env = [
        {"name": "A", "value": "x"},
        {"name": "B", "value": "$(A)y"},
        {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    script = "echo out; echo err >&2; echo $B $WHO $(hostname) $(pwd); exit 3"
    phase, code, log = cluster.run("env", "sh", "-c", script, container={"env": env, "workingDir": "/tmp"})
    assert (phase, code) == ("Failed", 3)
    assert sorted(log.splitlines()) == ["err", "out", "xy env env /tmp"]


def test_oc_inside_reaches_the_api_as_the_service_account(cluster: Cluster) -> None:
    phase, code, log = cluster.run(
        "who", "sh", "-c", "oc whoami && ls -1 /var/run/secrets/kubernetes.io/serviceaccount"
    )
    assert (phase, code, log.split()) == (
        "Succeeded",
        0,
        ["system:serviceaccount:default:default", "ca.crt", "namespace", "token"],
    )


def test_whatever_the_umask_of_the_cluster_commands_have_what_is_theirs(cluster: Cluster) -> None:
    cluster.oc("create", "configmap", "deep", "--from-literal=a=hello")
    volumes = [
        {"name": "s", "configMap": {"name": "deep", "items": [{"key": "a", "path": "far/below/a"}]}},
        {"name": "e", "emptyDir": {}},
    ]
    mounts = [{"name": "s", "mountPath": "/settings"}, {"name": "e", "mountPath": "/work"}]
    script = "cat /settings/far/below/a; echo; touch /work/x && oc whoami && echo said > /dev/termination-log"
    before = os.umask(0o077)
    try:
        phase, _, log = cluster.run("umask", "sh", "-c", script, container={"volumeMounts": mounts}, volumes=volumes)
    finally:
        os.umask(before)
    assert (phase, log.split()) == ("Succeeded", ["hello", "system:serviceaccount:default:default"])


def test_it_sees_a_read_only_system_and_nothing_else(cluster: Cluster, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("host")
    probes = [
        f"cat {secret} 2>/dev/null && echo seen",
        "touch /usr/x 2>/dev/null && echo wrote-usr",
        "touch /x 2>/dev/null && echo wrote-root",
        "touch /tmp/x && echo tmp-ok",
        "[ $(ls /proc | grep -c '^[0-9]') -lt 12 ] && echo few-processes",
        "cat /etc/shadow 2>/dev/null && echo shadow",
        f"cat {Path(__file__)} 2>/dev/null && echo project",
        "mount -t tmpfs none /mnt 2>/dev/null && echo mounted",
        "true",
    ]
    phase, _, log = cluster.run("walls", "sh", "-c", "\n".join(probes))
    assert phase == "Succeeded" and log.splitlines() == ["tmp-ok", "few-processes"]


def test_it_reaches_no_other_port_of_this_machine(cluster: Cluster) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        script = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"
        phase, _, log = cluster.run("port", "bash", "-c", script)
        assert phase == "Failed" and "Connection refused" in log and "reached" not in log


def test_volumes_are_there_and_only_the_pods_own_are_writable(cluster: Cluster) -> None:
    cluster.oc("create", "configmap", "settings", "--from-literal=a.txt=hello")
    volumes = [{"name": "s", "configMap": {"name": "settings"}}, {"name": "e", "emptyDir": {}}]
    mounts = [{"name": "s", "mountPath": "/settings"}, {"name": "e", "mountPath": "/work"}]
    first = {"name": "first", "image": "none", "command": ["sh", "-c", "cp /settings/a.txt /work/b"]}
    phase, _, log = cluster.run(
        "volumes",
        "sh",
        "-c",
        "cat /work/b; touch /settings/x 2>/dev/null || echo read-only",
        container={"volumeMounts": mounts},
        volumes=volumes,
        initContainers=[first | {"volumeMounts": mounts}],
    )
    assert (phase, log) == ("Succeeded", "helloread-only\n")


def test_files_and_variables_tell_what_a_container_has(cluster: Cluster) -> None:
    limit = {"containerName": "c", "resource": "limits.memory", "divisor": "1Mi"}
    files = [
        {"path": "memory", "resourceFieldRef": limit},
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
    ]
    cpu = {"resource": "requests.cpu", "divisor": "1m"}
    env = [
        {"name": "CPU", "valueFrom": {"resourceFieldRef": cpu}},
        {"name": "ALL", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    phase, _, log = cluster.run(
        "resources",
        "sh",
        "-c",
        "cat /d/memory /d/name; echo; echo $CPU $ALL; stat -Lc %a /d/name /d/memory",
        container={
            "env": env,
            "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "64Mi"}},
            "volumeMounts": [{"name": "d", "mountPath": "/d"}],
        },
        volumes=[{"name": "d", "downwardAPI": {"defaultMode": 0o440, "items": files}}],
    )
    assert (phase, log.splitlines()) == ("Succeeded", ["64resources", "100 8", "440", "440"])


def test_a_container_leaves_a_message(cluster: Cluster) -> None:
    """The end of its file, or of its log where that is asked for and it failed; as it was written."""
    fallback = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    said: dict[str, tuple[str, Obj, str]] = {
        "says": ("echo -n because > /dev/termination-log; exit 1", {}, "because"),
        "lines": ("echo because > /dev/termination-log", fallback, "because\n"),
        "logs": ("echo first; printf 'last words'; exit 1", fallback, "first\nlast words"),
        "well": ("echo no failure", fallback, ""),
        "long": (
            "head -c 5000 /dev/zero | tr '\\0' a > /dev/termination-log; echo -n b >> /dev/termination-log",
            {},
            "",
        ),
        "place": ("echo -n there > /tmp/said", {"terminationMessagePath": "/tmp/said"}, "there"),
    }
    for name, (script, more, _) in said.items():
        cluster.start(f"message-{name}", "sh", "-c", script, container=more)
    said["long"] = ("", {}, "a" * 4095 + "b")
    for name, (_, _, wanted) in said.items():
        cluster.end(f"message-{name}")
        ended = json.loads(cluster.oc("get", "pod", f"message-{name}", "-o", "json"))["status"]["containerStatuses"][0]
        assert ended["state"]["terminated"].get("message", "") == wanted, name


@pytest.mark.parametrize("path", ["/work/out/made", "/work/../../../../../../tmp/made"])
def test_no_mount_leads_out_of_the_sandbox(cluster: Cluster, tmp_path: Path, path: str) -> None:
    mounts = [{"name": "e", "mountPath": "/work"}]
    link = ["sh", "-c", f"ln -s {tmp_path} /work/out"]
    name = f"mount-{len(path)}"
    cluster.run(
        name,
        "true",
        container={"volumeMounts": [*mounts, {"name": "f", "mountPath": path}]},
        volumes=[{"name": "e", "emptyDir": {}}, {"name": "f", "emptyDir": {}}],
        initContainers=[{"name": "first", "image": "none", "command": link, "volumeMounts": mounts}],
    )
    assert not list(tmp_path.iterdir()) and not Path("/tmp/made").exists()


def test_a_part_of_a_volume_is_made_and_shown_alone(cluster: Cluster) -> None:
    mounts = [
        {"name": "e", "mountPath": "/part", "subPathExpr": "of/$(WHO)"},
        {"name": "e", "mountPath": "/whole"},
    ]
    env = [{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    script = "echo x > /part/made; cat /whole/of/part/made; ls -A /part"
    container = {"volumeMounts": mounts, "env": env}
    phase, _, log = cluster.run(
        "part", "sh", "-c", script, container=container, volumes=[{"name": "e", "emptyDir": {}}]
    )
    assert (phase, log.split()) == ("Succeeded", ["x", "made"])


def test_a_host_path_is_refused_with_a_sentence(cluster: Cluster) -> None:
    volumes = [{"name": "h", "hostPath": {"path": "/etc"}}]
    phase, code, log = cluster.run("host", "true", volumes=volumes)
    assert (phase, code) == ("Failed", 128) and "hostPath volumes are not given to local processes" in log


def test_a_command_that_is_not_there_fails_with_127(cluster: Cluster) -> None:
    phase, code, log = cluster.run("none", "no-such-program")
    assert (phase, code) == ("Failed", 127) and "no-such-program: no such file" in log


def test_on_failure_it_is_tried_again(cluster: Cluster) -> None:
    volumes = [{"name": "e", "emptyDir": {}}]
    container = {"volumeMounts": [{"name": "e", "mountPath": "/work"}]}
    script = "if [ -f /work/tried ]; then exit 0; fi; touch /work/tried; exit 1"
    cluster.start("again", "sh", "-c", script, container=container, volumes=volumes, restartPolicy="OnFailure")
    cluster.oc("wait", "pod/again", "--for=jsonpath={.status.phase}=Succeeded", WAIT)
    assert cluster.oc("get", "pod", "again", "-o", "jsonpath={.status.containerStatuses[0].restartCount}") == "1"


def test_a_deleted_pod_is_asked_to_stop_and_goes(cluster: Cluster) -> None:
    script = "trap 'echo bye; exit 0' TERM; echo ready; while true; do sleep 0.1; done"
    cluster.start("going", "sh", "-c", script, terminationGracePeriodSeconds=10 * LONGEST_S)
    cluster.oc("wait", "pod/going", "--for=condition=Ready", WAIT)
    assert "deleted" in cluster.oc("delete", "pod", "going", WAIT), "long before it would be killed"


def test_a_job_with_oc_patches_and_completes(cluster: Cluster) -> None:
    cluster.oc("create", "configmap", "target")
    rules = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": "patcher"},
                "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}],
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "patcher"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "patcher"},
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
            },
        ],
    }
    cluster.oc("apply", "-f", "-", stdin=json.dumps(rules))
    script = 'oc patch configmap target --type=merge -p \'{"data":{"x":"1"}}\''
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "ose-cli", "command": ["bash", "-c", script]}],
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "patch"}, "spec": {"template": {"spec": pod}}}
    cluster.oc("create", "-f", "-", stdin=json.dumps(job))
    cluster.oc("wait", "job/patch", "--for=condition=Complete", WAIT)
    assert cluster.oc("get", "configmap", "target", "-o", "jsonpath={.data.x}") == "1"


SURVIVOR = """
import sys, threading
from pathlib import Path
from syncline.cluster.machines.launching import launcher
spec = {"argv": ["sh", "-c", "echo up; exec sleep 300.25"], "env": {"PATH": "/usr/bin:/bin"}, "cwd": "/"}
spec |= {"root": sys.argv[1], "hostname": "x", "binds": [], "socket": "", "port": 0, "limits": {}}
process = launcher(spec | {"tmpfs_bytes": 1048576})
print(process.stdout.readline().decode().strip(), process.pid, flush=True)
threading.Event().wait()
"""


def test_everything_ends_when_the_cluster_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", SURVIVOR, str(tmp_path)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        up, launcher = owner.stdout.readline().split()
        assert up == "up"
        watch = os.pidfd_open(int(launcher))
        owner.kill()
        ended, _, _ = select.select([watch], [], [], LONGEST_S)
        os.close(watch)
    assert ended, "the launcher outlived the process that it belongs to"


def test_without_a_sandbox_the_way_in_is_a_kubeconfig(tmp_path: Path) -> None:
    settings = ClusterSettings(nodes=1, run_commands=RunCommands.UNSANDBOXED)
    with served_cluster(tmp_path, settings) as served:
        mine = Cluster(served.kubeconfig)
        mine.oc("wait", "node/node-1", "--for=condition=Ready", WAIT)
        mine.oc("wait", "serviceaccount/default", "--for=create", WAIT)
        assert mine.run("bare", "sh", "-c", "oc whoami")[1:] == (0, "system:serviceaccount:default:default\n")
