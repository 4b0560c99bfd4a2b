"""Commands that change objects: patch, apply, create, delete, annotate, label, scale."""

from __future__ import annotations

import json
from typing import Any

from syncline.cluster.machines.tools.arguments import Arguments
from syncline.cluster.machines.tools.creating import made_object
from syncline.cluster.machines.tools.printing import check_format, shown
from syncline.cluster.machines.tools.reading import POLL_S, seconds_of
from syncline.cluster.machines.tools.steps import CommandError, Output, Session, Sleep, Steps, refusal_text
from syncline.cluster.machines.tools.targets import (
    Target,
    display,
    manifests,
    named,
    namespace_of_command,
    targets_of,
)
from syncline.kube import client
from syncline.kube.client import PatchType, Response
from syncline.kube.errors import ApiError, NotFound
from syncline.kube.objects import Obj, ResourceInfo, annotations_of, labels_of, meta, name_of, namespace_of
from syncline.kube.objects import resource_version as version_of
from syncline.kube.patching.threeway import three_way_json_merge, three_way_strategic
from syncline.kube.schema.model import schema_for
from syncline.kube.yaml.loading import YamlError, load

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
DELETE_WAIT_S = 7 * 86400.0
PATCH_TYPES = {"json": PatchType.JSON, "merge": PatchType.MERGE, "strategic": PatchType.STRATEGIC}


def _say(arguments: Arguments, info: ResourceInfo, obj: Obj, verb: str) -> Output:
    """Return the message about a change, or the object in the requested format."""
    form = arguments.get("output")
    if form:
        check_format(form)
        return Output(shown(obj, form))
    suffix = {"client": " (dry run)", "server": " (server dry run)"}.get(arguments.dry_run, "")
    return Output(f"{display(info, name_of(obj))} {verb}{suffix}\n")


def _manager(session: Session, arguments: Arguments, default: str) -> str:
    return arguments.get("field-manager") or default


# -- patch -----------------------------------------------------------------------------------------------------------


