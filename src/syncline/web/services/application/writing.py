"""Creates, changes and deletes Applications: :class:`Writing`.

Rules: Argo CD ``server/application/application.go``. Rights are asked in upstream's order, so that a refusal shows
nothing that its caller may not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from syncline.argo.requests.writing import cascading, created, is_same, updated
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.errors import AlreadyExists, ApiError
from syncline.kube.objects import Obj, name_of, namespace_of
from syncline.kube.patching.patches import json_merge_patch, json_patch
from syncline.web.access import Caller, require
from syncline.web.services.application.checking import Checked, named, refusals
from syncline.web.state import APPLICATIONS
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError

UPDATED = "updated application spec"


@dataclass(frozen=True, slots=True)
class Writing:
    """The methods that write; see :meth:`handlers`."""

    checked: Checked

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the methods."""
        service = "/application.ApplicationService/"
        return {
            service + "Create": self.create,
            service + "Update": self.update,
            service + "UpdateSpec": self.update_spec,
            service + "Patch": self.patch,
            service + "Delete": self.delete,
        }

    async def create(self, call: Call, asked: Obj) -> Obj:
        """Create an Application; one that is there already must be the same, or may be changed with ``upsert``."""
        app = self._given(asked, "creating application: application")
        self._require(call.caller, "create", app)
        self.checked.project(app)
        await self.checked.check(call.caller, app, validate=asked.get("validate") is not False)
        state = self.checked.parts.state
        if not state.permits(namespace_of(app)):
            raise RpcError(Code.PERMISSION_DENIED, f"namespace '{namespace_of(app)}' is not permitted")
        body = created(app)
        try:
            made = await state.write(APPLICATIONS, client.create, body)
        except AlreadyExists:
            return await self._created_again(call, body, upsert=bool(asked.get("upsert")))
        await self.checked.record(call.caller, made, "ResourceCreated", "created application")
        return made

    async def _created_again(self, call: Call, body: Obj, *, upsert: bool) -> Obj:
        known = await self.checked.parts.state.fresh(APPLICATIONS, namespace_of(body), name_of(body))
        if is_same(known, body):
            return known
        if not upsert:
            text = "existing application spec is different, use upsert flag to force update"
            raise RpcError(Code.INVALID_ARGUMENT, text)
        self._require(call.caller, "update", body)
        return await self._write(call.caller, known, body, merge=True)

    async def update(self, call: Call, asked: Obj) -> Obj:
        """Give an Application the spec, labels, annotations and finalizers of the request."""
        app = self._given(asked, "updating application: application")
        self._require(call.caller, "update", app)
        return await self._update(call.caller, app, asked, validate=asked.get("validate") is not False)

    async def update_spec(self, call: Call, asked: Obj) -> Obj:
        """Give an Application the spec of the request, and return it as stored."""
        spec = asked.get("spec")
        if not isinstance(spec, dict):
            raise RpcError(Code.UNKNOWN, "error updating application spec: spec is nil in request")
        known = await self._find(call.caller, "update", asked)
        wanted = {**known, "spec": spec}
        validate = asked.get("validate") is not False
        found = await self._update(call.caller, wanted, asked, validate=validate)
        spec_: Obj = found["spec"]
        return spec_

    async def patch(self, call: Call, asked: Obj) -> Obj:
        """Change an Application by a JSON patch or a merge patch."""
        known = await self._find(call.caller, "get", asked)
        self._require(call.caller, "update", known)
        wanted = patched(known, str(asked.get("patchType") or "json"), str(asked.get("patch") or ""))
        return await self._update(call.caller, wanted, asked, validate=True)

    async def delete(self, call: Call, asked: Obj) -> Obj:
        """Delete an Application, with its resources unless ``cascade`` is false."""
        app = await self._find(call.caller, "get", asked)
        self.checked.project(app)
        self._require(call.caller, "delete", app)
        with refusals():
            policy = str(asked.get("propagationPolicy") or "")
            finalizers = cascading(app, cascade=asked.get("cascade") is not False, policy=policy)
        state, where = self.checked.parts.state, (namespace_of(app), name_of(app))
        if finalizers is not None:
            body = {"metadata": {"finalizers": finalizers or None}}
            await state.send(APPLICATIONS, client.patch, *where, PatchType.MERGE, body)
        await state.send(APPLICATIONS, client.delete, *where)
        await self.checked.record(call.caller, app, "ResourceDeleted", "deleted application")
        return {}

    def _given(self, asked: Obj, what: str) -> Obj:
        app = asked.get("application")
        if not isinstance(app, dict):
            raise RpcError(Code.UNKNOWN, f"error {what} is nil in request")
        return named(app, self.checked.parts.state.namespace)

    def _require(self, caller: Caller, action: str, app: Obj) -> None:
        require(self.checked.parts.access, caller, "applications", action, self.checked.finder.right_of(app))

    async def _find(self, caller: Caller, action: str, asked: Obj) -> Obj:
        where = asked.get("appNamespace", ""), asked.get("name", "")
        return await self.checked.finder.permitted(caller, action, asked.get("project", ""), *where)

    async def _update(self, caller: Caller, wanted: Obj, asked: Obj, *, validate: bool) -> Obj:
        where = namespace_of(wanted), name_of(wanted)
        known = await self.checked.finder.permitted(caller, "update", asked.get("project", ""), *where)
        self.checked.project(known)
        await self.checked.check(caller, wanted, validate=validate)
        return await self._write(caller, known, wanted)

    async def _write(self, caller: Caller, known: Obj, wanted: Obj, *, merge: bool = False) -> Obj:
        found = await self.checked.change(known, lambda app: updated(app, wanted, merge=merge))
        await self.checked.record(caller, found, "ResourceUpdated", UPDATED)
        return found


def patched(app: Obj, kind: str, text: str) -> Obj:
    """Return an Application after a patch; it keeps its name. Raises :class:`RpcError`, in upstream's words."""
    if kind not in ("json", "merge"):
        raise RpcError(Code.INVALID_ARGUMENT, f"Patch type '{kind}' is not supported")
    try:
        patch: Any = msgspec.json.decode(text)
        found = json_patch(app, patch) if kind == "json" else json_merge_patch(app, patch)
    except (msgspec.DecodeError, RecursionError) as error:
        what = "decoding json patch" if kind == "json" else "calculating merge patch"
        raise RpcError(Code.UNKNOWN, f"error {what}: {error}") from None
    except ApiError as error:
        raise RpcError(Code.UNKNOWN, f"error applying patch: {error.message}") from None
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict):
        raise RpcError(Code.UNKNOWN, "error unmarshaling patched app: it is no Application any more")
    if not isinstance(found.get("spec"), dict):
        raise RpcError(Code.UNKNOWN, "error unmarshaling patched app: spec must be an object")
    return found
