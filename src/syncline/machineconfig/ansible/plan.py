"""Plans an AnsibleConfig: read its repository, refuse or write its MachineConfig, tell how its nodes fare; pure.

A repository that cannot be read, and a playbook that is refused, leave the MachineConfig of the last good commit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.control.plan import Delete, Outcome, Plan, Requeue, Stalled
from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
from syncline.kube.objects import Obj, dig, is_terminating, meta, name_of, ref_of
from syncline.kube.text.durations import DurationError, parse_duration
from syncline.machineconfig.ansible.collections import collection_refusals
from syncline.machineconfig.ansible.content import ContentError, pack
from syncline.machineconfig.ansible.examining import Examined, examine
from syncline.machineconfig.ansible.play import AS_TASKS_SAY, CONTENT, DRAIN, NONE, PLAY, ROOT, Play
from syncline.machineconfig.ansible.reading import Found, ReadPlaybook, Wanted
from syncline.machineconfig.ansible.status import Verdict, ansible_status
from syncline.machineconfig.generating.making import controller_reference, data_file, file_of, made_config, writes
from syncline.machineconfig.render.rendering import Release

POLL_S = 180.0
"""Seconds between two looks at a repository."""
MAX_TIMEOUT = timedelta(hours=6)
MIN_INTERVAL = timedelta(minutes=1)
OUTCOME = "syncline.dev/simulated-outcome"
"""Annotation of an AnsibleConfig: how its runs fare on simulated machines, as JSON."""


@dataclass(frozen=True)
class AnsibleObserved:
    """The planner's input. ``pool`` None: it does not exist. ``configs``: MachineConfigs that this object owns, by
    name. ``nodes``: those of the pool, and others that report it. ``reading``: a read is under way."""

    config: Obj
    release: Release
    pool: Obj | None = None
    configs: Mapping[str, Obj] | None = None
    nodes: Sequence[Obj] = ()
    found: Found | None = None
    reading: bool = False


def wanted_of(config: Obj) -> Wanted:
    """Return what is read for an AnsibleConfig."""
    names = sorted(str(one.get("name")) for one in dig(config, "spec", "collections") or ())
    return Wanted(
        str(dig(config, "spec", "repository", "repoURL") or ""),
        str(dig(config, "spec", "repository", "targetRevision") or ""),
        str(dig(config, "spec", "path") or "").strip("/"),
        tuple(names),
    )


def plan_ansible(observed: AnsibleObserved, now: datetime) -> Plan:
    """Return the plan of one reconcile."""
    config, name, found = observed.config, name_of(observed.config), observed.found
    if is_terminating(config):
        return Plan(why=f"AnsibleConfig {name} is deleted; its MachineConfig goes with it")
    age = (now - found.at).total_seconds() if found is not None else POLL_S
    if not 0 <= age < POLL_S and not observed.reading:
        read = ReadPlaybook(wanted_of(config), ref_of(config), "its repository may have changed")
        return Plan(((read,),), Requeue(0.0, "then it is decided"), f"read the playbook of AnsibleConfig {name}")
    if found is None:
        return Plan(why=f"AnsibleConfig {name} waits for {wanted_of(config)}")
    verdict, made = _judged(observed, found)
    status = ansible_status(observed.config, observed.nodes, verdict, now)
    changes = writes(made, observed.configs or {}, f"AnsibleConfig {name} asks for it") if made else ()
    steps = tuple(step for step in (changes, _outdated(observed, made)) if step)
    return Plan(steps, _outcome(verdict, POLL_S - age), verdict.why or f"AnsibleConfig {name} is resolved", status)


def _outcome(verdict: Verdict, left: float) -> Outcome:
    if verdict.reason == "PoolMissing":
        return Stalled(verdict.why, "create the MachineConfigPool, or correct spec.pool")
    return Requeue(left, "the next look at its repository", background=True)


def _judged(observed: AnsibleObserved, found: Found) -> tuple[Verdict, list[Obj]]:
    """Return what is to be said, and the MachineConfig; none where the last one stays."""
    config, pool = observed.config, observed.pool
    last = next(iter(sorted(observed.configs or {})), "")
    commit = str(dig(config, "status", "revision") or "")
    if not found.commit:
        return Verdict("Unreadable", found.error, commit, "", last), []
    if pool is None:
        return Verdict("PoolMissing", f"MachineConfigPool {dig(config, 'spec', 'pool')} does not exist"), []
    try:
        play, packed, refusals = play_of(config, found)
    except (ContentError, DurationError) as error:
        return Verdict("Refused", str(error), commit, "", last), []
    if refusals:
        more = f" (and {len(refusals) - 5} more)" if len(refusals) > 5 else ""
        text = "; ".join(refusals[:5]) + more
        return Verdict("Refused", f"commit {found.commit[:12]}: {text}", commit, "", last), []
    made = _made(observed, pool, play, packed)
    reason, why = ("Unreadable", found.error) if found.error else ("Resolved", "")
    return Verdict(reason, why, found.commit, play.digest, name_of(made)), [made]


def play_of(config: Obj, found: Found) -> tuple[Play, bytes, tuple[str, ...]]:
    """Return the play of an AnsibleConfig at what was read, its packed content, and why it is refused. Raises
    ContentError and DurationError."""
    spec: Obj = config["spec"]
    playbook, role = str(spec.get("playbook") or ""), str(spec.get("role") or "")
    packed = pack(found.files)
    seen = examine(found.files, playbook, role)
    disruption, refused = _disruption(spec, seen)
    interval, timeout = _time(spec, "checkInterval", "30m"), _time(spec, "timeout", "30m")
    if interval and interval < MIN_INTERVAL:
        refused = (*refused, f"spec.checkInterval is {spec['checkInterval']}; give at least 1m, or 0s for none")
    if not timedelta() < timeout <= MAX_TIMEOUT:
        refused = (*refused, f"spec.timeout is {spec['timeout']}; give more than 0s and at most 6h")
    secrets = [one["secretRef"] for one in spec.get("variablesFrom") or ()]
    vault = dig(spec, "vaultPasswordFrom", "secretKeyRef")
    play = Play(
        name_of(config),
        hashlib.sha256(packed).hexdigest(),
        playbook,
        role,
        variables=spec.get("variables") or None,
        secrets=tuple((str(one["namespace"]), str(one["name"])) for one in secrets),
        vault=tuple(str(vault[key]) for key in ("namespace", "name", "key")) if vault else (),
        tags=tuple(map(str, spec.get("tags") or ())),
        skip_tags=tuple(map(str, spec.get("skipTags") or ())),
        groups=(str(spec["pool"]),),
        disruption=disruption,
        check_s=interval.total_seconds(),
        timeout_s=timeout.total_seconds(),
        outcome=str(dig(meta(config), "annotations", OUTCOME) or ""),
    )
    collections = collection_refusals(spec.get("collections") or (), found.files, seen.modules)
    return play, packed, (*refused, *seen.refusals, *collections)


def _disruption(spec: Obj, seen: Examined) -> tuple[str, tuple[str, ...]]:
    asked = str(spec.get("disruption") or AS_TASKS_SAY)
    if asked == AS_TASKS_SAY:
        return seen.says, ()
    if asked == NONE and seen.reboots:
        where = f"{seen.reboots[0]}: a task reboots the node, and spec.disruption is None"
        return asked, (f"{where}; give {DRAIN}, Reboot or {AS_TASKS_SAY}",)
    return asked, ()


def _time(spec: Obj, field: str, default: str) -> timedelta:
    return parse_duration(str(spec.get(field) or default))


def _made(observed: AnsibleObserved, pool: Obj, play: Play, packed: bytes) -> Obj:
    config, folder = observed.config, f"{ROOT}/{play.name}"
    files = [file_of(f"{folder}/{PLAY}", play.text, 0o600), data_file(f"{folder}/{CONTENT}", packed, 0o600)]
    owner = controller_reference({"apiVersion": ANSIBLE_CONFIG.api_version, "kind": ANSIBLE_CONFIG.kind} | config)
    name = f"99-{name_of(pool)}-generated-ansible-{play.name}"
    return made_config(name, name_of(pool), observed.release, files=files, owner=owner)


def _outdated(observed: AnsibleObserved, made: Sequence[Obj]) -> tuple[Delete, ...]:
    """Delete MachineConfigs of another pool, once the one of this pool is there."""
    names = {name_of(one) for one in made}
    others = [one for name, one in sorted((observed.configs or {}).items()) if names and name not in names]
    return tuple(Delete.of(one, "its AnsibleConfig names another pool") for one in others)
