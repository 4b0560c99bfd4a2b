"""Finds the FleetRollout that a person names, and writes what they ask of it: for ``syncline rollout``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import click

from syncline.assembly.inspection.pulled import listed
from syncline.cli.access.connection import Connection
from syncline.cli.fleet.reading import MAX_NAMES, all_of, hub_kind
from syncline.cli.frame.arguments import did_you_mean
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.fleet.pull import names
from syncline.fleet.pull.order.steering import Proven, Steered, SteeringError, proven_before
from syncline.kube import client
from syncline.kube.client import Request
from syncline.kube.errors import Forbidden
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.fleetrollouts import ROLLOUT
from syncline.kube.objects import GVK, Obj, annotations_of, dig, name_of, namespace_of, uid_of
from syncline.kube.text.names import dns_subdomain

REVISIONS = GVK("apps", "v1", "ControllerRevision")
"""Releases that a cluster has proven, in its namespace."""
MANAGER = "syncline-rollout"
MAX_CONFLICTS = 5
"""Attempts to write the spec despite the hub's concurrent writes."""
ALONE = ".app"
"""What the name of the FleetRollout of a stand-alone Application ends with."""
WORDS = {
    "app": APPLICATION,
    "application": APPLICATION,
    "appset": APPLICATION_SET,
    "applicationset": APPLICATION_SET,
    "rollout": ROLLOUT,
    "fleetrollout": ROLLOUT,
}
LIST = "syncline rollout list -A"


@dataclass(frozen=True, slots=True)
class Group:
    """Whose roll-out is meant. ``rollout``: None while no order is in force; ``behind``: the set or Application,
    then."""

    namespace: str
    owner: GVK
    name: str
    rollout: Obj | None = None
    behind: Obj | None = None

    @property
    def rollout_name(self) -> str:
        return f"{self.name}{ALONE}" if self.owner == APPLICATION else self.name

    @property
    def where(self) -> tuple[str, str]:
        return self.namespace, self.rollout_name

    @property
    def target(self) -> str:
        """As a person names it."""
        return f"app/{self.name}" if self.owner == APPLICATION else self.name

    def empty(self) -> Obj:
        """Return the FleetRollout of a group that has none; it goes with the set or the Application."""
        metadata: Obj = {"name": self.rollout_name, "namespace": self.namespace}
        if self.behind is not None:
            owner = {"apiVersion": self.owner.api_version, "kind": self.owner.kind, "name": self.name}
            metadata["ownerReferences"] = [{**owner, "uid": uid_of(self.behind)}]
        return {
            "apiVersion": ROLLOUT.api_version,
            "kind": ROLLOUT.kind,
            "metadata": metadata,
            "spec": {"of": {"kind": self.owner.kind, "name": self.name}},
        }


def group_of(link: Connection, text: str, namespace: str | None) -> Group:
    """Return the group of ``SET``, ``app/NAME`` or ``rollout/NAME``, each also with its namespace before the name.

    Without a namespace: that of the kubeconfig, else the only one that has the name. Raises CommandFailed.
    """
    kind, _, rest = text.rpartition("/")
    word, _, inner = kind.partition("/")
    owner = WORDS.get(word.lower()) if word else APPLICATION_SET
    if owner is None:
        owner, inner = APPLICATION_SET, kind
    if not rest or "/" in inner:
        raise CommandFailed(f"{text!r} names no roll-out; write SET, app/NAME or NAMESPACE/SET", USAGE)
    space = inner or namespace
    for part in filter(None, (rest, space)):
        if problems := dns_subdomain(part):
            raise CommandFailed(f"{part[:80]!r} is no name: {problems[0]}", USAGE)
    if owner == ROLLOUT:
        owner, rest = (APPLICATION, rest.removesuffix(ALONE)) if rest.endswith(ALONE) else (APPLICATION_SET, rest)
    found = _named(link, ROLLOUT, f"{rest}{ALONE}" if owner == APPLICATION else rest, space)
    if found is not None:
        of = dig(found, "spec", "of") or {}
        alone = of.get("kind") == APPLICATION.kind
        return Group(namespace_of(found), APPLICATION if alone else APPLICATION_SET, str(of.get("name") or rest), found)
    behind = _named(link, owner, rest, space)
    if behind is None:
        raise CommandFailed(
            f"{owner.kind} {'/'.join(part for part in (space, rest) if part)} does not exist{_near(link, rest, space)}"
        )
    if owner == APPLICATION:
        _orderable(behind)
    return Group(namespace_of(behind), owner, rest, behind=behind)


def _orderable(app: Obj) -> None:
    """Raise CommandFailed for an Application that has no roll-out of its own."""
    where = f"Application {namespace_of(app)}/{name_of(app)}"
    if of := names.owning_set(app):
        raise CommandFailed(f"{where} is of ApplicationSet {of}, whose roll-out orders it: write {of}")
    if not names.is_carried(app):
        raise CommandFailed(
            f"{where} is pulled by no cluster, so there is nothing to roll out: label {names.PULL}=true and annotation "
            f"{names.CLUSTER} say which cluster pulls it"
        )


