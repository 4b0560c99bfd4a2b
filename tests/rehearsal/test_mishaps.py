"""Each fault of a scenario that lasts for a while has the effect that it has on real clusters, and heals.

Those of hooks are in ``examples/tested-shop``, which ``test_scenarios.py`` plays.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from syncline.assembly.machines.simulatedhosts import SimulatedHosts
from syncline.base.clock import VirtualClock
from syncline.cluster.machines.machine import MachineSpec
from syncline.cluster.machines.simulated import Machines
from syncline.machineconfig.agent.host import HostError
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import parse_world
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.record import Record
from syncline.rehearsal.rehearsing import Rehearsal, Settings
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.testing.mishaps import faults_of
from syncline.rehearsal.testing.reading import read_cases
from syncline.rehearsal.testing.running import run_case

HEAD = "# +argocd:skip-file-rendering\nscenarios:\n- name: faulty\n  application: shop\n  namespace: shop\n"
NODES = "  world: {nodes: [{name: node, count: 2}]}\n"
POOL = """\
  world: {machineConfig: true, nodes: [{name: master, roles: [master]}, {name: worker, roles: [worker]}]}
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "registry.example.org/web:1"}]
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: web}}
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\ndata: {sky: blue}\n"
FILE = """\
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 99-worker-motd, labels: {machineconfiguration.openshift.io/role: worker}}
spec:
  config:
    ignition: {version: 3.4.0}
    storage: {files: [{path: /etc/motd, mode: 420, contents: {source: "data:,hello"}}]}
"""
GUARD = """\
apiVersion: v1
kind: Service
metadata: {name: guard, namespace: default, annotations: {syncline.dev/simulated-server: webhooks}}
spec: {selector: {app: guard}, ports: [{port: 443}]}
---
apiVersion: v1
kind: Pod
metadata: {name: guard, namespace: default, labels: {app: guard}}
spec: {containers: [{name: guard, image: guard}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
- name: maps.example.org
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {namespace: default, name: guard}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
"""
RED = "{at: 2m, commit: {set: [{file: shop.yaml, fields: {data.sky: red}}]}}"
SCENES = {
    "a node that is cut off is taken for lost, its pods go elsewhere, and it comes back": (
        WEB,
        NODES,
        ["{at: 1m, fault: {partition: node-1, for: 30m}}"],
        [
            "{object: Node/node-1, is: {'status.conditions[Ready].status': Unknown}, at: 3m}",
            "{object: Pod/shop/web-*, must: object.spec.nodeName == 'node-1', count: 1, at: 1m}",
            "{object: Deployment/web, is: {status.readyReplicas: 2}, at: 10m}",
            "{object: Pod/shop/web-*, must: object.spec.nodeName == 'node-2' || has(object.metadata.deletionTimestamp),"
            " at: 10m}",
            "{object: Node/node-1, is: {'status.conditions[Ready].status': 'True'}}",
            "{object: Pod/shop/web-*, count: 2}",
        ],
    ),
    "controllers that are cut off see no commit until they are back": (
        MAP,
        NODES,
        ["{at: 1m, fault: {partition: gitops, for: 10m}}", RED],
        [
            "{object: ConfigMap/colours, is: {data.sky: blue}, at: 10m}",
            "{object: ConfigMap/colours, is: {data.sky: red}, within: 15m}",
        ],
    ),
    "what waits for a state happens as soon as it is so, and heals": (
        MAP,
        NODES,
        [
            "{once: {object: ConfigMap/colours, is: {data.sky: red}}, fault: {partition: gitops, for: 10m}}",
            "{once: {object: ConfigMap/colours, must: \"object.data.sky == 'red'\"}, nodeOff: node-1}",
            RED,
            RED.replace("red", "green").replace("2m", "3m"),
        ],
        [
            "{object: ConfigMap/colours, is: {data.sky: red}, at: 12m}",
            "{object: ConfigMap/colours, is: {data.sky: green}, within: 14m}",
            "{object: Node/node-1, is: {'metadata.annotations[syncline.dev/power]': 'off'}, within: 2m1s}",
        ],
    ),
    "controllers whose clock is ahead write times ahead, and go on": (
        MAP,
        NODES,
        ["{at: 1m, fault: {clock: gitops, by: 3h, for: 10m}}", RED],
        [
            "{object: ConfigMap/colours, is: {data.sky: red}, within: 15m}",
            "{object: app/shop, at: 5m, must: \"object.status.operationState.startedAt.startsWith('2026-01-01T03:')\"}",
        ],
    ),
    "a schedule strikes beside a fault that lasts and one that waits for a state": (
        MAP,
        NODES + "  faults: 'kill@2, lost-answer@4'\n",
        [
            "{at: 1m, fault: {partition: gitops, for: 20m}}",
            "{once: {object: ConfigMap/colours, is: {data.sky: red}}, fault: {partition: gitops, for: 30m}}",
            RED,
            RED.replace("red", "green").replace("2m", "23m"),
        ],
        [
            "{object: ConfigMap/colours, is: {data.sky: blue}, at: 20m}",
            "{object: ConfigMap/colours, is: {data.sky: red}, at: 50m}",
            "{object: ConfigMap/colours, is: {data.sky: green}, within: 60m}",
        ],
    ),
    "an image that takes long to pull is not ready until then": (
        WEB,
        NODES,
        ["{fault: {slowPull: 'registry.example.org/*', takes: 10m, for: 1h}}"],
        [
            "{object: Deployment/web, must: '!has(object.status.readyReplicas)', at: 9m}",
            "{object: Deployment/web, is: {status.readyReplicas: 2}, within: 11m}",
        ],
    ),
    "a node that does not come up keeps its pool from being updated until it does": (
        FILE,
        POOL,
        ["{fault: {failedBoot: worker, for: 30m}}"],
        [
            "{object: Node/worker, is: {'status.conditions[Ready].status': Unknown}, at: 25m}",
            "{object: pool/worker, is: {'status.conditions[Updated].status': 'True'}, within: 50m}",
            "{object: Node/worker, is: {'metadata.annotations[syncline.dev/boots]': '2'}, at: 50m}",
        ],
    ),
    "a node without room on its disk is not updated until it has some, and a person may pause the pool meanwhile": (
        FILE,
        POOL,
        ["{fault: {fullDisk: worker, for: 30m}}", "{at: 10m, pause: worker}", "{at: 40m, resume: worker}"],
        [
            "{object: pool/worker, is: {spec.paused: true, 'status.conditions[Updated].status': 'False'}, at: 39m}",
            "{object: Node/worker, is: {'status.conditions[DiskPressure].status': 'True'}, at: 5m}",
            "{waits: MachineConfigPool worker, for: reporting OutOfDisk=True}",
            "{object: pool/worker, is: {'status.conditions[Updated].status': 'True'}}",
        ],
    ),
    "what a webhook would judge is refused while it is down, and synced afterwards": (
        MAP,
        "  world: {nodes: [{name: node}], objects: [guard.yaml]}\n",
        ["{at: 1m, fault: {webhookDown: default/guard, for: 3m}}", RED],
        [
            "{object: ConfigMap/colours, is: {data.sky: blue}, at: 4m}",
            '{object: app/shop, within: 4m, must: "object.status.operationState.syncResult.resources'
            ".exists(r, r.message.contains('webhook'))\"}",
            "{object: ConfigMap/colours, is: {data.sky: red}}",
        ],
    ),
}


