"""What holds at each write of an ordered roll-out, whatever dies: :class:`Laws`.

They look at the clusters themselves, not at what the hub believes of them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.fleet.rollingout import APPS, KEPT, MAP, WORKS, Process
from tests.fleet.rollouts import BUDGETS
from tests.fleet.world import CLUSTERS
from tests.gitops.behaviours.sim import sha

from syncline.fleet.pull.order.release import is_application, manifests_of
from syncline.kube.client import Request
from syncline.kube.objects import Obj, annotations_of, dig, labels_of, namespace_of
from syncline.rehearsal.laws import CONVERGENCE, Law

if TYPE_CHECKING:
    from tests.fleet.deaths.world import OrderedRollOut

Release = tuple[str, str]
"""Revision and edit of an Application."""

LAWS = (
    *CONVERGENCE,
    Law("order", "no cluster carries a release before each one of the waves before has proved it"),
    Law("budget", "no cluster begins without its place, and no budget has more places than it permits"),
    Law("kept", "nothing is deleted while nothing says so"),
    Law("forward", "no cluster goes back to a release of before"),
    Law("once", "a hook runs once for each version, and once more for each operation that failed"),
    Law("same", "the end is that of the undisturbed run"),
)
WAVES = {"c1": 2, "c2": 1, "c3": 0, "c4": 1, "c5": 2}
"""The set writes its Applications by name: not in the order of the waves."""
FEW = {"c2": 1, "c3": 0, "c4": 1}
HEALTHY_S = 20
BUDGETED = ("c2", "c4")
"""The clusters that a budget selects, which permits one."""
_SHA = re.compile(r"\b[0-9a-f]{40}\b")
_RELEASE = re.compile(r"(?<='release': ')[0-9a-f]{12}")
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def release_of(app: Obj | None) -> Release:
    return str(dig(app or {}, "spec", "source", "targetRevision") or ""), annotations_of(app or {}).get("edit", "")


@dataclass
class _Seen:
    """What a cluster had when: its releases in order, and since when it has had the last one."""

    asked: Release = ("", "")
    """Of its Application."""
    release: Release = ("", "")
    since: datetime | None = None
    proved: set[Release] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    """Its operations that failed, and those that were tried again."""


@dataclass
class Laws:
    run: OrderedRollOut
    calm: str = ""
    seen: dict[str, _Seen] = field(default_factory=dict)
    carried: dict[str, Release] = field(default_factory=dict)
    """Releases that the works of clusters carry."""
    order: list[Release] = field(default_factory=list)
    """Releases in the order in which people asked for them."""
    hooks: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.carried = {namespace_of(one): self._of_work(one) for one in self.run.items(WORKS)}
        self.order.append(self.run.release())
        for name in self.run.fleet.members:
            self._look(name)
            self.seen[name].proved.add(self.seen[name].release)

    @staticmethod
    def _of_work(work: Obj) -> Release:
        return release_of(next((one for one in manifests_of(work) if is_application(one)), None))

    # -- at each write -----------------------------------------------------------------------------------------------

    def before(self, process: Process, request: Request) -> None:
        ledger, who = self.run.ledger, process.name
        if request.method == "DELETE":
            ledger.checked["kept"] += 1
            if any(part in request.path for part in KEPT):
                ledger.breach("kept", f"{who}: {request.describe()}")
        asked = self.run.release()
        if asked not in self.order:
            self.order.append(asked)
        if "/manifestworks/" in request.path and not request.path.endswith("/status") and request.body:
            self._of_hub(who, request.path.split("/namespaces/")[1].split("/")[0], request.body)

    def _of_hub(self, who: str, cluster: str, body: Any) -> None:
        """Judge what the work of a cluster is about to carry."""
        app = next((one for one in manifests_of(body) if is_application(one)), None) if isinstance(body, dict) else None
        if app is None or release_of(app) == self.carried.get(cluster):
            return
        release, was = release_of(app), self.carried.get(cluster, ("", ""))
        self.carried[cluster] = release
        self._forward(f"{who}: the work of {cluster}", was, release)
        self._in_order(who, cluster, release)
        self._within_budgets(who, cluster)

    def _forward(self, what: str, was: Release, release: Release) -> None:
        self.run.ledger.checked["forward"] += 1
        known = {one: number for number, one in enumerate(self.order)}
        if release not in known or known[release] < known.get(was, 0):
            self.run.ledger.breach("forward", f"{what} goes from {_short(was)} to {_short(release)}")

    def _in_order(self, who: str, cluster: str, release: Release) -> None:
        self.run.ledger.checked["order"] += 1
        for name in (
            one for one, wave in self.run.waves.items() if wave < self.run.waves[cluster] and self._counts(one)
        ):
            self._look(name)
            if release not in self.seen[name].proved:
                have = self.seen[name]
                text = f"{cluster} gets {_short(release)}, {name} has {_short(have.release)} since {have.since}"
                text += f", it is {self.run.clock.now()}"
                self.run.ledger.breach("order", f"{who}: {text}")

    def _counts(self, cluster: str) -> bool:
        found = self.run.fleet.hub.admin.send(
            Request("GET", f"{CLUSTERS}/{cluster}")
        )  # without a settling of the fleet
        return found.obj["spec"]["hubAcceptsClient"] is True

    def _within_budgets(self, who: str, cluster: str) -> None:
        self.run.ledger.checked["budget"] += 1
        budget = self.run.fleet.hub.admin.send(Request("GET", f"{BUDGETS}/pair")).obj
        held = {one["cluster"] for one in dig(budget, "status", "places") or ()}
        if cluster in BUDGETED and cluster not in held:
            self.run.ledger.breach("budget", f"{who}: {cluster} begins, places have {sorted(held)}")
        if len(held) > budget["spec"]["maxUnavailable"]:
            self.run.ledger.breach("budget", f"{who}: {sorted(held)} have places")

    def after(self, process: Process, request: Request) -> None:
        """Note what a cluster has now."""
        part, _, cluster = process.name.partition("/")
        if part not in ("own", "gitops"):
            return
        if "/applications" in request.path or request.path == MAP or request.path.endswith("/configmaps"):
            before = self.seen[cluster].asked
            self._look(cluster)
            self._forward(f"{process.name}: the Application", before, self.seen[cluster].asked)
        if request.path == JOBS and request.method == "POST":
            self._hooked(process.name, cluster, request.body)

    def _hooked(self, who: str, cluster: str, body: Any) -> None:
        key = cluster, labels_of(body)["version"]
        self.hooks[key] += 1
        self.run.ledger.checked["once"] += 1
        most = 1 + len(self.seen[cluster].failed)
        if self.hooks[key] > most:
            self.run.ledger.breach("once", f"{who}: the hook of version {key[1]} is made {self.hooks[key]} times")

    def _look(self, cluster: str) -> None:
        now, seen = self.run.fleet.clock.now(), self.seen.setdefault(cluster, _Seen())
        seen.asked, release = self._on(cluster)
        if seen.since is not None and (now - seen.since).total_seconds() >= HEALTHY_S:
            seen.proved.add(seen.release)
        if release != seen.release:
            seen.release, seen.since = release, now

    def _on(self, cluster: str) -> tuple[Release, Release]:
        """The release for which the Application of a cluster asks, and the one whose objects it has, too."""
        admin = self.run.fleet.members[cluster].admin
        app, found = admin.send(Request("GET", f"{APPS}/web-{cluster}")), admin.send(Request("GET", MAP))
        asked = release_of(app.obj) if app.ok else ("", "")
        state = dig(app.obj, "status", "operationState") or {}
        if state.get("phase") in ("Failed", "Error") or state.get("retryCount"):
            self.seen[cluster].failed.add(f"{state.get('startedAt')} {state.get('retryCount')}")
        commits = self.run.sources[cluster].commits
        wanted = next((one for number, one in enumerate(commits) if sha(number) == asked[0]), ())
        have = dig(found.obj, "data", "v") if found.ok else None
        return asked, asked if any(dig(one, "data", "v") == have for one in wanted) else ("", "")

    # -- at the end --------------------------------------------------------------------------------------------------

    def facts(self) -> str:
        """What the end of each schedule has in common."""
        run = self.run
        spoke = [one.get(f"{APPS}/web-{name}") for name, one in run.fleet.members.items()]
        applications = [(dig(one, "status", "sync", "status"), dig(one, "status", "health", "status")) for one in spoke]
        rollout = run.fleet.hub.get("/apis/syncline.dev/v1alpha1/namespaces/argocd/fleetrollouts/set")["status"]
        waves = [(one["wave"], one["done"], one["failed"]) for one in rollout["waves"]]
        places = run.fleet.hub.get(f"{BUDGETS}/pair")["status"]["places"]
        carried = sorted(self._of_work(one) == run.release() for one in run.items(WORKS))
        text = str((run.facts()[:-1], applications, rollout["phase"], waves, rollout["clusters"], places, carried))
        return _RELEASE.sub("release", _SHA.sub("SHA", text))

    def at_rest(self) -> None:
        facts = self.facts()
        if self.calm and facts != self.calm:
            self.run.ledger.breach("same", _difference(facts, self.calm))


def _short(release: Release) -> str:
    return f"{release[0][:7]}/{release[1]}"


def _difference(one: str, other: str) -> str:
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"…{one[max(at - 80, 0) : at + 200]}… instead of …{other[max(at - 80, 0) : at + 200]}…"
