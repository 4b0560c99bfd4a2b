"""What is written when an operator is installed: certificates first, then its Deployments, then what registers its
webhooks and aggregated APIs. All of it may be written again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.plan import Apply, Delete, Patch, Result
from syncline.kube.errors import ApiError
from syncline.kube.objects import GVK, Obj, ObjectRef, dig, name_of, namespace_of
from syncline.patterns.operators.certificates import FRESH
from syncline.patterns.operators.controllers.certifying import Certified, Certify
from syncline.patterns.operators.controllers.looking import DEFINITIONS, MANAGER
from syncline.patterns.operators.deployments import deployment_specs, wanted_deployment
from syncline.patterns.operators.groups import account_of
from syncline.patterns.operators.phases import Around
from syncline.patterns.operators.serving import (
    CONVERSION,
    certified,
    conversions,
    hosts_of,
    registrations,
    removed_hooks,
    secret_metadata,
    served_by,
    surroundings,
    webhooks,
)

MOST_TRIES: Final = 20
"""Times that one reconcile goes on after errors that pass."""
_PASSING: Final = frozenset((409, 429, 502, 503, 504))
DEFINITION = GVK(DEFINITIONS.group, "v1", DEFINITIONS.kind)


def passing(error: object) -> bool:
    """Return whether an error is one of the moment, so that what is left is tried again at once."""
    return isinstance(error, ApiError) and error.code in _PASSING


@dataclass(frozen=True, slots=True)
class Carried:
    """How far an installation is. ``certified``: by deployment; ``registering``: the certificates are there;
    ``done``: what was written since; ``deployed``: a Deployment was among it."""

    certified: Mapping[str, Certified] = field(default_factory=dict)
    registering: bool = False
    done: frozenset[ObjectRef | None] = frozenset()
    deployed: bool = False
    tries: int = 0

    def with_(self, results: Sequence[Result]) -> Carried:
        good = [one for one in results if one.ok]
        made = {one.action.deployment: one.value for one in good if isinstance(one.action, Certify)}
        applied = {_target(one.action) for one in good}
        deployed = self.deployed or any(ref is not None and ref.kind == "Deployment" for ref in applied)
        tries = self.tries + (len(good) < len(results))
        return replace(
            self, certified={**self.certified, **made}, done=self.done | applied, deployed=deployed, tries=tries
        )

    def left(self, steps: Sequence[Sequence[Action]]) -> tuple[tuple[Action, ...], ...]:
        """Return the steps without what was written already."""
        kept = (tuple(one for one in step if _target(one) not in self.done) for step in steps)
        return tuple(step for step in kept if step)


def _target(action: Action) -> ObjectRef | None:
    return action.target if isinstance(action, Apply | Patch | Delete | Certify) else None


def _group(csv: Obj, around: Around) -> Sequence[Obj]:
    return [one for one in around.groups if namespace_of(one) == namespace_of(csv)]


def _user(csv: Obj, around: Around) -> str:
    """Return as whom it is written: the service account of the OperatorGroup if it names one; "": as OLM."""
    account, _ = account_of(_group(csv, around))
    return f"system:serviceaccount:{account['namespace']}:{account['name']}" if account else ""


def first_steps(csv: Obj, around: Around) -> tuple[tuple[Action, ...], ...]:
    """Return the certificates to ensure; the Deployments where there are none."""
    user = _user(csv, around)
    needed = served_by(csv) if around.serving is not None else {}
    if not needed:
        return tuple((one,) for one in _deployments(csv, around, user))
    return (
        tuple(
            Certify(secret_metadata(csv, one), one, hosts_of(one, namespace_of(csv)), "it serves requests", user=user)
            for one in needed
        ),
    )


def _deployments(csv: Obj, around: Around, user: str) -> Iterator[Apply]:
    for spec in deployment_specs(csv):
        wanted = wanted_deployment(csv, spec, around.config)
        yield Apply(wanted, MANAGER, f"a Deployment of {name_of(csv)}", force=True, user=user)


def serving_steps(csv: Obj, around: Around, authorities: Mapping[str, str]) -> tuple[tuple[Action, ...], ...]:
    """Return what follows once the certificates are there. ``authorities``: PEM by deployment."""
    user, why = _user(csv, around), f"it serves requests for {name_of(csv)}"
    near = [each for deployment in authorities for each in surroundings(csv, deployment)]
    steps: list[tuple[Action, ...]] = [tuple(Apply(one, MANAGER, why, force=True, user=user) for one in near)]
    steps += [(one,) for one in _deployments(certified(csv, authorities), around, user)]
    registered: list[Action] = [
        Apply(one, MANAGER, why, force=True, user=user)
        for one in registrations(csv, (*_group(csv, around), {})[0], authorities)
    ]
    registered += [Patch(DEFINITION, "", name, body, why, user=user) for name, body in conversions(csv, authorities)]
    serving = around.serving
    if serving is not None:
        registered += [
            Delete.of(one, "the operator does not describe it any more") for one in removed_hooks(csv, serving)
        ]
    return tuple(one for one in (*steps, tuple(registered)) if one)


def with_certificates(status: Obj, made: Sequence[Certified], now: datetime) -> Obj:
    """Return the status with when the certificates were made, and when they are replaced."""
    if not made:
        return status
    rotates = format_time(min(one.ends for one in made) - FRESH)
    new = any(one.made for one in made) or not status.get("certsLastUpdated")
    return {**status, "certsRotateAt": rotates, **({"certsLastUpdated": format_time(now)} if new else {})}


def unconverted(csv: Obj, csvs: Mapping[str, Obj]) -> tuple[Patch, ...]:
    """Return what takes the conversion webhooks of an operator that goes from its definitions, unless another version
    replaces it: objects could not be read any more."""
    if any(dig(one, "spec", "replaces", default="") == name_of(csv) for one in csvs.values()):
        return ()
    names = [
        str(name) for one in webhooks(csv) if one.get("type") == CONVERSION for name in one.get("conversionCRDs") or ()
    ]
    body = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    return tuple(Patch(DEFINITION, "", name, body, "its operator is removed") for name in names)
