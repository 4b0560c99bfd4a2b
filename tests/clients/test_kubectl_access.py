"""The machine's kubectl, unmodified: what is served, custom resources, and who may do what."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.clients.kubectl import WAIT, Kubectl, needs_kubectl
from tests.clients.manifests import widget, widgets

from syncline.kube.objects import Obj

pytestmark = needs_kubectl

GROUP = "shop.example"


# -- what is served --------------------------------------------------------------------------------------------------


def test_api_resources_and_versions_list_what_is_served(kubectl: Kubectl) -> None:
    lines = {line.split()[0]: line.split() for line in kubectl("api-resources --no-headers").splitlines()}
    assert lines["deployments"] == ["deployments", "deploy", "apps/v1", "true", "Deployment"]
    assert lines["nodes"] == ["nodes", "no", "v1", "false", "Node"]
    wide = kubectl("api-resources --api-group=batch -o wide --no-headers")
    assert "create,delete,deletecollection,get,list,patch,update,watch" in wide
    versions = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "batch/v1", "policy/v1", "rbac.authorization.k8s.io/v1"} <= set(versions)


def test_explain_describes_fields_of_built_in_kinds(kubectl: Kubectl) -> None:
    told = kubectl("explain pods.spec.containers.resources.requests")
    assert "FIELD: requests <map[string]Quantity>" in told and "minimum amount of compute resources" in told
    tree = kubectl("explain deployment --recursive")
    assert "  spec\t<DeploymentSpec>\n    minReadySeconds\t<integer>" in tree
    assert "does not exist" in kubectl.refused("explain pods.spec.nothing")


def test_the_server_tells_its_version_health_and_address(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36" in kubectl("version")
    assert kubectl("get --raw /readyz") == "ok"
    assert "readyz check passed" in kubectl("get --raw /readyz?verbose")
    assert kubectl.url in kubectl("cluster-info")
    assert '"kind":"PodList"' in kubectl("get --raw /api/v1/pods?limit=1")


# -- custom resources ------------------------------------------------------------------------------------------------


@pytest.fixture
def shop(kubectl: Kubectl) -> Iterator[Kubectl]:
    kubectl("apply -f -", stdin=widgets(GROUP))
    kubectl(f"wait --for=condition=Established crd/widgets.{GROUP} {WAIT}")
    yield kubectl
    kubectl.tried(f"delete crd widgets.{GROUP} --ignore-not-found")


def test_custom_resources_are_created_with_defaults_and_shown_in_their_columns(shop: Kubectl) -> None:
    assert shop("create -f -", stdin=widget(GROUP, "w", size=4)).strip() == f"widget.{GROUP}/w created"
    header, row = (line.split() for line in shop("get wd").splitlines())
    assert (header, row) == (["NAME", "SIZE"], ["w", "4"])
    assert shop("get widgets -o wide --no-headers").split() == ["w", "4", "red"]
    assert "Colour:  red" in shop(f"describe widgets.{GROUP} w")


def test_custom_resources_are_explained_by_their_schema(shop: Kubectl) -> None:
    told = shop("explain widget.spec")
    assert "What is wanted." in told and "size\t<integer> -required-" in told and "enum: red, green" in told
    assert "preserve" not in shop("explain widget --recursive")


def test_invalid_custom_resources_are_refused_with_the_field_and_the_rule(shop: Kubectl) -> None:
    shop("apply -f -", stdin=widget(GROUP, "w", size=4))
    assert "spec: Invalid value: " in (said := shop.refused("apply -f -", stdin=widget(GROUP, "w", size=3)))
    assert "size must be even" in said
    assert "spec.size: Required value" in shop.refused("create -f -", stdin=widget(GROUP, "x", colour="red"))
    wrong = shop.refused("create -f -", stdin=widget(GROUP, "x", size=2, colour="blue"))
    assert 'spec.colour: Unsupported value: "blue": supported values: "red", "green"' in wrong
    assert 'unknown field "spec.extra"' in shop.refused("create -f -", stdin=widget(GROUP, "x", size=2, extra=1))
    assert "field not declared in schema" in shop.refused(
        "apply --server-side -f -", stdin=widget(GROUP, "x", size=2, extra=1)
    )


def test_custom_resources_are_scaled_patched_and_waited_for(shop: Kubectl) -> None:
    shop("apply --server-side -f -", stdin=widget(GROUP, "w", size=4, replicas=1))
    assert shop("scale widget w --replicas=3").strip() == f"widget.{GROUP}/w scaled"
    shop("patch widget w --type=merge -p", '{"spec":{"colour":"green"}}')
    shop("patch widget w --subresource=status --type=merge -p", '{"status":{"ready":true}}')
    shop(f"wait --for=jsonpath={{.status.ready}}=true widget/w {WAIT}")
    assert "is not supported" in shop.refused("patch widget w -p", '{"spec":{"size":2}}')
    found = shop.json("get widget w")
    assert found["spec"] == {"colour": "green", "replicas": 3, "size": 4}
    assert found["metadata"]["generation"] == 3, "status moves no generation"


def test_a_definition_takes_its_objects_along(shop: Kubectl) -> None:
    shop("create -f -", stdin=widget(GROUP, "w", size=4))
    shop(f"delete crd widgets.{GROUP}")
    shop("apply -f -", stdin=widgets(GROUP))
    shop(f"wait --for=condition=Established crd/widgets.{GROUP} {WAIT}")
    assert shop(f"get widgets.{GROUP} -o name") == ""


# -- who may do what -------------------------------------------------------------------------------------------------


def test_can_i_answers_for_me_for_others_and_as_a_list(kubectl: Kubectl) -> None:
    kubectl("create serviceaccount reader")
    kubectl("create role reader --verb=get,list --resource=pods,deployments.apps")
    kubectl(f"create rolebinding reader --role=reader --serviceaccount={kubectl.namespace}:reader")
    reader = f"--as=system:serviceaccount:{kubectl.namespace}:reader"
    assert kubectl("auth can-i delete nodes") == "yes\n"
    assert kubectl(f"auth can-i list pods {reader}") == "yes\n"
    assert kubectl.tried(f"auth can-i delete pods {reader}").out == "no\n"
    rows = [line.split() for line in kubectl(f"auth can-i --list {reader}").splitlines()]
    assert ["deployments.apps", "[]", "[]", "[get", "list]"] in rows
    assert "kubernetes-admin" in kubectl("auth whoami")
    said = kubectl.refused(f"get secrets {reader}")
    assert f'User "system:serviceaccount:{kubectl.namespace}:reader" cannot list resource "secrets"' in said


def test_a_token_of_a_service_account_is_a_way_in(kubectl: Kubectl) -> None:
    kubectl("create serviceaccount robot")
    kubectl(f"create rolebinding robot --clusterrole=view --serviceaccount={kubectl.namespace}:robot")
    token = kubectl("create token robot --duration=10m").strip()
    ca = kubectl("config view --raw -o jsonpath={.clusters[0].cluster.certificate-authority-data}")
    robot = Kubectl(_kubeconfig(kubectl, token, ca), kubectl.home, kubectl.namespace, kubectl.url)
    assert f"system:serviceaccount:{kubectl.namespace}:robot" in robot("auth whoami")
    kubectl(f"wait --for=create configmap/kube-root-ca.crt {WAIT}")
    assert robot("get configmaps -o name").strip() == "configmap/kube-root-ca.crt"
    assert "is forbidden" in robot.refused("create configmap c")
    wrong = Kubectl(_kubeconfig(kubectl, "not-a-token", ca), kubectl.home, kubectl.namespace, kubectl.url)
    assert "Unauthorized" in wrong.refused("get pods")


def _kubeconfig(kubectl: Kubectl, token: str, ca: str) -> Path:
    path = kubectl.home / f"{kubectl.namespace}-{len(token)}.config"
    path.write_text(
        f'{{"apiVersion":"v1","kind":"Config","current-context":"c",'
        f'"clusters":[{{"name":"c","cluster":{{"server":"{kubectl.url}","certificate-authority-data":"{ca}"}}}}],'
        f'"users":[{{"name":"u","user":{{"token":"{token}"}}}}],'
        f'"contexts":[{{"name":"c","context":{{"cluster":"c","user":"u"}}}}]}}'
    )
    return path


def test_reconcile_gives_rights_once(kubectl: Kubectl) -> None:
    role: Obj = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": kubectl.namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    assert "reconciled" in kubectl("auth reconcile -f -", stdin=role)
    role["rules"][0]["verbs"] = ["list"]
    kubectl("auth reconcile -f -", stdin=role)
    verbs = [rule["verbs"] for rule in kubectl.json("get role r")["rules"]]
    assert sorted(verb for each in verbs for verb in each) == ["get", "list"]


def test_an_approved_certificate_request_is_signed(kubectl: Kubectl) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, "jo"), x509.NameAttribute(NameOID.ORGANIZATION_NAME, "devs")]
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    spec = {
        "request": b64encode(request.public_bytes(serialization.Encoding.PEM)).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    name = kubectl.namespace
    body = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name}}
    kubectl("create -f -", stdin=body | {"spec": spec})
    assert kubectl(f"get csr {name} --no-headers").split()[-1] == "Pending"
    assert "approved" in kubectl(f"certificate approve {name}")
    kubectl(f"wait --for=jsonpath={{.status.certificate}} csr/{name} {WAIT}")
    assert kubectl(f"get csr {name} --no-headers").split()[-1] == "Approved,Issued"
