"""A repository whose Secret's value stands in everything that can fail: it stays where people put it.

Each form is one Application in one virtual world. After its sync the value, in every spelling, is looked for in all
objects of the cluster, in the plan, the differences, the explanation, the journal and the log.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.explain.asking import ask, look, plan, printed, reader, told
from tests.scenes.scenes import Repo, Stage, application

from syncline.assembly.inspection.differences import application_differences
from syncline.kube.objects import Obj, dig

WORD = "hunter2-canary-93481"
LINES = ("first-canary-line-5521", "second-canary-line-7734")
ENCODED = base64.b64encode(WORD.encode()).decode()
SPELLINGS = (WORD, WORD[:14], WORD[-14:], ENCODED, ENCODED.rstrip("="), ENCODED[:16], *LINES)
SECRET = f"""apiVersion: v1
kind: Secret
metadata: {{name: db}}
stringData:
  password: {WORD}
  pem: |
    {LINES[0]}
    {LINES[1]}
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"
CHART = "apiVersion: v2\nname: c\nversion: 1.0.0\n"
HELM_SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {pin: {{ .Values.db.conn | quote }}}\n"
HELM_VALUES = f"db:\n  conn: {WORD}\n"
JSONNET = (
    "local pin = '%s'; local secret = {apiVersion: 'v1', kind: 'Secret', metadata: {name: 'db'}, stringData: {p: pin}};"
)
KUSTOMIZATION = "resources: [secret.yaml]\n"
ENDS = "syncline.dev/run-seconds: '0', syncline.dev/exit-code: '3'"
JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {argocd.argoproj.io/hook: PostSync}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {%s, syncline.dev/end-message: 'cannot log in with %s'}}
    spec: {restartPolicy: Never, containers: [{name: one, image: busybox}]}
