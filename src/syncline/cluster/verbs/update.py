"""update: PUT of a whole object, or of its status half."""

from __future__ import annotations

from syncline.cluster.verbs.body import check_media, content_type, read_object
from syncline.cluster.verbs.create import answer_written
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import write_options
from syncline.cluster.verbs.write import change, check_address, insert, storage_conflict
from syncline.kube.client import Response
from syncline.kube.objects import Obj, meta
from syncline.kube.transport.elsewhere import weigh

_CREATED_BY_PUT = frozenset(
    {
        "/events",
        "/endpoints",
        "/limitranges",
        "coordination.k8s.io/leases",
        "rbac.authorization.k8s.io/roles",
        "rbac.authorization.k8s.io/clusterroles",
        "rbac.authorization.k8s.io/rolebindings",
        "rbac.authorization.k8s.io/clusterrolebindings",
    }
)
"""Storage whose strategy has AllowCreateOnUpdate."""


def _check_unborn(x: Exchange, obj: Obj) -> None:
    """Prepare a PUT that creates: drop its resourceVersion; refuse a uid, a precondition that cannot hold."""
    obj["metadata"].pop("resourceVersion", None)
    uid = meta(obj).get("uid")
    if not uid:
        return
    raise storage_conflict(x, uid, "")


def update(x: Exchange) -> Response:
    options = write_options(x.request.query, x.request.headers, "UpdateOptions")
    check_media(content_type(x.request), x.resource)
    obj = read_object(x, options.validation)
    check_address(x, obj)
    current = x.store.get(x.key(x.route.name))
    if current is None:
        if x.resource.storage in _CREATED_BY_PUT and not x.route.subresource:
            _check_unborn(x, obj)
            return answer_written(x, insert(x, obj, options))
        raise x.missing()
    weigh(len(current.raw))
    return answer_written(x, change(x, current, obj, options))
