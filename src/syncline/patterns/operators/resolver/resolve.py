"""Which bundles the Subscriptions of a namespace get (``Resolver.Resolve``, ``OperatorStepResolver.ResolveSteps``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from syncline.kube.objects import Obj, annotations_of, dig, name_of, namespace_of
from syncline.patterns.operators.catalogs.model import Bundle, Catalog, Entry, Property, SourceKey
from syncline.patterns.operators.groups import Api, fails_forward
from syncline.patterns.operators.replacing import newest
from syncline.patterns.operators.resolver.channels import ChannelError, in_channel_order
from syncline.patterns.operators.resolver.constraints import (
    PROPERTIES,
    ConstraintError,
    Predicate,
    installed_properties,
    package_named,
    packages_of,
    requirements,
)
from syncline.patterns.operators.resolver.search import Rule, TooManySteps, solve
from syncline.patterns.operators.resolver.steps import ordered, steps_of_bundle, subscription_step
from syncline.patterns.operators.resolver.versions import Version, parse_version
from syncline.patterns.operators.resolving import UNSATISFIABLE, Resolved

EXCLUDE_GLOBAL = "olm.operatorframework.io/exclude-global-namespace-resolution"
"""Annotation of an OperatorGroup: only catalogues of its own namespace count."""


class ResolutionError(ValueError):
    """Something other than a contradiction prevents a resolution."""


@dataclass(frozen=True, slots=True)
class Request:
    """``catalogs``: those that the namespace can use and that are healthy, in the order of preference."""

    namespace: str
    subscriptions: Sequence[Obj]
    csvs: Mapping[str, Obj]
    groups: Sequence[Obj]
    catalogs: Mapping[SourceKey, Catalog]


Place = tuple[SourceKey, str, str]
"""A channel: catalogue, package, name."""


@dataclass(slots=True)
class _Pool:
    """All entries, and the constraints that were found so far."""

    request: Request
    entries: Sequence[Entry]
    rules: dict[str, list[Rule]] = field(default_factory=dict)
    replaces: dict[str, str] = field(default_factory=dict)
    """By identity of a bundle: the installed one that it replaces."""
    known: dict[str, Entry] = field(default_factory=dict)
    read: dict[str, Predicate] = field(default_factory=dict)
    found: dict[tuple[str, SourceKey], list[Entry]] = field(default_factory=dict)
    """Who satisfies a requirement of a bundle from a catalogue."""
    orders: dict[Place, list[Entry]] = field(default_factory=dict)
    channels: dict[Place, list[Entry]] = field(init=False)
    packages: dict[str, list[Entry]] = field(init=False)
    apis: dict[Api, list[Entry]] = field(init=False)

    def __post_init__(self) -> None:
        self.channels, self.packages, self.apis = {}, {}, {}
        for one in self.entries:
            self.channels.setdefault(_place(one), []).append(one)
            named = dict.fromkeys((one.package, *(str(each.get("packageName")) for each in packages_of(one))))
            for package in named:
                self.packages.setdefault(package, []).append(one)
            for api in one.bundle.apis:
                self.apis.setdefault(api, []).append(one)

    def find(self, *predicates: Callable[[Entry], bool]) -> list[Entry]:
        return [one for one in self.entries if all(holds(one) for holds in predicates)]

    def fulfilling(self, wanted: Predicate) -> list[Entry]:
        """Return the entries that satisfy a requirement, in their order."""
        narrowed: Sequence[Entry] = self.entries
        if wanted.package:
            narrowed = self.packages.get(wanted.package, ())
        elif wanted.api is not None:
            narrowed = self.apis.get(wanted.api, ())
        return [one for one in narrowed if wanted.holds(one)]

    def ordered(self, place: Place) -> list[Entry]:
        """Return a channel from its head down. Raises :class:`ChannelError`."""
        if place not in self.orders:
            self.orders[place] = in_channel_order(self.channels[place])
        return self.orders[place]


def _place(entry: Entry) -> Place:
    return entry.source, entry.package, entry.channel


def resolve(request: Request) -> Resolved:
    """Return the steps of an InstallPlan and the Subscriptions that change, or why there is no solution."""
    if len(request.groups) != 1:
        return Resolved(error=f"expected 1 OperatorGroup in the namespace, found {len(request.groups)}")
    try:
        chosen = _choose(request)
    except (ResolutionError, ConstraintError, ChannelError, TooManySteps) as error:
        return Resolved(error=str(error))
    if isinstance(chosen, str):
        return Resolved(error=chosen)
    return _steps(request, chosen)


def uses_global(groups: Sequence[Obj]) -> bool:
    """Return whether catalogues of the global namespace count for a namespace with these groups."""
    return not any(annotations_of(one).get(EXCLUDE_GLOBAL) == "true" for one in groups)


def _choose(request: Request) -> list[Entry] | str:
    """Return the entries of catalogues in the solution, or the contradiction."""
    offered = (one for source, catalog in request.catalogs.items() for one in catalog.at(source))
    pool = _Pool(request, (*_installed(request), *offered))
    for one in pool.find(lambda entry: entry.source.virtual):
        _add(pool, [one])
    for subscription in request.subscriptions:
        _subscribe(pool, subscription)
    _at_most_one(pool)
    found, reasons = solve(pool.rules)
    if reasons:
        return f"{UNSATISFIABLE}: {', '.join(reasons)}"
    entries = [pool.known[name] for name in found if name in pool.known and not pool.known[name].source.virtual]
    return [replace(one, replaces=pool.replaces.get(one.identity, one.replaces)) for one in entries]


def _version(csv: Obj) -> Version | None:
    try:
        return parse_version(str(dig(csv, "spec", "version", default="") or ""))
    except ValueError:
        return None


def _installed(request: Request) -> Iterable[Entry]:
    """Return what is installed in the namespace, as entries of a catalogue without a name. A version that is being
    replaced is among them: it has to be gone before the next upgrade."""
    by_csv = {str(dig(one, "status", "installedCSV", default="") or ""): one for one in request.subscriptions}
    source = SourceKey("", request.namespace)
    forward = any(map(fails_forward, request.groups))
    for name, csv in sorted(request.csvs.items()):
        if forward and _replaced_in_vain(csv, request.csvs):
            continue
        properties = installed_properties(csv)
        if PROPERTIES not in annotations_of(csv):
            properties += _inferred(csv, request.subscriptions)
        bundle = Bundle(name, package_named(properties), _version(csv), properties=properties)
        yield Entry(bundle, "", source, name, subscribed=name in by_csv)


def _inferred(csv: Obj, subscriptions: Sequence[Obj]) -> tuple[Property, ...]:
    """Return the package of an operator that was installed without properties, if its Subscriptions agree on one."""
    mine = [one for one in subscriptions if dig(one, "status", "installedCSV", default="") == name_of(csv)]
    names = {str(dig(one, "spec", "name", default="") or "") for one in mine} - {""}
    if len(names) != 1:
        return ()
    version = str(dig(csv, "spec", "version", default="") or "")
    return (Property("olm.package", {"packageName": names.pop(), "version": version}),)


def _replaced_in_vain(csv: Obj, csvs: Mapping[str, Obj]) -> bool:
    """Return whether a version is being replaced by a chain that ends with one that failed."""
    if dig(csv, "status", "phase", default="") != "Replacing":
        return False
    return bool(dig(newest(csv, csvs), "status", "phase", default="") == "Failed")


def _add(pool: _Pool, entries: Sequence[Entry]) -> None:
    """Add bundles and all that they may need to the variables."""
    stack = list(entries)
    while stack:
        entry = stack.pop()
        if entry.identity in pool.known:
            continue
        pool.known[entry.identity] = entry
        rules = pool.rules.setdefault(entry.identity, [])
        if entry.source.virtual and not entry.subscribed:
            text = f"clusterserviceversion {entry.name} exists and is not referenced by a subscription"
            rules.append(Rule(text, must=True))
        if any(one.kind == "olm.deprecated" for one in entry.bundle.properties):
            rules.append(Rule(f"bundle {entry.identity} is deprecated", never=True))
        for wanted in requirements(entry.bundle.properties, pool.read):
            found = _candidates(pool, entry, wanted)
            text = f"bundle {entry.name} requires an operator {wanted.text}"
            rules.append(Rule(text, one_of=tuple(one.identity for one in found)))
            stack += found


def _candidates(pool: _Pool, entry: Entry, wanted: Predicate) -> list[Entry]:
    """Return who satisfies a requirement, the preferred ones first: what is installed, then the catalogue of the one
    that asks, its own namespace, priorities; in a catalogue the default channel, in a channel the newest."""
    asked = (wanted.key, entry.source)
    if asked in pool.found:
        return pool.found[asked]
    places: dict[Place, set[str]] = {}
    for one in pool.fulfilling(wanted):
        places.setdefault(_place(one), set()).add(one.identity)
    order = {source: index for index, source in enumerate(pool.request.catalogs)}

    def rank(place: Place) -> tuple[bool, bool, int, bool, str, str]:
        source, package, channel = place
        default = pool.channels[place][0].default_channel
        return (not source.virtual, source != entry.source, order.get(source, -1), not default, package, channel)

    made = [one for place in sorted(places, key=rank) for one in pool.ordered(place) if one.identity in places[place]]
    pool.found[asked] = made
    return made


def _missing(subscription: Obj, source: SourceKey, pool: _Pool, starting: str) -> str:
    """Return why a Subscription cannot find anything; "" if it can."""
    name, package = name_of(subscription), str(dig(subscription, "spec", "name", default="") or "")
    channel = str(dig(subscription, "spec", "channel", default="") or "")
    offered = pool.find(lambda one: one.source == source)
    if not offered:
        where = f"catalog {source.name} in namespace {source.namespace}"
        return f"no operators found from {where} referenced by subscription {name}"
    offered = [one for one in offered if one.package == package]
    if not offered:
        return f"no operators found in package {package} in the catalog referenced by subscription {name}"
    offered = [one for one in offered if not channel or one.channel == channel]
    where = f"channel {channel} of package {package} in the catalog referenced by subscription {name}"
    if not offered:
        return f"no operators found in {where}"
    if starting and not any(one.name == starting for one in offered):
        return f"no operators found with name {starting} in {where}"
    return ""


def _subscribe(pool: _Pool, subscription: Obj) -> None:
    """Add the variable of a Subscription: it needs one of its candidates, or what is installed."""
    name, spec = name_of(subscription), subscription.get("spec") or {}
    source = SourceKey(str(spec.get("source") or ""), str(spec.get("sourceNamespace") or ""))
    installed = str(dig(subscription, "status", "installedCSV", default="") or "")
    current = next(iter(pool.find(lambda one: one.source.virtual and one.name == installed)), None)
    starting = str(spec.get("startingCSV") or "") if current is None else ""
    identity, exists = f"subscription:{name}", Rule(f"subscription {name} exists", must=True)
    if problem := _missing(subscription, source, pool, starting):
        pool.rules[identity] = [exists, Rule(problem, never=True)]
        return
    channel = str(spec.get("channel") or "")
    offered = pool.find(
        lambda one: one.source == source and one.package == spec.get("name"),
        lambda one: not channel or one.channel == channel,
    )
    names = sorted({one.channel for one in offered}, key=lambda one: (not _is_default(offered, one), one))
    if current is None and starting:
        offered = [one for one in offered if one.name == starting]
    candidates = [each for one in names for each in in_channel_order([e for e in offered if e.channel == one])]
    candidates = [one for one in candidates if _reaches(one, current)]
    _add(pool, candidates)
    wanted = [one.identity for one in candidates]
    if current is not None:
        for one in candidates:
            pool.replaces[one.identity] = current.name
            pool.rules[one.identity].append(
                Rule(f"{one.identity} conflicts with {current.identity}", without=current.identity)
            )
        wanted.append(current.identity)
    if not wanted:
        text = f"no operators found matching the criteria of subscription {name}"
    elif len(wanted) == 1:
        text = f"subscription {name} requires {wanted[0]}"
    else:
        text = f"subscription {name} requires at least one of {', '.join(wanted[:-1])} or {wanted[-1]}"
    pool.rules[identity] = [exists, Rule(text, one_of=tuple(wanted))]


def _is_default(entries: Iterable[Entry], channel: str) -> bool:
    return any(one.default_channel for one in entries if one.channel == channel)


def _reaches(entry: Entry, current: Entry | None) -> bool:
    """Return whether a Subscription may go to an entry now."""
    if current is None:
        return True
    version = current.bundle.version
    skips = entry.skip_range is not None and version is not None and entry.skip_range(version)
    # An entry that skips the installed one replaces it as well; one whose range includes itself is no step then.
    return skips or entry.replaces == current.name or current.name in entry.skips


def _at_most_one(pool: _Pool) -> None:
    """Add that an API has one provider, and a package one operator."""
    apis: dict[Api, list[str]] = {}
    packages: dict[str, list[str]] = {}
    for identity, entry in pool.known.items():
        for one in entry.bundle.properties:
            if one.kind == "olm.gvk" and isinstance(one.value, dict):
                api = Api(*(str(one.value.get(part) or "") for part in ("group", "version", "kind")))
                apis.setdefault(api, []).append(identity)
        if entry.package and any(one.kind == "olm.package" for one in entry.bundle.properties):
            packages.setdefault(entry.package, []).append(identity)
    for api, who in sorted(apis.items()):
        label = f"{api.kind} ({api.group}/{api.version})"
        _single(pool, label, who, f"there can be only one provider of {label}", f"provide {label}")
    for package, who in sorted(packages.items()):
        only = f"there can be only one operator from package {package}"
        _single(pool, package, who, only, f"originate from package {package}")


def _single(pool: _Pool, identity: str, who: Sequence[str], only: str, what: str) -> None:
    names = sorted(set(who))
    if len(names) > 1:
        text = f"{', '.join(names[:-1])} and {names[-1]} {what}"
        pool.rules[identity] = [Rule(only, must=True), Rule(text, most_one_of=tuple(names))]


def _steps(request: Request, entries: Sequence[Entry]) -> Resolved:
    steps: list[Obj] = []
    lookups: list[Obj] = []
    changed: dict[str, Obj] = {}
    for entry in entries:
        mine = [one for one in request.subscriptions if _subscribes(one, entry)]
        current = [str(dig(one, "status", "currentCSV", default="") or "") for one in mine]
        if mine and all(name == entry.name and name in request.csvs for name in current):
            continue
        steps += steps_of_bundle(entry, request.namespace)
        lookups += () if entry.bundle.objects else (_unreadable(entry),)
        if not mine:
            steps.append(subscription_step(entry, request.namespace))
        for one, name in zip(mine, current, strict=True):
            if name != entry.name:
                changed[name_of(one)] = {**one, "status": {**(one.get("status") or {}), "currentCSV": entry.name}}
    return Resolved(tuple(ordered(steps)), tuple(changed.values()), tuple(lookups))


def _unreadable(entry: Entry) -> Obj:
    """Return the lookup of a bundle of which the catalogue has only the image."""
    said = f"image {entry.bundle.image or 'of no name'} of bundle {entry.name} cannot be pulled here"
    fix = "give the catalogue its manifests (olm.bundle.object) or metadata (olm.csv.metadata)"
    why = {"type": "BundleLookupFailed", "status": "True", "reason": "ImageNotPulled", "message": f"{said}; {fix}"}
    source = {"namespace": entry.source.namespace, "name": entry.source.name}
    where = {"path": entry.bundle.image, "identifier": entry.name, "replaces": entry.replaces}
    return {**where, "catalogSourceRef": source, "conditions": [why]}


def _subscribes(subscription: Obj, entry: Entry) -> bool:
    spec = subscription.get("spec") or {}
    source = (str(spec.get("source") or ""), str(spec.get("sourceNamespace") or ""))
    same = spec.get("name") == entry.package and (not spec.get("channel") or spec["channel"] == entry.channel)
    return same and source in (("", ""), tuple(entry.source)) and namespace_of(subscription) != ""