def patch(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    kind = PATCH_TYPES.get(arguments.get("type", "strategic"))
    if kind is None:
        listed = '["json" "merge" "strategic"]'
        raise CommandError(f'error: --type must be one of {listed}, not "{arguments.get("type")}"')
    body = _patch_body(session, arguments)
    for target in (yield from targets_of(session, arguments, words)):
        before = yield client.get(target.info, target.namespace, target.name)
        before.or_raise()
        answer = yield client.patch(
            target.info,
            target.namespace,
            target.name,
            kind,
            body,
            subresource=arguments.get("subresource"),
            dry_run=arguments.dry_run != "none",
            field_manager=_manager(session, arguments, "kubectl-patch"),
        )
        obj = answer.or_raise()
        same = version_of(before.obj) == version_of(obj) and arguments.dry_run == "none"
        yield _say(arguments, target.info, obj, "patched (no change)" if same else "patched")
    return 0


def _patch_body(session: Session, arguments: Arguments) -> Any:
    text = arguments.get("patch")
    if arguments.get("patch-file"):
        try:
            text = session.read(arguments.get("patch-file")).decode()
        except OSError as error:
            raise CommandError(f"error: unable to read patch file: {error.strerror}") from error
    if not text:
        raise CommandError("error: must specify --patch or --patch-file containing the contents of the patch")
    try:
        return load(text)
    except YamlError as error:
        raise CommandError(f'error: unable to parse "{text}": {error}') from error


# -- create and apply ------------------------------------------------------------------------------------------------


def create(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    """Create objects from files, or a simple object given by arguments."""
    objects = [(yield from made_object(session, arguments, words))] if words else list(manifests(session, arguments))
    code = 0
    for obj in objects:
        info = yield from session.of_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
        placed = _placed(session, arguments, info, obj)
        if arguments.dry_run == "client":
            yield _say(arguments, info, placed, "created")
            continue
        answer = yield client.create(
            info,
            placed,
            dry_run=arguments.dry_run == "server",
            field_manager=_manager(session, arguments, "kubectl-create"),
        )
        if not answer.ok and len(objects) > 1:
            code = 1
            yield _failed(answer)
            continue
        yield _say(arguments, info, answer.or_raise(), "created")
    return code


def _failed(answer: Response) -> Output:
    try:
        answer.or_raise()
    except ApiError as error:
        return Output(refusal_text(error) + "\n", error=True)
    raise AssertionError("only a refusal has failed")


def _placed(session: Session, arguments: Arguments, info: ResourceInfo, obj: Obj) -> Obj:
    """Return the object with the command's namespace if it has none; refuse a different one."""
    if not info.namespaced:
        return obj
    asked, has = arguments.get("namespace"), namespace_of(obj)
    if asked and has and asked != has:
        raise CommandError(
            f'error: the namespace from the provided object "{has}" does not match the namespace "{asked}". '
            f"You must pass '--namespace={has}' to perform this operation."
        )
    namespace = has or namespace_of_command(session, arguments)
    return {**obj, "metadata": {**meta(obj), "namespace": namespace}}


def apply(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    if words:
        raise CommandError(f"error: Unexpected args: [{' '.join(words)}]; give manifests with -f")
    objects = list(manifests(session, arguments))
    code = 0
    for obj in objects:
        info = yield from session.of_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
        placed = _placed(session, arguments, info, obj)
        try:
            done, verb = yield from _apply_one(session, arguments, info, placed)
        except ApiError as error:
            if len(objects) == 1:
                raise
            yield Output(refusal_text(error) + "\n", error=True)
            code = 1
            continue
        yield _say(arguments, info, done, verb)
    return code


def _apply_one(session: Session, arguments: Arguments, info: ResourceInfo, obj: Obj) -> Steps[tuple[Obj, str]]:
    dry_run = arguments.dry_run != "none"
    if arguments.on("server-side"):
        answer = yield client.server_side_apply(
            info,
            obj,
            field_manager=_manager(session, arguments, "kubectl"),
            force=arguments.on("force-conflicts"),
            dry_run=dry_run,
        )
        return answer.or_raise(), "serverside-applied"
    manager = _manager(session, arguments, "kubectl-client-side-apply")
    wanted = _with_last_applied(obj)
    answer = yield client.get(info, namespace_of(obj), name_of(obj))
    if answer.status == NotFound.code:
        made = yield client.create(info, wanted, dry_run=dry_run, field_manager=manager)
        return made.or_raise(), "created"
    live = answer.or_raise()
    kind, body = _difference(info, wanted, live)
    if not body:
        return live, "unchanged"
    changed = yield client.patch(
        info, namespace_of(obj), name_of(obj), kind, body, dry_run=dry_run, field_manager=manager
    )
    return changed.or_raise(), "configured"


def _with_last_applied(obj: Obj) -> Obj:
    """Return the manifest with the last-applied annotation, as kubectl does for the next apply."""
    annotations = {key: value for key, value in annotations_of(obj).items() if key != LAST_APPLIED}
    bare = {**obj, "metadata": {**meta(obj), "annotations": annotations}}
    text = json.dumps(bare, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    return {**bare, "metadata": {**bare["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}


def _difference(info: ResourceInfo, wanted: Obj, live: Obj) -> tuple[PatchType, Obj]:
    text = annotations_of(live).get(LAST_APPLIED, "")
    original = json.loads(text) if text else {}
    schema = schema_for(info.gvk)
    if schema is None:
        return PatchType.MERGE, three_way_json_merge(original, wanted, live)
    return PatchType.STRATEGIC, three_way_strategic(original, wanted, live, schema)


# -- delete ----------------------------------------------------------------------------------------------------------


def delete(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    """Delete objects and wait until they are gone, unless ``--wait=false`` is given."""
    propagation = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}.get(
        arguments.get("cascade", "background"), ""
    )
    grace = arguments.get("grace-period")
    if arguments.on("now"):
        grace = "1"
    if arguments.on("force") and not grace:
        grace = "0"
    targets = yield from targets_of(session, arguments, words)
    if not targets:
        yield Output("No resources found\n", error=True)
    gone = []
    code = 0
    for target in targets:
        answer = yield client.delete(
            target.info,
            target.namespace,
            target.name,
            propagation=propagation,
            grace_period_s=int(grace) if grace.lstrip("-").isdigit() and int(grace) >= 0 else None,
            dry_run=arguments.dry_run == "server",
        )
        if answer.status == NotFound.code and (arguments.on("ignore-not-found") or arguments.all("selector")):
            continue
        if not answer.ok and len(targets) > 1:
            code = 1
            yield _failed(answer)
            continue
        answer.or_raise()
        gone.append(target)
        yield Output(_deleted(arguments, target))
    if arguments.get("wait", "true") != "false" and arguments.dry_run == "none":
        yield from _until_gone(gone, seconds_of(arguments.get("timeout"), DELETE_WAIT_S))
    return code


def _deleted(arguments: Arguments, target: Target) -> str:
    if arguments.get("output") == "name":
        return f"{target}\n"
    kind = display(target.info, "").rstrip("/")
    forced = " force" if arguments.on("force") else ""
    where = f" from {target.namespace} namespace" if target.namespace else ""
    return f'{kind} "{target.name}"{forced} deleted{where}\n'


def _until_gone(targets: list[Target], left: float) -> Steps[None]:
    for target in targets:
        uid = None
        while True:
            answer = yield client.get(target.info, target.namespace, target.name)
            if not answer.ok:
                break
            now_uid = meta(answer.obj).get("uid")
            uid = uid or now_uid
            if now_uid != uid:
                break
            if left <= 0:
                raise CommandError(f"error: timed out waiting for the condition on {target}")
            pause = min(POLL_S, left)
            yield Sleep(pause)
            left -= pause


# -- labels, annotations, scale --------------------------------------------------------------------------------------


def label(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    return (yield from _mark(session, arguments, words, "labels", "labeled"))


def annotate(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    return (yield from _mark(session, arguments, words, "annotations", "annotated"))


def _mark(session: Session, arguments: Arguments, words: list[str], field: str, verb: str) -> Steps[int]:
    """Change labels or annotations: ``KEY=VALUE`` sets, ``KEY-`` removes."""
    changes: dict[str, str | None] = {}
    names: list[str] = []
    for word in words:
        if "=" in word:
            key, _, value = word.partition("=")
            changes[key] = value
        elif word.endswith("-") and len(names) > (0 if names and "/" in names[0] else 1):
            changes[word[:-1]] = None
        else:
            names.append(word)
    if not changes:
        raise CommandError(f"error: at least one {field.rstrip('s')} update is required")
    for target in (yield from targets_of(session, arguments, names)):
        answer = yield client.get(target.info, target.namespace, target.name)
        live = answer.or_raise()
        known = labels_of(live) if field == "labels" else annotations_of(live)
        for key, wanted in changes.items():
            if wanted is not None and known.get(key, wanted) != wanted and not arguments.on("overwrite"):
                raise CommandError(f"error: '{key}' already has a value ({known[key]}), and --overwrite is false")
        body = {"metadata": {field: changes}}
        done = yield client.patch(
            target.info,
            target.namespace,
            target.name,
            PatchType.MERGE,
            body,
            dry_run=arguments.dry_run != "none",
            field_manager=_manager(session, arguments, "kubectl-label" if field == "labels" else "kubectl-annotate"),
        )
        yield _say(arguments, target.info, done.or_raise(), verb)
    return 0


def scale(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    if not arguments.get("replicas").isdigit():
        raise CommandError("error: the --replicas=COUNT flag is required, and COUNT must be 0 or greater")
    for target in (yield from named(session, arguments, words)):
        body = {"spec": {"replicas": int(arguments.get("replicas"))}}
        answer = yield client.patch(
            target.info, target.namespace, target.name, PatchType.MERGE, body, subresource="scale"
        )
        answer.or_raise()
        yield Output(f"{target} scaled\n")
    return 0
