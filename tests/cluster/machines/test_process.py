"""Commands of pods as sandboxed local processes, on a served cluster over TLS."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live import served_cluster
from tests.oc import Oc

from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.kube.objects import Obj

PROBLEM = sandbox_problem()
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)
LONGEST_S = 300
WAIT = f"--timeout={LONGEST_S}s"
"""A bound for what hangs: each wait ends with what it waits for."""


class Cluster:
    """Speaks to the served cluster by our own oc, as a user does."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig, self.oc = kubeconfig, Oc(kubeconfig)

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
        "touch /tmp/x && echo tmp-ok",
        "[ $(ls /proc | grep -c '^[0-9]') -lt 12 ] && echo few-processes",
        "cat /etc/shadow 2>/dev/null && echo shadow",
        f"cat {Path(__file__)} 2>/dev/null && echo project",
        "mount -t tmpfs none /mnt 2>/dev/null && echo mounted",
        "true",
    ]
    phase, _, log = cluster.run("walls", "sh", "-c", "\n".join(probes))
    assert phase == "Succeeded" and log.splitlines() == ["tmp-ok", "few-processes"]


def test_the_root_is_memory_of_its_own_unless_it_is_to_be_read_only(cluster: Cluster) -> None:
    users = Path("/etc/passwd").read_bytes()
    script = "for at in / /etc /var/log /tmp /run /dev/shm; do (: > $at/made) 2>/dev/null && echo $at; done; pwd; "
    script += "echo evil >> /etc/passwd && echo users"
    inside = {"workingDir": "/srv/made/for/it"}
    _, _, log = cluster.run("own-root", "sh", "-c", script, container=inside)
    assert log.split() == ["/", "/etc", "/var/log", "/tmp", "/run", "/dev/shm", "/srv/made/for/it", "users"]
    assert Path("/etc/passwd").read_bytes() == users and not Path("/etc/made").exists() and not Path("/made").exists()
    strict = {"securityContext": {"readOnlyRootFilesystem": True}}
    mounts = {"volumeMounts": [{"name": "e", "mountPath": "/run/mine"}]}
    more = "; (: > /run/mine/x) && echo mine; (echo said > /dev/termination-log) && echo said"
    volumes = [{"name": "e", "emptyDir": {}}]
    _, _, log = cluster.run(
        "strict-root", "sh", "-c", f"({script}) 2>/dev/null{more}", container=strict | mounts, volumes=volumes
    )
    assert log.split() == ["/dev/shm", "/", "mine", "said"]


def stat_of(*paths: str) -> str:
    return f"stat -Lc '%n %a %u %g' {' '.join(paths)}"


def test_volumes_have_the_modes_and_owners_that_their_pod_gives_them(cluster: Cluster) -> None:
    """As root with its users told apart; whoever is not root is one user, whatever it is called."""
    if os.geteuid() != 0:
        pytest.skip("users are told apart where root runs the cluster")
    cluster.oc("create", "configmap", "modes", "--from-literal=a=1", "--from-literal=b=2")
    items = [{"key": "a", "path": "x/a", "mode": 0o444}, {"key": "b", "path": "b"}]
    volumes = [
        {"name": "c", "configMap": {"name": "modes", "defaultMode": 0o400, "items": items}},
        {"name": "d", "emptyDir": {}},
        {"name": "m", "emptyDir": {"medium": "Memory"}},
    ]
    mounts = [{"name": name, "mountPath": f"/v/{name}"} for name in "cdm"]
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    looks = stat_of("/v/c/x/a", "/v/c/b", "/v/d", "/v/m", token) + "; stat -fc %T /v/m; id -u; id -g; id -G"
    phase, _, log = cluster.run("modes-root", "sh", "-c", looks, container={"volumeMounts": mounts}, volumes=volumes)
    *stats, kind, user, group, _ = log.splitlines()
    assert phase == "Succeeded" and (kind, user, group) == ("tmpfs", "0", "0")
    assert stats == ["/v/c/x/a 444 0 0", "/v/c/b 400 0 0", "/v/d 777 0 0", "/v/m 777 0 0", f"{token} 644 0 0"]
    context = {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [4000]}
    looks += "; touch /v/d/made; " + stat_of("/v/d/made")
    container = {"volumeMounts": mounts}
    phase, _, log = cluster.run(
        "modes-user", "sh", "-c", looks, container=container, volumes=volumes, securityContext=context
    )
    *stats, kind, user, group, groups, made = log.splitlines()
    assert phase == "Succeeded" and (kind, user, group, groups) == ("tmpfs", "1000", "3000", "3000 2000 4000")
    assert stats == [
        "/v/c/x/a 444 0 2000",
        "/v/c/b 440 0 2000",
        "/v/d 2777 0 2000",
        "/v/m 2777 0 2000",
        f"{token} 640 1000 2000",
    ]
    assert made == "/v/d/made 644 1000 2000"


