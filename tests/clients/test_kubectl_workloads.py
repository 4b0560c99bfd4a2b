"""The machine's kubectl, unmodified: workloads roll out, are described and waited for; nodes are drained."""

from __future__ import annotations

import re

import pytest
from tests.clients.kubectl import WAIT, Kubectl, needs_kubectl, until
from tests.clients.manifests import budget, deployment, service

from syncline.cluster.machines.processes.launching import sandbox_problem

pytestmark = needs_kubectl


def test_a_deployment_rolls_out_and_its_pods_are_shown_as_everywhere(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=2))
    assert kubectl(f"rollout status deployment/web {WAIT}").endswith('deployment "web" successfully rolled out\n')
    header, row = (line.split() for line in kubectl("get deployment web").splitlines())
    assert (header, row[:4]) == (["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"], ["web", "2/2", "2", "2"])
    header, *rows = (line.split() for line in kubectl("get pods -o wide").splitlines())
    assert header[:8] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED"]
    assert {(row[1], row[2], row[3]) for row in rows} == {("1/1", "Running", "0")}
    assert all(re.fullmatch(r"10\.\d+\.\d+\.\d+", row[5]) and row[6].startswith("node-") for row in rows)
    listed = kubectl("get all -o name").split()
    assert {each.split("/")[0] for each in listed} == {"pod", "deployment.apps", "replicaset.apps"}


def test_history_undo_restart_pause_and_resume_move_the_revisions(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=1))
    kubectl(f"rollout status deployment/web {WAIT}")
    kubectl("set image deployment/web main=shop:2")
    kubectl("annotate deployment web kubernetes.io/change-cause=two")
    kubectl(f"rollout status deployment/web {WAIT}")

    def revisions(history: str) -> list[list[str]]:
        return [line.split() for line in history.splitlines() if line[:1].isdigit()]

    told = [["1", "<none>"], ["2", "two"]]
    kubectl.eventually("rollout history deployment/web", lambda history: revisions(history) == told)
    assert "shop:2" in kubectl("rollout history deployment/web --revision=2")
    assert "rolled back" in kubectl("rollout undo deployment/web")
    image = "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}"
    assert kubectl(image) == "shop:1"
    kubectl("rollout pause deployment/web")
    assert "already paused" in kubectl.refused("rollout pause deployment/web")
    kubectl("rollout resume deployment/web")
    kubectl("rollout restart deployment/web")
    kubectl(f"rollout status deployment/web {WAIT}")
    left = [line[0] for line in revisions(kubectl("rollout history deployment/web"))]
    assert left == ["2", "3", "4"], "undo makes a revision the newest, restart makes one more"


def test_stateful_sets_and_daemon_sets_roll_out_too(kubectl: Kubectl) -> None:
    pod = deployment("each")["spec"] | {"serviceName": "each", "replicas": 2}
    stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": pod}
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"selector": pod["selector"], "template": pod["template"]},
    }
    kubectl("create -f -", stdin=[stateful, daemons])
    assert "roll out complete" in kubectl(f"rollout status statefulset/db {WAIT}")
    assert "successfully rolled out" in kubectl(f"rollout status daemonset/agent {WAIT}")
    assert kubectl("get daemonset agent -o jsonpath={.status.numberReady}") == "3"
    names = kubectl("get pods -o name").split()
    assert {"pod/db-0", "pod/db-1"} < set(names)


def test_scale_counts_from_what_was_expected_and_set_changes_the_template(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=0))
    assert kubectl("scale deployment/web --current-replicas=0 --replicas=1").strip() == "deployment.apps/web scaled"
    assert "Expected replicas to be 9, was 1" in kubectl.refused(
        "scale deployment/web --current-replicas=9 --replicas=2"
    )
    kubectl("scale deployment/web --replicas=0")
    kubectl("set env deployment/web COLOUR=red")
    kubectl("set resources deployment/web --limits=cpu=200m,memory=64Mi")
    kubectl("create serviceaccount runner")
    kubectl("set serviceaccount deployment/web runner")
    spec = kubectl.json("get deployment web")["spec"]["template"]["spec"]
    assert spec["containers"][0]["env"] == [{"name": "COLOUR", "value": "red"}]
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "200m", "memory": "64Mi"}}
    assert spec["serviceAccountName"] == "runner"


