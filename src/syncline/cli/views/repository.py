"""Formats declared repositories and clusters. Values without credentials in, text out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from syncline.cli.frame.output import table
from syncline.kube.objects import Obj

REPOSITORY_HEADERS = ("TYPE", "NAME", "REPO", "INSECURE", "OCI", "LFS", "CREDS", "STATUS", "MESSAGE", "PROJECT")
CLUSTER_HEADERS = ("SERVER", "NAME", "VERSION", "STATUS", "MESSAGE", "PROJECT", "REGISTERED", "JOINED")


@dataclass(frozen=True, slots=True)
class Declared:
    """One repository. ``credentials``: ``true``, ``inherited`` or ``false``; ``status``: in argocd's words."""

    url: str
    name: str = ""
    kind: str = "git"
    project: str = ""
    insecure: bool = False
    oci: bool = False
    lfs: bool = False
    credentials: str = "false"
    status: str = "Unknown"
    message: str = ""

    def to_obj(self) -> Obj:
        return {
            "repo": self.url,
            "name": self.name,
            "type": self.kind,
            "project": self.project,
            "insecure": self.insecure,
            "enableOCI": self.oci,
            "enableLfs": self.lfs,
            "credentials": self.credentials,
            "connectionState": {"status": self.status, "message": self.message},
        }


@dataclass(frozen=True, slots=True)
class Destination:
    """One cluster. ``registered``: Applications may name it; ``joined``: how far it has joined the hub (``pending``,
    ``denied``, ``accepted``, ``joined``, ``leaving``), empty if it is no cluster of the hub."""

    server: str
    name: str
    version: str = ""
    status: str = "Unknown"
    message: str = ""
    project: str = ""
    registered: bool = True
    joined: str = ""
    namespaces: tuple[str, ...] = ()
    """The only managed namespaces; empty: all."""

    def to_obj(self) -> Obj:
        return {
            "server": self.server,
            "name": self.name,
            "serverVersion": self.version,
            "namespaces": list(self.namespaces),
            "project": self.project,
            "type": "destination" if self.registered else "managed",
            "registered": self.registered,
            "joined": self.joined,
            "connectionState": {"status": self.status, "message": self.message},
        }


def repository_rows(found: Iterable[Declared]) -> str:
    """Return the table of ``repo list``."""
    rows = []
    for one in found:
        switches = [str(value).lower() for value in (one.insecure, one.oci, one.lfs)]
        row = (one.kind, one.name, one.url, *switches, one.credentials, one.status, one.message, one.project)
        rows.append([cell or " " for cell in row])
    return table(REPOSITORY_HEADERS, rows)


def cluster_rows(found: Iterable[Destination]) -> str:
    """Return the table of ``cluster list``; a restricted cluster shows its number of namespaces. REGISTERED is Argo
    CD's sense of a cluster, JOINED that of Open Cluster Management."""
    rows = []
    for one in found:
        server = f"{one.server} ({len(one.namespaces)} namespaces)" if one.namespaces else one.server
        joined = {"": "-", "joined": "yes"}.get(one.joined, one.joined)
        both = ("yes" if one.registered else "no", joined)
        row = (server, one.name, one.version, one.status, one.message, one.project, *both)
        rows.append([cell or " " for cell in row])
    return table(CLUSTER_HEADERS, rows)