@pytest.mark.parametrize("scene", SCENES)
def test_faults(scene: str, tmp_path: Path) -> None:
    manifests, world, happens, expected = SCENES[scene]
    (tmp_path / ".git").mkdir()
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "shop.yaml").write_text(manifests)
    (tmp_path / "guard.yaml").write_text(GUARD)
    when, expect = ("".join(f"  - {one}\n" for one in lines) for lines in (happens, expected))
    file = tmp_path / "shop.rehearsal.yaml"
    file.write_text(f"{HEAD}  repository: repository\n{world}  when:\n{when}  expect:\n{expect}")
    (case,) = read_cases(file)
    result = run_case(case, 1, tmp_path / "scratch")
    assert result.passed, (result.error, result.failures)


HOOK = """\
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {argocd.argoproj.io/hook: PreSync}}
spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: migrate}]}}}
"""
TWO, POOLS = "nodes: [{name: node, count: 2}]\n", POOL.partition(": ")[2][1:-2].replace(", nodes", "\nnodes") + "\n"
LATE = {
    "{fault: {slowPull: '*', takes: 10m, for: 1h}}": (WEB, TWO, 600),
    "{fault: {partition: gitops, for: 10m}}": (MAP, TWO, 600),
    "{fault: {failedBoot: worker, for: 30m}}": (FILE, POOLS, 1800),
    "{fault: {fullDisk: worker, for: 30m}}": (FILE, POOLS, 1800),
    "{fault: {partition: machine-config, for: 30m}}": (FILE, POOLS, 1800),
    "{fault: {webhookDown: default/guard, for: 3m}}": (MAP, f"{TWO}objects: [guard.yaml]\n", 180),
}
"""By a fault of ``rehearse --faults FILE``: what is rehearsed, where, and how many seconds it lasts at least."""


