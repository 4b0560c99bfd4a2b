"""What hydrated commits say: metadata, trailers, messages, READMEs, manifests; hostile templates and texts."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from syncline.kube.yaml import loading as yaml
from syncline.sources.errors import SourceError
from syncline.sources.hydrating.commands import commands_of
from syncline.sources.hydrating.drycommit import (
    DryCommit,
    cleaned_message,
    commit_metadata,
    default_message,
    default_readme,
    metadata_text,
    read_commit,
    readme_data,
)
from syncline.sources.hydrating.manifest import manifest_text
from syncline.sources.hydrating.templates import render_template
from syncline.sources.rendering.environment import RenderContext

SHA = "0123456789" * 4
SETTING = "sourceHydrator.commitMessageTemplate"
TRAILERS = (
    "Argocd-reference-commit-author: Author Name <author@example.com>\n"
    "Argocd-reference-commit-sha: b82add2\n"
    "Argocd-reference-commit-subject: make a change\n"
    'Argocd-reference-commit-body: "two\\nlines"\n'
    "Argocd-reference-commit-repourl: https://git.example.com/owner/repo\n"
    "Argocd-reference-commit-date: 2025-06-09T13:50:18-04:00\n"
)


def test_a_commit_becomes_metadata_in_upstreams_order() -> None:
    shown = f"CI <ci@example.com>\n1749491408\nbump image\n\nSigned-off-by: CI <ci@example.com>\n{TRAILERS}"
    commit = read_commit("https://h/r", SHA, shown).with_trailers(TRAILERS)
    assert json.loads(metadata_text(commit_metadata(commit))) == {
        "repoURL": "https://h/r",
        "drySha": SHA,
        "author": "CI <ci@example.com>",
        "date": "2025-06-09T17:50:08Z",
        "subject": "bump image",
        "body": "Signed-off-by: CI <ci@example.com>\n",
        "references": [
            {
                "commit": {
                    "author": '"Author Name" <author@example.com>',
                    "date": "2025-06-09T13:50:18-04:00",
                    "subject": "make a change",
                    "body": "two\nlines",
                    "sha": "b82add2",
                    "repoUrl": "https://git.example.com/owner/repo",
                }
            }
        ],
    }
    assert default_message(commit) == (
        "0123456: bump image\n\nSigned-off-by: CI <ci@example.com>\n\n\n"
        'Co-authored-by: "Author Name" <author@example.com>\nCo-authored-by: CI <ci@example.com>\n'
    )


@pytest.mark.parametrize(
    "line",
    [
        "Argocd-reference-commit-author: nobody",
        "Argocd-reference-commit-sha: B82ADD2",
        "Argocd-reference-commit-sha: b82a",
        "Argocd-reference-commit-date: yesterday",
        "Argocd-reference-commit-date: 2025-13-40T00:00:00Z",
        "Argocd-reference-commit-body: no json",
        "Argocd-reference-commit-body: 3",
        "Argocd-reference-commit-other: x",
        "Argocd-reference-commit-sha:b82add2",
    ],
)
def test_a_trailer_that_is_not_valid_stays_in_the_body(line: str) -> None:
    commit = DryCommit("u", SHA, message=f"s\n\n{line}", trailers=line)
    assert commit.body == f"{line}\n" and commit.references == []


def test_messages_are_cleaned_as_git_cleans_them() -> None:
    assert cleaned_message("\n\n a  \n\n\n\nb\r\n\0c\n\n") == " a\n\nb\nc\n"
    assert cleaned_message(" \n\n\t\n") == ""


MESSAGE = """{{.metadata.drySha | trunc 7}}: {{ .metadata.subject }}
{{- if .metadata.body }}

