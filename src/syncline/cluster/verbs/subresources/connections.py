"""exec for containers with processes; attach, portforward and proxy are refused with an alternative.

``api`` calls it. exec uses WebSocket, as kubectl does since 1.31; the server holds the connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from syncline.cluster.access.authz import Attributes
from syncline.cluster.verbs import admitting
from syncline.cluster.verbs.exchange import Exchange, ExecWish
from syncline.cluster.verbs.subresources.pods import chosen_container
from syncline.kube.client import Response
from syncline.kube.errors import BadRequest
from syncline.kube.objects import Obj, dig

OLDEST = "channel.k8s.io"
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io", OLDEST)
"""Subprotocols by preference: version 5 can close the input, the oldest reports failures as plain text."""
TRUE = ("1", "t", "true")

CONNECTIONS = {
    "attach": "`kubectl logs -f` follows what the container writes",
    "exec": "run the command in a Job, or read `kubectl logs`",
    "portforward": "no port of a container is open on this cluster",
    "proxy": "nothing listens behind Services, Pods and Nodes of this cluster",
}
"""Subresource → the alternative that the refusal names."""


def refuse_connection(x: Exchange) -> Response:
    """Refuse a connection: NotFound if the object does not exist, else BadRequest."""
    pod = x.current().obj
    sub = x.route.subresource
    if x.resource.storage == "/pods" and sub == "attach":
        chosen_container(x, pod, x.request.query.get("container", ""))
    if x.resource.storage == "/pods" and sub != "proxy":
        _require_host(x, pod)
    raise _not_offered(x, "machines of this cluster take no connections", CONNECTIONS[sub])


def _require_host(x: Exchange, pod: Obj) -> None:
    if not dig(pod, "spec", "nodeName"):
        raise BadRequest(f"pod {x.route.name} does not have a host assigned")


def _not_offered(x: Exchange, why: str, instead: str) -> BadRequest:
    where = f"{x.resource.info.plural}/{x.route.name}"
    return BadRequest(f"{x.route.subresource} is not offered for {where}: {why}; {instead}")


def run_command(x: Exchange) -> Response:
    """``pods/exec``. Opening a WebSocket needs ``create`` too (AuthorizePodWebsocketUpgradeCreatePermission)."""
    pod = x.current().obj
    asked = parse_qs(x.request.raw_query, keep_blank_values=True)
    container = chosen_container(x, pod, asked.get("container", [""])[0])
    _require_host(x, pod)
    if x.backend.commands is None:
        raise _not_offered(x, "machines of this cluster take no connections", CONNECTIONS["exec"])
    if x.verb != "create":
        route = x.route
        attributes = Attributes(
            "create", route.group, route.resource, route.subresource, route.namespace, route.name, x.request.path
        )
        x.backend.authorizer.require(x.user, attributes)
    wish = _wish(asked)
    if admitting.concerned(x):
        admitting.admitted(x, "CONNECT", _options(wish, container))
    begin = x.backend.commands.exec(pod, container, wish)
    _require_websocket(x)
    return Response(101, session=begin())


def _options(wish: ExecWish, container: str) -> Obj:
    """Return the options object that admission sees for a connection."""
    options: Obj = {"kind": "PodExecOptions", "apiVersion": "v1"}
    options |= {name: True for name, wanted in (("stdin", wish.stdin), ("tty", wish.tty)) if wanted}
    return {**options, "stdout": True, "stderr": True, "container": container, "command": list(wish.command)}


def _wish(asked: Mapping[str, list[str]]) -> ExecWish:
    streams = {name for name in ("stdin", "stdout", "stderr", "tty") if asked.get(name, [""])[0].lower() in TRUE}
    if not asked.get("command"):
        raise BadRequest("you must specify a command")
    if not streams - {"tty"}:
        raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    return ExecWish(tuple(asked["command"]), "stdin" in streams, "tty" in streams)


def _require_websocket(x: Exchange) -> None:
    headers = x.request.headers
    spoken = {each.strip() for each in headers.get("sec-websocket-protocol", "").split(",")}
    found = headers.get("upgrade", "") or "none"
    if found.lower() != "websocket" or not spoken & set(PROTOCOLS):
        raise BadRequest(
            f"exec speaks WebSocket with {' or '.join(PROTOCOLS)}, as kubectl 1.31 and newer do; "
            f"the request's Upgrade is {found}"
        )
