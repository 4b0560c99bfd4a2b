"""Generators, one behaviour of upstream's reference (section 10) for each test; its number stands in the name."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest
from tests.appset.answers import generated

from syncline.appset.generation import Generated
from syncline.kube.objects import Obj, finalizers, name_of, namespace_of

TEMPLATE: Obj = {
    "metadata": {"name": "{{name}}"},
    "spec": {"project": "default", "source": {"repoURL": "r"}, "destination": {"namespace": "d"}},
}
GO_TEMPLATE: Obj = {**TEMPLATE, "metadata": {"name": "{{ .name }}"}}
PROJECT: Obj = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"}}
TREE = dict.fromkeys(("apps/web/x", "apps/api/x", "apps/legacy/x", "apps/web/base/x", "a/b/c.json", "a/d.json"), "")


def cluster(name: str, **labels: str) -> Obj:
    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"c-{name.lower()}",
            "labels": {"argocd.argoproj.io/secret-type": "cluster", **labels},
        },
        "data": {"name": encoded(name), "server": encoded(f"https://{name}")},
    }


def made(
    *generators: Obj,
    go: bool = False,
    template: Obj | None = None,
    options: tuple[str, ...] = (),
    given: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Generated:
    chosen = template or (GO_TEMPLATE if go else TEMPLATE)
    appset = {
        "metadata": {"name": "set", "namespace": "argocd"},
        "spec": {
            "goTemplate": go,
            "goTemplateOptions": list(options),
            "generators": list(generators),
            "template": chosen,
            **spec,
        },
    }
    world = {"tree": TREE, **(given or {})}
    return generated(appset, {**world, "objects": [PROJECT, *world.get("objects", [])]})[0]


def names(found: Generated) -> list[str]:
    assert found.failures == ()
    return [name_of(one.app) for one in found.made]


def rows(found: Generated) -> list[Mapping[str, Any]]:
    assert found.failures == ()
    return [one.row.params for one in found.made]


def error(found: Generated) -> str:
    return found.failures[0].message


def elements(*found: Obj) -> Obj:
    return {"list": {"elements": list(found)}}


def directories(*paths: str, **more: Any) -> Obj:
    items = [{"path": path.removeprefix("!"), "exclude": path.startswith("!")} for path in paths]
    return {"git": {"repoURL": "r", "revision": "HEAD", "directories": items, **more}}


def files(*paths: str, **more: Any) -> Obj:
    return {"git": {"repoURL": "r", "revision": "HEAD", "files": [{"path": path} for path in paths], **more}}


def matrix(*children: Obj) -> Obj:
    return {"matrix": {"generators": list(children)}}


def merge(*children: Obj, keys: tuple[str, ...] = ("name",)) -> Obj:
    return {"merge": {"mergeKeys": list(keys), "generators": list(children)}}


@pytest.mark.parametrize(
    ("element", "why"),
    [
        ({"directories": [{"path": "*"}]}, "error getting directories from repo: error retrieving Git Directories"),
        ({"files": [{"path": "*.json"}]}, "error retrieving Git files"),
    ],
)
def test_a_refused_signature_is_said_in_upstreams_words(element: Obj, why: str) -> None:
    refused = "GIT/GPG: Failed verifying revision 0ad by 'A': unsigned (key_id=)"
    found = made({"git": {"repoURL": "r", **element}}, given={"gitError": refused})
    said = f"error generating params from git: {why}: rpc error: code = Unknown desc = {refused}"
    assert [one.message for one in found.failures] == [said]


def test_b01_an_error_of_one_generator_is_a_failure_beside_the_other_rows() -> None:
    found = made(elements({"name": "a"}), elements({"name": 1}))
    assert [one.origin for one in found.failures] == ["spec.generators[1].list"]
    assert found.failures[0].reason == "ApplicationGenerationFromParamsError"


def test_b10_the_namespace_of_the_template_gives_way_to_that_of_the_set() -> None:
    template = {**TEMPLATE, "metadata": {"name": "{{name}}", "namespace": "other"}}
    assert [namespace_of(one.app) for one in made(elements({"name": "a"}), template=template).made] == ["argocd"]


def test_b16_applications_get_the_resources_finalizer_unless_resources_are_preserved() -> None:
    kept = made(elements({"name": "a"}), syncPolicy={"preserveResourcesOnDeletion": True})
    given = [finalizers(found.made[0].app) for found in (made(elements({"name": "a"})), kept)]
    assert [list(one) for one in given] == [
        ["resources-finalizer.argocd.argoproj.io"],
        [],
    ]


def test_b20_a_number_in_a_list_is_an_error_but_for_go_templates() -> None:
    assert error(made(elements({"name": 3}))) == "error parsing value as string %!w(<nil>)"
    assert names(made(elements({"name": 3}), go=True)) == ["3"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [({}, ["dev", "in-cluster"]), ({"matchLabels": {"env": "dev"}}, ["dev"]), ({"matchLabels": {"env": "x"}}, [])],
)
def test_b21_the_local_cluster_is_there_without_a_selector(selector: Obj, expected: list[str]) -> None:
    given = {"objects": [cluster("dev", env="dev")]}
    assert names(made({"clusters": {"selector": selector}}, given=given)) == expected


def test_b23_cluster_names_are_normalized() -> None:
    found = made(
        {"clusters": {"selector": {"matchLabels": {"x": "y"}}}}, given={"objects": [cluster("Prod_EU.1", x="y")]}
    )
    assert [row["nameNormalized"] for row in rows(found)] == ["prod-eu.1"]


def test_b24_a_flat_list_is_one_row_of_all_clusters() -> None:
    template = {**GO_TEMPLATE, "metadata": {"name": "all-{{ len .clusters }}"}}
    given = {"objects": [cluster("a"), cluster("b")]}
    assert names(made({"clusters": {"flatList": True}}, go=True, template=template, given=given)) == ["all-3"]


@pytest.mark.parametrize("paths", [("apps/*", "!apps/legacy"), ("!apps/legacy", "apps/*")])
def test_b25_an_excluded_directory_is_absent_in_either_order(paths: tuple[str, ...]) -> None:
    assert [row["path"] for row in rows(made(directories(*paths)))] == ["apps/api", "apps/web"]


def test_b26_two_stars_match_one_level_of_directories() -> None:
    assert [row["path"] for row in rows(made(directories("apps/**")))] == ["apps/api", "apps/legacy", "apps/web"]


@pytest.mark.parametrize(("doublestar", "expected"), [(False, ["a/b", "a"]), (True, ["a"])])
def test_b27_a_star_crosses_directories_of_files_but_with_doublestar(doublestar: bool, expected: list[str]) -> None:
    found = made(files("a/*.json"), given={"newGitFileGlobbing": doublestar})
    assert [row["path"] for row in rows(found)] == expected


def test_b28_each_item_of_a_file_is_a_row_with_the_same_path() -> None:
    found = made(files("f.yaml"), given={"tree": {"f.yaml": "- name: a\n- name: b\n"}})
    assert names(found) == ["a", "b"]
    assert {row["path.filename"] for row in rows(found)} == {"f.yaml"}


def test_b29_one_file_that_cannot_be_parsed_fails_the_generator() -> None:
    tree = {f"f{index}.yaml": "name: a" for index in range(9)}
    found = made(files("*.yaml"), given={"tree": {**tree, "x.yaml": "a: ["}})
    assert found.made == () and "unable to process file 'x.yaml'" in error(found)


def test_b30_a_prefix_moves_all_parameters_of_paths() -> None:
    row = rows(made(directories("apps/web", pathParamPrefix="env")))[0]
    assert row["env.path.basename"] == "web" and "path.basename" not in row


def test_b31_filters_of_repositories_and_branches_must_both_match() -> None:
    repositories = [
        {"Organization": "o", "Repository": name, "URL": "u", "Branch": branch, "SHA": "s", "Labels": []}
        for name in ("a", "b")
        for branch in ("main", "dev")
    ]
    wanted = {"github": {"organization": "o"}, "filters": [{"repositoryMatch": "a"}, {"branchMatch": "main"}]}
    found = made({"scmProvider": wanted}, given={"repositories": repositories})
    assert [(row["repository"], row["branch"]) for row in rows(found)] == [("a", "main")]


PULLS = [
    {"Number": 1, "Title": "t", "Branch": "feat/x", "TargetBranch": "main", "HeadSHA": "0123456789", "Labels": ["p"]},
    {"Number": 2, "Title": "t", "Branch": "Feature/ABC_" + "long-" * 20, "TargetBranch": "dev", "HeadSHA": "abc"},
]


def test_b32_a_closed_pull_request_has_no_row() -> None:
    pulls = {"pullRequest": {"github": {"owner": "o", "repo": "r"}, "filters": [{"targetBranchMatch": "^main$"}]}}
    assert [row["number"] for row in rows(made(pulls, given={"pullRequests": PULLS}))] == ["1"]
    assert rows(made(pulls, given={"pullRequests": []})) == []


def test_b33_slugs_of_branches_are_safe_and_short() -> None:
    found = made({"pullRequest": {"github": {"owner": "o", "repo": "r"}}}, given={"pullRequests": PULLS})
    slug = rows(found)[1]["branch_slug"]
    assert slug.startswith("feature-abc-long-") and len(slug) <= 50 and not slug.endswith("-")


def test_b34_the_second_child_of_a_matrix_may_use_the_first() -> None:
    clusters = {"clusters": {"selector": {"matchLabels": {"env": "{{ .path.basename }}"}}}}
    given = {"objects": [cluster("one", env="web"), cluster("two", env="other")]}
    assert names(made(matrix(directories("apps/*"), clusters), go=True, given=given)) == ["one"]


def test_b35_an_equal_key_with_another_value_is_an_error_but_for_go_templates() -> None:
    both = matrix(elements({"name": "a"}), elements({"name": "b"}))
    text = "found duplicate key name with different value, a: a ,b: b"
    assert error(made(both)).endswith(text)
    assert names(made(both, go=True)) == ["a"]


def test_b36_a_child_without_rows_leaves_none_and_is_no_error() -> None:
    assert rows(made(matrix(elements({"name": "a"}), elements()))) == []


def test_b37_three_children_are_an_error() -> None:
    assert error(made(matrix(*[elements()] * 3))) == "found more than two generators, Matrix support only two"


def test_b38_an_override_without_a_base_is_dropped_and_equal_keys_in_one_child_are_an_error() -> None:
    base = elements({"name": "a", "x": "1"})
    assert rows(made(merge(base, elements({"name": "b", "x": "2"})))) == [{"name": "a", "x": "1"}]
    twice = elements({"name": "a"}, {"name": "a"})
    assert 'Duplicate key was {"name":"a"}' in error(made(merge(base, twice)))


@pytest.mark.parametrize("empty", ["", 0.0, False])
def test_b39_an_empty_override_counts_for_go_templates_too(empty: Any) -> None:
    found = made(merge(elements({"name": "a", "x": "1"}), elements({"name": "a", "x": empty})), go=True)
    assert rows(found)[0]["x"] == empty


def test_b40_nested_merge_keys_work_without_go_templates_only() -> None:
    base = elements({"name": "a", "values": {"env": "x"}}, {"name": "b", "values": {"env": "y"}})
    both = merge(base, elements({"c": "1", "values": {"env": "y"}}), keys=("values.env",))
    assert [row.get("c") for row in rows(made(both))] == [None, "1"]
    assert '{"values.env":null}' in error(made(both, go=True))


DUCKS: Obj = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "ducks"},
    "data": {"apiVersion": "x.example/v1", "kind": "ducks", "statusListKey": "decisions", "matchKey": "clusterName"},
}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], "no clusterDecisionResources found"),
        ([{"decisions": []}], []),
        ([{"decisions": [{"clusterName": "in-cluster"}, {"clusterName": "gone"}]}], ["in-cluster"]),
    ],
)
def test_b41_no_decision_object_is_an_error_and_no_decision_is_no_row(objects: list[Obj], expected: Any) -> None:
    ducks = [
        {
            "apiVersion": "x.example/v1",
            "kind": "Duck",
            "metadata": {"name": "d", "labels": {"a": "b"}},
            "status": status,
        }
        for status in objects
    ]
    wanted = {"configMapRef": "ducks", "labelSelector": {"matchLabels": {"a": "b"}}}
    found = made({"clusterDecisionResource": wanted}, given={"objects": [DUCKS, *ducks]})
    assert (error(found) if found.failures else names(found)) == expected


PLUGIN: Obj = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "p"},
    "data": {"baseUrl": "http://plugin.example", "token": "$plugin.token"},
}


def test_b42_a_plugin_that_fails_fails_the_generator_and_rows_show_its_input() -> None:
    element = {"plugin": {"configMapRef": {"name": "p"}, "input": {"parameters": {"k": "v"}}}}
    given = {"objects": [PLUGIN], "plugin": {"status": 500, "body": {"error": "x"}}}
    assert error(made(element, given=given)).endswith("API error with status code 500: x")
    given["plugin"] = {"body": {"output": {"parameters": [{"name": "a"}]}}}
    template = {**GO_TEMPLATE, "metadata": {"name": "{{ .name }}-{{ toJson .generator.input.parameters.k }}"}}
    assert names(made(element, go=True, template=template, given=given)) == ['a-"v"']


def test_b43_a_row_without_the_key_is_not_in_a_list() -> None:
    term = {"key": "env", "operator": "NotIn", "values": ["dev"]}
    wanted = {**elements({"name": "a"}, {"name": "b", "env": "dev"}), "selector": {"matchExpressions": [term]}}
    assert names(made(wanted)) == ["a"]


def test_b44_a_missing_key_stays_but_for_go_templates_that_forbid_it() -> None:
    assert names(made(elements({"x": "y"}))) == ["{{name}}"]
    found = made(elements({"x": "y"}), go=True, options=("missingkey=error",))
    assert found.failures[0].reason == "RenderTemplateParamsError"
    assert 'map has no entry for key "name"' in error(found)


def test_b45_templates_cannot_read_the_environment() -> None:
    found = made(elements({"x": "y"}), go=True, template={**TEMPLATE, "metadata": {"name": '{{ env "HOME" }}'}})
    assert error(found).endswith('function "env" not defined')


def test_b46_a_patch_may_set_what_is_no_text() -> None:
    patch = "spec:\n  syncPolicy:\n    automated:\n      prune: {{ .prune }}\n"
    found = made(elements({"name": "a", "prune": True}), go=True, templatePatch=patch)
    assert found.made[0].app["spec"]["syncPolicy"] == {"automated": {"prune": True}}


def test_b47_a_patch_cannot_change_the_project() -> None:
    found = made(elements({"name": "a"}), templatePatch="spec:\n  project: other\n")
    assert [one.app["spec"]["project"] for one in found.made] == ["default"]


def test_b48_an_empty_block_of_a_generator_keeps_the_fields_of_the_template() -> None:
    base = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "syncPolicy": {"automated": {"prune": True}}}}
    own = {"spec": {"syncPolicy": {"automated": {}}}}
    found = made({"list": {"elements": [{"name": "a"}], "template": own}}, template=base)
    assert found.made[0].app["spec"]["syncPolicy"] == {"automated": {"prune": True}}


def test_entries_that_are_null_are_gone_from_what_a_template_fills() -> None:
    values = {"a": None, "b": [None, {"c": None}], "n": 123456789012345678}
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "source": {"repoURL": "r", "helm": {"valuesObject": values}}}}
    helm = made(elements({"name": "a"}), template=template).made[0].app["spec"]["source"]["helm"]
    assert helm["valuesObject"] == {"b": [None, {}], "n": 123456789012345680}
