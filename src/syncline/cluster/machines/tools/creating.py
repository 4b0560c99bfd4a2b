"""``create KIND NAME …``: simple objects without a manifest, as hooks create them."""

from __future__ import annotations

import base64

from syncline.cluster.machines.tools.arguments import Arguments
from syncline.cluster.machines.tools.steps import CommandError, Session, Steps
from syncline.cluster.machines.tools.targets import named
from syncline.kube import client
from syncline.kube.objects import Obj, dig


def made_object(session: Session, arguments: Arguments, words: list[str]) -> Steps[Obj]:
    """Return the object that the words describe; raise CommandError for unsupported kinds."""
    kind, rest = words[0], words[1:]
    if kind == "secret":
        if rest[:1] != ["generic"]:
            raise CommandError("error: only 'create secret generic NAME' is supported by this tool")
        rest = rest[1:]
    if not rest:
        raise CommandError(f"error: exactly one NAME is required, got 0; write: create {kind} NAME")
    name = rest[0]
    match kind:
        case "namespace" | "ns":
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        case "serviceaccount" | "sa":
            return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        case "configmap" | "cm":
            return _object("ConfigMap", name) | {"data": _data(session, arguments)}
        case "secret":
            encoded = {
                key: base64.b64encode(value.encode()).decode() for key, value in _data(session, arguments).items()
            }
            return _object("Secret", name) | {"type": "Opaque", "data": encoded}
        case "job":
            return (yield from _job(session, arguments, name, rest[1:]))
        case _:
            raise CommandError(f"error: 'create {kind}' is not supported by this tool; give a manifest with -f")


def _object(kind: str, name: str) -> Obj:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def _data(session: Session, arguments: Arguments) -> dict[str, str]:
    data = {}
    for pair in arguments.all("from-literal"):
        key, equals, value = pair.partition("=")
        if not equals:
            raise CommandError(f"error: invalid literal source {pair}, expected key=value")
        data[key] = value
    for given in arguments.all("from-file"):
        key, equals, path = given.partition("=")
        path = path if equals else given
        try:
            data[key if equals else path.rsplit("/", 1)[-1]] = session.read(path).decode("utf-8", "replace")
        except OSError as error:
            raise CommandError(f"error: error reading {path}: {error.strerror}") from error
    return data


def _job(session: Session, arguments: Arguments, name: str, command: list[str]) -> Steps[Obj]:
    """Create a Job from ``--from=cronjob/NAME`` or ``--image=IMAGE [-- COMMAND]``."""
    if arguments.get("from"):
        [target, *_] = yield from named(session, arguments, [arguments.get("from")])
        answer = yield client.get(target.info, target.namespace, target.name)
        template = dig(answer.or_raise(), "spec", "jobTemplate", default={})
        metadata = dict(template.get("metadata") or {}) | {"name": name}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), "cronjob.kubernetes.io/instantiate": "manual"}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template.get("spec") or {}}
    if not arguments.get("image"):
        raise CommandError("error: either --image or --from must be specified")
    container: Obj = {"name": name, "image": arguments.get("image")}
    if command:
        container["command"] = command
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": pod}},
    }