def rehearsed(faults: str, manifests: str, world: str, scratch: Path) -> tuple[Outcome, float | None, Record]:
    objects = {"guard.yaml": GUARD.encode()} if "guard.yaml" in world else {}
    given = parse_world(world, Path("world.yaml"), Files(objects))
    asked = Asked("shop", Files({"shop.yaml": manifests.encode()}), given, namespace="shop")
    schedule, mishaps = faults_of(faults, "faults")
    asked = replace(asked, schedule=schedule, mishaps=mishaps)
    answer, record = Rehearsal(Settings(ranged=False, cures=False), scratch)._one(asked)
    return answer.outcome, answer.done_s, record


@pytest.mark.parametrize("fault", LATE)
def test_a_rehearsed_commit_waits_for_what_a_file_of_faults_has_broken(fault: str, tmp_path: Path) -> None:
    manifests, world, least_s = LATE[fault]
    outcome, done_s, _ = rehearsed(f"when: [{fault}]\n", manifests, world, tmp_path)
    assert outcome is Outcome.SAFE and done_s is not None and least_s <= done_s < least_s + 1500


@pytest.mark.parametrize(
    ("fault", "ends"),
    [
        ("hookFails: shop/migrate", Outcome.SAFE),
        ("hookFails: shop/migrate, times: 100", Outcome.FAILED),
        ("hookHangs: shop/migrate", Outcome.BLOCKED),
    ],
    ids=["one that fails is tried again, and breaks no law", "it may fail each time", "it may hang"],
)
def test_a_rehearsed_hook_fails_or_hangs(fault: str, ends: Outcome, tmp_path: Path) -> None:
    assert rehearsed(f"when: [{{fault: {{{fault}}}}}]\n", f"{HOOK}---\n{MAP}", TWO, tmp_path)[0] is ends