def test_expose_gives_a_service_whose_endpoints_are_the_ready_pods(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=2, ports=[{"containerPort": 8080}]))
    kubectl(f"rollout status deployment/web {WAIT}")
    assert kubectl("expose deployment web --port=80 --target-port=8080").strip() == "service/web exposed"
    kubectl(f"wait --for=jsonpath={{.subsets[0].addresses[1].ip}} endpoints/web {WAIT}")
    addresses = sorted(kubectl("get pods -l app=web -o jsonpath={.items[*].status.podIP}").split())
    described = kubectl("describe service web")
    assert all(f"{each}:8080" in described for each in addresses)
    slices = kubectl("get endpointslices -l kubernetes.io/service-name=web --no-headers").split()
    assert slices[1:3] == ["IPv4", "8080"] and sorted(slices[3].split(",")) == addresses


def test_autoscale_writes_the_target_and_says_that_nobody_measures(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=1))
    kubectl("autoscale deployment web --min=1 --max=3 --cpu-percent=80")
    row = kubectl("get hpa web --no-headers").split()
    assert row[:2] == ["web", "Deployment/web"] and "<unknown>/80%" in row
    for what in ("pods", "nodes"):
        assert "Metrics API not available" in kubectl.refused(f"top {what}")


def test_describe_tells_the_whole_story_of_a_pod_and_its_owner(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=[deployment(replicas=1, image="never:seen"), service("web")])
    kubectl(f"rollout status deployment/web {WAIT}")
    pod = kubectl("describe pods -l app=web")
    for part in ("Controlled By:  ReplicaSet/web-", "Ready:          True", "QoS Class:                   BestEffort"):
        assert part in pod
    told = pod[pod.index("Events:") :]
    assert [word for word in ("Scheduled", "Pulling", "Pulled", "Created", "Started") if word not in told] == []
    owner = kubectl("describe deployment web")
    assert "Replicas:               1 desired | 1 updated | 1 total | 1 available | 0 unavailable" in owner
    assert "Scaled up replica set web-" in owner and "NewReplicaSetAvailable" in owner
    assert "Endpoints:" in kubectl("describe service web")


def test_events_are_listed_for_an_object_and_by_type(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=1))
    kubectl(f"rollout status deployment/web {WAIT}")
    assert "ScalingReplicaSet" in kubectl("events --for deployment/web")
    reasons = kubectl("get events -o jsonpath={.items[*].reason} --field-selector involvedObject.kind=ReplicaSet")
    assert set(reasons.split()) == {"SuccessfulCreate"}
    assert "No events found" in kubectl.tried("events --types=Warning").err


def test_a_pod_that_fits_nowhere_is_pending_with_the_schedulers_sentence(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=1, resources={"requests": {"cpu": "99"}}))
    kubectl(f"wait --for=condition=PodScheduled=False pods -l app=web {WAIT}")
    assert "0/3 nodes are available: 3 Insufficient cpu." in kubectl("describe pods -l app=web")
    assert kubectl("get pods -l app=web --no-headers").split()[2] == "Pending"


def test_wait_ends_with_conditions_values_creation_and_deletion_or_says_what_it_waited_for(kubectl: Kubectl) -> None:
    kubectl("create job done --image=busybox -- true")
    kubectl("create -f -", stdin=deployment(replicas=1))
    assert kubectl(f"wait --for=condition=Available deployment/web {WAIT}").endswith("condition met\n")
    assert kubectl(f"wait --for=condition=Complete job/done {WAIT}").endswith("condition met\n")
    kubectl(f"wait --for=jsonpath={{.status.succeeded}}=1 job/done {WAIT}")
    kubectl(f"wait --for=jsonpath={{.status.phase}}=Running pods -l app=web {WAIT}")
    assert "timed out waiting for the condition" in _given_up(kubectl, "--for=condition=Nope job/done")
    kubectl("patch job done --type=merge -p", '{"metadata":{"finalizers":["shop.example/kept"]}}')
    kubectl("delete job done --wait=false")
    assert "timed out waiting for the condition" in _given_up(kubectl, "--for=delete job/done")
    kubectl("patch job done --type=merge -p", '{"metadata":{"finalizers":null}}')
    kubectl.tried(f"wait --for=delete job/done {WAIT}")
    assert 'jobs.batch "done" not found' in kubectl.refused("get job done")