def _named(link: Connection, gvk: GVK, name: str, space: str | None) -> Obj | None:
    """Return the object of a name; None if there is none. Raises CommandFailed if several namespaces have one."""
    info = hub_kind(link, gvk)
    answer = link.send(client.get(info, space or link.namespace, name))
    if answer.ok:
        made: Obj = answer.obj
        return made
    if answer.status != 404:
        link.check(answer)
    if space:
        return None
    listed = link.send(client.list_(info, "", field_selector=f"metadata.name={name}"))
    if listed.status == Forbidden.code:
        return None
    found = link.check(listed).get("items") or []
    if len(found) > 1:
        where = ", ".join(sorted(namespace_of(one) for one in found)[:MAX_NAMES])
        raise CommandFailed(f"{len(found)} namespaces have {gvk.kind} {name}: {where}; choose with -n", USAGE)
    return found[0] if found else None


def _near(link: Connection, name: str, space: str | None) -> str:
    """Return what to try: another namespace that has the name, or similar names in the one that was asked for."""
    listed = link.send(client.list_(hub_kind(link, ROLLOUT), "", limit=MAX_NAMES))
    there = list(listed.obj.get("items") or ()) if listed.ok else []
    elsewhere = sorted(namespace_of(one) for one in there if name_of(one) == name and namespace_of(one) != space)
    if elsewhere:
        return f"; namespace {elsewhere[0]} has a roll-out of that name: -n {elsewhere[0]}"
    similar = [name_of(one) for one in there if space in (None, namespace_of(one))]
    return f"; `{LIST}` shows the roll-outs.{did_you_mean(name, similar)}"


def rollout_of(link: Connection, text: str, namespace: str | None) -> tuple[Group, Obj]:
    """Return the group and its FleetRollout. Raises CommandFailed if no order is in force for it."""
    group = group_of(link, text, namespace)
    if group.rollout is None:
        raise CommandFailed(
            f"{group.owner.kind} {group.namespace}/{group.name} has no FleetRollout: no order over clusters is in "
            "force for it, or the hub's role `pull` does not run. Order comes from annotations and labels, such as "
            "`kubectl label managedcluster NAME syncline.dev/cluster-wave=1`"
        )
    return group, group.rollout


def members_of(link: Connection, group: Group) -> list[Obj]:
    """Return the pulled Applications of a group by cluster."""
    if group.owner == APPLICATION:
        found = [link.ask(client.get(link.resource(APPLICATION), group.namespace, group.name))]
    else:
        found = [one for one in all_of(link, APPLICATION, group.namespace) if names.owning_set(one) == group.name]
    carried = [one for one in found if names.is_carried(one)]
    return sorted(carried, key=lambda one: (cluster_of(one), name_of(one)))


def cluster_of(app: Obj) -> str:
    return annotations_of(app).get(names.CLUSTER, "")


def asked(group: Group, rollout: Obj, ask: Callable[[Obj], Steered]) -> Steered:
    """Return what a request makes of a FleetRollout. Raises CommandFailed if it makes no sense."""
    try:
        return ask(rollout)
    except SteeringError as error:
        raise CommandFailed(f"{group.target}: {error}") from error


def written(link: Connection, group: Group, ask: Callable[[Obj], Steered]) -> Steered:
    """Write the spec that ``ask`` returns for the FleetRollout, which is made if there is none; after a conflict it is
    read and asked again. Nothing is written where the spec is so already. Raises CommandFailed."""
    info = hub_kind(link, ROLLOUT)
    rollout = group.rollout
    for _ in range(MAX_CONFLICTS):
        stored = rollout if rollout is not None else group.empty()
        steered = asked(group, stored, ask)
        if steered.spec == stored.get("spec"):
            return steered
        wanted = stored | {"spec": steered.spec}
        if rollout is None:
            request = client.create(info, wanted, field_manager=MANAGER)
        else:
            request = client.update(info, wanted, field_manager=MANAGER)
        answer = link.send(request)
        if answer.status != 409:
            link.check(answer)
            return steered
        again = link.send(client.get(info, *group.where))
        rollout = None if again.status == 404 else link.check(again)
    raise CommandFailed(f"{group.target}: its FleetRollout changes all the time; try again")


def own_name(link: Connection) -> str:
    """Return the user that the API sees; empty where it does not say."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = link.send(Request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=body))
    return str(dig(answer.obj, "status", "userInfo", "username") or "") if answer.ok else ""


def tell(group: Group, steered: Steered) -> None:
    """Print what a request did and what follows."""
    print(f"rollout/{group.rollout_name} {steered.done}")
    for one in steered.follows:
        click.echo(f"next: {one}")


def clusters_of_group(link: Connection, group: Group) -> Collection[str]:
    return dict.fromkeys(map(cluster_of, members_of(link, group)))


def proven_releases(link: Connection, group: Group, release: str) -> list[Proven]:
    """Return what each Application of a group goes back to from a release; those without are left out."""
    info = link.resource(REVISIONS)
    apps = members_of(link, group)
    kept = {one: link.run(listed(info, one)) for one in dict.fromkeys(map(cluster_of, apps))}
    found = (proven_before(kept[cluster_of(one)], one, release) for one in apps)
    return [one for one in found if one is not None]
