"""Field ownership against recorded conversations: what a Kubernetes 1.36 API answered to the same writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.kube.recorded_conversations import covers, project, steps

from syncline.kube.errors import ApiError
from syncline.kube.objects import gvk_of
from syncline.kube.patching.managedfields import apply, reset_fields, track_update, with_managed_fields
from syncline.kube.schema.model import Schema, schema_for

RECORDINGS = ("apply-basics", "apply-conflicts", "apply-lists", "apply-migration", "apply-status-and-custom")
START = datetime(2026, 1, 1, tzinfo=UTC)

NEEDS_A_SERVER = {"no-field-manager", "wrong-kind", "name-mismatch", "resource-version-conflict"}
"""Refusals that are decided before ownership is asked."""


class World:
    """Just enough of a server: objects by path, no defaults, no validation."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.schemas: dict[str, Schema] = {}
        self.now = START

    def send(self, step: dict[str, Any]) -> Any:
        self.now += timedelta(milliseconds=1)
        verb = next(name for name in ("get", "post", "put", "patch") if name in step)
        url = urlsplit(step[verb])
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if verb == "get":
            return self.objects.get(url.path)
        body = step["body"]
        if body.get("kind") == "CustomResourceDefinition":
            version = body["spec"]["versions"][0]
            raw = version["schema"]["openAPIV3Schema"]
            self.schemas[body["spec"]["names"]["kind"]] = Schema.from_openapi(raw, resource=True)
            return body
        return self.write(verb, step, url.path, query)

    def write(self, verb: str, step: dict[str, Any], path: str, query: dict[str, str]) -> Any:
        body = step["body"]
        path, status, _ = path.partition("/status")
        if verb == "post":
            path = f"{path}/{body['metadata']['name']}"
        live = self.objects.get(path)
        shown = body if "kind" in body else live
        agent = step.get("headers", {}).get("User-Agent", "kubecheck").split("/")[0]
        options: dict[str, Any] = {
            "schema": self.schemas.get(shown["kind"]) or schema_for(gvk_of(shown)),
            "api_version": shown["apiVersion"],
            "now": self.now,
            "subresource": "status" if status else "",
            "reset": reset_fields("spec") if status else reset_fields("status"),
        }
        manager = query.get("fieldManager", agent)
        if step.get("type") == "apply":
            result = apply(live, body, manager, force="force" in query, **options)
            stored = result.obj
        else:
            new = merged(live, body) if verb == "patch" else body
            entries = track_update(live, new, manager, **options)
            stored = with_managed_fields(new, entries)
        stored["metadata"].setdefault("uid", "<uid>")
        if "dryRun" not in query:
            self.objects[path] = stored
        return stored


def merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: "<time>" if name == "time" else untimed(item) for name, item in value.items()}
    return [untimed(item) for item in value] if isinstance(value, list) else value


def sorted_refusal(status: Any) -> Any:
    causes = status.get("details", {}).get("causes")
    if causes:
        causes.sort(key=lambda cause: (cause.get("field", ""), cause["message"]))
        status["message"] = sorted(status["message"].split("\n"))
    return status


SERVER_WORK = {"metadata.generation", "data"}
"""Parts of answers about built-in kinds that come from a strategy, not from ownership."""


def without_ignored(value: Any, step: dict[str, Any]) -> Any:
    if isinstance(value, dict) and any(path.endswith(".time") for path in step.get("ignore", [])):
        return {name: item for name, item in value.items() if name != "time"}
    return value


def disagreements(step: dict[str, Any], answer: Any) -> list[str]:
    expected = step["expect"]["body"]
    if step["expect"]["status"] >= 400:
        ours, theirs = sorted_refusal(answer), sorted_refusal(expected)
        return [] if ours == theirs else [f"{step['id']}: {ours} is not {theirs}"]
    answer = untimed(answer)
    paths = step.get("only") or ["metadata.managedFields", "data", "metadata.labels"]
    found = []
    for path in paths:
        theirs = expected[path] if "only" in step else project(expected, path)
        ours = without_ignored(project(answer, path), step)
        if path in SERVER_WORK and ours is None:
            continue
        if "managedFields" in path and "only" not in step and "managedFields" not in step.get("keep", []):
            continue
        same = ours == theirs if "managedFields" in path or not isinstance(theirs, (dict, list)) else None
        if not (covers(theirs, ours) if same is None else same):
            found.append(f"{step['id']} {path}: {ours} is not {theirs}")
    return found


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_write_of_the_recording_leaves_the_recorded_owners_and_values(name: str) -> None:
    world = World()
    wrong: list[str] = []
    compared = 0
    for step in steps(name):
        if step["id"] in NEEDS_A_SERVER:
            continue
        try:
            answer = world.send(step)
        except ApiError as error:
            answer = error.to_status()
        if "expect" in step and answer is not None and "get" not in step:
            compared += 1
            wrong += disagreements(step, answer)
    assert compared > 5
    assert wrong == []