def test_each_container_is_who_it_says_and_modes_hold_among_them(cluster: Cluster) -> None:
    if os.geteuid() != 0:
        pytest.skip("users are told apart where root runs the cluster")
    cluster.oc("create", "configmap", "closed", "--from-literal=a=1")
    volumes = [{"name": "c", "configMap": {"name": "closed", "defaultMode": 0o400}}, {"name": "d", "emptyDir": {}}]
    mounts = [{"name": "c", "mountPath": "/c"}, {"name": "d", "mountPath": "/d"}]
    script = "id -u > /d/first; chmod 600 /d/first"
    first = {"name": "first", "image": "none", "command": ["sh", "-c", script], "volumeMounts": mounts}
    first["securityContext"] = {"runAsUser": 1001}
    looks = "id -u; cat /d/first 2>/dev/null || echo theirs; stat -c %u /d/first; cat /c/a 2>/dev/null || echo closed"
    container = {"volumeMounts": mounts, "securityContext": {"runAsUser": 1002}}
    _, _, log = cluster.run("users", "sh", "-c", looks, container=container, volumes=volumes, initContainers=[first])
    assert log.split() == ["1002", "theirs", "1001", "closed"]
    _, _, log = cluster.run("no-root", "id", "-u", securityContext={"runAsNonRoot": True})
    assert int(log) > 0


def test_volumes_are_mounted_wherever_the_pod_says(cluster: Cluster) -> None:
    """Also where this machine has programs, which stay as they are."""
    cluster.oc("create", "configmap", "pages", "--from-literal=index.html=hello")
    paths = ["/usr/share/nginx-test/html", "/usr/local/lib/deep/er", "/opt/app/config", "/etc/ssl/mine", "/home/me/x"]
    mounts = [{"name": "c", "mountPath": path} for path in paths]
    mounts.append({"name": "c", "mountPath": "/usr/local/bin/one-file", "subPath": "index.html"})
    mounts.append({"name": "e", "mountPath": "/usr/share/nginx-test/html-of-mine"})
    volumes = [{"name": "c", "configMap": {"name": "pages"}}, {"name": "e", "emptyDir": {}}]
    script = f"cat {' '.join(f'{path}/index.html' for path in paths)} /usr/local/bin/one-file; "
    script += "touch /usr/share/nginx-test/html-of-mine/x && echo ok; "
    script += "touch /usr/share/nginx-test/y 2>/dev/null || echo shut; "
    script += "sh -c 'ls /usr/share /etc/ssl' | wc -l"
    phase, _, log = cluster.run("places", "sh", "-c", script, container={"volumeMounts": mounts}, volumes=volumes)
    *told, entries = log.removeprefix("hello" * 6).split()
    assert phase == "Succeeded" and told == ["ok", "shut"], log
    assert int(entries) > len(os.listdir("/usr/share")), "what the machine has is there as well"
    assert not Path("/usr/share/nginx-test").exists()


