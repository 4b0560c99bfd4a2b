"""Decides if a project may read an address, and with which credentials: :meth:`Border.judge`, for every remote read.

Sources of Applications, submodules, large files, bases and charts of kustomizations and dependencies of charts all use
it before any connection. A project that lists an address gets the matching credentials: its own first, then those for
all projects. Other addresses are read anonymously. Writes, which are hydrated manifests only, use
:meth:`Border.judge_writing`. Pure but for a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from syncline.sources.errors import Problem, SourceError, mask_credentials
from syncline.sources.remote.address import (
    DEFAULT_NETWORKS,
    Address,
    Networks,
    check_url,
    is_forbidden,
    parse_address,
)
from syncline.sources.remote.credentials import NO_CREDENTIALS, CredentialStore, RepositoryAccess

ANYBODY = "\nanybody"
"""Owner of what was read without credentials; no project is called so."""


def _everything(_project: str, _url: str) -> bool:
    return True


def _no_stamp(_project: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Lent:
    """The decision. ``access`` has no credentials unless ``permitted``."""

    address: Address
    project: str
    permitted: bool
    access: RepositoryAccess | None

    @property
    def url(self) -> str:
        """The address to connect to."""
        return self.address.dial

    @property
    def owner(self) -> str:
        """The owner of the caches for this access; other owners do not see them."""
        if not self.permitted:
            return ANYBODY
        return self.access.project if self.access is not None else ""

    @property
    def has_credentials(self) -> bool:
        return self.access is not None and self.access.has_credentials


class Border:
    """The current credentials and rules. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._book: CredentialStore = NO_CREDENTIALS
        self._permits: Callable[[str, str], bool] = _everything
        self._stamp: Callable[[str], str] = _no_stamp
        self._networks: Networks = DEFAULT_NETWORKS

    def learn(self, book: CredentialStore) -> None:
        """Use these credentials for remotes from now on."""
        with self._lock:
            self._book = book

    def learn_rules(self, permits: Callable[[str, str], bool], stamp: Callable[[str], str], networks: Networks) -> None:
        """Set the addresses that projects list (``stamp`` changes when a list does), and the networks forbidden to all
        projects."""
        with self._lock:
            self._permits, self._stamp, self._networks = permits, stamp, networks

    @property
    def networks(self) -> Networks:
        return self._networks

    def viewer(self, project: str) -> str:
        """Return the cache key for data read by ``project``; it changes with the project's list, so that nothing that
        was read before is found."""
        with self._lock:
            return f"{project} {self._stamp(project)} {self._book.stamp(project)}"

    def judge(self, url: str, project: str, *, charts: bool = False, local: bool = False) -> Lent:
        """``charts``: the address is a chart repository or registry; ``local``: paths on this machine are allowed.

        Raises :class:`SourceError` for a forbidden address.
        """
        address = parse_address(url, charts=charts)
        if not charts:
            check_url(url, allow_local=local)
        self.check(address)
        with self._lock:
            book, permits = self._book, self._permits
        dial = address.dial
        if permits(project, dial) or book.is_of_project(dial, project, charts=charts):
            return Lent(address, project, True, book.access(dial, project, charts=charts))
        return Lent(address, project, False, book.anonymous(dial))

    def judge_writing(self, url: str, projects: Collection[str], *, local: bool = False) -> Lent:
        """Decide if Applications of these projects may push to this repository. Each project must list the address
        itself. Only write credentials count, the project's own before those for all; without any the access is
        anonymous.

        Raises :class:`SourceError` if one of the projects may not.
        """
        for project in sorted(projects):
            lent = self.judge(url, project, local=local)
            with self._lock:
                listed = self._permits(project, lent.url)
            if not listed:
                raise _unlisted(lent)
        owner = next(iter(projects)) if len(projects) == 1 else ""
        with self._lock:
            book = self._book
        access = book.write_access(lent.url, owner)
        if access is None or not (access.has_credentials or lent.address.is_local):
            access = replace(book.anonymous(lent.url), signing_key=access.signing_key if access else None)
        return Lent(lent.address, owner, True, access)

    def check(self, address: Address) -> None:
        """Raise :class:`SourceError` for an address in a forbidden network."""
        if is_forbidden(address.host, self._networks):
            raise SourceError(
                Problem.REFUSED,
                f"repository {mask_credentials(address.dial)} lies in a network that repositories may not name",
                subject=mask_credentials(address.dial),
                field="spec.source.repoURL",
                fix="an administrator may allow it in source.forbidden.networks of argocd-cm",
            )

    def anonymous(self, lent: Lent) -> RepositoryAccess:
        """Return the access without credentials to the same address."""
        return self._book.anonymous(lent.url)

    def named(self, alias: str, project: str) -> Lent | None:
        """Return the chart repository that is declared under a name, for charts that use it."""
        found = self._book.named(alias, project)
        return None if found is None else self.judge(found.url, project, charts=True)

    def beside(self, lent: Lent, other: RepositoryAccess | None, origin: str) -> Lent:
        """Return ``lent`` with the credentials of another repository of the same origin, unless it has its own."""
        if not lent.permitted or lent.has_credentials or other is None or not origin:
            return lent
        if lent.address.origin != origin:
            return lent
        return replace(lent, access=replace(other, url=lent.url))

    def trusted(self, lent: Lent) -> Lent:
        """Return ``lent`` with credentials although the project does not list the address, because an administrator
        names it."""
        return replace(lent, permitted=True, access=self._book.access(lent.url, lent.project))

    def registry(self, lent: Lent) -> Lent:
        """Return ``lent`` with the credentials of another repository of its registry, unless it has its own."""
        if not lent.permitted or lent.access is not None:
            return lent
        return replace(lent, access=self._book.registry(lent.url, lent.project))


def of_generator(border: Border, url: str, project: str, *, trusted: bool, local: bool) -> Lent:
    """Decide how a generator of an ApplicationSet reads a repository.

    In the control namespace (``trusted``) as upstream; elsewhere as an Application's own source, and without
    credentials where the project is templated (empty) and so not known. Raises :class:`SourceError`.
    """
    lent = border.judge(url, project, local=local)
    if trusted:
        return border.trusted(lent)
    if not project:
        return replace(lent, permitted=False, access=border.anonymous(lent))
    refuse_unlisted(lent)
    return lent


def refuse_unlisted(lent: Lent) -> None:
    """Raise :class:`SourceError` if the project does not list the address of an Application's own source.

    Paths on this machine need a permission of their own and are not checked here.
    """
    if not lent.permitted and not lent.address.is_local:
        raise _unlisted(lent)


def _unlisted(lent: Lent) -> SourceError:
    return SourceError(
        Problem.REFUSED,
        f"application repo {mask_credentials(lent.url)} is not permitted in project '{lent.project or 'default'}'",
        subject=mask_credentials(lent.url),
        field="spec.source.repoURL",
        fix="add it to the project's sourceRepos",
    )
