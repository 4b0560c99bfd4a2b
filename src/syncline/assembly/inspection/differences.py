"""Differences between an Application's manifests and its live objects, on one snapshot of the cluster.

Called by ``syncline app diff`` and ``app manifests`` with a snapshot, the Application and a reader of sources; returns
frozen values without values of Secrets: both sides are masked first. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

from syncline.apply.annotations import is_hook, is_ignored
from syncline.apply.diff import DiffError, DiffSettings, Prediction, compare_objects, hide_secret
from syncline.argo.application import AppView
from syncline.assembly.inspection.snapshot import system_of
from syncline.base.masking import Masker
from syncline.control.cache import Cache
from syncline.gitops.application.content import ContentFirst
from syncline.gitops.application.manifests import ManifestStore, SourceReader
from syncline.gitops.application.observing.observe import AppSettings, Destinations, observe_application
from syncline.gitops.application.plan import comparison_input
from syncline.gitops.application.problems import spec_problems
from syncline.gitops.comparison.compare import compare, diff_settings
from syncline.gitops.sync.model import Pair
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, gvk_of, ref_of

DryRun = Callable[[Obj], Prediction]
"""A target → the API server's dry run of its server-side apply."""


@dataclass(frozen=True, slots=True)
class ObjectDifference:
    """One object: ``live`` None: not in the cluster; ``wanted`` None: no longer in the source. Secrets are masked.

    ``wanted`` is the predicted result of a sync, so that fields from the server are no difference.
    """

    ref: ObjectRef
    live: Obj | None
    wanted: Obj | None
    modified: bool


@dataclass(frozen=True, slots=True)
class AppDifferences:
    """``problems``: why nothing could be compared; then everything else is empty."""

    revisions: tuple[str, ...] = ()
    objects: tuple[ObjectDifference, ...] = ()
    manifests: tuple[Obj, ...] = ()
    """Manifests of the source, tracked and in their namespaces, without hooks; Secrets are masked."""
    hooks: tuple[Obj, ...] = ()
    live: tuple[Obj, ...] = ()
    """The managed live objects; Secrets are masked."""
    problems: tuple[str, ...] = ()
    unread: tuple[ObjectRef, ...] = ()
    """Objects that cannot be read and so are not compared."""

    @property
    def modified(self) -> tuple[ObjectDifference, ...]:
        return tuple(one for one in self.objects if one.modified)


def application_differences(
    cache: Cache,
    app: Obj,
    reader: SourceReader,
    settings: AppSettings,
    now: datetime,
    destinations: Destinations | None = None,
    dry_run: DryRun | None = None,
) -> AppDifferences:
    """Compare like the controller, at the revisions in ``app``; with ``dry_run``, as the API server would merge each
    object."""
    view = AppView(app)
    cache.put(APPLICATION.group_kind, app)
    system = system_of(cache, settings)
    store = ManifestStore()
    observed = observe_application(cache, view.ref, store, settings, system=system, destinations=destinations)
    assert observed is not None, "an Application that was put into the cache is there"
    problems = [f"{problem.type}: {problem.message}" for problem in spec_problems(replace(observed, unread={}))]
    if problems:
        return _stopped(observed.view.mask, *problems)
    manifests = ContentFirst(reader, cache).read(view.sources, view.revisions_wanted, now, observed.context)
    if manifests.error:
        return _stopped(observed.view.mask, f"ComparisonError: Failed to load target state: {manifests.error}")
    store.put(view.sources, view.revisions_wanted, manifests, observed.context)
    observed = observe_application(cache, view.ref, store, settings, system=system, destinations=destinations)
    assert observed is not None, "an Application that was put into the cache is there"
    wanted = comparison_input(observed, manifests)
    comparison = compare(wanted)
    hidden = observed.system.settings.hidden_annotations
    try:
        every = [pair for pair in comparison.pairs if not (is_hook(pair.obj) or is_ignored(pair.obj))]
        pairs = [pair for pair in every if ref_of(pair.obj) not in observed.unread]
        found = tuple(object_difference(pair, _asked(pair, diff_settings(wanted), dry_run), hidden) for pair in pairs)
    except DiffError as error:
        return _stopped(observed.view.mask, f"ComparisonError: Failed to compare desired state to live state: {error}")
    masked = [_masked(pair.target, pair.live, hidden) for pair in every]
    return AppDifferences(
        revisions=manifests.revisions,
        objects=found,
        manifests=tuple(target for target, _ in masked if target is not None),
        hooks=tuple(hook for hook, _ in (_masked(one, None, hidden) for one in comparison.hooks) if hook is not None),
        live=tuple(live for _, live in masked if live is not None),
        unread=tuple(sorted(ref_of(pair.obj) for pair in every if ref_of(pair.obj) in observed.unread)),
    )


def _asked(pair: Pair, settings: DiffSettings, dry_run: DryRun | None) -> DiffSettings:
    """Return the settings with the API server's prediction for this pair, if there is one."""
    if dry_run is None or pair.target is None or pair.live is None:
        return settings
    return dry_run(pair.target).of(settings)


def _stopped(mask: Masker, *problems: str) -> AppDifferences:
    return AppDifferences(problems=tuple(mask(problem) for problem in problems))


def object_difference(pair: Pair, settings: DiffSettings, hidden: Collection[str]) -> ObjectDifference:
    """Return both sides of a pair, masked with the annotations in ``hidden``. Raises :class:`DiffError`."""
    result = compare_objects(pair.target, pair.live, settings)
    wanted, live = _masked(result.predicted, result.live, hidden)
    modified = result.modified or pair.live is None or pair.target is None
    return ObjectDifference(ref_of(pair.obj), live, wanted, modified)


def _masked(wanted: Obj | None, live: Obj | None, hidden: Collection[str]) -> tuple[Obj | None, Obj | None]:
    """Return both sides, masked if it is a Secret."""
    gvk = gvk_of(wanted or live or {})
    return hide_secret(wanted, live, hidden) if (gvk.group, gvk.kind) == ("", "Secret") else (wanted, live)