{{ .metadata.body }}
{{- end }}
{{ range $ref := .metadata.references }}
{{- if and $ref.commit $ref.commit.author }}
Co-authored-by: {{ $ref.commit.author }}
{{- end }}
{{- end }}
{{- if .metadata.author }}
Co-authored-by: {{ .metadata.author }}
{{- end }}
"""
"""As ``docs/user-guide/source-hydrator.md`` of Argo CD gives the default."""


@pytest.mark.parametrize("body", ["", "\n\nsome\nbody\n\nSigned-off-by: X <x@example.com>"])
@pytest.mark.parametrize("trailers", ["", TRAILERS])
def test_the_default_message_is_what_the_documented_template_gives(body: str, trailers: str) -> None:
    pytest.importorskip("helm_python", reason="the extra helm is not installed")
    commit = DryCommit("u", SHA, "A <a@example.com>", "d", f"subject{body}", trailers)
    assert render_template(MESSAGE, {"metadata": commit_metadata(commit)}, SETTING) == default_message(commit)


@pytest.mark.parametrize(
    "text",
    [
        '{{ env "HOME" }}',
        '{{ expandenv "$HOME" }}',
        "{{ range until 100000000 }}xxxxxxxx{{ end }}",
        '{{ fail "no" }}',
        "{{ .metadata",
        '{{ include "text/templates/_text" . }}',
        "x" * 70_000,
    ],
)
def test_a_template_sees_nothing_of_the_machine_and_has_bounds(text: str) -> None:
    pytest.importorskip("helm_python", reason="the extra helm is not installed")
    with pytest.raises(SourceError, match=re.escape(SETTING)):
        render_template(text, {"metadata": {}}, SETTING)


def test_templates_may_define_templates_and_see_their_data_alone() -> None:
    pytest.importorskip("helm_python", reason="the extra helm is not installed")
    text = '{{ define "a" }}<{{ . }}>{{ end }}{{ template "a" $.metadata.subject }}{{ .Values }}'
    assert render_template(text, {"metadata": {"subject": "s"}}, SETTING) == "<s><no value>"
    commands = readme_data(DryCommit("u", SHA), ["x"])
    assert render_template("{{ .RepoURL }} {{ .DrySHA }}{{ range .Commands }} {{ . }}{{ end }}", commands, SETTING) == (
        f"u {SHA} x"
    )


def test_a_readme_says_how_to_render_at_home() -> None:
    context = RenderContext("team_web", "p", "ns", "1.36.0")
    helm: dict[str, Any] = {"path": "chart", "helm": {"parameters": [{"name": "a", "value": "x y; rm -rf /"}]}}
    (command,) = commands_of("Helm", helm, context)
    assert command == (
        "helm template chart --name-template web --namespace ns --kube-version 1.36.0 "
        "--set 'a=x y; rm -rf /' --include-crds"
    )
    edited = {"path": "k", "kustomize": {"namePrefix": "p-", "images": ["a=b:1"]}}
    assert commands_of("Kustomize", edited, context) == [
        "cd k",
        "kustomize edit set nameprefix -- p-",
        "kustomize edit set image a=b:1",
        "kustomize build .",
    ]
    assert commands_of("Directory", {"path": "x"}, context) == []
    assert f"git checkout {SHA}\n{command}\n```" in default_readme(DryCommit("u", SHA), [command])


LETTERS = " \n\t:#-'\"!&*{}[]|>%@`,?ab1.~=<é\u2028\x85\\"


def test_manifests_read_back_as_what_was_written() -> None:
    chance = random.Random(14)

    def made(depth: int) -> Any:
        kind = chance.random()
        if depth and kind < 0.3:
            return {text(5) or "k": made(depth - 1) for _ in range(chance.randint(0, 3))}
        if depth and kind < 0.6:
            return [made(depth - 1) for _ in range(chance.randint(0, 3))]
        return text(9) if kind < 0.9 else chance.choice([1, 2.5, None, True, 10**18, "<<", "1e3", "y" * 300])

    def text(most: int) -> str:
        return "".join(chance.choice(LETTERS) for _ in range(chance.randint(0, most)))

    values = [{"<<": {"a": 1}, "k": made(3), "long " * 40: made(1)} for _ in range(1500)]
    for value in values:
        assert yaml.load(manifest_text([value]), file="manifest.yaml") == value
    loaded = yaml.load_all(manifest_text(values[:20]), file="manifest.yaml")
    assert [one.value for one in loaded.documents] == values[:20]


def test_manifests_look_as_upstream_writes_them() -> None:
    obj = {"kind": "X", "apiVersion": "v1", "spec": {"b10": "", "b2": ["a", {"c": 1, "d": [[1]]}, []], "t": "x\ny\n"}}
    assert manifest_text([obj, {"a": "true"}]).decode() == (
        'apiVersion: v1\nkind: X\nspec:\n  b2:\n    - a\n    - c: 1\n      d:\n        - - 1\n    - []\n  b10: ""\n'
        '  t: |\n    x\n    y\n---\na: "true"\n'
    )