def _given_up(kubectl: Kubectl, aim: str) -> str:
    """What kubectl says when its time is over, of which a first look needs some, on a busy machine more."""
    said = ""
    for limit in ("100ms", "2s", "20s", "200s"):
        said = kubectl.refused(f"wait {aim} --timeout={limit}")
        if "deadline exceeded" not in said:
            break
    return said


@pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem())
def test_logs_are_what_the_command_of_a_job_wrote(kubectl: Kubectl) -> None:
    kubectl("create job said --image=busybox -- sh -c", "echo one; echo two >&2; echo three")
    kubectl(f"wait --for=condition=Complete job/said {WAIT}")
    assert sorted(kubectl("logs job/said").split()) == ["one", "three", "two"]
    assert kubectl("logs -l job-name=said --tail=1").strip() == kubectl("logs job/said").splitlines()[-1]
    assert kubectl("logs -f job/said") == kubectl("logs job/said"), "what has ended is not waited for"
    stamped = kubectl("logs job/said --timestamps").splitlines()[0]
    assert re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z \w+$", stamped)
    assert "previous terminated container" in kubectl.refused("logs job/said --previous")


@pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem())
def test_logs_of_a_command_that_still_runs_are_followed_to_its_end(kubectl: Kubectl) -> None:
    script = "echo begun; until [ -e /tmp/enough ]; do sleep 0.1; done; echo over"
    kubectl("create job slow --image=busybox -- sh -c", script)
    kubectl(f"wait --for=jsonpath={{.status.ready}}=1 job/slow {WAIT}")
    with kubectl.running("logs -f job/slow") as lines:
        assert until(lines, "begun") == ["begun"]
        kubectl("exec job/slow -- touch /tmp/enough")
        assert lines.read().split() == ["over"]


def test_logs_of_a_simulated_container_say_so_and_of_an_unknown_one_are_refused(kubectl: Kubectl) -> None:
    kubectl("run p --image=shop:1")
    kubectl(f"wait --for=condition=Ready pod/p {WAIT}")
    (line,) = kubectl("logs p").splitlines()
    assert line.startswith("[syncline] simulated: it has no command")
    assert "container nobody is not valid for pod p" in kubectl.refused("logs p -c nobody")
    kubectl("create -f -", stdin=deployment("stuck", replicas=1, resources={"requests": {"cpu": "99"}}))
    kubectl(f"wait --for=condition=PodScheduled=False pods -l app=stuck {WAIT}")
    assert kubectl.tried("logs -l app=stuck").out == ""


def test_a_job_is_described_with_its_end(kubectl: Kubectl) -> None:
    kubectl("create job said --image=busybox -- echo hello")
    kubectl(f"wait --for=condition=Complete job/said {WAIT}")
    described = kubectl("describe job said")
    assert "Pods Statuses:    0 Active (0 Ready) / 1 Succeeded / 0 Failed" in described
    assert "SuccessfulCreate" in described and "Job completed" in described
    row = kubectl("get job said --no-headers").split()
    assert row[:3] == ["said", "Complete", "1/1"]


def test_a_cron_job_starts_jobs_by_hand(kubectl: Kubectl) -> None:
    kubectl("create cronjob tick --image=busybox --schedule=@yearly -- true")
    kubectl("create job --from=cronjob/tick once")
    kubectl(f"wait --for=condition=Complete job/once {WAIT}")
    assert "CronJob/tick" in kubectl("describe job once")
    assert "Schedule:                      @yearly" in kubectl("describe cronjob tick")


