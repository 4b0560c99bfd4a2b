"""Renders Applications of a template: :class:`ApplicationTemplate`, parsed once and filled for each row.

Source of the rules: Argo CD ``RenderTemplateParams``, ``GenerateApplications`` and ``applyTemplatePatch``.
"""

from __future__ import annotations

from typing import Any

from syncline.appset.rendering.errors import RenderError
from syncline.appset.rendering.functions import changes, writes
from syncline.appset.rendering.goforms import GoError, copied, filled_raw, texts_of
from syncline.appset.rendering.kept import Rendered, RenderedApplications, digest_of, size_of
from syncline.appset.rendering.merging import filled
from syncline.appset.rendering.patching import patched
from syncline.appset.rendering.text import Params, Renderer
from syncline.appset.rendering.tree import Tree, entries, items, planted, planted_text, wrapped
from syncline.argo.application import RESOURCES_FINALIZER
from syncline.argo.gotypes import APPLICATION, Form, Type, UnfitError, conform
from syncline.kube.kinds.argoproj import APPLICATION as KIND
from syncline.kube.objects import Obj, dig

RAW_FIELD = "failed to deeply replace JSON field contents: "
"""Upstream's prefix for errors in fields of any JSON."""
MAX_SIZE = 1_500_000
"""Bytes of an Application as JSON; the API stores no larger one."""
META = ("name", "namespace", "labels", "annotations", "finalizers")
"""What a template may set of an Application's metadata."""


def merged_template(own: Any, base: Any) -> Any:
    """Return a generator's template over that of the set; see :func:`filled`."""
    return filled({} if own is None else own, {} if base is None else base)


class ApplicationTemplate:
    """The template of a generator element, merged over that of the set."""

    __slots__ = (
        "_digest",
        "_keep",
        "_kept",
        "_namespace",
        "_patch",
        "_plain",
        "_renderer",
        "_tree",
        "_writes",
    )

    def __init__(
        self, template: Any, renderer: Renderer, appset: Obj, element: Obj, kept: RenderedApplications | None = None
    ) -> None:
        """``appset`` gives namespace, ``syncPolicy`` and ``templatePatch``. ``element``: what makes the rows; with the
        same one, rows that are equal as JSON are equal. Raises :class:`RenderError` for a template that is no
        Application."""
        try:
            self._plain: Obj = conform(_allowed(template), APPLICATION)
            self._tree = _planted(self._plain, APPLICATION, renderer)
        except (GoError, UnfitError) as error:
            raise RenderError(f"spec.template is no Application: {error}") from None
        self._renderer = renderer
        self._namespace = str(dig(appset, "metadata", "namespace", default=""))
        self._keep = dig(appset, "spec", "syncPolicy", "preserveResourcesOnDeletion") is True
        self._patch = dig(appset, "spec", "templatePatch")
        texts = [*texts_of(self._plain), str(self._patch or "")]
        self._writes = renderer.go and any(map(writes, texts))
        self._kept = None if renderer.go and any(map(changes, texts)) else kept
        parts = [self._plain, self._patch, self._keep, self._namespace, renderer.go, renderer.options, element]
        self._digest = digest_of(parts) or b""

    def render(self, params: Params) -> Rendered:
        """Return the Application of a row; raises :class:`RenderError`."""
        found = digest_of(params) if self._kept is not None and self._digest else None
        if found is None or self._kept is None:
            return self._rendered(params)
        key = self._digest + found
        known = self._kept.get(key)
        if known is None:
            known = self._rendered(params)
            self._kept.put(key, known)
        return known

    def _rendered(self, params: Params) -> Rendered:
        params = copied(params) if self._writes else params
        made = self._filled(params)
        if isinstance(self._patch, str):
            made = patched(made, self._patch_text(params))
        metadata = {**made["metadata"], "namespace": self._namespace}
        app = {"apiVersion": KIND.api_version, "kind": KIND.kind, **made, "metadata": metadata}
        size = size_of(app)
        if size > MAX_SIZE:
            raise RenderError(f"the Application would have {size} bytes, at most {MAX_SIZE} can be stored")
        return Rendered(app, size)

    def _filled(self, params: Params) -> Obj:
        if not params:
            return self._plain
        made: Obj = dict(self._tree.fill(params) if isinstance(self._tree, Tree) else self._tree)
        if not self._keep and not made["metadata"].get("finalizers"):
            made["metadata"] = {**made["metadata"], "finalizers": [RESOURCES_FINALIZER]}
        return made

    def _patch_text(self, params: Params) -> str:
        try:
            return self._renderer.replace(self._patch, params)
        except RenderError as error:
            raise RenderError(f"error replacing values in templatePatch: {error}") from None


def _allowed(template: Any) -> Any:
    """Return what a template may have; what is no map is left for the error."""
    if not isinstance(template, dict):
        return template
    metadata = template.get("metadata")
    if isinstance(metadata, dict):
        metadata = {key: metadata.get(key) for key in META}
    return {"metadata": metadata, "spec": template.get("spec")}


def _planted(value: Any, kind: Type, renderer: Renderer) -> Any:
    """Parse the texts of a conforming value in Go's order; texts that come out empty are omitted where Go does."""
    match kind.form:
        case Form.TEXT:
            return planted_text(value, renderer)
        case Form.COUNT:
            return planted(value, renderer)
        case Form.ANY:
            return wrapped(planted(filled_raw(value), renderer), RAW_FIELD)
        case Form.LIST if kind.of is not None:
            return items([_planted(item, kind.of, renderer) for item in value or ()])
        case Form.MAP if kind.of is not None:
            pairs = value.items() if value else ()
            return entries([(planted_text(key, renderer), _planted(item, kind.of, renderer)) for key, item in pairs])
        case Form.STRUCT:
            return _planted_struct(value, kind, renderer)
    return value


def _planted_struct(value: Obj, kind: Type, renderer: Renderer) -> Any:
    parts = []
    optional = []
    for field in kind.fields:
        if field.key in value:
            parts.append((field.key, _planted(value[field.key], field.type, renderer)))
            if field.type.form is Form.TEXT and not field.always and isinstance(parts[-1][1], Tree):
                optional.append(field.key)
    grown = entries(parts)
    return _Sparse(grown, tuple(optional)) if optional else grown


class _Sparse(Tree):
    """A struct whose fields ``optional`` are omitted if they come out empty."""

    __slots__ = ("_optional", "_whole")

    def __init__(self, whole: Tree, optional: tuple[str, ...]) -> None:
        self._whole, self._optional = whole, optional

    def fill(self, params: Params) -> Any:
        made = self._whole.fill(params)
        for key in self._optional:
            if made[key] == "":
                del made[key]
        return made
