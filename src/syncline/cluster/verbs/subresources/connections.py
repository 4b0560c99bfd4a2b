"""exec, attach, portforward and proxy: refused, with what to do instead.

Called by ``api``. These subresources are listed by discovery, as everywhere, but they need a connection into a machine,
and the machines of this cluster take none: their containers are simulated, or are processes without a terminal.
"""

from __future__ import annotations

from syncline.cluster.verbs.exchange import Exchange
from syncline.kube.client import Response
from syncline.kube.errors import BadRequest

__all__ = ["CONNECTIONS", "refuse_connection"]

CONNECTIONS = {
    "attach": "`kubectl logs -f` follows what the container writes",
    "exec": "run the command in a Job, or read `kubectl logs`",
    "portforward": "no port of a container is open on this cluster",
    "proxy": "nothing listens behind Services, Pods and Nodes of this cluster",
}
"""Subresource → the way out that the refusal names."""


def refuse_connection(x: Exchange) -> Response:
    """Raises NotFound where the object is not there, else BadRequest."""
    x.current()
    sub = x.route.subresource
    raise BadRequest(
        f"{sub} is not offered for {x.resource.info.plural}/{x.route.name}: machines of this cluster take no "
        f"connections; {CONNECTIONS[sub]}"
    )
