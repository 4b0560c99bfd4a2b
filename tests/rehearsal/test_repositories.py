"""Repositories as people have them: which Applications a person creates, which addresses are theirs, what others do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from syncline.apply.health.check import health_of
from syncline.cli.views.rehearsal.text import describe_answer
from syncline.kube.objects import Obj
from syncline.rehearsal.answer.answer import Answer, Doing, Outcome
from syncline.rehearsal.given.applications import Applications, addresses_of, applications_of
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import default_world, parse_world
from syncline.rehearsal.playing import Asked
from syncline.rehearsal.rehearsing import Settings, rehearse
from syncline.rehearsal.standingin import healthy_status

URL = "https://git.example.com/platform.git"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\ndata: {sky: blue}\n"
LATER = "argocd.argoproj.io/sync-wave: '1'"
USER = "secretKeyRef: {name: shop, key: user"
V = ("v1", "v1beta1")
QUICK = Settings(ranged=False, cures=False)
ONE_NODE = "nodes: [{name: node}]\n"
ROUTE = """\
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop}
spec: {host: shop.example.com, to: {kind: Service, name: shop}}
"""
CLAIMING = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: shop
        image: shop
        env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: shop, key: password}}}]
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""


def application(name: str, path: str, url: str = URL, revision: str = "HEAD", namespace: str = "") -> str:
    place = f", namespace: {namespace}" if namespace else ""
    source = f"{{repoURL: '{url}', path: '{path}', targetRevision: '{revision}'}}"
    where = "{server: 'https://kubernetes.default.svc', namespace: default}"
    return f"""\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}{place}}}
