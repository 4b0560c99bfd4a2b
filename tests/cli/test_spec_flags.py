"""What flags make of an Application's spec; which rollbacks are refused; how declared Secrets are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from syncline.argo.application import AppView
from syncline.argo.requests.operations import sync_operation
from syncline.argo.stores.secrets import cluster_secret_name, fields_of, repository_secret_name, secret_object
from syncline.base.clock import EPOCH
from syncline.cli.access.declared import plain_fields
from syncline.cli.app.history import rollback_to
from syncline.cli.app.logs import _wanted
from syncline.cli.app.objects import filtered
from syncline.cli.app.revised import revised
from syncline.cli.app.selected import expanded, labelled, selected
from syncline.cli.app.spec.create import create, from_flags, with_overrides
from syncline.cli.app.spec.flags import image_name, with_flags
from syncline.cli.app.spec.settings import without
from syncline.cli.app.spec.sources import with_source, without_source
from syncline.cli.app.sync import asked_from, judge
from syncline.cli.app.wait import outstanding
from syncline.cli.frame.failure import FAILED, USAGE, CommandFailed
from syncline.cli.main import main
from syncline.cli.proj.lists import with_entry, without_entry
from syncline.cli.proj.windows import changed_window, without_window
from syncline.cli.remotes.repo import repo, repository_fields
from syncline.cli.views.application import resource_rows
from syncline.gitops.application.operating.operation import sync_options
from syncline.kube.objects import Obj
from syncline.sources.remote.credentials import credential_store

BASE: Obj = {"project": "default", "destination": {"server": "https://a"}, "source": {"repoURL": "u", "path": "."}}
TWO: Obj = {"project": "default", "destination": {}, "sources": [{"repoURL": "one"}, {"repoURL": "two"}]}


def policy(known: Obj | None = None, **flags: Any) -> Obj:
    found = with_flags(BASE | ({"syncPolicy": known} if known else {}), flags)
    result: Obj = found.get("syncPolicy", {})
    return result


def test_no_flags_change_nothing() -> None:
    assert with_flags(BASE, {}) == BASE


def test_the_input_is_never_changed() -> None:
    before = {"automated": {"prune": True}, "syncOptions": ["A=1"]}
    policy(before, sync_options=("B=2",), self_heal=True)
    assert before == {"automated": {"prune": True}, "syncOptions": ["A=1"]}


@pytest.mark.parametrize("word", ["automated", "auto", "automatic"])
def test_automated_has_three_names(word: str) -> None:
    assert policy(sync_policy=word, auto_prune=True) == {"automated": {"prune": True}}


@pytest.mark.parametrize("word", ["none", "manual"])
def test_a_manual_policy_drops_automation_and_an_empty_policy_goes(word: str) -> None:
    assert policy({"automated": {}}, sync_policy=word) == {}


def test_automation_flags_without_automation_are_kept_but_switched_off() -> None:
    assert policy(self_heal=True) == {"automated": {"enabled": False, "selfHeal": True}}


def test_sync_options_are_added_once_and_removed_with_a_bang() -> None:
    assert policy({"syncOptions": ["A=1"]}, sync_options=("A=1", "B=2")) == {"syncOptions": ["A=1", "B=2"]}
    assert policy({"syncOptions": ["A=1", "B=2"]}, sync_options=("!A=1", "!B")) == {}


def test_retries_come_with_a_back_off_and_zero_removes_them() -> None:
    limited = policy(sync_retry_limit=2, sync_retry_backoff_factor=3)
    assert limited["retry"] == {"limit": 2, "backoff": {"duration": "5s", "maxDuration": "3m0s", "factor": 3}}
    assert policy(limited, sync_retry_limit=0) == {}
    with pytest.raises(CommandFailed, match="--sync-retry-limit -1"):
        policy(sync_retry_limit=-1)


def test_a_destination_by_name_takes_the_place_of_one_by_server() -> None:
    assert with_flags(BASE, {"dest_name": "prod"})["destination"] == {"name": "prod"}
    with pytest.raises(CommandFailed, match="not both"):
        with_flags(BASE, {"dest_name": "prod", "dest_server": "https://a"})


def test_one_of_several_sources_has_to_be_named() -> None:
    assert with_flags(TWO, {"revision": "v1"}, 2)["sources"] == [
        {"repoURL": "one"},
        {"repoURL": "two", "targetRevision": "v1"},
    ]
    for position in (0, 3):
        with pytest.raises(CommandFailed, match="--source-position 1 to 2") as refused:
            with_flags(TWO, {"revision": "v1"}, position)
        assert refused.value.code == USAGE


def test_parameters_and_images_replace_those_of_the_same_name() -> None:
    spec = with_flags(BASE, {"helm_set": ("a=1", "b=2"), "kustomize_images": ("web=mine:1", "db:1")})
    spec = with_flags(spec, {"helm_set": ("a=3",), "kustomize_images": ("db:2",)})
    assert spec["source"]["helm"] == {"parameters": [{"name": "a", "value": "3"}, {"name": "b", "value": "2"}]}
    assert spec["source"]["kustomize"] == {"images": ["web=mine:1", "db:2"]}


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nginx", "nginx"),
        ("nginx:1", "nginx"),
        ("nginx=mine:1", "nginx"),
        ("host:5000/a/nginx:1", "host:5000/a/nginx"),
        ("a/nginx@sha256:00", "a/nginx"),
    ],
)
def test_an_image_goes_by_its_name(image: str, name: str) -> None:
    assert image_name(image) == name


def test_unset_removes_entries_by_name_and_blocks_that_are_empty_then() -> None:
    source = {"repoURL": "u", "helm": {"parameters": [{"name": "a"}], "values": "x"}, "kustomize": {"images": ["w:1"]}}
    left = without({"source": source}, {"parameters": ("a",), "kustomize_images": ("w",)})
    assert left == {"source": {"repoURL": "u", "helm": {"values": "x"}}}
    with pytest.raises(CommandFailed, match="say what to remove"):
        without({"source": source}, {})


def deployed(policy: Obj | None = None, *entries: Obj) -> Obj:
    spec = BASE | ({"syncPolicy": policy} if policy else {})
    return {"metadata": {"name": "shop"}, "spec": spec, "status": {"history": list(entries)}}


FIRST: Obj = {"id": 3, "revision": "abc", "source": {"repoURL": "old", "path": "p"}}
SECOND: Obj = {"id": 4, "revision": "def", "source": {"repoURL": "new", "path": "p"}}


def test_a_rollback_applies_the_source_of_that_time_with_the_options_of_today_and_no_hooks() -> None:
    found = rollback_to(deployed({"syncOptions": ["A=1"]}, FIRST, SECOND), None, prune=True)
    assert found["sync"] == {
        "revision": "abc",
        "source": {"repoURL": "old", "path": "p"},
        "syncStrategy": {"apply": {}},
        "prune": True,
        "syncOptions": ["A=1"],
    }
    assert "retry" not in found
    assert rollback_to(deployed(None, FIRST, SECOND), 4, prune=False)["sync"]["revision"] == "def"


@pytest.mark.parametrize(
    ("app", "wanted", "words"),
    [
        (deployed(None, SECOND), None, "Application 'shop' should have at least two successful deployments"),
        (
            deployed(None, FIRST),
            9,
            "does not have deployment with id 9; see `syncline app history shop`",
        ),
        (deployed({"automated": {}}, FIRST, SECOND), 3, "rollback cannot be initiated when auto-sync is enabled"),
        (
            deployed(None, {"id": 1, "revision": "abc"}),
            1,
            "cannot rollback to revision deployed with Argo CD v0.11",
        ),
    ],
)
def test_a_rollback_that_cannot_be_is_refused_in_upstream_words(app: Obj, wanted: int | None, words: str) -> None:
    with pytest.raises(CommandFailed, match=words):
        rollback_to(app, wanted, prune=False)


def test_automation_that_is_switched_off_does_not_hinder_a_rollback() -> None:
    assert rollback_to(deployed({"automated": {"enabled": False}}, FIRST, SECOND), None, prune=False)


SYNC_FLAGS: Obj = {
    "revision": "",
    "prune": False,
    "dry_run": False,
    "strategy": None,
    "force": False,
    "replace_": False,
    "server_side": False,
    "apply_out_of_sync_only": False,
    "resources": (),
    "infos": (),
    "retry_limit": 0,
}


def operation_from(flags: Obj, app: Obj | None = None) -> Obj:
    return sync_operation(app or {}, asked_from(flags), (), "syncline")


def test_a_sync_without_flags_asks_for_nothing_special() -> None:
    assert operation_from(SYNC_FLAGS) == {"initiatedBy": {"username": "syncline"}, "sync": {}}


def test_a_server_side_sync_leaves_the_options_of_the_spec_out_s095() -> None:
    operation = operation_from(SYNC_FLAGS | {"server_side": True})
    assert operation["sync"]["syncOptions"] == ["ServerSideApply=true"]
    app = {"spec": {"syncPolicy": {"syncOptions": ["CreateNamespace=true"]}}, "operation": operation}
    options = sync_options(AppView(app), EPOCH)
    assert options.server_side_apply and not options.create_namespace


def test_resources_notes_and_force_are_part_of_the_operation() -> None:
    flags = {"resources": ("apps:Deployment:shop/web", ":ConfigMap:menu"), "infos": ("why=fix",), "force": True}
    operation = operation_from(SYNC_FLAGS | flags)
    assert operation["sync"] == {
        "syncStrategy": {"hook": {"force": True}},
        "resources": [
            {"group": "apps", "kind": "Deployment", "name": "web", "namespace": "shop"},
            {"group": "", "kind": "ConfigMap", "name": "menu"},
        ],
    }
    assert operation["info"] == [{"name": "why", "value": "fix"}]


def test_a_hook_row_shows_its_phase_as_status_and_its_result_as_health_s097() -> None:
    row = {"group": "batch", "kind": "Job", "namespace": "shop", "name": "open", "hookType": "PreSync",
           "hookPhase": "Succeeded", "status": "Synced", "message": "done"}  # fmt: skip
    app = {"status": {"operationState": {"syncResult": {"resources": [row]}}}}
    assert resource_rows(app) == [("batch", "Job", "shop", "open", "Succeeded", "Synced", "PreSync", "done")]


def test_entries_of_a_project_are_added_and_removed_once() -> None:
    assert with_entry({}, "sourceRepos", "a") == {"sourceRepos": ["a"]}
    assert with_entry({"sourceRepos": ["a"]}, "sourceRepos", "a") == {"sourceRepos": ["a"]}
    assert without_entry({"sourceRepos": ["a"]}, "sourceRepos", "a") == {}
    with pytest.raises(CommandFailed, match="already"):
        with_entry({"sourceRepos": ["a"]}, "sourceRepos", "a", "already there")
    with pytest.raises(CommandFailed, match="not there"):
        without_entry({}, "sourceRepos", "a", "not there")


def test_the_last_allowed_namespaced_kind_leaves_an_empty_list_which_allows_nothing() -> None:
    job = {"group": "batch", "kind": "Job"}
    spec = {"namespaceResourceWhitelist": [job]}
    assert without_entry(spec, "namespaceResourceWhitelist", job) == {"namespaceResourceWhitelist": []}


def test_windows_go_by_their_number() -> None:
    spec = {"syncWindows": [{"kind": "deny"}, {"kind": "allow"}]}
    assert without_window(spec, 0) == {"syncWindows": [{"kind": "allow"}]}
    opened = changed_window(1, {"manualSync": True})
    assert opened(spec)["syncWindows"] == [{"kind": "deny"}, {"kind": "allow", "manualSync": True}]
    for window in (-1, 2):
        with pytest.raises(CommandFailed, match=f"window {window} does not exist"):
            without_window(spec, window)


def test_secrets_have_the_names_that_argocd_gives_them() -> None:
    assert repository_secret_name("git://git@github.com:argoproj/ARGO-cd.git") == "repo-83273445"
    assert cluster_secret_name("http://foo") == "cluster-foo-752281925"


def test_only_fields_without_credentials_are_shown() -> None:
    secret = secret_object("repository", "argocd", "x", {"url": "u", "password": "p", "sshPrivateKey": "k", "name": ""})
    assert fields_of(secret) == {"url": "u", "password": "p", "sshPrivateKey": "k"}
    assert plain_fields(secret) == {"url": "u"}


def test_flags_of_a_repository_become_the_fields_that_sources_are_read_with(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("PEM")
    flags = ["--github-app-id", "42", "--github-app-private-key-path", str(key), "--depth", "3", "--enable-lfs"]
    asked = repo.commands["add"].make_context("add", ["https://h/x", *flags, "--force-http-basic-auth"])
    given = {name: value for name, value in asked.params.items() if name != "url"}
    secret = secret_object("repository", "argocd", "s", repository_fields("https://h/x", given))
    access = credential_store([secret], []).access("https://h/x")
    assert access is not None
    assert access.github_app is not None
    assert (access.github_app.identity, access.depth, access.force_basic, access.lfs) == ("42", 3, True, True)


@pytest.mark.parametrize(
    ("flags", "block"),
    [
        ({"helm_set_string": ("a=1", "b=x=y")}, {"helm": {"parameters": [
            {"name": "a", "value": "1", "forceString": True}, {"name": "b", "value": "x=y", "forceString": True}]}}),
        ({"helm_set": ("a=1",), "parameters": ("b=2",)}, {"helm": {"parameters": [
            {"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}}),
        ({"helm_set_file": ("a=files/a.txt",)}, {"helm": {"fileParameters": [{"name": "a", "path": "files/a.txt"}]}}),
        ({"helm_skip_crds": True, "helm_kube_version": "1.30", "helm_api_versions": ("v1", "v2")},
         {"helm": {"skipCrds": True, "kubeVersion": "1.30", "apiVersions": ["v1", "v2"]}}),
        ({"helm_skip_crds": False}, {"helm": {"skipCrds": False}}),
        ({"kustomize_replicas": ("web=3",)}, {"kustomize": {"replicas": [{"name": "web", "count": 3}]}}),
        ({"kustomize_labels": ("a=1",), "kustomize_annotations": ("b=2",), "kustomize_force_common_label": True},
         {"kustomize": {"commonLabels": {"a": "1"}, "commonAnnotations": {"b": "2"}, "forceCommonLabels": True}}),
        ({"tla_texts": ("a=1",), "tla_codes": ("b=[1]",), "ext_texts": ("c=3",), "jsonnet_libs": ("vendor",)},
         {"directory": {"jsonnet": {
             "tlas": [{"name": "a", "value": "1"}, {"name": "b", "value": "[1]", "code": True}],
             "extVars": [{"name": "c", "value": "3"}], "libs": ["vendor"]}}}),
        ({"config_management_plugin": "cdk", "plugin_envs": ("A=1",)},
         {"plugin": {"name": "cdk", "env": [{"name": "A", "value": "1"}]}}),
        ({"ref": "values", "source_name": "web"}, {"ref": "values", "name": "web"}),
    ],
)  # fmt: skip
def test_every_tool_has_its_flags(flags: Obj, block: Obj) -> None:
    assert with_flags(BASE, flags)["source"] == BASE["source"] | block


def test_a_parameter_given_again_takes_the_place_of_the_first() -> None:
    once = with_flags(BASE, {"helm_set_string": ("a=1",), "kustomize_replicas": ("web=1", "db=1")})
    twice = with_flags(once, {"helm_set_string": ("a=2",), "kustomize_replicas": ("web=2",)})
    assert twice["source"]["helm"]["parameters"] == [{"name": "a", "value": "2", "forceString": True}]
    assert twice["source"]["kustomize"]["replicas"] == [{"name": "web", "count": 2}, {"name": "db", "count": 1}]


@pytest.mark.parametrize(
    ("flag", "field", "value"),
    [
        ("helm_set", "parameters", "value"),
        ("helm_set_string", "parameters", "value"),
        ("helm_set_file", "fileParameters", "path"),
    ],
)
def test_of_a_parameter_that_is_given_twice_at_once_the_last_one_counts(flag: str, field: str, value: str) -> None:
    made = with_flags(BASE, {flag: ("foo=bar", "foo=baz", "app=x")})["source"]["helm"][field]
    assert [(one["name"], one[value]) for one in made] == [("foo", "baz"), ("app", "x")]


def test_values_of_a_file_take_the_place_of_all_inline_values_as_an_object(tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text("a: 1\n")
    known = BASE | {"source": BASE["source"] | {"helm": {"valuesObject": {"b": 2}, "values": "c: 3"}}}
    made = with_flags(known, {"values_literal_file": str(tmp_path / "v.yaml")})
    assert made["source"]["helm"] == {"valuesObject": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [("- a\n", "holds no mapping of values"), ("a: [", "v.yaml"), (None, "No such file")],
    ids=["a list", "no YAML", "no file"],
)
def test_values_of_a_file_that_cannot_be_used_are_refused(text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "v.yaml").write_text(text)
    with pytest.raises(CommandFailed, match=message):
        with_flags(BASE, {"values_literal_file": str(tmp_path / "v.yaml")})
    with pytest.raises(CommandFailed, match="nothing is fetched here"):
        with_flags(BASE, {"values_literal_file": "https://example.com/v.yaml"})


def test_flags_change_an_application_of_a_file_unless_it_has_several_sources() -> None:
    given = {"labels": ("a=b",), "annotations": (), "set_finalizer": True, "revision": "v2"}
    app = {"metadata": {"name": "shop", "labels": {"c": "d"}}, "spec": BASE}
    made = with_overrides(app, "shop", "", given, single=True)
    assert made["spec"]["source"] == BASE["source"] | {"targetRevision": "v2"}
    assert made["metadata"]["labels"] == {"a": "b", "c": "d"} and made["metadata"]["finalizers"]
    several = with_overrides(app | {"spec": TWO}, None, "renamed", given, single=True)
    assert several["spec"] == TWO and several["metadata"]["name"] == "renamed"
    with pytest.raises(CommandFailed, match=r"app name 'other' does not match app spec metadata\.name 'shop'"):
        with_overrides(app, "other", "", given, single=True)


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        ([], {"metadata": {"name": "web"}, "a": {"b": 1, "c": 2}, "l": [{"x": 1, "y": 2}, {"y": 3}]}),
        ([("a", "b")], {"metadata": {"name": "web"}, "a": {"b": 1}}),
        ([("a", "b"), ("a", "c"), ("no", "such")], {"metadata": {"name": "web"}, "a": {"b": 1, "c": 2}}),
        ([("l", "y")], {"metadata": {"name": "web"}, "l": [{"y": 2}, {"y": 3}]}),
    ],
)
def test_fields_of_a_live_object_are_chosen_by_their_paths(paths: list[tuple[str, ...]], left: Obj) -> None:
    obj = {"metadata": {"name": "web"}, "a": {"b": 1, "c": 2}, "l": [{"x": 1, "y": 2}, {"y": 3}]}
    assert filtered(obj, paths) == left


@pytest.mark.parametrize(
    ("text", "match_case", "shown"),
    [("soup", False, True), ("soup", True, False), ("!soup", False, False), ("!soup", True, True)],
)
def test_a_filter_of_logs_tells_capitals_only_where_it_is_asked_to(text: str, match_case: bool, shown: bool) -> None:
    assert _wanted("Tomato SOUP", text, match_case) is shown


def test_further_flags_of_argocd_reach_their_fields() -> None:
    flags = {"disable_extension_filter": True, "tag_prefix": "app-", "sync_retry_refresh": True}
    made = with_flags(BASE, flags)
    assert made["source"]["directory"] == {"disableExtensionFilter": True}
    assert made["source"]["tagPrefix"] == "app-"
    assert made["syncPolicy"] == {"retry": {"refresh": True}}
    hydrated = with_flags(BASE, {"dry_source_repo": "u", "sync_source_path": "p", "hydrate_to_branch": "next"})
    assert hydrated["sourceHydrator"] == {
        "drySource": {"repoURL": "u"},
        "syncSource": {"path": "p"},
        "hydrateTo": {"targetBranch": "next"},
    }
    assert "hydrateTo" not in with_flags(hydrated, {"hydrate_to_branch": ""})["sourceHydrator"]
    assert without({"source": {"ref": "values", "repoURL": "u"}}, {"ref": True})["source"] == {"repoURL": "u"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"kustomize_replicas": ("web=many",)}, "the count is a number, for example web=3"),
        ({"kustomize_replicas": ("web",)}, "--kustomize-replica 'web': write NAME=VALUE"),
        ({"plugin_envs": ("=x",)}, "--plugin-env '=x': write NAME=VALUE"),
        ({"kustomize_labels": ("x",)}, "--kustomize-common-label 'x'"),
    ],
)
def test_a_flag_that_is_no_pair_says_how_to_write_it(flags: Obj, message: str) -> None:
    with pytest.raises(CommandFailed, match=message) as refused:
        with_flags(BASE, flags)
    assert refused.value.code == USAGE


def asked(**given: Any) -> Obj:
    return {"local": None, "revision": "", "revisions": (), "source_positions": (), "source_names": (), **given}


def app_of(spec: Obj) -> Obj:
    return {"metadata": {"name": "a", "namespace": "argocd"}, "spec": spec}


THREE: Obj = {
    "sources": [{"repoURL": "one", "name": "first"}, {"repoURL": "two", "targetRevision": "v2"}, {"repoURL": "3"}]
}


@pytest.mark.parametrize(
    ("spec", "given", "revisions"),
    [
        (BASE, {}, [None]),
        (BASE, {"revision": "v1"}, ["v1"]),
        (THREE, {"revisions": ("a", "b"), "source_positions": (3, 1)}, ["b", "v2", "a"]),
        (THREE, {"revisions": ("a",), "source_names": ("first",)}, ["a", "v2", None]),
    ],
)
def test_revisions_go_to_the_sources_that_are_named(spec: Obj, given: Obj, revisions: list[str | None]) -> None:
    found = AppView(revised(app_of(spec), asked(**given))).sources
    assert [one.get("targetRevision") for one in found] == revisions


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"revision": "v1"}, "--revision is for one source"),
        ({"revisions": ("a",)}, "there are 1 and 0"),
        ({"revisions": ("a",), "source_positions": (4,)}, "the Application has 3 sources"),
        ({"revisions": ("a",), "source_names": ("none",)}, r"no source is called so \(first\)"),
        ({"revisions": ("a",), "source_names": ("first",), "source_positions": (1,)}, "Only one of source-positions"),
        ({"revision": "v1", "local": Path()}, "--local is what lies on the disk"),
    ],
)
def test_revisions_that_fit_no_source_are_refused(given: Obj, message: str) -> None:
    with pytest.raises(CommandFailed, match=message):
        revised(app_of(THREE), asked(**given))


RETRY: Obj = {"limit": 3, "backoff": {"duration": "1s"}}
BACKOFF: Obj = {
    "retry_limit": 2,
    "retry_backoff_duration": "9s",
    "retry_backoff_max_duration": "1m",
    "retry_backoff_factor": 3,
    "retry_refresh": True,
}


def test_a_sync_by_hand_retries_as_the_spec_says_unless_flags_say_otherwise() -> None:
    app = {"spec": {"syncPolicy": {"retry": RETRY}}}
    assert operation_from(SYNC_FLAGS, app)["retry"] == RETRY
    found = operation_from(SYNC_FLAGS | BACKOFF, app)["retry"]
    assert found == {"limit": 2, "backoff": {"duration": "9s", "maxDuration": "1m", "factor": 3}, "refresh": True}


def finished(sync: str, *results: Obj) -> Obj:
    state = {"phase": "Succeeded", "syncResult": {"resources": list(results)}}
    return {"metadata": {"name": "shop"}, "status": {"sync": {"status": sync}, "operationState": state}}


def test_what_has_to_be_pruned_is_a_failure_only_where_the_application_is_not_synced() -> None:
    left: Obj = {"kind": "ConfigMap", "name": "a", "status": "PruneSkipped", "message": "ignored (requires pruning)"}
    judge(finished("Synced", left))
    judge(finished("OutOfSync", left), full=False)
    with pytest.raises(CommandFailed, match="1 resources require pruning") as refused:
        judge(finished("OutOfSync", left))
    assert refused.value.code == FAILED


ROWS: list[Obj] = [
    {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web", "status": "Synced"},
    {"group": "", "kind": "ConfigMap", "namespace": "shop", "name": "menu", "status": "OutOfSync"},
]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["apps:Deployment:web"], ["web"]),
        (["*:*:*"], ["web", "menu"]),
        (["!apps:Deployment:*"], ["menu"]),
        (["*:*:shop/*", "!*:ConfigMap:"], ["web"]),
        (["*:Deploy*:"], ["web"]),
    ],
)
def test_resources_are_named_by_globs_and_left_out_by_a_bang(given: list[str], names: list[str]) -> None:
    app: Obj = {"metadata": {"name": "shop"}, "status": {"resources": ROWS}}
    found = expanded(app, [selected(text) for text in given])
    assert [one["name"] for one in found] == names


def test_a_glob_that_fits_nothing_is_refused() -> None:
    with pytest.raises(CommandFailed, match="no such resource"):
        expanded({"metadata": {"name": "shop"}, "status": {"resources": ROWS}}, [selected("batch:*:*")])


def test_labels_select_objects_that_have_them_all() -> None:
    objects = [{"kind": "A", "metadata": {"name": n, "labels": {"a": "1", "b": n}}} for n in ("x", "y")]
    assert [one["name"] for one in labelled(objects, ["a=1", "b=y"])] == ["y"]
    with pytest.raises(CommandFailed, match="No matching resources found for labels: b=z"):
        labelled(objects, ["b=z"])


WAIT: Obj = dict.fromkeys(("want_health", "degraded", "suspended", "want_operation"), False) | {
    "want_sync": True,
    "wanted": [],
    "resources": (),
}


def standing(sync: str, **spec: Any) -> Obj:
    status = {"sync": {"status": sync, "revision": "abcdef0123"}, "resources": ROWS}
    return {"metadata": {"name": "shop"}, "spec": spec, "status": status}


def test_a_wait_for_a_manual_application_says_that_only_a_person_ends_it() -> None:
    (said,) = outstanding(standing("OutOfSync"), WAIT)
    assert "is OutOfSync; it has no automated sync: it stays so until you run `syncline app sync shop`" in said
    assert outstanding(standing("OutOfSync", syncPolicy={"automated": {}}), WAIT) == ["Synced (is OutOfSync)"]
    assert outstanding(standing("Synced"), WAIT) == []


def test_a_wait_trusts_synced_only_after_the_controller_has_looked() -> None:
    app = standing("Synced")
    app["metadata"]["annotations"] = {"argocd.argoproj.io/refresh": "normal"}
    assert outstanding(app, WAIT) == ["the controller reads the repository"]


def test_a_wait_for_a_revision_or_for_resources_names_them() -> None:
    assert outstanding(standing("Synced"), WAIT | {"revision": "abcdef0"}) == []
    assert outstanding(standing("Synced"), WAIT | {"revision": "123456a"}) == ["revision 123456a (is abcdef0123)"]
    only = {"wanted": [selected(":ConfigMap:menu")], "resources": (":ConfigMap:menu",)}
    assert outstanding(standing("OutOfSync"), WAIT | only) == ["ConfigMap menu: Synced (is OutOfSync)"]
    other = {"wanted": [selected("apps:Deployment:web")], "resources": ("apps:Deployment:web",)}
    assert outstanding(standing("OutOfSync"), WAIT | other) == []


def test_sources_are_appended_and_removed_by_place_or_name() -> None:
    named: Obj = {"sources": [{"repoURL": "one", "name": "a"}, {"repoURL": "two"}]}
    assert with_source(named, "shop", {"repo": "u", "ref": "r"})["sources"][2] == {"repoURL": "u", "ref": "r"}
    assert without_source(named, 2, "")["sources"] == [named["sources"][0]]
    assert without_source(named, 0, "a")["sources"] == [named["sources"][1]]


@pytest.mark.parametrize(
    ("spec", "position", "name", "words"),
    [
        (BASE, 1, "", "does not have multiple sources"),
        ({"sources": [{}]}, 1, "", "Cannot remove the only source"),
        (TWO, 3, "", "does not have source at 3"),
        (TWO, 0, "b", "--source-name b: no source is called so"),
        (TWO, 1, "b", "Only one of source-position and source-name"),
    ],
)
def test_a_source_that_cannot_be_removed_is_refused(spec: Obj, position: int, name: str, words: str) -> None:
    with pytest.raises(CommandFailed, match=words):
        without_source(spec, position, name)


@pytest.mark.parametrize(
    ("url", "flags", "words"),
    [
        ("ssh://a/b", ["--bearer-token", "t"], "--bearer-token is only supported for HTTPS"),
        ("https://a/b", ["--bearer-token", "t", "--username", "u"], "--bearer-token or --username"),
        ("https://a/b", ["--bearer-token", "t", "--password", "p"], "only --bearer-token or --password is allowed"),
        ("https://a/b", ["--bearer-token", "t", "--type", "helm", "--name", "n"], "supported for Git repositories"),
        ("https://a/b", ["--enable-oci"], "--enable-oci is for --type helm"),
        ("https://a/b", ["--enable-lfs", "--type", "oci"], "--enable-lfs is for --type git"),
        ("https://a/b", ["--depth=-1"], "--depth -1"),
        ("https://a/b", ["--ssh-private-key-path", __file__], "--ssh-private-key-path is only supported for SSH"),
        ("ssh://a/b", ["--tls-client-cert-path", __file__], "only supported for HTTPS"),
        ("https://a/b", ["--tls-client-cert-path", __file__], "together"),
    ],
)
def test_flags_of_a_repository_that_contradict_each_other_are_refused(
    url: str, flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["repo", "add", url, *flags]) == USAGE
    assert words in capsys.readouterr().err


def test_an_application_goes_to_no_namespace_that_nobody_named() -> None:
    given = {str(param.name): None for param in create.params}
    given |= {"repo": "https://a/b", "labels": (), "annotations": ()}
    assert from_flags("shop", "argocd", given)["spec"]["destination"] == {"server": "https://kubernetes.default.svc"}


def test_a_folder_is_rendered_without_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: menu}\n")
    assert main(["render", str(folder), "-o", "json"]) == 0
    assert [one["metadata"]["name"] for one in json.loads(capsys.readouterr().out)] == ["menu"]
    assert main(["render", str(folder)]) == 0
    assert capsys.readouterr().out.startswith("---\napiVersion: v1\n")
    assert main(["render", str(folder), "--type", "helm"]) == USAGE
    assert "the folder is of type directory" in capsys.readouterr().err
