"""The attributes of a request that authorization judges."""

from __future__ import annotations

from syncline.base.remember import remember
from syncline.cluster.access.rbac import Attributes
from syncline.cluster.resources.routes import Route, route_of, verb_of
from syncline.kube.client import Request
from syncline.kube.selectors import SelectorError, parse_field_selector


def attributes_of(request: Request) -> Attributes:
    route = route_of(request.path)
    return attributes(request, route, verb_of(request.method, route, request.query))


def attributes(request: Request, route: Route, verb: str) -> Attributes:
    if not route.resource:
        return Attributes(verb, path=request.path)
    name = route.name
    if not name and verb in ("list", "watch") and request.query and "fieldSelector" in request.query:
        name = "" if route.watching else _selected_name(request.query["fieldSelector"])
    return Attributes(verb, route.group, route.resource, route.subresource, route.namespace, name, request.path)


@remember(1024)
def _selected_name(text: str) -> str:
    """Return the one name that a list or watch selects; ``resourceNames`` may allow it (``RequestInfoFactory``)."""
    try:
        terms = parse_field_selector(text).terms
    except SelectorError:
        return ""
    names = [each.value for each in terms if each.field == "metadata.name" and each.equal]
    wrong = not names or names[0] in (".", "..") or "/" in names[0] or "%" in names[0]
    return "" if wrong else names[0]
