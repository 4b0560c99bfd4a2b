"""The webhooks of a hub: in process for the embedded API, live and in virtual time, over HTTPS for any other API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from syncline.assembly.embedded.core import ClusterCore
from syncline.assembly.fleet.hub import HUB_MANAGER, HUB_NAMESPACE, HubSettings
from syncline.cluster.access.users import service_account_user
from syncline.control.executor import run_in_place
from syncline.fleet.hub.admitting import PATHS, answered
from syncline.fleet.hub.confinement import Reach
from syncline.kube.transport.outbound import NO_NETWORK, OutboundCall, Outcome

INSIDE: Final = Reach(url="https://webhooks.hub.syncline.invalid")
"""The address of webhooks in process; no other API server finds it."""


def answering(core: ClusterCore, settings: HubSettings) -> Callable[[OutboundCall], Outcome | None]:
    """Return the function that answers calls to :data:`INSIDE` in place; None for all others. It asks the API as the
    account of the hub, and what it asks concerns no webhook."""
    transport = core.transport(service_account_user(HUB_NAMESPACE, HUB_MANAGER), judged=False)

    def answer(call: OutboundCall) -> Outcome | None:
        path = call.url.partition("?")[0].removeprefix(INSIDE.url)
        if path not in PATHS:
            return None
        made = run_in_place(answered(path, call.body, core.clock.now(), settings.manifest_limit), transport)
        return Outcome(200, {"content-type": "application/json"}, msgspec.json.encode(made))

    return answer


def admit_inside(core: ClusterCore, settings: HubSettings) -> None:
    """Let the API of a virtual world ask the webhooks in place: requests in virtual time cannot wait for a call, so
    ``Api.caller`` answers while the request runs, at the clock's present moment."""
    answer = answering(core, settings)
    nothing = Outcome(failure=NO_NETWORK)
    core.api.caller = lambda call: answer(call) or nothing
