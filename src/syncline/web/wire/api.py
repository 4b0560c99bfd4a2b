"""The methods and messages of argocd's API, from a table that ``tools/build_argo_api.py`` makes.

:data:`METHODS` names each method as gRPC does (``/application.ApplicationService/List``); :func:`reader`,
:func:`writer` and :func:`printer` turn its messages into JSON values and back. Pure.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from syncline.kube.objects import Obj
from syncline.kube.protobuf.fields import Messages
from syncline.kube.protobuf.printing import Printer
from syncline.kube.protobuf.reading import Malformed, Reader
from syncline.kube.protobuf.writing import Encoded, Writer
from syncline.kube.schema import store

TYPES = "argoproj.v1alpha1"
"""The package of Application, AppProject and their like."""


@dataclass(frozen=True, slots=True)
class Route:
    """How REST calls a method: ``get``, ``/api/v1/applications/{name}``, and which field the body is (``*``: all)."""

    verb: str
    path: str
    body: str


@dataclass(frozen=True, slots=True)
class Method:
    """One method of one service; ``request`` and ``response`` name messages."""

    service: str
    name: str
    request: str
    response: str
    streams_in: bool
    streams_out: bool
    routes: tuple[Route, ...]

    @property
    def path(self) -> str:
        """The name as gRPC sends it."""
        return f"/{self.service}/{self.name}"


@cache
def _table() -> Mapping[str, Any]:
    packed = (resources.files("syncline.web.wire") / "data" / "argo-api.json.xz").read_bytes()
    loaded: dict[str, Any] = json.loads(lzma.decompress(packed))
    return loaded


@cache
def upstream_version() -> str:
    """Return the version of Argo CD whose definitions the table has, such as ``v3.6.0``."""
    return str(_table()["version"])


@cache
def methods() -> Mapping[str, Method]:
    """Return the methods by their path, services in alphabetical order, methods in that of upstream's files."""
    return {
        f"/{service}/{name}": Method(
            service, name, asked, answered, "<" in marks, ">" in marks, tuple(Route(*route) for route in routes)
        )
        for service, rows in sorted(_table()["services"].items())
        for name, (asked, answered, marks, routes) in rows.items()
    }


@cache
def messages() -> Messages:
    """Return the messages of the API, Kubernetes' among them."""
    return Messages(_table()["messages"], store.protobuf_table())


@cache
def writer() -> Writer:
    """Return the writer of the API's messages."""
    return Writer(messages())


@cache
def printer() -> Printer:
    """Return the printer of the API's messages."""
    return Printer(messages())


def read(message: str, raw: bytes) -> Obj:
    """Return the JSON value of a message. Raises ``Malformed``."""
    value = Reader(messages()).message(message, memoryview(raw), 0)
    if not isinstance(value, dict):
        raise Malformed(f"{message} is no object")
    return value


def encoded(message: str, value: Any) -> Encoded:
    """Return a value in both written forms, to be kept and to stand for it in answers. Raises ``WrongValue``."""
    return Encoded(writer().write(message, value), printer().json(message, value))
