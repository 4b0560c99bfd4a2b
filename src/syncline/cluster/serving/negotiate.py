"""Choose the response format that a request's Accept header allows.

``api`` calls :func:`accepted_of`, which returns an :class:`Accepted`: JSON or YAML, and the object, a table or metadata
only. Rules of Kubernetes' ``negotiation`` package: by quality, the first clause that can be served wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from syncline.base.remember import remember
from syncline.kube.errors import NotAcceptable

_STREAMED = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
FORMS = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


class Form(StrEnum):
    JSON = "application/json"
    YAML = "application/yaml"


class Shape(StrEnum):
    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


@dataclass(frozen=True, slots=True)
class Accepted:
    form: Form = Form.JSON
    shape: Shape = Shape.OBJECT
    version: str = "v1"
    """Version of ``meta.k8s.io``, for tables and metadata."""

    @property
    def plain(self) -> bool:
        """Return True if stored bytes can be sent unchanged."""
        return self.form is Form.JSON and self.shape is Shape.OBJECT


JSON = Accepted()


@dataclass(frozen=True, slots=True)
class _Clause:
    media: str
    parameters: dict[str, str]
    quality: float


def _clauses(header: str) -> list[_Clause]:
    clauses = []
    for text in header.split(","):
        media, *rest = (part.strip() for part in text.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        clauses.append(_Clause(media.lower(), parameters, quality))
    return sorted(clauses, key=lambda clause: -clause.quality)


_MEDIA = {"application/json": Form.JSON, "*/*": Form.JSON, "application/*": Form.JSON, "application/yaml": Form.YAML}
_ROUTED = frozenset({"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "*/*"})
"""Media types that the router of built-in resources accepts before negotiation."""


@remember(256)
def accepted_of(header: str, *, streams: bool = False, tables: bool = True, custom: bool = False) -> Accepted:
    """Parse an Accept header. ``streams``: the path supports watch. ``tables``: the resource has table rows. Raises
    NotAcceptable (406) in Kubernetes' words."""
    if not header or header == "application/json":
        return JSON
    clauses = _clauses(header)
    if not custom and not any(clause.media in _ROUTED for clause in clauses):
        forms = f"{FORMS}, {_STREAMED}" if streams else FORMS
        raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {forms}", details={})
    for clause in clauses:
        form = _MEDIA.get(clause.media)
        shape = _shape(clause.parameters)
        if form is not None and shape is not None and (tables or shape is not Shape.TABLE):
            return Accepted(form, shape, clause.parameters.get("v", "v1"))
    raise NotAcceptable(f"only the following media types are accepted: {FORMS}")


@remember(256)
def form_of_refusals(header: str) -> Form:
    """Return the form for errors and other non-objects: never a table, JSON if the header accepts no known type."""
    plain = (_MEDIA.get(clause.media) for clause in _clauses(header) if not clause.parameters.keys() & {"as", "g", "v"})
    return next((form for form in plain if form is not None), Form.JSON)


def _shape(parameters: dict[str, str]) -> Shape | None:
    asked = parameters.get("as")
    if asked is None:
        return Shape.OBJECT
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in ("v1", "v1beta1"):
        return None
    try:
        return Shape(asked)
    except ValueError:
        return None


@remember(64)
def discovery_of(header: str) -> str:
    """Return the requested version of aggregated discovery (``v2``, ``v2beta1``), or "" for the unaggregated form."""
    for clause in _clauses(header):
        if clause.media not in _MEDIA:
            continue
        parameters = clause.parameters
        if "as" not in parameters:
            return ""
        if parameters.get("g") == "apidiscovery.k8s.io" and parameters["as"] == "APIGroupDiscoveryList":
            version = parameters.get("v", "")
            if version in ("v2", "v2beta1"):
                return version
    return ""
