"""The ``syncline.dev/v1alpha1`` kinds by which rendered manifests reach a cluster over its agent's connection.

On the hub they live in the namespace of the cluster, on the cluster in that of its agent. The hub writes contents and
chunks, the agent copies what its cluster lacks; the agent writes the target, and may only read the others.
"""

from __future__ import annotations

from syncline.kube.kinds.structure import AGE, STR, TIME, atomic, column, definition, kind_schema, obj
from syncline.kube.kinds.syncline import GROUP, VERSION
from syncline.kube.objects import GVK, Obj

CONTENT = GVK(GROUP, VERSION, "ApplicationContent")
CHUNK = GVK(GROUP, VERSION, "ContentChunk")
TARGET = GVK(GROUP, VERSION, "ContentTarget")
TARGET_NAME = "content"
"""Name of the one ContentTarget of a cluster."""
AGENT_NAMESPACE = "open-cluster-management-agent"
"""Namespace of an agent on its cluster, where contents and chunks live there."""
KEY_SECRET = "syncline-content-key"
"""Secret of the agent, in its namespace: the private keys for which the hub seals."""
MAX_ENTRIES = 10
"""Versions of an Application's content that are kept."""
MAX_CHUNKS = 2000
"""Chunks of one version."""
MAX_DATA = 1_200_000
"""Characters of a chunk as base64: about 900 kB."""
MAX_SOURCES = 100
MAX_API_VERSIONS = 10_000
MAX_KEYS = 5


def content_crds() -> tuple[Obj, ...]:
    """Return the definitions of all three kinds, for the hub."""
    return (*transferred_crds(), _target_crd())


def transferred_crds() -> tuple[Obj, ...]:
    """Return the definitions that a cluster needs too."""
    return _content_crd(), _chunk_crd()


def _content_crd() -> Obj:
    short = STR | {"maxLength": 512}
    named = obj({"namespace": short, "name": short}, "namespace", "name")
    revisions = atomic(short, maxItems=MAX_SOURCES)
    sealed = obj({"name": short, "id": short, "key": short}, "name", "id", "key")
    entry = obj(
        {
            "digest": short | {"description": "names this version; the Application's annotation has it"},
            "sources": short | {"description": "digest of the sources that were rendered"},
            "requested": revisions | {"description": "the revision that each source asks for"},
            "revisions": revisions | {"description": "the commit or version of each source"},
            "types": atomic(short, maxItems=MAX_SOURCES),
            "runs": atomic({"type": "integer", "minimum": 0}, maxItems=100_000)
            | {"description": "how many manifests are open, then sealed, then open, and so on"},
            "chunks": atomic(short, maxItems=MAX_CHUNKS) | {"description": "names of ContentChunks, in order"},
            "sealed": atomic(sealed, maxItems=MAX_CHUNKS) | {"description": "the same of sealed ones"},
            "supersededAt": TIME | {"description": "since when another version is the current one"},
        },
        "digest",
        "sources",
        "requested",
        "revisions",
    )
    about = "The rendered manifests of an Application for the cluster that pulls it, the current version first."
    schema = kind_schema(None, None, "content", about=about)
    schema["properties"]["content"] = obj(
        {
            "cluster": short,
            "application": named | {"description": "the Application on the cluster: no other one may use it"},
            "hub": named | {"description": "the Application on the hub"},
            "entries": atomic(entry, maxItems=MAX_ENTRIES),
        },
        "cluster",
        "application",
        "hub",
        "entries",
    )
    columns = (
        column("Application", ".content.application.name"),
        column("Revision", ".content.entries[0].revisions[0]"),
        column("Digest", ".content.entries[0].digest", wide=True),
        AGE,
    )
    return definition(CONTENT, "applicationcontents", schema, columns=columns, status=False, namespaced=True)


def _chunk_crd() -> Obj:
    about = "A part of rendered manifests. Its name is the SHA-256 of its data."
    schema = kind_schema(None, None, "data", about=about)
    schema["properties"]["data"] = {"type": "string", "format": "byte", "maxLength": MAX_DATA}
    return definition(CHUNK, "contentchunks", schema, columns=(AGE,), status=False, namespaced=True)


def _target_crd() -> Obj:
    key = obj({"id": STR | {"maxLength": 64}, "publicKey": STR | {"maxLength": 64}}, "id", "publicKey")
    spec = obj(
        {
            "keys": atomic(key, maxItems=MAX_KEYS) | {"description": "X25519 keys; the hub seals for the first one"},
            "kubeVersion": STR | {"maxLength": 128},
            "apiVersions": atomic(STR | {"maxLength": 512}, maxItems=MAX_API_VERSIONS),
        },
        "keys",
        about="what content for this cluster is made for",
    )
    schema = kind_schema(spec, None, "spec", about="For which key and which versions a cluster's content is made.")
    columns = (column("Key", ".spec.keys[0].id"), column("Version", ".spec.kubeVersion"), AGE)
    return definition(TARGET, "contenttargets", schema, columns=columns, status=False, namespaced=True)