def test_volumes_follow_what_they_show(cluster: Cluster) -> None:
    """All of a new state at once; not a part that is mounted by itself, nor what cannot change."""
    cluster.oc("create", "configmap", "news", "--from-literal=a=1", "--from-literal=b=1")
    cluster.oc("create", "secret", "generic", "news", "--from-literal=s=1")
    sources = [
        {"configMap": {"name": "news"}},
        {"secret": {"name": "news"}},
        {"configMap": {"name": "later", "optional": True}},
    ]
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes = [
        {"name": "c", "configMap": {"name": "news"}},
        {"name": "p", "projected": {"sources": [*sources, {"downwardAPI": {"items": [labels]}}]}},
    ]
    mounts = [
        {"name": "c", "mountPath": "/c"},
        {"name": "c", "mountPath": "/part", "subPath": "a"},
        {"name": "p", "mountPath": "/p"},
    ]
    news = "grep -q 2 /p/a && grep -q 2 /p/s && grep -q x= /p/labels && [ -e /p/l ] && [ -e /c/n ]"
    script = f"readlink /c/..data; touch /tmp/read; until {news}; do sleep 0.05; done; readlink /c/..data; "
    script += "cat /c/a /part; echo; ls /c; readlink /c/a; ls -A /c | wc -l"
    has_read = {"exec": {"command": ["test", "-e", "/tmp/read"]}, "periodSeconds": 1}
    container = {"volumeMounts": mounts, "readinessProbe": has_read}
    cluster.start("news", "sh", "-c", script, container=container, volumes=volumes)
    cluster.oc("wait", "pod/news", "--for=condition=Ready", WAIT)
    cluster.oc("patch", "configmap", "news", "--type=merge", "-p", '{"data":{"a":"2","b":null,"n":"1"}}')
    cluster.oc("patch", "secret", "news", "--type=merge", "-p", '{"stringData":{"s":"2"}}')
    cluster.oc("label", "pod", "news", "x=y")
    cluster.oc("create", "configmap", "later", "--from-literal=l=1")
    phase, _, log = cluster.end("news")
    before, after, *rest = log.split()
    assert phase == "Succeeded" and before != after and before.startswith("..20") and after.startswith("..20")
    assert rest == ["21", "a", "n", "..data/a", "4"]


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
from syncline.cluster.machines.processes.launching import launcher
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


def test_the_log_of_a_simulated_container_says_so_and_that_of_a_process_is_its_own(cluster: Cluster) -> None:
    images = [{"name": "c", "image": "registry.example.org/web:1"}]
    stays = [{"name": "c", "image": "none", "command": ["sleep", "infinity"]}]
    for name, containers in (("no-command", images), ("stays", stays)):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}
        cluster.oc("create", "-f", "-", stdin=json.dumps(pod))
        cluster.oc("wait", f"pod/{name}", "--for=condition=Ready", WAIT)
    assert cluster.oc("logs", "no-command").startswith("[syncline] simulated: it has no command")
    assert "syncline.dev/run: process" in cluster.oc("logs", "stays")
    assert cluster.run("own-log", "printf", "mine")[2] == "mine"


def test_a_container_without_a_command_runs_the_program_of_its_image_where_it_is_installed(cluster: Cluster) -> None:
    """At the path that it has in the image, also where another program calls it."""
    known = "images: [{names: [say], runs: true, entrypoint: [/bin-of/say], cmd: [cmd], programs: {/bin-of/say: echo}}]"
    metadata = {"name": "syncline-images", "namespace": "kube-system"}
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"mine.yaml": known}}
    cluster.oc("create", "-f", "-", stdin=json.dumps(data))
    image = {"image": "registry.example.org/say:1"}
    env = [{"name": "WHO", "value": "me"}]
    wholly, with_words = image | {"command": []}, image | {"command": [], "args": ["$(WHO)"], "env": env}
    assert cluster.run("say-cmd", container=wholly) == ("Succeeded", 0, "cmd\n")
    assert cluster.run("say-args", container=with_words) == ("Succeeded", 0, "me\n")
    assert cluster.run("say-called", "sh", "-c", "/bin-of/say called", container=image)[2] == "called\n"


def test_a_container_has_the_names_the_resolver_and_the_api_of_a_pod(cluster: Cluster) -> None:
    """The API answers at its Service's address, as in a cluster, and by all its names."""
    aliases = [{"ip": "123.45.67.89", "hostnames": ["foo", "bar"]}]
    ask = "exec 3<>/dev/tcp/kubernetes.default.svc.cluster.local/443 && echo open"
    script = f"hostname; grep foo /etc/hosts; cat /etc/resolv.conf; bash -c '{ask}'; "
    script += 'echo "$HOSTNAME $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"; oc whoami'
    config = {"nameservers": ["1.1.1.1"], "searches": ["x.local"]}
    spec: Obj = {
        "hostname": "own",
        "subdomain": "sub",
        "hostAliases": aliases,
        "dnsPolicy": "None",
        "dnsConfig": config,
    }
    assert cluster.run("names", "sh", "-c", script, **spec)[2].splitlines() == [
        "own",
        "123.45.67.89\tfoo\tbar",
        "search x.local",
        "nameserver 1.1.1.1",
        "open",
        "own 10.96.0.1:443",
        "system:serviceaccount:default:default",
    ]


