"""Reads the Secrets and ConfigMaps that questions name, by upstream's rules: :func:`read_references`.

Where a set may use a key is decided here alone. Sources: upstream ``applicationset/utils/kubernetes.go``,
``applicationset/generators/plugin.go``; reference section 9, behaviour 58.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping

from syncline.appset.asking import Unreadable
from syncline.appset.questions import DirectoriesQuestion, FilesQuestion, PluginQuestion, Question
from syncline.argo.clusters import SECRET_TYPE
from syncline.base.secret import Secret
from syncline.control.cache import Snapshot
from syncline.kube.objects import Obj, ObjectRef, dig, labels_of
from syncline.sources.providers.asking import references
from syncline.sources.providers.model import SecretReference

ARGO_SECRET = "argocd-secret"
PART_OF = "app.kubernetes.io/part-of"


def references_of(question: Question, control_namespace: str) -> tuple[SecretReference, ...]:
    """Return what has to be read before the question is asked."""
    match question:
        case DirectoriesQuestion() | FilesQuestion():
            return ()  # the credentials of repositories are those of the source reader
        case PluginQuestion():
            return (question.token,)
        case _:
            return references(question.decoded, question.namespace, control_namespace)


def read_references(
    cache: Snapshot, asked: Iterable[SecretReference], *, strict: bool
) -> Mapping[SecretReference, Secret]:
    """Return the values. ``strict``: Secrets of token references need the label of SCM credentials. Raises
    :class:`Unreadable` in upstream's words, also where the API refuses to show the object."""
    found: dict[SecretReference, Secret] = {}
    for reference in asked:
        value = _value(_object(cache, reference, strict=strict), reference)
        if value is not None:
            found[reference] = Secret(value)
    return found


def _object(cache: Snapshot, reference: SecretReference, *, strict: bool) -> Obj:
    place = f"{reference.namespace}/{reference.name}"
    ref = ObjectRef("", reference.kind, reference.namespace, reference.name)
    what = f"error fetching {'secret' if reference.kind == 'Secret' else reference.kind} {place}"
    if reference.purpose == "plugin":
        what = f"error fetching Secret token: {what}"
    obj = cache.get(ref)
    if obj is None:
        unread = cache.unread(ref)
        raise Unreadable(f"{what}: {unread}" if unread else f'{what}: {reference.kind} "{reference.name}" not found')
    kind, labels = labels_of(obj).get(SECRET_TYPE), labels_of(obj)
    if reference.kind == "Secret" and reference.purpose == "scm" and strict and kind != "scm-creds":
        raise Unreadable(
            f'secret {place} is not a valid SCM creds secret: secret must have label "{SECRET_TYPE}"="scm-creds"'
        )
    if reference.purpose == "plugin" and reference.name != ARGO_SECRET and labels.get(PART_OF) != "argocd":
        raise Unreadable(f"secret {place} must have the label {PART_OF}: argocd, for plugins to be given its keys")
    if reference.purpose == "github-app" and kind not in ("repo-creds", "repository"):
        raise Unreadable(f"secret {place} must have the label {SECRET_TYPE}: repo-creds, to be used as a GitHub App")
    return obj


def _value(obj: Obj, reference: SecretReference) -> str | None:
    data = dig(obj, "data", default={}) or {}
    if reference.key not in data:
        if reference.optional:
            return None
        place = f"{reference.namespace}/{reference.name}"
        if reference.kind == "ConfigMap":
            raise Unreadable(f"key {reference.key} not found in ConfigMap {reference.name}")
        raise Unreadable(f'key "{reference.key}" in secret {place} not found')
    if reference.kind == "ConfigMap":
        return str(data[reference.key])
    try:
        return base64.b64decode(str(data[reference.key]), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise Unreadable(
            f'key "{reference.key}" in secret {reference.namespace}/{reference.name} is not text in base64'
        ) from None
