"""JSONPath as kubectl speaks it: results, printing, tolerance and refusals."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.text.jsonpath import JsonPathError, compile_path, compile_template
from syncline.kube.text.jsonpath_syntax import MAX_LENGTH

CONTAINERS: list[dict[str, Any]] = [
    {"image": "a:1", "name": "a", "ports": [{"containerPort": 80}], "resources": {}},
    {"image": "b:2", "name": "b", "resources": {}},
]
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"creationTimestamp": None, "labels": {"app": "web"}, "name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {},
        "template": {
            "metadata": {"creationTimestamp": None, "labels": {"app": "web"}},
            "spec": {"containers": CONTAINERS},
        },
    },
    "status": {},
}
C = ".spec.template.spec.containers"

ANSWERS = [
    (".metadata.name", ".metadata.name"),
    ("{.}", ""),
    ("{@.kind}{$.kind}", "DeploymentDeployment"),
    ("{..name}", "web a b"),
    ("{.metadata..name}", "web"),
    (f"{{{C}[*].image}}", "a:1 b:2"),
    (f"{{{C}[-1].name}}", "b"),
    (f"{{{C}[0:1].name}}", "a"),
    (f"{{{C}[::2].name}}", "a"),
    (f"{{{C}[0,1].name}}", "a b"),
    (f'{{range {C}[*]}}{{.name}}{{"\\n"}}{{end}}!', "a\nb\n!"),
    ("{range .spec.nope[*]}x{end}y", "y"),
    (f'{{{C}[?(@.name=="b")].image}}', "b:2"),
    (f"{{{C}[?(@.name!='b')].image}}", "a:1"),
    (f"{{{C}[?(@.ports)].name}}", "a"),
    ("{.metadata['name','labels']}", 'web {"app":"web"}'),
    ("{.metadata['name']}", "web"),
    ("{.spec.replicas}", "3"),
    ("{.nope}", ""),
    ("{.metadata.labels}", '{"app":"web"}'),
    ("a{.metadata.creationTimestamp}b", "anullb"),
    ("{.metadata.name}-{.kind}", "web-Deployment"),
    ('{"a\\tb"}', "a\tb"),
    ("{'q'}", "q"),
    ("{1}", "1"),
    ("{true}", "true"),
]
"""Template and what ``kubectl create deployment … --dry-run=client -o jsonpath=…`` printed."""

KUBECTL = "create deployment web --image=a:1 --image=b:2 --replicas=3 --port=80 --dry-run=client -o"


@pytest.mark.parametrize(("template", "answer"), ANSWERS)
def test_a_template_prints_what_kubectl_prints(template: str, answer: str) -> None:
    assert compile_template(template).render(DEPLOYMENT) == answer


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on this machine")
@pytest.mark.parametrize("template", [template for template, _ in ANSWERS[::5]])
def test_the_answers_are_still_those_of_kubectl(template: str) -> None:
    run = subprocess.run(["kubectl", *KUBECTL.split(), f"jsonpath={template}"], capture_output=True, text=True)
    assert run.stdout == compile_template(template).render(DEPLOYMENT)


@pytest.mark.parametrize(
    ("template", "reason", "position"),
    [
        ("{[}", "unterminated array", 1),
        ("{.a", "unclosed action", 3),
        ("{.a}{", "unclosed action", 5),
        ("{.a[x]}", "invalid array index x", 3),
        ("{....name}", "invalid multiple recursive descent", 3),
        ("{#}", "unrecognized character in action: U+0023 '#'", 1),
        ("{end}", "not in range, nothing to end", 0),
        ("{foo}", "unrecognized identifier foo", 0),
        ("{.a[?(@.b==c)]}", "unrecognized identifier c", 11),
        ('{.a[?(@.b=="c]}', "unterminated filter", 3),
        ("{.a[?(@.b=<1)]}", "unrecognized filter operator =<", 9),
        ("{'open}", "unterminated quoted string", 1),
        ("{+}", "cannot parse number +", 2),
    ],
)
def test_a_template_that_cannot_be_read_is_refused_with_its_place(template: str, reason: str, position: int) -> None:
    with pytest.raises(JsonPathError) as refusal:
        compile_template(template)
    assert (refusal.value.reason, refusal.value.position) == (reason, position)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (f"{{{C}[5].name}}", "array index out of bounds: index 5, length 2"),
        (f"{{{C}[-3].name}}", "array index out of bounds: index -1, length 2"),
        ("{.spec.replicas[0]}", "int64 is not array or slice"),
        (f'{{{C}[?(@.ports[0].containerPort=="x")].name}}', "incompatible types for comparison"),
        (f"{{{C}[?(@.resources==1)].name}}", "invalid type for comparison"),
        ("{.spec[?(@.a==1)]}", "map[string]interface {} is not array or slice and cannot be filtered"),
    ],
)
def test_an_object_that_does_not_fit_is_refused(template: str, reason: str) -> None:
    with pytest.raises(JsonPathError) as refusal:
        compile_template(template).find(DEPLOYMENT)
    assert (refusal.value.reason, refusal.value.position) == (reason, None)


def test_a_missing_field_is_an_error_only_on_demand() -> None:
    assert compile_path(".metadata.nope").find(DEPLOYMENT) == []
    with pytest.raises(JsonPathError, match="nope is not found"):
        compile_path(".metadata.nope").find(DEPLOYMENT, allow_missing=False)


@pytest.mark.parametrize("text", [".spec.replicas", "spec.replicas", "{.spec.replicas}", "$.spec.replicas"])
def test_a_path_of_a_column_needs_no_braces(text: str) -> None:
    assert compile_path(text).find(DEPLOYMENT) == [3]


def test_a_condition_is_found_by_its_type() -> None:
    obj = {"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Live", "status": "True"}]}}
    assert compile_path('.status.conditions[?(@.type=="Live")].status').find(obj) == ["True"]
    assert compile_path('{.status.conditions[?(@.type == "Live")].status}').find(obj) == ["True"]


def test_a_key_with_dots_is_escaped() -> None:
    obj = {"metadata": {"annotations": {"example.com/x": "y"}}}
    assert compile_path(r".metadata.annotations.example\.com/x").find(obj) == ["y"]
    assert compile_path(r"{.metadata.annotations['example\.com/x']}").find(obj) == ["y"]


def test_numbers_compare_by_size() -> None:
    obj = {"l": [{"n": 1}, {"n": 2}, {"n": 3}, {}]}
    assert compile_path("{.l[?(@.n>1)].n}").find(obj) == [2, 3]
    assert compile_path("{.l[?(@.n<=2)].n}").find(obj) == [1, 2]


def test_ranges_nest() -> None:
    template = "{range .l[*]}{.n}:{range .m[*]}{@},{end};{end}."
    assert compile_template(template).render({"l": [{"n": 1, "m": [2, 3]}, {"n": 4, "m": []}]}) == "1:2,3,;4:;."


def test_text_is_json_as_go_writes_it() -> None:
    obj = {"a": {"z": "<&>", "b": [1, 1.5, True, None, "é"]}, "f": 2.0}
    assert compile_path(".a").render(obj) == '{"b":[1,1.5,true,null,"é"],"z":"\\u003c\\u0026\\u003e"}'
    assert compile_path(".f").render(obj) == "2"


def test_templates_and_results_are_bounded() -> None:
    with pytest.raises(JsonPathError, match="characters"):
        compile_path("." + "a" * MAX_LENGTH)
    with pytest.raises(JsonPathError, match="inside one another"):
        compile_path("{range .a[*]}" * 100)
    with pytest.raises(JsonPathError, match="more than"):
        compile_path("{.l[*]..l[*]..l[*]}").find({"l": [{"l": [{"l": [{"x": i} for i in range(300)]}] * 50}] * 50})


@given(st.text(alphabet="{}[]().,:'\"@$*?=<>!-+0a \\\n", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        compile_template(text).render(DEPLOYMENT)
    except JsonPathError:
        return


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.integers() | st.text(), min_size=1))
def test_every_plain_field_is_found(obj: dict[str, Any]) -> None:
    for name, value in json.loads(json.dumps(obj)).items():
        assert compile_path(f".{name}").find(obj) == [value]
