"""Request the service-account tokens of a pod's volumes, as the kubelet does."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from syncline.base.secret import Secret
from syncline.cluster.machines.processes.volumes import TokenWish, token_wishes
from syncline.kube import client
from syncline.kube.objects import Obj, ResourceInfo, dig, name_of, namespace_of, uid_of

ACCOUNTS = ResourceInfo("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)


def issued_tokens(pod: Obj) -> Generator[Any, Any, dict[TokenWish, Secret]]:
    """Return the tokens by wish; all are bound to the pod."""
    bound = {"kind": "Pod", "apiVersion": "v1", "name": name_of(pod), "uid": uid_of(pod)}
    account = str(dig(pod, "spec", "serviceAccountName", default="default"))
    found: dict[TokenWish, Secret] = {}
    for wish in token_wishes(pod):
        spec: dict[str, Any] = {"expirationSeconds": wish.lifetime_s, "boundObjectRef": bound}
        spec["audiences"] = [wish.audience] if wish.audience else []
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = yield client.create(ACCOUNTS, body, namespace=namespace_of(pod), name=account, subresource="token")
        found[wish] = Secret(str(dig(answer.or_raise(), "status", "token", default="")))
    return found
