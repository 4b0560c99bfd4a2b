"""Settings of the ApplicationSet controller: the keys ``applicationsetcontroller.*`` of ``argocd-cmd-params-cm``.

Upstream passes them to its process at start; here a change of the ConfigMap takes effect at once. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from syncline.argo.parameters import PARAMETERS_MAP, patterns_of
from syncline.kube.objects import Obj, dig
from syncline.kube.text.durations import DurationError, parse_duration

PREFIX = "applicationsetcontroller."
HIDDEN = "reposerver.include.hidden.directories"
"""A key of the repository server, which reads directories for upstream's controller."""
DEFAULT_REQUEUE_S = 180.0
DEFAULT_MAX_RESOURCES = 5000


class Policy(StrEnum):
    """What the controller may do with the Applications of a set (``applicationsSync``)."""

    SYNC = "sync"
    CREATE_ONLY = "create-only"
    CREATE_UPDATE = "create-update"
    CREATE_DELETE = "create-delete"

    @property
    def updates(self) -> bool:
        return self in (Policy.SYNC, Policy.CREATE_UPDATE)

    @property
    def deletes(self) -> bool:
        return self in (Policy.SYNC, Policy.CREATE_DELETE)


@dataclass(frozen=True, slots=True)
class SetSettings:
    """The parsed settings. With any of ``problems`` no Application is written."""

    policy: Policy = Policy.SYNC
    policy_override: bool = True
    """Whether ``spec.syncPolicy.applicationsSync`` of a set counts."""
    namespaces: tuple[str, ...] = ()
    """Names, globs and ``/expressions/`` of enabled namespaces beside the control namespace."""
    dry_run: bool = False
    progressive: bool = False
    """Whether ``spec.strategy`` counts (progressive syncs)."""
    preserved: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Keys of ``annotations`` and ``labels`` that are kept on all Applications."""
    requeue_s: float = DEFAULT_REQUEUE_S
    max_resources: int = DEFAULT_MAX_RESOURCES
    """Limit of entries in ``status.resources``; 0: none."""
    at_once: int = 1
    """Applications of a set that are written at the same time."""
    doublestar: bool = False
    hidden: bool = False
    """Whether generators see directories with a name that begins with a dot."""
    scm_enabled: bool = True
    allowed_scm: tuple[str, ...] = ()
    strict_tokens: bool = False
    problems: tuple[str, ...] = ()

    def policy_of(self, appset: Obj) -> Policy:
        """Return the policy for one set; an unknown value, which the API refuses, counts as not set."""
        asked = dig(appset, "spec", "syncPolicy", "applicationsSync")
        return Policy(asked) if self.policy_override and asked in set(Policy) else self.policy


def parse_settings(data: Mapping[str, str]) -> SetSettings:
    """Parse ``data`` of the ConfigMap; never raises: errors are in ``problems``."""
    problems: list[str] = []

    def text(key: str) -> str:
        return str(data.get(PREFIX + key) or "").strip()

    def wrong(key: str, allowed: str) -> None:
        problems.append(f"{PARAMETERS_MAP}: {PREFIX}{key} is {text(key)!r}, must be {allowed}")

    def flag(key: str, otherwise: bool = False) -> bool:
        found = text(key).lower()
        if found not in _FLAGS:
            wrong(key, "true or false")
        return _FLAGS.get(found, otherwise) if found else otherwise

    def count(key: str, otherwise: int) -> int:
        found = text(key)
        if found and not (found.isascii() and found.isdigit()):
            wrong(key, "a whole number of at least 0")
            return otherwise
        return int(found or otherwise)

    def seconds(key: str, otherwise: float) -> float:
        try:
            return parse_duration(text(key)).total_seconds() if text(key) else otherwise
        except DurationError:
            wrong(key, "a duration such as 3m")
            return otherwise

    policy = text("policy")
    if policy and policy not in set(Policy):
        wrong("policy", ", ".join(Policy))
    scm, allowed = flag("enable.scm.providers", True), patterns_of(text("allowed.scm.providers"))
    namespaces = patterns_of(text("namespaces"))
    return SetSettings(
        policy=Policy(policy) if policy in set(Policy) else Policy.SYNC,
        policy_override=flag("enable.policy.override", not policy),
        namespaces=namespaces,
        dry_run=flag("dryrun"),
        progressive=flag("enable.progressive.syncs"),
        preserved=MappingProxyType(
            {part: patterns_of(text(f"global.preserved.{part}")) for part in ("annotations", "labels")}
        ),
        requeue_s=seconds("requeue.after", DEFAULT_REQUEUE_S),
        max_resources=count("status.max.resources.count", DEFAULT_MAX_RESOURCES),
        at_once=max(1, count("concurrent.application.updates", 1)),
        doublestar=flag("enable.new.git.file.globbing"),
        hidden=str(data.get(HIDDEN) or "").strip().lower() == "true",
        # Upstream does not start where sets of tenants could send tokens to any address; here those generators are off.
        scm_enabled=scm and (bool(allowed) or not namespaces),
        allowed_scm=allowed,
        strict_tokens=flag("enable.tokenref.strict.mode"),
        problems=tuple(problems),
    )


_FLAGS: Mapping[str, bool] = {"": False, "true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