"""

FORMS: dict[str, dict[str, str]] = {
    "yaml that cannot be parsed": {"a.yaml": SECRET.replace("pem: |", f"pem: {WORD}: *{WORD}")},
    "yaml with a bad indent": {"a.yaml": SECRET.replace("  password:", "   password:")},
    "yaml with an unknown tag": {"a.yaml": SECRET.replace(f": {WORD}", f": !{WORD} {WORD}")},
    "yaml with an unknown alias": {"a.yaml": SECRET.replace(f": {WORD}", f": *{WORD}")},
    "yaml with a key twice": {"a.yaml": SECRET + f"  {WORD}: x\n  {WORD}: y\n"},
    "yaml that is a list": {"a.yaml": SECRET + f"---\n- {WORD}\n"},
    "json that cannot be parsed": {
        "a.json": json.dumps({"kind": "Secret", "stringData": {"p": WORD}})[:-1] + f"{WORD}"
    },
    "data that is no base64": {"a.yaml": SECRET.replace("stringData", "data")},
    "data that is a list": {"a.yaml": SECRET.split("stringData")[0] + f"data: [{WORD}]\n"},
    "a misspelt field": {"a.yaml": SECRET.replace("stringData", "stringdata")},
    "a type that is wrong": {"a.yaml": SECRET + f"type: [{WORD}]\n"},
    "a label that is wrong": {"a.yaml": SECRET, "b.yaml": MAP.replace("name: c", f"name: c, labels: {{a: {WORD}_}}")},
    "a field of another type": {
        "a.yaml": SECRET,
        "b.yaml": f"apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {{ports: [{{port: {WORD}}}]}}\n",
    },
    "a port by a wrong name": {
        "a.yaml": SECRET,
        "b.yaml": f"apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\n"
        f"spec: {{type: {WORD}, ports: [{{port: 80, targetPort: {WORD}}}]}}\n",
    },
    "base64 in a wrong place": {
        "a.yaml": SECRET,
        "b.yaml": f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{nodeName: {ENCODED}, containers: []}}\n",
    },
    "a sync wave that is none": {
        "a.yaml": SECRET.replace("{name: db}", f"{{name: db, annotations: {{argocd.argoproj.io/sync-wave: '{WORD}'}}}}")
    },
    "a condition that cannot be read": {
        "a.yaml": SECRET.replace(
            "{name: db}", f"{{name: db, annotations: {{syncline.dev/wait-for: '{WORD}: [{WORD}'}}}}"
        )
    },
    "a condition in CEL that fails": {
        "a.yaml": SECRET,
        "b.yaml": MAP.replace(
            "{name: c}",
            "{name: c, annotations: {syncline.dev/wait-for: '{kind: ConfigMap, name: kube-root-ca.crt, "
            f'cel: "int(\\"{WORD}\\") > 1"}}\'}}}}',
        ),
    },
    "a deadline that is none": {
        "a.yaml": SECRET.replace("{name: db}", f"{{name: db, annotations: {{syncline.dev/gate-deadline: '{WORD}'}}}}")
    },
    "a hook that says it": {"a.yaml": SECRET, "b.yaml": JOB % (ENDS, WORD)},
    "a hook that says base64": {"a.yaml": SECRET, "b.yaml": JOB % (ENDS, f"Basic {ENCODED}")},
    "a hook that says a line": {"a.yaml": SECRET, "b.yaml": JOB % (ENDS, LINES[1])},
    "kustomize, a patch that is none": {
        "kustomization.yaml": f"{KUSTOMIZATION}patches: [{{patch: 'x {WORD}', target: {{kind: Secret}}}}]\n",
        "secret.yaml": SECRET,
    },
    "kustomize, a patch on nothing": {
        "kustomization.yaml": KUSTOMIZATION
        + "patches: [{patch: '[{op: replace, path: /stringData/"
        + WORD
        + "/x, value: 1}]', target: {kind: Secret}}]\n",
        "secret.yaml": SECRET,
    },
    "kustomize, a literal that is none": {
        "kustomization.yaml": f"secretGenerator: [{{name: db, literals: ['{WORD}']}}]\n",
    },
    "kustomize, an unknown field": {
        "kustomization.yaml": f"{KUSTOMIZATION}{WORD}: {WORD}\n",
        "secret.yaml": SECRET,
    },
    "kustomize, an env file that is none": {
        "kustomization.yaml": "secretGenerator:\n- name: db\n  envs:\n  - db.env\n",
        "db.env": f"PIN={WORD}\n{WORD} {WORD}=1\n",
    },
    "kustomize, a replacement that fails": {
        "kustomization.yaml": KUSTOMIZATION
        + "replacements: [{source: {kind: Secret, fieldPath: stringData.password}, "
        + "targets: [{select: {kind: Secret}, fieldPaths: [stringData.password.x]}]}]\n",
        "secret.yaml": SECRET,
    },
    "kustomize, a resource that cannot be parsed": {
        "kustomization.yaml": KUSTOMIZATION,
        "secret.yaml": SECRET.replace("pem: |", f"pem: {WORD}: *{WORD}"),
    },
    "helm, fail": {
        "Chart.yaml": CHART,
        "values.yaml": HELM_VALUES,
        "templates/s.yaml": HELM_SECRET,
        "templates/f.yaml": '{{ fail (printf "cannot use %s" .Values.db.conn) }}',
    },
    "helm, required": {
        "Chart.yaml": CHART,
        "values.yaml": HELM_VALUES,
        "templates/s.yaml": HELM_SECRET,
        "templates/f.yaml": '{{ required (printf "%s needs a user" (b64enc .Values.db.conn)) .Values.db.user }}',
    },
    "helm, a function that fails": {
        "Chart.yaml": CHART,
        "values.yaml": HELM_VALUES,
        "templates/s.yaml": HELM_SECRET,
        "templates/f.yaml": "{{ .Values.db.conn | mustFromJson }}{{ index .Values.db.conn 4 }}",
    },
    "helm, output that is no yaml": {
        "Chart.yaml": CHART,
        "values.yaml": HELM_VALUES,
        "templates/s.yaml": HELM_SECRET.replace("| quote", "")
        + "\n  a: {{ .Values.db.conn }}: *{{ .Values.db.conn }}\n",
    },
    "helm, values that are no yaml": {"Chart.yaml": CHART, "values.yaml": f"db:\n  password: {WORD}: *{WORD}\n"},
    "helm, a schema that refuses": {
        "Chart.yaml": CHART,
        "values.yaml": HELM_VALUES,
        "values.schema.json": '{"properties": {"db": {"properties": {"conn": {"pattern": "^x$", "maxLength": 2}}}}}',
        "templates/s.yaml": HELM_SECRET,
    },
    "jsonnet, error": {"a.jsonnet": JSONNET % WORD + " [secret, error 'cannot use ' + pin]"},
    "jsonnet, assert": {"a.jsonnet": JSONNET % WORD + " assert pin == 'x' : 'not %s' % pin; [secret]"},
    "jsonnet, a trace": {"a.jsonnet": JSONNET % WORD + " [secret { x: std.parseInt(pin) }]"},
    "jsonnet, a field that is missing": {"a.jsonnet": JSONNET % WORD + " [secret, secret[pin]]"},
    "jsonnet, syntax": {"a.jsonnet": JSONNET % WORD + f" [secret, {{'{WORD}'}}"},
    "jsonnet, encoded": {"a.jsonnet": JSONNET % WORD + " [secret, error std.base64(pin)]"},
    "an override that cannot be parsed": {"a.yaml": SECRET, ".argocd-source.yaml": f"helm: {WORD}: *{WORD}\n"},
}
NEEDS = {"helm": "helm_python", "jsonnet": "rjsonnet"}
KEPT = ("Secret", "ConfigMap", "Service", "Pod", "Job")
"""Kinds in which the forms put the value themselves; their Events and statuses elsewhere are looked at."""


def written(name: str, files: dict[str, str], tmp_path: Path) -> Repo:
    for file, text in files.items():
        place = tmp_path / "source" / "app" / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return Repo(tmp_path / "repo", tmp_path / "source")


def everything(stage: Stage) -> list[Obj]:
    """Every object of the cluster, but those that hold the value because people put it there."""
    store = stage.world.core.store
    found = [stored.obj for resource in store.resources() for stored in store.list(resource)]
    assert len(found) > 50, "the whole cluster is looked at"
    return [obj for obj in found if obj.get("kind") not in KEPT]


def assert_silent(where: str, said: Any) -> None:
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
    for spelling in SPELLINGS:
        at = text.find(spelling)
        assert at < 0, f"{where} says it: …{text[max(at - 200, 0) : at + 80]}"


@pytest.mark.parametrize("form", FORMS)
def test_the_value_of_a_secret_is_in_no_text_about_it(
    form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    needed = NEEDS.get(form.partition(",")[0])
    if needed is not None and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    caplog.set_level(logging.DEBUG)
    stage = Stage(tmp_path)
    stage.create(application(written(form, FORMS[form], tmp_path), "app"))
    stage.world.driver.advance(5)
    stage.sync()
    stage.world.driver.advance(60)
    stage.refresh()
    stage.world.driver.advance(60)
    app = stage.app()
    assert dig(app, "status", "operationState", "phase") or dig(app, "status", "conditions")
    assert_silent("the Application", app)
    for obj in everything(stage):
        assert_silent(f"{obj.get('kind')}", obj)
    planned = plan(stage, tmp_path)
    assert_silent("the plan", printed(planned) + json.dumps(planned.to_obj()))
    assert_silent("the explanation", told(stage, ask(stage, tmp_path)) + repr(ask(stage, tmp_path)))
    now = stage.world.clock.now()
    differences = application_differences(look(stage).cache, app, reader(tmp_path), stage.world.settings, now)
    assert_silent("the differences", list(differences.problems))
    assert_silent("the journal", "\n".join(f"{entry.what} {entry}" for entry in stage.world.journal))
    assert_silent("the log", caplog.text)
