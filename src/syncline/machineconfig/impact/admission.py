"""Simulates an API server's admission of a changed object: pruning, defaults, validation; pure.

Uses the snapshot's CustomResourceDefinitions, else the built-in ones. The cluster's webhooks and policies are not
called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from syncline.control.cache import Snapshot
from syncline.kube.kinds.machineconfiguration import machine_config_crds
from syncline.kube.kinds.openshiftconfig import openshift_config_crds
from syncline.kube.objects import GVK, GroupKind, Obj, dig, gvk_of, name_of
from syncline.kube.schema.custom import structural
from syncline.kube.schema.custom.rules import check_rules
from syncline.kube.schema.model import Schema
from syncline.kube.text.names import dns_subdomain

DEFINITIONS = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
MAX_NAMED = 5
"""Fields that a refusal names."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The result. ``obj`` as it would be stored. ``refused``: the API's error, or empty. ``unknown``: dropped fields
    that the kind does not have."""

    obj: Obj
    refused: str = ""
    unknown: tuple[str, ...] = ()


class Admission:
    """Simulates admission; parses each definition once. ``definitions``: those of the rooms' own kinds."""

    def __init__(self, snapshot: Snapshot, definitions: Sequence[Obj] = ()) -> None:
        self._look = snapshot
        self._definitions = definitions
        self._schemas: Mapping[GVK, Schema] | None = None

    def admit(self, obj: Obj, live: Obj | None) -> Admitted:
        """Return the admission result. For built-in kinds only the name is validated."""
        if self._schemas is None:
            mine = self._definitions or (*machine_config_crds(), *openshift_config_crds())
            self._schemas = _schemas(mine) | _schemas(self._look.objects(DEFINITIONS))
        schema = self._schemas.get(gvk_of(obj))
        wrong = [f'metadata.name: Invalid value: "{name_of(obj)}": {text}' for text in dns_subdomain(name_of(obj))]
        if schema is None or wrong:
            return Admitted(obj, "; ".join(wrong))
        kept = structural.prune(obj, schema)
        unknown = [] if kept is obj else structural.unknown_fields(obj, schema)
        filled = structural.fill_defaults(kept, schema)
        causes = structural.validate(filled, schema, live)
        causes += check_rules(filled, live, schema, causes)
        message = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes[:MAX_NAMED]]
        return Admitted(filled, "; ".join(message), tuple(unknown))


def _schemas(definitions: Iterable[Obj]) -> dict[GVK, Schema]:
    found = {}
    for definition in definitions:
        spec = definition.get("spec") or {}
        for version in spec.get("versions") or ():
            raw = dig(version, "schema", "openAPIV3Schema")
            if raw:
                gvk = GVK(str(spec.get("group")), str(version.get("name")), str(dig(spec, "names", "kind")))
                found[gvk] = Schema.from_openapi(raw, resource=True)
    return found
