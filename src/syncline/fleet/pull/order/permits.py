"""What the controller of works may write of an Application in an order; pure. :func:`held_work`.

It writes what is permitted in the status of the FleetRollout, and keeps what the work carries already. A permit names
one release: when the Application is another one meanwhile, it permits nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from syncline.argo.application import REFRESH
from syncline.fleet.pull.order.proven import Proven
from syncline.fleet.pull.order.release import Pins, bare, carried_release, digest, is_application, manifests_of, stamped
from syncline.kube.objects import Obj, annotations_of


@dataclass(frozen=True, slots=True)
class Permit:
    """What the order says of an Application. ``permitted``: a release, empty: none."""

    permitted: str = ""
    pins: Pins = field(default_factory=Pins)
    proven: Sequence[Proven] = ()
    why: str = ""
    """What it waits for, as its FleetRollout says."""


@dataclass(frozen=True, slots=True)
class Held:
    """``work`` None: nothing may be written, ``why`` says what for. ``whole``: it is the Application as it is now; else
    what the hub asks for once (a sync, a refresh) stays on the hub."""

    work: Obj | None
    whole: bool
    why: str = ""


def held_work(wanted: Obj, live: Obj | None, permit: Permit, *, operation: bool) -> Held:
    """Return what may be written instead of ``wanted``, the work of the Application as it is now. ``operation``: a sync
    is requested."""
    waits = f"held: {permit.why or 'the order has not permitted it yet'}"
    carried = carried_release(live)
    if not permit.pins.problem:
        manifests = bare(manifests_of(wanted), permit.pins)
        release = digest(manifests)
        goes_back = permit.permitted not in ("", release)
        if permit.permitted == release or (carried == release and not operation and not goes_back):
            return Held(_with(wanted, _once(wanted, stamped(manifests, release))), whole=True)
        if carried == release and not goes_back:
            return Held(_with(wanted, stamped(manifests, release)), whole=False, why=waits)
    else:
        waits = f"held: {permit.pins.problem}"
    target = permit.permitted or carried
    found = next((one for one in permit.proven if target and one.release == target), None)
    if found is None or live is None or not found.manifests:
        return Held(None, whole=False, why=waits)
    return Held(_with(wanted, stamped(found.manifests, found.release)), whole=False, why=waits)


def _with(work: Obj, manifests: list[Obj]) -> Obj:
    return {**work, "spec": {**work["spec"], "workload": {**work["spec"]["workload"], "manifests": manifests}}}


def _once(wanted: Obj, manifests: list[Obj]) -> list[Obj]:
    """Return the manifests with what asks for one sync or one refresh, which is no part of a release."""
    given = next((one for one in manifests_of(wanted) if is_application(one)), {})
    asked = {"operation": given["operation"]} if "operation" in given else {}
    refresh = {key: value for key, value in annotations_of(given).items() if key == REFRESH}
    return [
        {**one, **asked, "metadata": {**one["metadata"], "annotations": {**annotations_of(one), **refresh}}}
        if is_application(one)
        else one
        for one in manifests
    ]
