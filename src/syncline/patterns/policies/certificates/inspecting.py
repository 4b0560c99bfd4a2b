"""Performs :class:`Inspect`: reads the Secrets of the namespaces that a CertificatePolicy selects, and judges the
certificates in them. Nothing is changed, whatever the remediation action."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from syncline.base.clock import format_micro_time, time_or_none
from syncline.kube.errors import ApiError
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, Obj, ObjectRef, copied, dig, name_of, namespace_of, ref_of
from syncline.patterns.policies.certificates.judging import (
    Certificate,
    InvalidPolicy,
    Judged,
    certificate_of,
    judged,
    limits_of,
)
from syncline.patterns.policies.cluster.actions import Tracked
from syncline.patterns.policies.cluster.concluding import News, cut
from syncline.patterns.policies.cluster.reading import AWAY, MOST_LISTED, Access, TooMany
from syncline.patterns.policies.cluster.selecting import SelectionError, selected_namespaces
from syncline.patterns.policies.names import MOST_HISTORY, State
from syncline.patterns.policies.operators.evaluating import RETRY_S, Operate, Operated

NAMESPACES: Final = GVK("", "v1", "Namespace")
SECRETS: Final = GVK("", "v1", "Secret")
MOST_NAMESPACES: Final = 500
LONGEST_S: Final = 86_400.0
"""Seconds after which certificates are looked at again in any case."""


@dataclass(frozen=True, slots=True)
class Inspect(Operate):
    """Look at the certificates that a policy selects."""

    def describe(self) -> str:
        return f"evaluate CertificatePolicy/{namespace_of(self.policy)}/{name_of(self.policy)}"


class InspectHandler:
    """Performs :class:`Inspect`. ``note``: called with a policy and what it is about to read."""

    def __init__(self, mapper: Mapper, note: Callable[[ObjectRef, Tracked], None]) -> None:
        self._mapper, self._note = mapper, note

    def handle(self, action: Inspect) -> Generator[Any, Any, Operated]:
        policy, now = action.policy, action.now
        access = Access(self._mapper, note=partial(self._note, ref_of(policy)))
        again_s = LONGEST_S
        try:
            found = yield from _found(access, policy)
            verdict = judged(limits_of(policy.get("spec") or {}), found, now)
            if verdict.turns is not None:
                again_s = min((verdict.turns - now).total_seconds() + 1.0, LONGEST_S)
        except AWAY:
            raise
        except (ApiError, TooMany, SelectionError, InvalidPolicy) as error:
            verdict = Judged(State.NON_COMPLIANT, f"{State.NON_COMPLIANT}; the certificates cannot be judged: {error}")
            again_s = RETRY_S if isinstance(error, ApiError) else LONGEST_S
        status, news = _status(policy, verdict, now)
        return Operated(status, news, again_s, "", frozenset(access.tracked), waits="certificates expire")


def _found(access: Access, policy: Obj) -> Generator[Any, Any, dict[str, list[Certificate]]]:
    """Return the certificates of each selected namespace. Raises ApiError, TooMany, SelectionError."""
    selector = dig(policy, "spec", "namespaceSelector") or {}
    spaces, secrets = access.served_as(NAMESPACES), access.served_as(SECRETS)
    assert spaces is not None and secrets is not None, "every cluster serves these"
    names = selected_namespaces((yield from access.list(spaces, "")), selector)
    if len(names) > MOST_NAMESPACES:
        raise TooMany(f"the policy selects {len(names)} namespaces, at most {MOST_NAMESPACES} are looked at")
    labels = ",".join(f"{key}={one}" for key, one in (dig(policy, "spec", "labelSelector") or {}).items())
    found: dict[str, list[Certificate]] = {}
    looked = 0
    for name in names:
        listed = yield from access.list(secrets, name, labels)
        looked += len(listed)
        if looked > MOST_LISTED:
            raise TooMany(f"the policy selects more than {MOST_LISTED} Secrets: narrow its labelSelector")
        found[name] = [one for one in map(certificate_of, listed) if one is not None]
    return found


def _status(policy: Obj, verdict: Judged, now: datetime) -> tuple[Obj, tuple[News, ...]]:
    """Return the status, and what is new. What only the time has changed is no news."""
    before: Obj = policy.get("status") or {}
    status: Obj = {**copied(before), "compliant": str(verdict.state), "compliancyDetails": verdict.details}
    message, history = cut(verdict.message).strip(), before.get("history") or []
    if history and history[0].get("message") == message and before.get("compliant") == verdict.state:
        same = _timeless(before.get("compliancyDetails") or {}) == _timeless(verdict.details)
        return (before if same else status), ()
    last = time_or_none(history[0].get("lastTimestamp")) if history else None
    when = now if last is None else max(now, last + timedelta(microseconds=1))
    status["history"] = [{"lastTimestamp": format_micro_time(when), "message": message}, *history][:MOST_HISTORY]
    return status, (News(verdict.state, message),)


def _timeless(details: Obj) -> Obj:
    made: Obj = copied(details)
    for one in made.values():
        for entry in (one.get("NonCompliantCertificatesList") or {}).values():
            entry.pop("expiry", None)
    return made
