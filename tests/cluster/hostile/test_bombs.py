"""Single requests of at most three megabytes that were, or could have been, too much: each is answered in little time
of the processor, whatever the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.cluster.hostile.test_fuzz import Target, TooSlow, deadline, no_traces

from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.kube.client import Request
from syncline.kube.errors import Invalid
from syncline.kube.patching.patches import MAX_COPIED_BYTES, json_patch

DEADLINE_S = 20.0
"""Of the processor. The slowest takes five seconds on a slow machine; what is wrong grows with the square."""

JSON, JSON_PATCH, APPLY = "application/json", "application/json-patch+json", "application/apply-patch+yaml"
MAPS, PODS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"
THINGS = "/apis/example.com/v1/namespaces/default/things"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def many(text: str, count: int) -> str:
    return ",".join([text] * count)


def numbered(text: str, count: int) -> str:
    return ",".join(text.replace("#", str(number)) for number in range(count))


def thing(more: str) -> str:
    head = '{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generateName":"x"},"spec":'
    return head + "{" + more + "}}"


def pod(container: str = "", spec: str = "") -> str:
    return (
        f'{{"metadata":{{"generateName":"p"}},"spec":{{"containers":[{{"name":"c","image":"i"{container}}}]{spec}}}}}'
    )


BOMBS: dict[str, tuple[str, str, str]] = {
    "lists in lists": (THINGS, '"more":' + "[" * 1_400_000 + "]" * 1_400_000, "thing"),
    "objects in objects": (THINGS, '"more":' + '{"a":' * 400_000 + "1" + "}" * 400_000, "thing"),
    "many fields": (THINGS, '"more":{' + numbered('"k#":1', 200_000) + "}", "thing"),
    "many numbers": (THINGS, '"more":[' + many("1", 1_400_000) + "]", "thing"),
    "many objects": (THINGS, '"more":[' + many("{}", 900_000) + "]", "thing"),
    "many entries of a map list": (THINGS, '"l":[' + numbered('{"k":"#"}', 100_000) + "]", "thing"),
    "one entry again and again": (THINGS, '"l":[' + many('{"k":"a"}', 100_000) + "]", "thing"),
    "unknown fields": (MAPS, '{"metadata":{"name":"u"},' + numbered('"k#":1', 200_000) + "}", ""),
    "one field again and again": (MAPS, '{"metadata":{"name":"r"},"data":{' + many('"k":"1"', 200_000) + "}}", ""),
    "each field twice": (
        MAPS,
        '{"metadata":{"name":"t"},"data":{' + numbered('"k#":"1","k#":"2"', 90_000) + "}}",
        "",
    ),
    "many labels": (MAPS, '{"metadata":{"name":"l","labels":{' + numbered('"k#":"v"', 100_000) + "}}}", ""),
    "many owners": (
        MAPS,
        '{"metadata":{"name":"o","ownerReferences":['
        + numbered('{"apiVersion":"v1","kind":"Pod","name":"p","uid":"#"}', 40_000)
        + "]}}",
        "",
    ),
    "many finalizers": (MAPS, '{"metadata":{"name":"f","finalizers":[' + numbered('"x/k#"', 100_000) + "]}}", ""),
    "many containers": (PODS, pod()[:-3] + "," + numbered('{"name":"c#","image":"i"}', 20_000) + "]}}", ""),
    "many variables": (PODS, pod(',"env":[' + numbered('{"name":"A#","value":"$(A)"}', 60_000) + "]"), ""),
    "many ports": (PODS, pod(',"ports":[' + many('{"containerPort":80}', 60_000) + "]"), ""),
    "many tolerations": (
        PODS,
        pod(spec=',"tolerations":[' + numbered('{"key":"k#","operator":"Exists"}', 40_000) + "]"),
        "",
    ),
    "aliases of aliases": (
        MAPS,
        "metadata: {name: ya}\na: &a [x]\n" + "".join(f"b{number}: *a\n" for number in range(100_000)),
        "yaml",
    ),
    "brackets as YAML": (MAPS, "[" * 1_000_000, "yaml"),
}


@pytest.fixture(scope="module")
def target() -> Target:
    return Target()


@pytest.mark.parametrize("name", BOMBS)
def test_a_large_body_is_answered_in_little_time(target: Target, name: str) -> None:
    path, text, form = BOMBS[name]
    body = thing(text) if form == "thing" else text
    content = "application/yaml" if form == "yaml" else JSON
    request = Request("POST", path, {}, {"content-type": content}, body.encode())
    assert len(body) < 3 * 1024 * 1024
    with no_traces() as traces, deadline(DEADLINE_S):
        answer = target.ask(request)
        assert answer.raw and answer.status in (201, 400, 422) and not traces.records


def patched(target: Target, operations: list[Any]) -> int:
    target.ask(Request("DELETE", f"{THINGS}/patched"))
    body = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "patched"}}
    spec = {"more": {"a": "x" * 1_000, "l": []}}
    assert target.ask(Request("POST", THINGS, {}, {}, body | {"spec": spec})).status == 201
    request = Request("PATCH", f"{THINGS}/patched", {}, {"content-type": JSON_PATCH}, json.dumps(operations).encode())
    with no_traces() as traces, deadline(DEADLINE_S):
        status = target.ask(request).status
    assert not traces.records
    return status


def copy(source: str, path: str) -> dict[str, str]:
    return {"op": "copy", "from": source, "path": path}


def test_patches_that_copy_what_they_copied_are_refused_before_they_grow(target: Target) -> None:
    assert patched(target, [copy("/spec/more", f"/spec/more/b{n}") for n in range(40)]) == 422
    assert patched(target, [copy("/spec/more/a", f"/spec/more/b{n}") for n in range(1_000)]) == 200


def test_patches_that_nest_deeper_and_deeper_are_refused(target: Target) -> None:
    assert patched(target, [copy("/spec/more/l", "/spec/more/l/-")] * 8) == 200
    deep = [{"op": "add", "path": "/spec/more" + "/n" * depth, "value": {}} for depth in range(1, 1_500)]
    assert patched(target, deep) in (400, 422)
    assert patched(target, [copy("/spec/more", "/spec/more/n" * 1)] + [copy("/spec/more", "/spec/more/n")] * 9) in (
        200,
        400,
        422,
    )


def test_ten_thousand_operations_on_a_wide_object_take_little_time(target: Target) -> None:
    wide = [{"op": "add", "path": "/spec/more", "value": {f"k{n}": n for n in range(60_000)}}]
    assert (
        patched(target, wide + [{"op": "replace", "path": f"/spec/more/k{n}", "value": 0} for n in range(9_999)]) == 200
    )
    assert patched(target, [{"op": "add", "path": "/spec/more/l/0", "value": n} for n in range(10_000)]) == 200


def test_copies_are_their_own_and_what_came_in_stays_as_it_was() -> None:
    document = {"a": {"x": [1]}, "b": {}}
    operations = [
        copy("/a", "/b/c"),
        {"op": "add", "path": "/b/c/x/-", "value": 2},
        {"op": "add", "path": "/a/x/-", "value": 3},
    ]
    assert json_patch(document, operations) == {"a": {"x": [1, 3]}, "b": {"c": {"x": [1, 2]}}}
    assert document == {"a": {"x": [1]}, "b": {}}
    value = {"y": []}
    steps = [{"op": "add", "path": "/v", "value": value}, {"op": "add", "path": "/v/y/-", "value": 1}]
    assert json_patch(document, steps)["v"] == {"y": [1]} and value == {"y": []}
    moved = [{"op": "move", "from": "/a/x", "path": "/b/x"}, {"op": "add", "path": "/b/x/-", "value": 4}]
    assert json_patch(document, moved) == {"a": {}, "b": {"x": [1, 4]}} and document["a"] == {"x": [1]}
    with pytest.raises(Invalid):
        json_patch({"a": "x" * MAX_COPIED_BYTES}, [copy("/a", "/b")])


def test_a_role_of_millions_of_combinations_is_judged_whole(target: Target) -> None:
    rules = [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"]}]
    subject = {"kind": "User", "name": "ro", "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ro"}
    target.ask(Request("POST", ROLES, {}, {}, {"metadata": {"name": "ro"}, "rules": rules}))
    binding = {"metadata": {"name": "ro"}, "roleRef": ref, "subjects": [subject]}
    target.ask(Request("POST", ROLES.replace("roles", "rolebindings"), {}, {}, binding))

    def names(letter: str) -> list[str]:
        return [f"{letter}{number}" for number in range(60)]

    big = {"apiGroups": names("g"), "resources": names("r"), "verbs": names("v"), "resourceNames": names("n")}
    request = Request("POST", ROLES, {}, {}, {"metadata": {"name": "big"}, "rules": [big]})
    with deadline(DEADLINE_S):
        refused = target.core.api.handle(request, UserInfo("ro", ("system:authenticated",)))
        assert refused.status == 403 and "not currently held" in refused.obj["message"]
        assert target.core.api.handle(request, ADMIN).status == 201


def test_the_deadline_of_these_tests_stops_what_takes_too_long() -> None:
    def forever() -> None:
        while True:
            pass

    stop: Callable[[], None] = forever
    with pytest.raises(TooSlow), deadline(0.05):
        stop()


def test_long_names_and_paths_are_not_remembered() -> None:
    """Caches by path, name, version and pattern would hold gigabytes of what strangers asked for once."""
    import tracemalloc

    target = Target()
    stranger = UserInfo("stranger", ("system:authenticated",))

    def ask(number: int) -> None:
        long = f"{number}{'x' * 60_000}"
        for path in (f"/{long}", f"{MAPS}/{long}", f"/apis/{long}/v1/x", f"{MAPS}?"):
            query = {"fieldSelector": f"metadata.name={long}"} if path.endswith("?") else {}
            headers = {"accept": long, "user-agent": long, "content-type": JSON}
            target.core.api.handle(Request("GET", path.rstrip("?"), query, headers), stranger)
        body = {"apiVersion": long, "kind": long, "metadata": {"name": "x"}, "data": {long: "1"}}
        target.core.api.handle(Request("POST", MAPS, {}, {"content-type": JSON}, json.dumps(body).encode()), ADMIN)

    ask(0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1, 101):
            ask(number)
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < 3 * 1024 * 1024, f"{kept // 1024} KB are kept of 100 requests"
