"""Versions, ranges, catalogues and the resolver, as tables."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.patterns.operating import bundle, channel, package

from syncline.kube.objects import Obj
from syncline.patterns.operators.catalogs.model import SourceKey
from syncline.patterns.operators.catalogs.reading import CatalogError, read_catalog
from syncline.patterns.operators.granted import grants_of
from syncline.patterns.operators.resolver.resolve import Request, resolve
from syncline.patterns.operators.resolver.search import Rule, TooManySteps, solve
from syncline.patterns.operators.resolver.versions import parse_range, parse_version

NEAR, FAR = SourceKey("near", "team"), SourceKey("far", "openshift-marketplace")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.0.0", "1.0.1"),
        ("1.9.0", "1.10.0"),
        ("1.0.0-alpha", "1.0.0"),
        ("1.0.0-alpha", "1.0.0-alpha.1"),
        ("1.0.0-2", "1.0.0-10"),
        ("1.0.0-10", "1.0.0-a"),
    ],
)
def test_versions_are_ordered_as_semver_says(older: str, newer: str) -> None:
    assert parse_version(older) < parse_version(newer)


@pytest.mark.parametrize("text", ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1" * 2000])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write MAJOR"):
        parse_version(text)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">=1.0.0 <2.0.0", "1.5.0", "2.0.0"),
        ("<1.0.0 || >=2.0.0", "2.0.0", "1.0.0"),
        ("1.2.3", "1.2.3", "1.2.4"),
        ("!=1.2.3", "1.2.4", "1.2.3"),
        ("1.x", "1.9.9", "2.0.0"),
        ("1.2.x", "1.2.9", "1.3.0"),
        (">1.x", "2.0.0", "1.9.0"),
        ("<=1.x", "1.9.0", "2.0.0"),
        ("!1.2.x", "1.3.0", "1.2.0"),
        (">= 1.0.0", "1.0.0", "0.9.0"),
    ],
)
def test_a_range_holds_what_it_says(text: str, inside: str, outside: str) -> None:
    holds = parse_range(text)
    assert (holds(parse_version(inside)), holds(parse_version(outside))) == (True, False)


@pytest.mark.parametrize("text", ["", "||", ">>1.0.0", "x", ">=1.0", "1.0.0 ||", ">" * 2000])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|version"):
        parse_range(text)


def offered(name: str, version: str, **properties: Any) -> tuple[Obj, ...]:
    return package(name), channel(name, "stable", f"{name}.v{version}"), bundle(name, version, **properties)


def subscription(name: str, source: SourceKey = FAR, **status: str) -> Obj:
    spec = {"name": name, "source": source.name, "sourceNamespace": source.namespace}
    return {"metadata": {"name": name, "namespace": "team"}, "spec": spec, "status": status}


def chosen(catalogs: dict[SourceKey, list[Obj]], *subscriptions: Obj) -> Any:
    """Names of what is installed, or the error."""
    read = {source: read_catalog(documents) for source, documents in catalogs.items()}
    found = resolve(Request("team", subscriptions, {}, [{"metadata": {"name": "group", "namespace": "team"}}], read))
    if found.error:
        return found.error
    return [one["resource"]["name"] for one in found.steps if one["resource"]["kind"] == "ClusterServiceVersion"]


def test_a_dependency_comes_from_the_catalogue_of_the_one_that_needs_it_before_others() -> None:
    needs = {"packageName": "gears", "versionRange": ">=1.0.0"}
    far = [*offered("widgets", "1.0.0", olm_package_required=needs), *offered("gears", "1.0.0")]
    near = [*offered("gears", "2.0.0")]
    assert chosen({NEAR: near, FAR: far}, subscription("widgets")) == ["widgets.v1.0.0", "gears.v1.0.0"]


GEARS: Obj = {"package": {"packageName": "gears", "versionRange": "1.x"}}
OLD_GEARS: Obj = {"package": {"packageName": "gears", "versionRange": "<1.0.0"}}
NEW_GEARS = (
    "properties.exists(p, p.type == 'olm.package' && p.value.packageName == 'gears' "
    "&& semver_compare(p.value.version, 'VERSION') >= 0)"
)
NOTHING: Obj = {"gvk": {"group": "no", "version": "v1", "kind": "No"}}


@pytest.mark.parametrize(
    "constraint",
    [
        GEARS,
        {"any": {"constraints": [NOTHING, GEARS]}},
        {"all": {"constraints": [GEARS, {"not": {"constraints": [OLD_GEARS]}}]}},
        {"cel": {"rule": NEW_GEARS.replace("VERSION", "1")}},
        {"all": {"constraints": [{"cel": {"rule": NEW_GEARS.replace("VERSION", "v0.9")}}, GEARS]}},
    ],
)
def test_constraints_are_read_as_upstream_reads_them(constraint: Obj) -> None:
    far = [*offered("widgets", "1.0.0", olm_constraint=constraint), *offered("gears", "1.0.0")]
    assert chosen({FAR: far}, subscription("widgets")) == ["widgets.v1.0.0", "gears.v1.0.0"]


def refused(constraint: Obj) -> str:
    far = [*offered("widgets", "1.0.0", olm_constraint=constraint), *offered("gears", "1.0.0")]
    said = chosen({FAR: far}, subscription("widgets"))
    assert isinstance(said, str)
    return said


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ({}, "convert olm.constraint to resolver predicate: constraint is empty"),
        ({"no": {}}, 'parse olm.constraint: json: unknown field "no"'),
        ({"gvk": {"plural": "x"}}, 'parse olm.constraint: json: unknown field "plural"'),
        ({"all": []}, "parse olm.constraint: all is an object, found []"),
        ({"cel": {"rule": "1"}}, "convert olm.constraint to resolver predicate: cel expressions must have type Bool"),
        ({"cel": {"rule": "quantity('1') == quantity('1')"}}, "undeclared reference to 'quantity'"),
    ],
)
def test_a_constraint_that_cannot_be_read_prevents_the_resolution(constraint: Obj, said: str) -> None:
    found = refused(constraint)
    assert said in found
    assert not found.startswith("constraints not satisfiable")


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        ({"cel": {"rule": "false"}, "failureMessage": 'no "x"'}, 'with constraint: "false" and message: "no \\"x\\""'),
        (
            {"any": {"constraints": [OLD_GEARS, {"not": {"constraints": [GEARS, {"cel": {"rule": "true"}}]}}]}},
            "with package: gears and with version in range: <1.0.0 or with package: gears and with version in range: "
            '1.x and not with constraint: "true" and message: ""',
        ),
        ({"cel": {"rule": "properties[99].type == 'x'"}}, "with constraint: \"properties[99].type == 'x'\""),
    ],
)
def test_what_nothing_fulfils_is_said_in_upstreams_words(constraint: Obj, said: str) -> None:
    found = refused(constraint)
    assert found.startswith("constraints not satisfiable: bundle widgets.v1.0.0 requires an operator ")
    assert said in found


def test_an_expression_that_takes_too_long_prevents_the_resolution() -> None:
    loop = "properties.all(a, properties.all(b, properties.all(c, [1,2,3,4,5,6,7,8,9].all(d, d > 0))))"
    marks: Obj = {f"mark_{index}": "x" for index in range(60)}
    far = [*offered("widgets", "1.0.0", olm_constraint={"cel": {"rule": loop}}), *offered("gears", "1.0.0", **marks)]
    said = chosen({FAR: far}, subscription("widgets"))
    assert "takes more than 2000000 steps" in said


def test_a_contradiction_of_one_subscription_is_found_beside_others_with_many_candidates() -> None:
    many = [Rule("subscription exists", must=True)]
    rules = {}
    for index in range(8):
        candidates = tuple(f"{index}/{version}" for version in range(40))
        rules[f"s{index}"] = [*many, Rule(f"s{index} requires one", one_of=candidates)]
    rules["bad"] = [Rule("bad exists", must=True), Rule("bad requires b", one_of=("b1", "b2"))]
    rules |= {name: [Rule(f"{name} requires c", one_of=(f"{name}/c",))] for name in ("b1", "b2")}
    rules |= {f"{name}/c": [Rule(f"{name}/c is deprecated", never=True)] for name in ("b1", "b2")}
    found, why = solve(rules)
    assert found == []
    assert why == (
        "b1 requires c",
        "b1/c is deprecated",
        "b2 requires c",
        "b2/c is deprecated",
        "bad exists",
        "bad requires b",
    )


def test_what_was_installed_without_properties_has_those_that_it_describes() -> None:
    owned = {"owned": [{"name": "things.example.com", "kind": "Thing", "version": "v1"}]}
    needed = {"required": [{"name": "gears", "group": "example.com", "version": "v1", "kind": "Gear"}]}
    spec = {"version": "1.0.0", "customresourcedefinitions": owned, "apiservicedefinitions": needed}
    csvs = {"widgets.v1.0.0": {"metadata": {"name": "widgets.v1.0.0", "namespace": "team"}, "spec": spec}}
    mine = subscription("widgets", installedCSV="widgets.v1.0.0", currentCSV="widgets.v1.0.0")
    gears = (
        package("gears"),
        channel("gears", "stable", "gears.v1.0.0"),
        bundle("gears", "1.0.0", "Gear.v1.example.com"),
    )
    read = {FAR: read_catalog([*offered("widgets", "1.0.0"), *gears])}
    found = resolve(Request("team", [mine], csvs, [{"metadata": {"name": "group", "namespace": "team"}}], read))
    assert [one["resource"]["name"] for one in found.steps if one["resource"]["kind"] == "ClusterServiceVersion"] == [
        "gears.v1.0.0"
    ]


def test_two_providers_of_one_api_are_a_contradiction() -> None:
    far = [
        *(package("a"), channel("a", "stable", "a.v1.0.0"), bundle("a", "1.0.0", "Thing.v1.example.com")),
        *(package("b"), channel("b", "stable", "b.v1.0.0"), bundle("b", "1.0.0", "Thing.v1.example.com")),
    ]
    said = chosen({FAR: far}, subscription("a"), subscription("b"))
    assert said.startswith("constraints not satisfiable: ")
    place = "far/openshift-marketplace/stable"
    assert f"{place}/a.v1.0.0 and {place}/b.v1.0.0 provide Thing (example.com/v1)" in said


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"name": "nothing"}, "in package nothing in the catalog"),
        ({"channel": "fast"}, "in channel fast of package widgets in the catalog"),
        ({"startingCSV": "widgets.v9"}, "with name widgets.v9 in channel  of package widgets in the catalog"),
        ({"source": "no"}, "from catalog no in namespace openshift-marketplace"),
    ],
)
def test_a_subscription_that_finds_nothing_says_what_is_missing(spec: Obj, said: str) -> None:
    one = subscription("widgets")
    one["spec"] |= spec
    found = chosen({FAR: [*offered("widgets", "1.0.0")]}, one)
    why = f"no operators found {said} referenced by subscription widgets"
    assert found == f"constraints not satisfiable: {why}, subscription widgets exists"


def test_a_channel_without_an_order_prevents_the_resolution() -> None:
    far = [package("a"), channel("a", "stable", "a.v1.0.0", "a.v2.0.0"), bundle("a", "1.0.0"), bundle("a", "2.0.0")]
    assert chosen({FAR: far}, subscription("a")) == (
        "a unique replacement chain within a channel is required to determine the relative order between channel "
        'entries, but 2 replacement chains were found in channel "stable" of package "a": a.v1.0.0, a.v2.0.0'
    )


def test_a_search_without_an_end_is_given_up() -> None:
    with pytest.raises(TooManySteps):
        solve({"a": [Rule("first", must=True), Rule("need", one_of=("b", "c"))], "b": [Rule("not", never=True)]}, 1)


BROKEN: Obj = {"type": "olm.bundle.object", "value": {"data": "%"}}
STABLE = channel("a", "stable", "a.v1.0.0")
RANGED = channel("a", "stable", {"name": "a.v1.0.0", "skipRange": "??"})


@pytest.mark.parametrize(
    ("documents", "said"),
    [
        ([STABLE], "package a has no olm.package document"),
        ([package("a", "fast"), STABLE, bundle("a", "1.0.0")], "'fast' is not one of its channels: stable"),
        ([package("a"), channel("a", "stable"), bundle("a", "1.0.0")], "no entry that no other one replaces or skips"),
        ([package("a"), RANGED, bundle("a", "1.0.0")], "skipRange"),
        ([bundle("a", "1.0")], "write MAJOR.MINOR.PATCH"),
        ([{"schema": "olm.bundle", "name": "a", "package": "a", "properties": [BROKEN]}], "cannot be read"),
    ],
)
def test_a_catalogue_that_cannot_be_read_says_where(documents: list[Obj], said: str) -> None:
    with pytest.raises(CatalogError) as refused:
        read_catalog(documents)
    assert said in str(refused.value)


def test_manifests_in_a_catalogue_are_installed_as_they_are() -> None:
    csv: Obj = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion"}
    csv |= {"metadata": {"name": "a.v1.0.0"}, "spec": {}}
    data = base64.b64encode(json.dumps(csv).encode()).decode()
    document = bundle("a", "1.0.0")
    document["properties"].append({"type": "olm.bundle.object", "value": {"data": data}})
    found = read_catalog([package("a"), channel("a", "stable", "a.v1.0.0"), document])
    (entry,) = found.packages["a"].channels["stable"].entries
    assert (entry.bundle.objects, entry.bundle.stand_in) == ((csv,), False)


READ: Obj = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
READER: Obj = {"kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": [READ]}
BOUND: Obj = {
    "kind": "RoleBinding",
    "metadata": {"name": "b", "namespace": "team"},
    "roleRef": {"kind": "ClusterRole", "name": "reader"},
    "subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": "team"}],
}


@pytest.mark.parametrize(
    ("namespace", "rule", "held"),
    [
        ("team", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}, True),
        ("team", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["one"]}, True),
        ("team", {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get"]}, False),
        ("team", {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}, False),
        ("", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}, False),
        ("other", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}, False),
        ("team", {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, False),
    ],
)
def test_an_account_has_the_rights_that_its_bindings_give(namespace: str, rule: Obj, held: bool) -> None:
    assert grants_of([READER, BOUND]).satisfied("sa", "team", namespace, rule) is held
