"""Compile expressions of webhooks, admission policies and device selectors: their variables, types and errors.

The kinds that have expressions call it, and admission, which runs the programs. An :class:`Expressions` is for one
object and remembers its variables. Source: apiserver ``pkg/admission/plugin/cel`` (compile.go, composition.go) and
``pkg/cel/mutation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.kube.cel.checker import Declared
from syncline.kube.cel.literals import FoldingError
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import Program, compile_program, result_type
from syncline.kube.cel.types import BOOL, DYN, INT, NULL, STRING, TIMESTAMP, Type, declared_name


def _object(name: str, /, **fields: Type) -> Type:
    return ("object", Declared(f"kubernetes.{name}", dict(fields)))


_STRINGS: Type = ("list", STRING)
_LABELS: Type = ("map", STRING, STRING)
_KIND = _object("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE = _object("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
_USER = _object("UserInfo", username=STRING, uid=STRING, groups=_STRINGS, extra=("map", STRING, _STRINGS))
REQUEST = _object(
    "AdmissionRequest",
    kind=_KIND,
    resource=_RESOURCE,
    subResource=STRING,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_USER,
    dryRun=BOOL,
    options=DYN,
)
_METADATA = _object(
    "NamespaceMetadata",
    name=STRING,
    generateName=STRING,
    namespace=STRING,
    labels=_LABELS,
    annotations=_LABELS,
    UID=STRING,
    creationTimestamp=TIMESTAMP,
    deletionGracePeriodSeconds=INT,
    deletionTimestamp=TIMESTAMP,
    generation=INT,
    resourceVersion=STRING,
    finalizers=_STRINGS,
)
_CONDITION = _object(
    "NamespaceCondition", status=STRING, type=STRING, lastTransitionTime=TIMESTAMP, message=STRING, reason=STRING
)
NAMESPACE = _object(
    "Namespace",
    metadata=_METADATA,
    spec=_object("NamespaceSpec", finalizers=_STRINGS),
    status=_object("NamespaceStatus", conditions=("list", _CONDITION), phase=STRING),
)
_ALWAYS: dict[str, Type] = {"object": DYN, "oldObject": DYN, "namespaceObject": NAMESPACE, "request": REQUEST}
_AUTHORIZER: dict[str, Type] = {
    "authorizer": ("kubernetes.authorization.Authorizer",),
    "authorizer.requestResource": ("kubernetes.authorization.ResourceCheck",),
}


class _AnyField(dict[str, Type]):
    """The fields of an object without a schema: every name is valid."""

    def get(self, key: str, default: object = None) -> Type:
        return DYN


class _PatchFields(dict[str, Type]):
    """The fields of a JSON patch; an unknown one has no type, so that no value fits it."""

    def get(self, key: str, default: object = None) -> Type:
        return super().get(key, ("",))


OBJECT: Type = ("object", Declared("Object", _AnyField()))
JSON_PATCH: Type = (
    "object",
    Declared("JSONPatch", _PatchFields(op=STRING, path=STRING, **{"from": STRING, "value": DYN})),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The allowed result types (none: any), and whether patches are allowed."""

    types: tuple[Type, ...] = ()
    patches: bool = False


ANYTHING = Wanted()
CONDITION = Wanted((BOOL,))
MESSAGE = Wanted((STRING,))
AUDITED = Wanted((STRING, NULL))
APPLIED = Wanted((OBJECT,), patches=True)
JSON_PATCHES = Wanted((("list", JSON_PATCH),), patches=True)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an expression is refused. ``internal``: it is valid, but cannot be compiled to a program."""

    detail: str
    internal: bool = False


class _Messages:
    """Types such as ``Object.spec``, created on first use; one type per name."""

    def __init__(self) -> None:
        self._made: dict[str, Type] = {"Object": OBJECT, "JSONPatch": JSON_PATCH}

    def find(self, name: str) -> Type | None:
        if name.startswith("Object.") and name not in self._made:
            self._made[name] = ("object", Declared(name, _AnyField()))
        return self._made.get(name)


class Expressions:
    """The expressions of one object. ``composed``: variables can be declared and used; ``typed``: the known types of
    object and parameter, which otherwise have any type."""

    def __init__(
        self, *, params: bool = False, composed: bool = False, typed: Mapping[str, Type] | None = None
    ) -> None:
        self._typed = dict(typed or {})
        self._params: dict[str, Type] = {"params": DYN} if params else {}
        self._composed = Declared("kubernetes.variables") if composed else None

    def declare(self, name: str, text: str) -> Fault | None:
        """Compile a variable; an invalid one is still visible to later expressions, with any type."""
        kind, fault = self._compiled(text, ANYTHING, authorizer=True, composed=True)
        assert self._composed is not None
        self._composed.fields[name] = kind
        return fault

    def fault(self, text: str, wanted: Wanted, *, authorizer: bool = True, composed: bool = True) -> Fault | None:
        """Return what is wrong with ``text``. ``composed``: False for match conditions, which cannot use variables."""
        return self._compiled(text, wanted, authorizer=authorizer, composed=composed)[1]

    def program(self, text: str, wanted: Wanted, *, authorizer: bool = True, composed: bool = True) -> Program:
        """Return the program of ``text``. Raises CelError with the detail of :meth:`fault`."""
        _, fault = self._compiled(text, wanted, authorizer=authorizer, composed=composed)
        if fault is not None:
            raise CelError(fault.detail)
        return compile_program(text, self._names(authorizer, composed), _Messages().find if wanted.patches else None)

    def variable(self, name: str, text: str) -> Program:
        """Declare a variable and return its program. Raises CelError."""
        fault = self.declare(name, text)
        if fault is not None:
            raise CelError(fault.detail)
        return self.program(text, ANYTHING)

    def _names(self, authorizer: bool, composed: bool) -> dict[str, Type]:
        variables = _ALWAYS | self._params | (_AUTHORIZER if authorizer else {}) | self._typed
        if composed and self._composed is not None:
            variables["variables"] = ("object", self._composed)
        return variables

    def _compiled(self, text: str, wanted: Wanted, *, authorizer: bool, composed: bool) -> tuple[Type, Fault | None]:
        variables = self._names(authorizer, composed)
        try:
            kind = result_type(text, variables, _Messages().find if wanted.patches else None)
        except FoldingError as error:
            return DYN, Fault(f"program instantiation failed: {error}", internal=True)
        except CelError as error:
            return DYN, Fault(f"compilation failed: {error}")
        if not wanted.types or kind in wanted.types:
            return kind, None
        names = [declared_name(one) for one in wanted.types]
        listed = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
        return DYN, Fault(f"must evaluate to {listed} but got {declared_name(kind)}")


DEVICE = _object(
    "DRADevice",
    driver=STRING,
    attributes=("map", STRING, ("map", STRING, DYN)),
    capacity=("map", STRING, ("map", STRING, ("kubernetes.Quantity",))),
    allowMultipleAllocations=BOOL,
)


def device_fault(text: str) -> Fault | None:
    """Return what is wrong with a device selector. Source: ``dynamic-resource-allocation/cel``."""
    try:
        kind = result_type(text, {"device": DEVICE}, bindings=True)
    except FoldingError as error:
        return Fault(f"program instantiation failed: {error}", internal=True)
    except CelError as error:
        return Fault(f"compilation failed: {error}")
    if kind in (BOOL, DYN):
        return None
    return Fault(f"must evaluate to bool or the unknown type, not {declared_name(kind)}")
