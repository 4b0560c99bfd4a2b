"""The machine's kubectl, unmodified: objects are created, applied, read, watched, changed, edited and deleted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from tests.clients.kubectl import WAIT, Kubectl, documents, needs_kubectl, until
from tests.clients.manifests import config, deployment, service

pytestmark = needs_kubectl

GENERATED = {
    "configmap made --from-literal=a=1": "configmap/made created",
    "secret generic made --from-literal=p=x": "secret/made created",
    "secret docker-registry made2 --docker-server=x --docker-username=u --docker-password=p": "secret/made2 created",
    "serviceaccount made": "serviceaccount/made created",
    "role made --verb=get --resource=pods,deployments.apps": "role.rbac.authorization.k8s.io/made created",
    "rolebinding made --role=made --serviceaccount=a:b": "rolebinding.rbac.authorization.k8s.io/made created",
    "quota made --hard=pods=100": "resourcequota/made created",
    "poddisruptionbudget made --selector=a=b --min-available=1": "poddisruptionbudget.policy/made created",
    "job made --image=busybox -- true": "job.batch/made created",
    "cronjob made --image=busybox --schedule=@daily -- true": "cronjob.batch/made created",
    "job made2 --from=cronjob/made": "job.batch/made2 created",
    "service clusterip made --tcp=80:8080": "service/made created",
    "service nodeport made2 --tcp=80:8080": "service/made2 created",
    "service loadbalancer made3 --tcp=80:8080": "service/made3 created",
    "service externalname made4 --external-name=x.example": "service/made4 created",
    "ingress made --rule=x.example/a=made:80": "ingress.networking.k8s.io/made created",
    "deployment made --image=shop:1 --port=80": "deployment.apps/made created",
}


def test_every_generator_creates_its_object_and_says_so(kubectl: Kubectl) -> None:
    said = {command: kubectl(f"create {command}").strip() for command in GENERATED}
    assert said == GENERATED
    assert "endpoints/made4" not in kubectl("get endpoints -o name"), "an ExternalName has no endpoints"


def test_create_takes_several_documents_and_names_what_exists_already(kubectl: Kubectl) -> None:
    both = [config("one", a="1"), config("two", a="2")]
    assert kubectl("create -f -", stdin=both).split() == ["configmap/one", "created", "configmap/two", "created"]
    assert 'configmaps "one" already exists' in kubectl.refused("create -f -", stdin=both)


def test_a_manifest_with_an_unknown_field_is_refused_with_the_field(kubectl: Kubectl) -> None:
    wrong = deployment()
    wrong["spec"]["replica"] = 2
    assert 'unknown field "spec.replica"' in kubectl.refused("create -f -", stdin=wrong)


def test_apply_creates_then_changes_nothing_then_prunes_the_field_that_left(kubectl: Kubectl) -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    first, second = deployment(env=env), deployment(env=env[:1])
    assert kubectl("apply -f -", stdin=first).strip() == "deployment.apps/web created"
    assert kubectl("apply -f -", stdin=first).strip() == "deployment.apps/web unchanged"
    kubectl("scale deployment/web --replicas=3")
    del second["spec"]["replicas"]
    assert kubectl("apply -f -", stdin=second).strip() == "deployment.apps/web configured"
    spec = kubectl.json("get deployment web")["spec"]
    assert spec["template"]["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]
    assert spec["replicas"] == 1, "a field that leaves the manifest gets its default"


def test_apply_prune_deletes_what_left_the_set(kubectl: Kubectl) -> None:
    first, second = config("one", a="1"), config("two", a="1")
    for each in (first, second):
        each["metadata"]["labels"] = {"set": "x"}
    kubectl("apply -f -", stdin=[first, second])
    command = f"apply --prune -l set=x --prune-allowlist=core/v1/ConfigMap -n {kubectl.namespace} -f -"
    assert "configmap/two pruned" in kubectl(command, stdin=[first])


def test_diff_shows_what_apply_would_change_and_ends_with_one(kubectl: Kubectl) -> None:
    kubectl("apply -f -", stdin=[deployment(), service("web")])
    assert kubectl("diff -f -", stdin=[deployment(), service("web")]) == ""
    said = kubectl.tried("diff -f -", stdin=[deployment(image="shop:2"), service("web")])
    changed = [line.split("image: ")[1] for line in said.lines if line[0] in "-+" and "image: " in line]
    assert (said.code, changed) == (1, ["shop:1", "shop:2"])
    assert kubectl("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}") == "shop:1"


def test_server_side_apply_names_the_manager_in_the_way_and_takes_over_by_force(kubectl: Kubectl) -> None:
    kubectl("apply --server-side --field-manager=first -f -", stdin=config("c", a="1", b="1"))
    said = kubectl.refused("apply --server-side --field-manager=second -f -", stdin=config("c", a="2"))
    assert 'conflict with "first": .data.a' in said
    kubectl("apply --server-side --field-manager=second --force-conflicts -f -", stdin=config("c", a="2"))
    kubectl("apply --server-side --field-manager=first -f -", stdin=config("c", b="1"))
    found = kubectl.json("get configmap c --show-managed-fields")
    assert found["data"] == {"a": "2", "b": "1"}
    assert [(each["manager"], each["operation"]) for each in found["metadata"]["managedFields"]] == [
        ("first", "Apply"),
        ("second", "Apply"),
    ]


def test_server_side_apply_after_client_side_apply_keeps_and_prunes_the_same_fields(kubectl: Kubectl) -> None:
    kubectl("apply -f -", stdin=config("c", a="1", b="1"))
    kubectl("apply --server-side -f -", stdin=config("c", a="1"))
    assert kubectl.json("get configmap c")["data"] == {"a": "1"}


def test_dry_runs_of_client_and_server_write_nothing(kubectl: Kubectl) -> None:
    assert "created (dry run)" in kubectl("apply --dry-run=client -f -", stdin=config("c", a="1"))
    assert "created (server dry run)" in kubectl("apply --dry-run=server -f -", stdin=config("c", a="1"))
    assert kubectl("create deployment d --image=x --dry-run=server -o jsonpath={.spec.strategy.type}")
    assert "NotFound" in kubectl.refused("get configmap c")


def test_last_applied_is_shown_and_set(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=config("c", a="1"))
    kubectl("apply set-last-applied --create-annotation -f -", stdin=config("c", a="1"))
    assert 'a: "1"' in kubectl("apply view-last-applied configmap/c")


def test_kustomizations_are_applied_compared_and_deleted(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(documents(config("c", a="1")))
    (tmp_path / "kustomization.yaml").write_text(
        "resources: [c.yaml]\nnamePrefix: k-\nconfigMapGenerator: [{name: g, literals: [a=b]}]\n"
    )
    said = kubectl(f"apply -k {tmp_path}")
    assert "configmap/k-c created" in said and "configmap/k-g-4h2mbtbbt6 created" in said
    assert kubectl(f"diff -k {tmp_path}") == ""
    assert 'configmap "k-c" deleted' in kubectl(f"delete -k {tmp_path}")


def test_get_prints_what_each_output_form_asks_for(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=[config("one", a="1"), config("two", b="2"), service("web")])
    assert kubectl("get configmaps one two -o name").split() == ["configmap/one", "configmap/two"]
    assert kubectl("get configmap one -o jsonpath={.data.a}") == "1"
    assert kubectl("get configmap one -o", "go-template={{.data.a}}") == "1"
    assert kubectl("get configmap one -o yaml").startswith('apiVersion: v1\ndata:\n  a: "1"\n')
    columns = kubectl("get service web -o", "custom-columns=N:.metadata.name,P:.spec.ports[*].port")
    assert [line.split() for line in columns.splitlines()] == [["N", "P"], ["web", "80"]]
    wide = kubectl("get service web -o wide").splitlines()
    assert wide[0].split() == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE", "SELECTOR"]
    assert wide[1].endswith("app=web")
    assert kubectl("get nodes --sort-by=.metadata.name -o name").split()[0] == "node/node-1"
    assert len(kubectl("get configmaps --chunk-size=1 -o name").split()) == 3


def test_get_selects_by_labels_fields_and_all_namespaces(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=[config("one", a="1"), config("two", a="1")])
    kubectl("label configmap one tier=front")
    name = "configmap/one"
    assert kubectl("get configmaps -l tier=front -o name").strip() == name
    assert kubectl("get configmaps -o name -l", "tier in (front,back)").strip() == name
    assert (
        kubectl("get configmaps -l tier!=front --field-selector metadata.name=two -o name").strip() == "configmap/two"
    )
    everywhere = kubectl(f"get configmaps -A --field-selector metadata.namespace={kubectl.namespace} --no-headers")
    assert len(everywhere.splitlines()) == 3, "kube-root-ca.crt, one, two"
    assert "FRONT" not in kubectl("get configmaps -L tier --show-labels") and "front" in kubectl(
        "get configmaps -L tier"
    )


def test_get_of_what_is_not_there_says_what_is_not_there(kubectl: Kubectl) -> None:
    assert 'deployments.apps "nope" not found' in kubectl.refused("get deployment nope")
    assert kubectl("get deployment nope --ignore-not-found") == ""
    assert "doesn't have a resource type" in kubectl.refused("get nopes")
    assert "No resources found in" in kubectl.tried("get deployments").err


def test_watches_show_what_is_there_and_then_every_change(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=config("one", a="1"))
    with kubectl.running("get configmaps -w --output-watch-events") as lines:
        until(lines, "ADDED", "one")
        kubectl("label configmap one a=b")
        until(lines, "MODIFIED", "one")
        kubectl("delete configmap one")
        until(lines, "DELETED", "one")


def test_watch_only_leaves_out_what_is_there(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=config("old", a="1"))
    observed = Event()

    def touch() -> None:
        """The watch begins a little after its process: change until it is seen."""
        while not observed.is_set():
            kubectl("create configmap new")
            kubectl("delete configmap new")

    with kubectl.running("get configmaps --watch-only -o name") as lines, ThreadPoolExecutor(1) as pool:
        touching = pool.submit(touch)
        try:
            found = until(lines, "configmap/new")
        finally:
            observed.set()
        touching.result()
    assert "configmap/old" not in found


def test_four_kinds_of_patch_change_what_they_name(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=0, env=[{"name": "A", "value": "1"}]))
    strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"B","value":"2"}]}]}}}}'
    kubectl("patch deployment web -p", strategic)
    kubectl("patch deployment web --type=merge -p", '{"metadata":{"annotations":{"why":"merge"}}}')
    kubectl("patch deployment web --type=json -p", '[{"op":"add","path":"/spec/paused","value":true}]')
    kubectl("patch deployment web --subresource=scale --type=merge -p", '{"spec":{"replicas":1}}')
    found = kubectl.json("get deployment web")
    env = {each["name"]: each["value"] for each in found["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert (env, found["metadata"]["annotations"]["why"]) == ({"A": "1", "B": "2"}, "merge")
    assert (found["spec"]["replicas"], found["spec"]["paused"]) == (1, True)
    assert kubectl("patch deployment web -p", '{"metadata":{"annotations":{"why":"merge"}}}').endswith("(no change)\n")


def test_a_patch_that_makes_an_object_invalid_is_refused_with_the_field(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=0))
    said = kubectl.refused("patch deployment web --type=merge -p", '{"spec":{"replicas":-1}}')
    assert "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in said
    said = kubectl.refused("patch deployment web -p", '{"spec":{"selector":{"matchLabels":{"a":"b"}}}}')
    assert "field is immutable" in said


def test_labels_and_annotations_are_set_kept_overwritten_and_removed(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=config("c", a="1"))
    assert kubectl("label configmap c tier=a").strip() == "configmap/c labeled"
    assert "already has a value (a), and --overwrite is false" in kubectl.refused("label configmap c tier=b")
    kubectl("label configmap c tier=b --overwrite")
    kubectl("annotate configmap c note=x")
    assert kubectl("get configmap c -o", "jsonpath={.metadata.labels.tier} {.metadata.annotations.note}") == "b x"
    assert kubectl("label configmap c tier-").strip() == "configmap/c unlabeled"
    assert "tier" not in kubectl("get configmap c -o yaml")


def test_edit_sends_what_the_editor_changed(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=config("c", a="before"))
    assert "edited" in kubectl("edit configmap c", KUBE_EDITOR="sed -i s/before/after/")
    assert kubectl("get configmap c -o jsonpath={.data.a}") == "after"
    assert "no changes made" in kubectl.tried("edit configmap c", KUBE_EDITOR="true").err


def test_replace_puts_the_whole_object_and_by_force_makes_it_anew(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=config("c", a="1", b="1"))
    first = kubectl.json("get configmap c")
    kubectl("replace -f -", stdin=config("c", a="2"))
    second = kubectl.json("get configmap c")
    kubectl("replace --force -f -", stdin=config("c", a="3"))
    third = kubectl.json("get configmap c")
    assert (second["data"], third["data"]) == ({"a": "2"}, {"a": "3"})
    assert first["metadata"]["uid"] == second["metadata"]["uid"] != third["metadata"]["uid"]
    first["data"] = {"a": "4"}
    assert "Precondition failed: UID in precondition" in kubectl.refused("replace -f -", stdin=second)


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_delete_cascades_to_what_the_object_owns(kubectl: Kubectl, cascade: str) -> None:
    kubectl("create -f -", stdin=deployment(replicas=1))
    kubectl(f"wait --for=create replicasets -l app=web {WAIT}")
    assert kubectl(f"delete deployment web --cascade={cascade}").startswith('deployment.apps "web" deleted')
    kubectl(f"wait --for=delete replicasets,pods -l app=web {WAIT}")
    assert kubectl("get replicasets,pods -o name") == ""


def test_delete_leaves_orphans_where_asked(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=deployment(replicas=1))
    kubectl(f"rollout status deployment/web {WAIT}")
    kubectl("delete deployment web --cascade=orphan")
    (orphan,) = kubectl.json("get replicasets -l app=web")["items"]
    assert "ownerReferences" not in orphan["metadata"]
    assert kubectl("get pods -l app=web -o name")


def test_delete_by_label_by_file_and_by_force(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=[config("one", a="1"), config("two", a="1")])
    kubectl("label configmap one gone=yes")
    assert kubectl("delete configmaps -l gone=yes").startswith('configmap "one" deleted')
    assert kubectl("delete -f -", stdin=config("two", a="1")).startswith('configmap "two" deleted')
    kubectl("run p --image=shop:1")
    kubectl(f"wait --for=condition=Ready pod/p {WAIT}")
    assert "force deleted" in kubectl("delete pod p --force --grace-period=0")
    assert 'pods "p" not found' in kubectl.refused("delete pod p")


def test_a_namespace_takes_everything_in_it_along(kubectl: Kubectl) -> None:
    kubectl("create -f -", stdin=[config("one", a="1"), deployment(replicas=1)])
    assert kubectl(f"delete namespace {kubectl.namespace} {WAIT}").endswith("deleted\n")
    assert "NotFound" in kubectl.refused(f"get namespace {kubectl.namespace}")