def test_a_rehearsed_node_that_is_cut_off_and_a_clock_that_is_ahead_show_in_the_record(tmp_path: Path) -> None:
    """Together with a schedule, whose deaths leave the clock as it is."""
    lasting = "{fault: {clock: gitops, by: 3h}}, {fault: {partition: node-1, for: 30m}}"
    faults = f"faults: kill@2, stood-still@3, away@5\nwhen: [{lasting}]\n"
    outcome, _, record = rehearsed(faults, MAP, TWO, tmp_path)
    assert outcome is Outcome.SAFE
    starts = {str(one.obj.get("status", {}).get("operationState", {}).get("startedAt")) for one in record.versions}
    assert [one for one in starts if one.startswith("2026-01-01T03:")]
    nodes = [one.obj for one in record.versions if one.ref.kind == "Node" and one.ref.name == "node-1"]
    conditions = [one for node in nodes for one in node["status"].get("conditions", ()) if one["type"] == "Ready"]
    assert "Unknown" in {one["status"] for one in conditions} and conditions[-1]["status"] == "True"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("when: [{fault: {fullDisk: a, takes: 1m}}]\n", "when[0].fault: found the key 'takes'"),
        ("faults: boom@1\n", "'boom@1' is no fault such as kill@12"),
        ("when: [{commit: {}}]\n", "when[0]: found the key 'commit'; allowed: at, fault"),
        ("faults: kill@1\nwhen: {}\n", "when: found {}; allowed: a list"),
        (f"when: [{', '.join(['{fault: {fullDisk: a}}'] * 51)}]\n", "found 51 faults; allowed: at most 50"),
    ],
)
def test_a_file_of_faults_that_is_written_wrongly_is_refused(text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as error:
        faults_of(text, "faults.yaml")
    assert said in str(error.value) and "faults.yaml" in str(error.value)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("{}", "when[0].fault: found nothing; allowed: one of partition, slowPull"),
        ("{partition: a, fullDisk: b}", "found partition, fullDisk; allowed: one of"),
        ("{partition: A}", "fault.partition: found 'A'; allowed: the name of a node, gitops or machine-config"),
        ("{hookFails: migrate}", "found 'migrate'; allowed: NAMESPACE/NAME of a Job"),
        ("{webhookDown: 'a/../../b'}", "allowed: NAMESPACE/NAME of a Service"),
        ("{clock: node-1, by: 1h}", "fault.clock: found 'node-1'; allowed: gitops or machine-config"),
        ("{clock: gitops, by: -9999h}", "fault.by: found '-9999h'; allowed: a duration up to 8760h"),
        ("{clock: gitops}", "fault.by: found ''; allowed: a duration"),
        ("{failedBoot: a, times: 0}", "fault.times: found 0; allowed: a number from 1 to 100"),
        ("{slowPull: '*', takes: 48h}", "fault.takes: found '48h'; allowed: at most 24h"),
        ("{fullDisk: a, takes: 1m}", "found the key 'takes'; allowed: fullDisk, for"),
    ],
)
def test_a_fault_that_is_written_wrongly_is_refused(fault: str, said: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "shop.yaml").write_text(MAP)
    file = tmp_path / "shop.rehearsal.yaml"
    file.write_text(f"{HEAD}  when: [{{fault: {fault}}}]\n")
    with pytest.raises(ScenarioError) as error:
        read_cases(file)
    assert said in str(error.value), str(error.value)


def test_a_write_to_a_full_disk_fails_as_on_linux() -> None:
    machines = Machines()
    machine = machines.add(MachineSpec("worker"))
    host = SimulatedHosts(machines, VirtualClock()).host("worker")
    machine.fill_disk(True)
    with pytest.raises(HostError, match="no space left on device"):
        host.write("/etc/motd", b"hello")
    machine.fill_disk(False)
    host.write("/etc/motd", b"hello")


def test_what_waits_for_a_state_that_never_comes_fails_the_scenario_and_says_what_was_found(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "shop.yaml").write_text(MAP)
    file = tmp_path / "shop.rehearsal.yaml"
    when = "{once: {object: ConfigMap/colours, is: {data.sky: red}}, nodeOff: node-1}"
    file.write_text(f"{HEAD}{NODES}  when: [{when}]\n")
    (case,) = read_cases(file)
    result = run_case(case, 1, tmp_path / "scratch")
    assert "it never came to that: ConfigMap/shop/colours: data.sky is 'blue', not 'red'" in result.error
    file.write_text(f"{HEAD}{NODES}  when: [{{once: {{object: a/b}}, at: 1m, nodeOff: node-1}}]\n")
    with pytest.raises(ScenarioError, match=r"when\[0\].once: found once with at, commit or rollback"):
        read_cases(file)


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        ("fault: {fullDisk: gone}", "there is no node gone; allowed: node-1, node-2"),
        ("fault: {clock: machine-config, by: 1h}", "there is no process machine-config in this world"),
        ("fault: {webhookDown: default/kubernetes}", "Service default/kubernetes: answers no webhooks here"),
        ("delete: Pod/shop/web-*", "Pod/shop/web-*: there is no such object"),
        ("delete: Wizard/merlin", "the cluster serves no kind 'Wizard'"),
        ("sync: other", "Application other: it is not there"),
    ],
)
def test_what_happens_to_what_is_not_there_fails_the_scenario_and_names_what_is(
    happens: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "shop.yaml").write_text(MAP)
    file = tmp_path / "shop.rehearsal.yaml"
    file.write_text(f"{HEAD}{NODES}  when: [{{{happens}}}]\n")
    (case,) = read_cases(file)
    result = run_case(case, 1, tmp_path / "scratch")
    assert said in result.error and "scenarios[0].when[0]: " in result.error
