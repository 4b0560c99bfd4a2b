"""``python -m bench pull [--quick] [--clusters N --applications M]``: what the pull model costs a hub, in virtual time.

A fleet (:mod:`bench.pullfleet`) is filled with Applications, then changed, left alone, and loses a cluster. First for
fleets that grow, with what one change costs the hub in each; then one large fleet: 50 clusters with 100 Applications
each, or the numbers given. Times without "virtual" are those of this machine's processor.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from bench.processes import resident_mib_of
from bench.pullfleet import HUB_LEASES, SETS, SPOKES, PullFleet
from bench.table import Table
from syncline.base.interpreter import tune_interpreter

GROWING = (10, 50, 200)
GROWN_APPLICATIONS = 2
ONE_AT_A_TIME = 10
"""How many changes of one Application in one cluster are measured for each size."""
AT_ALL = 3
"""How many changes of one Application in every cluster are."""
AT_ONCE = 10
"""Sets that are created at once."""
LIMIT_S = 1800.0
MOST_AT_REST = 10_000
"""In larger fleets the hours at rest, in which every cluster looks at its repositories, are left out."""
DAY_S = 86_400
POLL_S = float(DAY_S)
"""Virtual seconds between two looks of a cluster at its repositories: commits come with a webhook, and what looks that
find nothing cost is the clusters' own."""
REST_S = 60.0
"""Virtual seconds in which what a change sets going ends."""
SHORT_S = 5.0
"""As long as needed, so that little else happens meanwhile."""
LEASES, FORGOTTEN, DISCOVERY = "leases", ("delete", "events"), "discovery"
"""What a hub at rest may write: renewals of leases, and Events older than an hour that go."""


def figures(table: Table, *, quick: bool, clusters: int = 0, applications: int = 0) -> None:
    tune_interpreter()  # as the server does
    if clusters or applications:
        story(table, clusters or 50, applications or 100)
        return
    growth(table, GROWING[:2] if quick else GROWING)
    story(table, *((10, 10) if quick else (50, 100)))


