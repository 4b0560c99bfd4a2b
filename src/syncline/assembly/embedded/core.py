"""The embedded cluster without sockets, threads or files: store, API, access.

The live cluster and the virtual world both use it, with different drivers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.cluster.access.authn import Authenticator
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.pki import ClusterKeys
from syncline.cluster.access.tokens import ServiceAccountTokens, issuer_documents
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.api import Api
from syncline.cluster.bootstrap import bootstrap_objects, install
from syncline.cluster.resources.registry import Registry
from syncline.cluster.serving.direct import DirectTransport
from syncline.cluster.storage.store import Key, Store
from syncline.cluster.verbs.exchange import LogSource
from syncline.kube.client import Response
from syncline.kube.objects import Obj


@dataclass(frozen=True, slots=True)
class ClusterCore:
    """The parts that serve requests."""

    store: Store
    registry: Registry
    authorizer: Authorizer
    api: Api
    clock: Clock
    entropy: Entropy
    authenticator: Authenticator
    tokens: ServiceAccountTokens | None

    def transport(self, user: UserInfo = ADMIN, *, waits: bool = False, judged: bool = True) -> DirectTransport:
        """Return the in-process API as one user. ``waits``: the caller settles pending responses; ``judged``: False for
        a cluster's own objects at its start, when no webhook can respond yet."""
        return DirectTransport(self.api, user, self.authenticator.acting, waits=waits, judged=judged)

    def bootstrap(self, *, port: int, ca_pem: str = "") -> None:
        """Create the objects of every cluster in a new store; its first revisions count as compacted (a watch from 1
        gets 410)."""
        fresh = self.store.revision == 0
        install(self.transport(judged=False).send, bootstrap_objects(port=port, ca_pem=ca_pem))
        if fresh:
            self.store.compact(self.store.revision)


def _document(made: tuple[str, Obj]) -> Callable[[], Response]:
    kind, obj = made
    return lambda: Response.of(200, obj, {"content-type": kind, "cache-control": "public, max-age=3600"})


def build_core(
    *,
    store: Store,
    clock: Clock,
    entropy: Entropy,
    keys: ClusterKeys | None = None,
    without_credentials: UserInfo | None = None,
    logs: LogSource | None = None,
) -> ClusterCore:
    """Build the parts of a cluster. ``keys`` None: no service-account tokens (pure virtual worlds)."""
    registry = Registry(store)
    authorizer = Authorizer(store)

    def uid_of(resource: str, namespace: str, name: str) -> str:
        found = store.get(Key(resource, namespace, name))
        return found.uid if found is not None else ""

    tokens = ServiceAccountTokens(keys.service_accounts, uid_of, entropy.fork("tokens")) if keys else None
    authenticator = Authenticator(authorize=authorizer.decide, tokens=tokens, without_credentials=without_credentials)

    def review(token: str, now: datetime, audiences: Sequence[str]) -> tuple[UserInfo, list[str]] | None:
        return authenticator.token_user(token, now, audiences)

    api = Api(store, registry, authorizer, clock, entropy.fork("api"), tokens=tokens, review_token=review, logs=logs)
    if tokens is not None:
        api.documents |= {path: _document(made) for path, made in issuer_documents(tokens).items()}
    return ClusterCore(store, registry, authorizer, api, clock, entropy, authenticator, tokens)
