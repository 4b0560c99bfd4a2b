"""Add-ons made of templates: works with variables, rights on the hub, health by what works report, hooks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet.addons.hubs import (
    TEMPLATE_KIND,
    TEMPLATES,
    WIDE,
    WORKS,
    Addons,
    by,
    cluster_addon,
    managed,
    of_kind,
    supported,
)

from syncline.kube.objects import Obj, dig, name_of

WORK = WORKS.format("c1") + "/addon-a-deploy-0"
HOOK = WORKS.format("c1") + "/addon-a-pre-delete"
SINCE = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "", "reason": "R"}


def deployment(name: str = "agent", namespace: str = "site", **container: Any) -> Obj:
    pod = {"containers": [{"name": "c", "image": "quay.io/x/agent:1", **container}]}
    spec = {"replicas": 1, "selector": {}, "template": {"metadata": {}, "spec": pod}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def config_map(name: str, data: dict[str, str], **metadata: Any) -> Obj:
    at = {"name": name, "namespace": "site", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": at, "data": data}


def job(**metadata: Any) -> Obj:
    notes = {"addon.open-cluster-management.io/addon-pre-delete": ""}
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}}
    at = {"name": "clean", "namespace": "site", "annotations": notes, **metadata}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": at, "spec": spec}


def template(*manifests: Obj, registration: tuple[Obj, ...] = (), **agent: Any) -> Obj:
    spec = {"addonName": "a", "agentSpec": {"workload": {"manifests": list(manifests)}, **agent}}
    return of_kind("AddOnTemplate", "t", spec | ({"registration": list(registration)} if registration else {}))


CLIENT = {"type": "KubeClient", "kubeClient": {}}


class Templated(Addons):
    """A fleet with the add-on ``a`` of a template on cluster c1."""

    def install(self, made: Obj, config: str = "") -> None:
        self.placement("p")
        self.hub.send("POST", TEMPLATES, made)
        configs = (TEMPLATE_KIND | {"defaultConfig": {"name": "t"}}, *((supported(config),) if config else ()))
        self.hub.send("POST", WIDE, cluster_addon("a", by("p"), configs=configs))
        self.settle()

    def manifests(self) -> dict[str, Obj]:
        work = self.hub.get(WORK)
        return {one["kind"]: one for one in work["spec"]["workload"]["manifests"]}

    def pod(self) -> Obj:
        return dict(self.manifests()["Deployment"]["spec"]["template"]["spec"])

    def report(self, path: str, status: str = "True", *values: tuple[Obj, Obj], available: str = "") -> None:
        """Say as the agent of the cluster what became of a work; ``values``: feedback by resource."""
        at = self.hub.get(path)["metadata"]["generation"]
        conditions = [
            {"type": kind, "status": said, "observedGeneration": at, **SINCE}
            for kind, said in (("Applied", status), ("Available", available or status))
        ]
        manifests = [
            {
                "resourceMeta": {"ordinal": 0, **meta},
                "conditions": [],
                "statusFeedback": {
                    "values": [
                        {"name": name, "fieldValue": {"type": "Integer", "integer": value}}
                        if isinstance(value, int)
                        else {"name": name, "fieldValue": {"type": "String", "string": value}}
                        for name, value in found.items()
                    ]
                },
            }
            for meta, found in values
        ]
        self.hub.send(
            "PATCH",
            f"{path}/status",
            {"status": {"conditions": conditions, "resourceStatus": {"manifests": manifests}}},
        )
        self.settle()


@pytest.fixture
def fleet() -> Templated:
    return Templated("c1")


def test_the_manifests_of_a_template_become_a_work_with_the_values_of_the_cluster(fleet: Templated) -> None:
    fleet.install(template(config_map("m", {"k": "{{CLUSTER_NAME}}/{{GHOST}}"})))
    work = fleet.hub.get(WORK)
    assert work["spec"]["workload"]["manifests"][0]["data"] == {"k": "c1/"}
    assert work["metadata"]["labels"] == {"open-cluster-management.io/addon-name": "a"}
    (owner,) = work["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("ManagedClusterAddOn", "a")
    assert "addontemplates.addon.open-cluster-management.io//t" in str(work["metadata"]["annotations"])


def test_an_add_on_is_done_when_its_works_are_applied_and_available(fleet: Templated) -> None:
    fleet.install(template(config_map("m", {})))
    assert fleet.said("c1", "ManifestApplied") is None
    assert fleet.said("c1", "RegistrationApplied") == (
        "True",
        "SetPermissionApplied",
        "Registration of the addon agent is configured",
    )
    fleet.report(WORK, "False")
    text = "failed to apply the manifests of addon"
    assert fleet.said("c1", "ManifestApplied") == ("False", "AddonManifestAppliedFailed", text)
    assert fleet.said("c1", "Progressing") == ("True", "Progressing", "progressing... work is not ready")
    fleet.report(WORK)
    text = "manifests of addon are applied successfully"
    assert fleet.said("c1", "ManifestApplied") == ("True", "AddonManifestApplied", text)
    assert fleet.said("c1", "Progressing") == ("False", "Completed", "completed with no errors.")
    assert fleet.said("c1", "Available") == ("True", "ProbeAvailable", "a add-on is available.")
    (reference,) = fleet.addon("c1")["status"]["configReferences"]
    assert reference["lastAppliedConfig"] == reference["desiredConfig"]


RUNS = {"group": "apps", "resource": "deployments", "namespace": "site", "name": "agent"}


def test_an_add_on_is_available_by_what_its_deployment_reports(fleet: Templated) -> None:
    fleet.install(template(deployment()))
    assert fleet.addon("c1")["status"]["healthCheck"] == {"mode": "Customized"}
    fleet.report(WORK)
    assert fleet.said("c1", "Available") == ("Unknown", "NoProbeResult", "Probe results are not returned")
    fleet.report(WORK, "True", (RUNS, {"ReadyReplicas": 0, "Replicas": 1}))
    why = "desiredNumberReplicas is 1 but readyReplica is 0 for deployments site/agent"
    assert fleet.said("c1", "Available") == ("False", "ProbeUnavailable", f"Probe addon unavailable with err {why}")
    fleet.report(WORK, "True", (RUNS, {"ReadyReplicas": 1, "Replicas": 3}))
    assert fleet.said("c1", "Available") == ("True", "ProbeAvailable", "a add-on is available.")


def test_a_deployment_config_changes_pods_and_namespaces(fleet: Templated) -> None:
    fleet.config(
        "d",
        agentInstallNamespace="elsewhere",
        customizedVariables=[{"name": "LOG", "value": 'say "hi"'}],
        nodePlacement={"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
        registries=[{"source": "quay.io/x", "mirror": "mirror.test/y"}],
        proxyConfig={"httpsProxy": "http://proxy:3128", "caBundle": "Q0E="},
        resourceRequirements=[{"containerID": "*:*:c", "resources": {"limits": {"memory": "64Mi"}}}],
    )
    fleet.install(template(deployment(args=["{{LOG}}"]), registration=(CLIENT,)), "d")
    pod, made = fleet.pod(), fleet.manifests()
    (container,) = pod["containers"]
    assert made["Deployment"]["metadata"]["namespace"] == "elsewhere"
    assert container["args"] == ['say "hi"'], "a value is a text, whatever it holds"
    assert container["image"] == "mirror.test/y/agent:1"
    assert container["resources"] == {"limits": {"memory": "64Mi"}}
    assert {one["name"]: one["value"] for one in container["env"]} == {
        "HUB_KUBECONFIG": "/managed/hub-kubeconfig/kubeconfig",
        "CLUSTER_NAME": "c1",
        "INSTALL_NAMESPACE": "elsewhere",
        "HTTPS_PROXY": "http://proxy:3128",
        "https_proxy": "http://proxy:3128",
        "CA_BUNDLE_FILE_PATH": "/managed/proxy-ca/ca-bundle.crt",
    }
    assert [dig(one, "secret", "secretName") or dig(one, "configMap", "name") for one in pod["volumes"]] == [
        "a-hub-kubeconfig",
        "a-proxy-ca",
    ]
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"disk": "ssd"}, [{"key": "k", "operator": "Exists"}])
    assert made["ConfigMap"]["data"] == {"ca-bundle.crt": "CA"}
    assert fleet.addon("c1")["status"]["namespace"] == "elsewhere"


def test_a_changed_template_changes_the_work_and_what_is_left_out_goes(fleet: Templated) -> None:
    fleet.install(template(config_map("m", {"k": "1"}), config_map("n", {})))
    changed = template(config_map("m", {"k": "2"}))
    fleet.hub.send("PATCH", f"{TEMPLATES}/t", {"spec": changed["spec"]})
    fleet.settle()
    assert [one["data"] for one in fleet.hub.get(WORK)["spec"]["workload"]["manifests"]] == [{"k": "2"}]


def test_the_agent_of_an_add_on_gets_the_rights_of_its_template_under_its_name(fleet: Templated) -> None:
    fleet.hub.send(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared"}}
    )
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    permissions = [
        {"type": "CurrentCluster", "currentCluster": {"clusterRoleName": "edit"}},
        {"type": "SingleNamespace", "singleNamespace": {"namespace": "shared", "roleRef": role}},
    ]
    registration = {"type": "KubeClient", "kubeClient": {"hubPermissions": permissions}}
    fleet.install(template(config_map("m", {}), registration=(registration,)))
    user = "system:open-cluster-management:cluster:c1:addon:a:agent:a-agent"
    (asked,) = fleet.addon("c1")["status"]["registrations"]
    assert asked["subject"]["user"] == user
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces"
    here = fleet.hub.get(f"{rbac}/c1/rolebindings/open-cluster-management:a:clusterrole:agent")
    there = fleet.hub.get(f"{rbac}/shared/rolebindings/open-cluster-management:a:role:agent")
    assert (here["roleRef"]["name"], there["roleRef"]["name"]) == ("edit", "reader")
    assert [one["name"] for one in here["subjects"]] == [user, *asked["subject"]["groups"]]


def test_hosted_mode_is_refused_in_the_status_and_deploys_nothing(fleet: Templated) -> None:
    key = "addon.open-cluster-management.io/hosting-cluster-name"
    fleet.hub.send(
        "PATCH",
        "/apis/cluster.open-cluster-management.io/v1/managedclusters/c1",
        {"metadata": {"annotations": {key: "h"}}},
    )
    fleet.install(template(config_map("m", {})))
    said = fleet.said("c1", "HostingManifestApplied")
    assert said is not None
    assert said[:2] == ("False", "HostedModeNotSupported")
    assert fleet.hub.absent(WORK)


def test_hooks_run_before_an_add_on_goes_and_its_works_after_them(fleet: Templated) -> None:
    fleet.install(template(config_map("m", {}), job()))
    assert [one["kind"] for one in fleet.hub.get(WORK)["spec"]["workload"]["manifests"]] == ["ConfigMap"]
    assert fleet.addon("c1")["metadata"]["finalizers"] == ["addon.open-cluster-management.io/addon-pre-delete"]
    assert fleet.hub.absent(HOOK)
    fleet.hub.send("DELETE", f"{WIDE}/a")
    fleet.hub.send("DELETE", managed("c1", "a"))
    fleet.settle()
    assert [name_of(one) for one in fleet.hub.get(HOOK)["spec"]["workload"]["manifests"]] == ["clean"]
    text = "hook manifestWork addon-a-pre-delete is not completed."
    assert fleet.said("c1", "HookManifestCompleted") == ("False", "HookManifestIsNotCompleted", text)
    done = {"group": "batch", "resource": "jobs", "namespace": "site", "name": "clean"}
    fleet.report(HOOK, "True", (done, {"JobComplete": "False"}))
    assert not fleet.hub.absent(WORK), "the agent needs its manifests while hooks run"
    fleet.report(HOOK, "True", (done, {"JobComplete": "True"}))
    fleet.settle(60)
    assert fleet.hub.absent(managed("c1", "a"))
    assert (fleet.hub.absent(WORK), fleet.hub.absent(HOOK)) == (True, True)


def test_manifests_that_stay_after_the_add_on_are_orphaned_by_the_work(fleet: Templated) -> None:
    kept = config_map("m", {}, annotations={"addon.open-cluster-management.io/deletion-orphan": ""})
    fleet.install(template(kept))
    rules = fleet.hub.get(WORK)["spec"]["deleteOption"]["selectivelyOrphans"]["orphaningRules"]
    assert rules == [{"group": "", "resource": "configmaps", "name": "m", "namespace": "site"}]