spec: {{project: default, source: {source}, destination: {where}, syncPolicy: {{automated: {{}}}}}}
"""


def files(**texts: str) -> Files:
    """Return files by path; ``__`` stands for a slash."""
    return Files({f"{path.replace('__', '/')}.yaml": text.encode() for path, text in texts.items()})


def found_in(given: Files) -> Applications:
    return applications_of(given, "repository")


def names(found: Applications) -> list[str]:
    return [obj["metadata"]["name"] for obj in found.objects]


def answered(given: Files, folder: Path, world: str = "") -> Answer:
    made = parse_world(world, Path("world.yaml"), Files({})) if world else default_world(given)
    return rehearse(Asked("repository", given, made), folder, QUICK)


# -- which Applications a person creates -------------------------------------------------------------------------------


def test_an_application_that_brings_itself_is_created_by_a_person() -> None:
    given = files(apps__root=application("root", "apps"), apps__web=application("web", "web"), web__map=MAP)
    assert names(found_in(given)) == ["root"]


def test_of_applications_that_bring_one_another_the_one_in_the_highest_folder_is_created() -> None:
    given = files(top__one=application("one", "top/below"), top__below__two=application("two", "top"))
    assert names(found_in(given)) == ["one"]


@pytest.mark.parametrize(("listed", "created"), [("[map.yaml]", ["argocd", "root"]), ("[root.yaml]", ["argocd"])])
def test_a_kustomization_brings_what_it_lists_and_nothing_else_of_its_folder(listed: str, created: list[str]) -> None:
    given = files(
        argocd__kustomization=f"resources: {listed}\n",
        argocd__root=application("root", "apps"),
        argocd__map=MAP,
        first=application("argocd", "argocd"),
        apps__map=MAP,
    )
    assert sorted(names(found_in(given))) == created


def test_a_folder_brings_what_is_in_it_and_what_is_below_only_if_it_recurses() -> None:
    given = files(first=application("first", "apps"), apps__deep__web=application("web", "web"), web__map=MAP)
    assert names(found_in(given)) == ["web", "first"]
    deep = given.text("first.yaml").replace("targetRevision", "directory: {recurse: true}, targetRevision")
    assert names(found_in(given.changed({"first.yaml": deep}))) == ["first"]


def test_a_set_brings_what_is_in_the_folders_that_it_lists() -> None:
    listed = f"[{{git: {{repoURL: '{URL}', directories: [{{path: 'teams/*'}}]}}}}]"
    template = application("team", "{{path}}").partition("metadata:")[2].replace("\n", "\n    ")
    head = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: teams}\n"
    given = files(
        set=f"{head}spec:\n  generators: {listed}\n  template:\n    metadata:{template.rstrip()}\n",
        teams__a__web=application("web", "web"),
        other__own=application("own", "web"),
        web__map=MAP,
    )
    assert names(found_in(given)) == ["own", "teams"]


# -- whose addresses they are ------------------------------------------------------------------------------------------


def test_a_source_of_all_of_another_repository_is_not_this_one() -> None:
    own, other, same = (
        {"repoURL": url, "path": "."} for url in (URL, "https://a.example/x", "git@b.example:c/platform")
    )
    given = files(web__map=MAP)
    assert addresses_of(given, [own | {"path": "web"}, other, same]) == ("git@b.example:c/platform", URL)
    assert addresses_of(given, [own, other], ["ssh://git@git.example.com/platform"]) == (URL,)
    assert addresses_of(given, [other]) == ("https://a.example/x",), "nothing says that it is another one"


def test_applications_are_rehearsed_where_they_are_at_the_branch_that_they_track(tmp_path: Path) -> None:
    given = files(first=application("first", "web", revision="master", namespace="openshift-gitops"), web__map=MAP)
    answer = answered(given, tmp_path)
    assert answer.outcome is Outcome.SAFE, answer.headline
    assert f"revision master of {URL} is what is rehearsed" in answer.assumed


def test_an_address_that_only_a_build_brings_is_known_by_its_path(tmp_path: Path) -> None:
    edit = f"    - op: replace\n      path: /spec/source/repoURL\n      value: {URL}\n"
    moved = f"- target: {{kind: Application}}\n  patch: |\n{edit}"
    given = files(
        first=application("first", "apps", "https://a.example/apps"),
        apps__kustomization=f"resources: [web.yaml]\npatches:\n{moved}",
        apps__web=application("web", "web", "replaced", namespace="argocd"),
        web__map=MAP,
    )
    answer = answered(given, tmp_path)
    assert answer.outcome is Outcome.SAFE, answer.headline
    assert f"{URL} is this repository, which has the folder web" in answer.assumed


def test_what_cannot_be_read_is_read_once_and_the_way_out_is_named(tmp_path: Path) -> None:
    away = "https://git.invalid/away.git"
    given = files(
        web=application("web", "web"), web__map=MAP, a=application("a", "x", away), b=application("b", "x", away)
    )
    answer = answered(given, tmp_path)
    assert answer.outcome is Outcome.FAILED and answer.played_s < 2 * 3600
    assert answer.advice == f"make {away} reachable, or name a copy on this machine: --repository {away}=FOLDER"
    text = describe_answer(answer)
    assert text.count("is not reachable") == 2, "once in the headline, once for both Applications"
    assert "so do Application argocd/b" in text


def test_a_copy_of_a_chart_is_read_instead_of_its_repository(tmp_path: Path) -> None:
    given = files(web=application("web", "web", "https://charts.invalid").replace("path: 'web'", "chart: web"))
    copies = {"https://charts.invalid/web": files(map=MAP)}
    asked = Asked("repository", given, replace(default_world(given), repositories=copies))
    assert rehearse(asked, tmp_path, QUICK).outcome is Outcome.SAFE


# -- what others do ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "outcome"), [("", Outcome.SAFE), ("standIns: false\n", Outcome.BLOCKED)])
def test_objects_of_controllers_that_are_not_here_become_healthy(given: str, outcome: Outcome, tmp_path: Path) -> None:
    answer = answered(files(route=ROUTE), tmp_path, ONE_NODE + given)
    assert answer.outcome is outcome, answer.headline
    said = "controllers that are not here make their objects healthy at once: Route.route.openshift.io"
    assert (said in answer.assumed) == (not given)
    assert [bar.ends_s for bar in answer.bars if bar.doing is Doing.SETTLES] == ([None] if given else [])


def test_the_assumed_cluster_has_the_classes_and_secrets_that_are_named(tmp_path: Path) -> None:
    other = (
        CLAIMING.partition("---\n")[2].replace("shop", "till").replace("secretKeyRef: {name: till, key: password", USER)
    )
    answer = answered(files(shop=CLAIMING, till=other), tmp_path / "assumed")
    assert answer.outcome is Outcome.SAFE, answer.headline
    assert "storage classes that nothing makes are there: fast" in answer.assumed
    assert "Secrets that pods wait for and that nothing makes are there: repository/shop" in answer.assumed
    own = answered(files(shop=CLAIMING), tmp_path / "own", ONE_NODE)
    assert own.outcome is Outcome.BLOCKED and "unbound" in own.headline, "a person's cluster has what it has"


@pytest.mark.parametrize(("mode", "outcome"), [("Immediate", Outcome.SAFE), ("WaitForFirstConsumer", Outcome.BLOCKED)])
def test_a_claim_in_a_wave_before_its_pod_waits_for_ever_unless_it_is_bound_at_once(
    mode: str, outcome: Outcome, tmp_path: Path
) -> None:
    later = CLAIMING.replace("{name: shop}\nspec:\n  sel", f"{{name: shop, annotations: {{{LATER}}}}}\nspec:\n  sel")
    patch = f"apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: fast}}\nvolumeBindingMode: {mode}\n"
    given = files(first=application("first", "shop"), shop__shop=later, csi__patch=patch)
    answer = answered(given, tmp_path)
    assert answer.outcome is outcome, answer.headline
    assert ("PersistentVolumeClaim" in answer.headline) == (outcome is Outcome.BLOCKED)


def test_what_has_a_generation_is_healthy_at_its_last_one(tmp_path: Path) -> None:
    spec = "spec: {parentRefs: [{name: edge}]}"
    route = f"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: shop}}\n{spec}\n"
    assert answered(files(route=route), tmp_path).outcome is Outcome.SAFE


def test_a_kind_is_assumed_at_each_version_that_is_named(tmp_path: Path) -> None:
    both = {
        version: f"apiVersion: a.example.com/{version}\nkind: Tap\nmetadata: {{name: {version}}}\n" for version in V
    }
    assert answered(files(**both), tmp_path).outcome is Outcome.SAFE


def test_the_assumed_argo_cd_permits_the_charts_of_kustomizations(tmp_path: Path) -> None:
    charts = "helmCharts: [{name: web, repo: 'https://charts.invalid', version: 1.0.0}]\n"
    given = files(first=application("first", "web"), web__kustomization=charts)
    answer = answered(given, tmp_path)
    assert "charts.invalid" in answer.headline and "must specify" not in describe_answer(answer)
    assert any("kustomize.buildOptions --enable-helm" in one for one in answer.assumed)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("cert-manager.io/v1 Certificate", {}),
        ("external-secrets.io/v1 ExternalSecret", {}),
        ("bitnami.com/v1alpha1 SealedSecret", {}),
        ("gateway.networking.k8s.io/v1 Gateway", {}),
        ("gateway.networking.k8s.io/v1 HTTPRoute", {"parentRefs": [{"name": "edge"}]}),
        ("operators.coreos.com/v1alpha1 Subscription", {}),
    ],
)
def test_a_status_is_found_with_which_an_object_is_healthy(kind: str, spec: Obj) -> None:
    version, name = kind.split()
    obj: Obj = {"apiVersion": version, "kind": name, "metadata": {"name": "a", "generation": 1}, "spec": spec}
    status = healthy_status(obj)
    assert status is not None
    health = health_of(obj | {"status": status})
    assert health is not None and health.status == "Healthy"


def test_what_is_degraded_stays_so() -> None:
    said = {"type": "Ready", "status": "False", "message": "no such issuer"}
    obj: Obj = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "a"}}
    assert healthy_status(obj | {"status": {"conditions": [said]}}) is None