def test_every_command_may_listen_on_a_low_port_and_a_pod_sets_its_kernel_parameters(cluster: Cluster) -> None:
    listen = "import socket; socket.create_server(('0.0.0.0', 80)); print('heard')"
    script = f'cat /proc/sys/kernel/shm_rmid_forced; exec python3 -c "{listen}"'
    context = {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}], "runAsUser": 1000}
    assert cluster.run("low-port", "sh", "-c", script, securityContext=context)[1:] == (0, "1\nheard\n")
    unsafe = {"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]}
    said = cluster.run("unsafe", "true", securityContext=unsafe)
    assert said[1] == 128 and '"kernel.msgmax" is not set for local processes' in said[2]


def test_each_projected_token_is_for_its_own_audience(cluster: Cluster) -> None:
    """Also beside the one of the API, which stays valid there."""
    wishes = [{"path": each, "audience": each, "expirationSeconds": 600} for each in ("vault", "sts")]
    volume = {"name": "own", "projected": {"sources": [{"serviceAccountToken": each} for each in wishes]}}
    mount = {"name": "own", "mountPath": "/own"}
    script = "oc whoami; for each in vault sts; do cut -d. -f2 /own/$each; done"
    said = cluster.run("tokens", "sh", "-c", script, volumes=[volume], container={"volumeMounts": [mount]})[2]
    whom, *claims = said.splitlines()
    read = [json.loads(base64.urlsafe_b64decode(each + "=" * (-len(each) % 4))) for each in claims]
    assert (whom, [each["aud"] for each in read]) == ("system:serviceaccount:default:default", [["vault"], ["sts"]])


def _hooked(hooks: Obj, script: str, **container: Any) -> Obj:
    lifecycle = {name: {"exec": {"command": ["sh", "-c", text]}} for name, text in hooks.items()}
    return container | {"command": ["sh", "-c", script], "lifecycle": lifecycle}


def test_lifecycle_hooks_run_in_the_container(cluster: Cluster) -> None:
    """It lives until its postStart hook has written, and is begun again after its preStop hook."""
    script = "[ -e /v/stopped ] && exec cat /v/stopped; trap 'exit 1' TERM; while :; do sleep 0.1; done"
    hooks = {"postStart": "touch /v/started", "preStop": "echo before TERM >> /v/stopped"}
    lives = ["sh", "-c", "[ ! -e /v/started ] || [ -e /v/stopped ]"]
    alive = {"exec": {"command": lives}, "periodSeconds": 1, "failureThreshold": 1}
    mounts = [{"name": "v", "mountPath": "/v"}]
    container = _hooked(hooks, script, livenessProbe=alive, volumeMounts=mounts)
    spec: Obj = {"restartPolicy": "OnFailure", "volumes": [{"name": "v", "emptyDir": {}}]}
    cluster.start("hooks", container=container, **spec)
    cluster.oc("wait", "pod/hooks", "--for=jsonpath={.status.phase}=Succeeded", WAIT)
    assert cluster.oc("logs", "hooks") == "before TERM\n"


def test_a_container_whose_post_start_hook_fails_is_killed(cluster: Cluster) -> None:
    fails = "while [ ! -e /tmp/ready ]; do sleep 0.1; done; exit 3"
    container = _hooked({"postStart": fails}, "trap 'exit 7' TERM; touch /tmp/ready; while :; do sleep 0.1; done")
    assert cluster.run("unhooked", container=container)[:2] == ("Failed", 7)
    events = json.loads(cluster.oc("get", "events", "-o", "json"))["items"]
    assert any(
        each["reason"] == "FailedPostStartHook" for each in events if each["involvedObject"]["name"] == "unhooked"
    )