# -- one measurement --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Spent:
    """What one part of the story cost. ``parts``: seconds of CPU; ``lasted``: virtual seconds until the last write on
    the hub that is not a lease."""

    wall_s: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)
    requests: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    idle: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Writes by resource and kind of event."""
    lasted: float = 0.0

    @property
    def hub_s(self) -> float:
        return sum(spent for part, spent in self.parts.items() if part.startswith("hub"))

    def text(self) -> str:
        return f"CPU hub {self.hub_s:.2f} s, clusters {self.parts.get(SPOKES, 0.0):.2f} s, wall {self.wall_s:.0f} s"

    def written(self, per: int = 1) -> str:
        found = [(count / per, what) for what, count in self.writes.most_common() if what != LEASES]
        return ", ".join(f"{count:.2f} {what}" if per > 1 else f"{count:.0f} {what}" for count, what in found)

    @property
    def changed(self) -> int:
        return sum(count for what, count in self.writes.items() if what != LEASES)


@contextlib.contextmanager
def spending(fleet: PullFleet) -> Iterator[Spent]:
    spent, begun, at = Spent(), time.perf_counter(), fleet.clock.now()
    before, asked, writes = fleet.meter.seconds(), fleet.asked, fleet.ledger.writes
    asked.requests.clear()
    asked.idle.clear()
    writes.clear()
    fleet.ledger.kinds.clear()
    yield spent
    spent.wall_s = time.perf_counter() - begun
    spent.parts = {part: now - before.get(part, 0.0) for part, now in fleet.meter.seconds().items()}
    spent.requests, spent.idle, spent.writes = asked.requests.copy(), asked.idle.copy(), writes.copy()
    spent.kinds = fleet.ledger.kinds.copy()
    times = [when for what, when in fleet.ledger.last.items() if what != LEASES and when >= at]
    spent.lasted = (max(times, default=at) - at).total_seconds()


def _filled(fleet: PullFleet, applications: int) -> Callable[[], bool]:
    wanted = len(fleet.clusters) * applications
    return lambda: fleet.ledger.done() == wanted and fleet.ledger.reported() == wanted


def _arrived(fleet: PullFleet, app: str, clusters: list[str], revision: str) -> Callable[[], bool]:
    ledger = fleet.ledger
    return lambda: (
        ledger.reports[app][revision] == len(clusters)
        and all(ledger.apps.get(f"{name}-{app}") == revision for name in clusters)
    )


def changed(fleet: PullFleet, app: str, clusters: list[str], rest_s: float = REST_S) -> Spent:
    """Commit to one application in some clusters; return what it cost until all is quiet."""
    with spending(fleet) as spent:
        revision = fleet.push(app, clusters)
        fleet.crowd.until(_arrived(fleet, app, clusters, revision), LIMIT_S)
        fleet.crowd.advance(rest_s)
    return spent


def ordered(fleet: PullFleet, app: str, revision: str) -> Spent:
    """Change the revision in the template of one set, so that each of its Applications travels again."""
    with spending(fleet) as spent:
        source = {"targetRevision": revision}
        template = {"spec": {"source": source}}
        fleet.send("PATCH", f"{SETS}/{app}", {"spec": {"template": template}})
        fleet.crowd.wake(fleet.hub)
        fleet.crowd.advance(REST_S)
        fleet.crowd.until(_arrived(fleet, app, list(fleet.clusters), revision), LIMIT_S)
    return spent


# -- fleets that grow -------------------------------------------------------------------------------------------------


def growth(table: Table, sizes: tuple[int, ...]) -> None:
    """One change at a time, by turns in a fleet of each size, so that a busy machine slows all of them. Clusters renew
    their leases once in a day: renewals would fall into the changes by chance."""
    table.title(f"Hub CPU for one changed Application as a fleet grows; {GROWN_APPLICATIONS} Applications a cluster")
    fleets = {size: PullFleet(size, poll_s=POLL_S, lease_s=DAY_S) for size in sizes}
    for fleet in fleets.values():
        fleet.fill(range(GROWN_APPLICATIONS))
        fleet.crowd.until(_filled(fleet, GROWN_APPLICATIONS), LIMIT_S)
        fleet.crowd.advance(REST_S)
    everywhere, single = "one Application of every cluster", "one Application of one cluster"
    spent: defaultdict[tuple[str, int], float] = defaultdict(float)
    written: Counter[tuple[str, int]] = Counter()
    counted: Counter[tuple[str, int]] = Counter()
    for turn in range(ONE_AT_A_TIME):
        for size, fleet in fleets.items():
            names = list(fleet.clusters)
            done = [(single, changed(fleet, "app-001", names[turn : turn + 1], SHORT_S), 1)]
            if turn < AT_ALL:
                done.append((everywhere, changed(fleet, "app-000", names, SHORT_S), size))
            for what, one, count in done:
                spent[what, size] += _lean(one)
                written[what, size] += one.changed
                counted[what, size] += count
    for what in (everywhere, single):
        first = spent[what, sizes[0]] / counted[what, sizes[0]]
        for size in sizes:
            each = spent[what, size] / counted[what, size]
            writes = written[what, size] / counted[what, size]
            beside = f"{each / first:.2f} × that of {sizes[0]} clusters; {writes:.1f} writes on the hub"
            table.row(f"{size} clusters: {what}", f"{each * 1000:.1f} ms", beside)


def _lean(spent: Spent) -> float:
    """Return the CPU of the hub without that of leases, which fall into the time by chance."""
    return spent.hub_s - spent.parts.get(HUB_LEASES, 0.0)


# -- one fleet --------------------------------------------------------------------------------------------------------


def story(table: Table, clusters: int, applications: int) -> None:
    count = clusters * applications
    table.title(f"A hub and {clusters} clusters that pull {applications} Applications each, in virtual time")
    begun = time.perf_counter()
    fleet = PullFleet(clusters, poll_s=POLL_S)
    spent = Spent(time.perf_counter() - begun, fleet.meter.seconds())
    table.row("clusters join", f"{spent.wall_s:.0f} s", f"{spent.text()}; {_resident()}")
    with spending(fleet) as spent:
        took = 0.0
        for first in range(0, applications, AT_ONCE):
            last = min(first + AT_ONCE, applications)
            before = Spent(parts=fleet.meter.seconds())
            fleet.fill(range(first, last))
            took += fleet.crowd.until(_filled(fleet, last), LIMIT_S)
            fleet.forget_history()
            if count > MOST_AT_REST:
                _step(table, fleet, before, last, clusters * (last - first))
        fleet.crowd.advance(REST_S)
    beside = f"{spent.text()}; {_resident()}"
    table.row(f"fill: {count:,} Applications Synced, reported", f"{took:.0f} s virtual", beside)
    _parts(table, spent, count)
    fleet.crowd.advance(600)
    names = list(fleet.clusters)
    spent = changed(fleet, "app-000", names)
    table.row("a commit: one Application of every cluster", f"{spent.lasted:.1f} s virtual", spent.text())
    _parts(table, spent, clusters)
    spent = changed(fleet, "app-001", names[:1])
    table.row("a commit: one Application of one cluster", f"{spent.lasted:.1f} s virtual", spent.text())
    table.row("  writes on the hub", f"{spent.changed}", spent.written())
    spent = ordered(fleet, "app-002", fleet.sources.release("app-002"))
    table.row("a set's new revision, for every cluster", f"{spent.lasted:.1f} s virtual", spent.text())
    _parts(table, spent, clusters)
    if count <= MOST_AT_REST:
        _steady(table, fleet)
    _lost(table, fleet)
    table.row("resident at most", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")
    table.row("the whole story", f"{time.perf_counter() - begun:.0f} s")


def _step(table: Table, fleet: PullFleet, before: Spent, sets: int, made: int) -> None:
    """Say how far a large fleet is: it may not come to its end."""
    now = Spent(parts=fleet.meter.seconds())
    hub, own = now.hub_s - before.hub_s, now.parts[SPOKES] - before.parts[SPOKES]
    beside = (
        f"CPU hub {hub / made * 1000:.1f} ms, clusters {own / made * 1000:.1f} ms for each of the last; {_resident()}"
    )
    table.row(f"  {sets * len(fleet.clusters):,} Applications so far", "", beside)


def _resident() -> str:
    return f"resident {resident_mib_of(os.getpid()):,.0f} MiB"


def _parts(table: Table, spent: Spent, count: int) -> None:
    table.row("  hub CPU for each Application", f"{spent.hub_s / count * 1000:.1f} ms", _by_part(spent))
    table.row("  writes on the hub for each", f"{spent.changed / count:.2f}", spent.written(count))
    if spent.idle:
        table.row("  writes that changed nothing", f"{spent.idle.total()}", str(spent.idle.most_common(3)))


def _by_part(spent: Spent) -> str:
    hub = {part.removeprefix("hub: "): one for part, one in spent.parts.items() if part.startswith("hub")}
    return ", ".join(f"{part} {one:.2f} s" for part, one in sorted(hub.items(), key=lambda each: -each[1]))


def _steady(table: Table, fleet: PullFleet) -> None:
    fleet.crowd.advance(3600)  # Events of what came before go
    fleet.forget_history()
    with spending(fleet) as spent:
        fleet.crowd.advance(3600)
    leases = sum(count for (_, _, what), count in spent.requests.items() if what == LEASES)
    others = others_than_leases(spent)
    each = leases / len(fleet.clusters)
    table.row("an hour in which nothing changes", f"{each:.1f} leases", f"for each cluster; {spent.text()}")
    table.row("  other requests to the hub", f"{others.total()}", str(dict(others)) if others else "none")


def others_than_leases(spent: Spent) -> Counter[tuple[str, str, str]]:
    """Return the requests of a time at rest that are neither renewals of leases, nor removals of old Events, nor looks
    of agents for kinds that the hub does not serve yet."""
    rest = (LEASES, DISCOVERY)
    found = {key: count for key, count in spent.requests.items() if key[2] not in rest and key[1:] != FORGOTTEN}
    return Counter(found)


def _lost(table: Table, fleet: PullFleet) -> None:
    """One cluster is cut off for ten minutes, in which two of its Applications change, one by the hub's set."""
    name = next(iter(fleet.clusters))
    link = fleet.clusters[name].link
    assert link is not None, "the cluster has joined"
    with spending(fleet) as spent:
        link.cut()
        fleet.crowd.advance(600)
    table.row("a cluster is cut off for 10 min", f"{spent.changed} writes", spent.written())
    revision = fleet.push("app-000", [name])
    release = fleet.sources.release("app-001")
    template = {"spec": {"source": {"targetRevision": release}}}
    fleet.send("PATCH", f"{SETS}/app-001", {"spec": {"template": template}})
    fleet.crowd.wake(fleet.hub)
    fleet.crowd.advance(REST_S)
    with spending(fleet) as spent:
        at: datetime = fleet.clock.now()
        link.whole = True
        reached = _arrived(fleet, "app-001", list(fleet.clusters), release)
        fleet.crowd.until(lambda: reached() and fleet.ledger.apps[f"{name}-app-000"] == revision, LIMIT_S)
        took = (fleet.clock.now() - at).total_seconds()
        fleet.crowd.advance(REST_S)
    beside = f"{spent.text()}; {spent.written()}"
    table.row("  it is back: all reports are whole after", f"{took:.1f} s virtual", beside)