def test_connections_into_containers_are_refused_with_what_to_do_instead(kubectl: Kubectl) -> None:
    kubectl("run p --image=shop:1")
    kubectl(f"wait --for=condition=Ready pod/p {WAIT}")
    assert "is no process now" in kubectl.refused("exec p -- ls")
    assert "attach is not offered for pods/p" in kubectl.refused("attach p")
    assert "portforward is not offered for pods/p" in kubectl.refused("port-forward p 8080:80")
    assert 'pods "nobody" not found' in kubectl.refused("exec nobody -- ls")


def test_a_cordoned_node_takes_no_new_pods_and_a_taint_neither(kubectl: Kubectl) -> None:
    pinned = deployment(replicas=1)
    pinned["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-3"}
    try:
        assert kubectl("cordon node-3").strip() == "node/node-3 cordoned"
        assert kubectl("get node node-3 --no-headers").split()[1] == "Ready,SchedulingDisabled"
        kubectl("create -f -", stdin=pinned)
        kubectl(f"wait --for=condition=PodScheduled=False pods -l app=web {WAIT}")
        assert "1 node(s) were unschedulable" in kubectl("describe pods -l app=web")
        kubectl("taint node node-3 kept=free:NoSchedule")
        assert kubectl("uncordon node-3").strip() == "node/node-3 uncordoned"
        kubectl("delete pods -l app=web --wait=false")
        with kubectl.running("get events -w --no-headers") as lines:
            until(lines, "FailedScheduling", "untolerated taint")
        assert "kept=free:NoSchedule" in kubectl("describe node node-3")
    finally:
        kubectl.tried("taint node node-3 kept-")
        kubectl.tried("uncordon node-3")
    kubectl(f"rollout status deployment/web {WAIT}")


def test_a_budget_blocks_the_drain_of_the_only_place_and_room_lets_it_go_on(kubectl: Kubectl) -> None:
    pinned = deployment(replicas=1)
    pinned["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-2"}
    kubectl("create -f -", stdin=[pinned, budget("web", 1)])
    kubectl(f"rollout status deployment/web {WAIT}")
    kubectl(f"wait --for=jsonpath={{.status.currentHealthy}}=1 poddisruptionbudget/web {WAIT}")
    drain = "drain node-2 --ignore-daemonsets --delete-emptydir-data --pod-selector=app=web"
    try:
        with kubectl.running(drain, complaints=True) as lines:
            until(lines, "Cannot evict pod as it would violate the pod's disruption budget.")
            kubectl("patch poddisruptionbudget web --type=merge -p", '{"spec":{"minAvailable":0}}')
            until(lines, "node/node-2 drained")
        kubectl(f"wait --for=condition=PodScheduled=False pods -l app=web {WAIT}")
        assert "1 node(s) were unschedulable" in kubectl("describe pods -l app=web")
    finally:
        kubectl("uncordon node-2")
    kubectl(f"rollout status deployment/web {WAIT}")


def test_a_node_is_described_with_its_room_and_its_pods(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=3, resources={"requests": {"cpu": "100m"}}))
    kubectl(f"rollout status deployment/web {WAIT}")
    told = kubectl("describe node node-1")
    for part in ("KubeletReady", "Non-terminated Pods:", "Allocated resources:", "PodCIDR:", "HolderIdentity:  node-1"):
        assert part in told
    header, *rows = (line.split() for line in kubectl("get nodes").splitlines())
    assert header == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [(row[0], row[1]) for row in rows] == [("node-1", "Ready"), ("node-2", "Ready"), ("node-3", "Ready")]


def test_get_watch_shows_a_pod_from_pending_to_running(kubectl: Kubectl) -> None:
    with kubectl.running("get pods -w --no-headers") as lines:
        kubectl("run p --image=shop:1")
        observed = until(lines, "Running", "1/1")
    assert all(line.split()[0] == "p" for line in observed)
