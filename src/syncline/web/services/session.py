"""SessionService: logs in, logs out, says who is logged in. Rules: Argo CD ``server/session/session.go``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syncline.base.secret import Secret
from syncline.kube.objects import Obj
from syncline.web.access import Access
from syncline.web.wire.calls import Call, Handler
from syncline.web.wire.status import Code, RpcError


@dataclass(frozen=True, slots=True)
class Sessions:
    """The service; see :meth:`handlers`."""

    access: Access

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        service = "/session.SessionService/"
        return {
            service + "Create": self.create,
            service + "Delete": self.delete,
            service + "GetUserInfo": self.user,
        }

    async def create(self, call: Call, asked: Obj) -> Obj:
        """Return the token of a new session."""
        if asked.get("token"):
            raise RpcError(
                Code.UNAUTHENTICATED,
                "token-based session creation no longer supported. please upgrade argocd cli to v0.7+",
            )
        if not asked.get("username") or not asked.get("password"):
            raise RpcError(Code.UNAUTHENTICATED, "no credentials supplied")
        token = await self.access.login(asked["username"], Secret(asked["password"]), call.remote)
        return {"token": token.reveal()}

    async def delete(self, call: Call, _: Obj) -> Obj:
        """End the session of the caller; a browser's cookie goes with the answer."""
        if call.caller.logged_in:
            await self.access.logout(call.caller)
        return {"token": ""}

    async def user(self, call: Call, _: Obj) -> Obj:
        """Return who the caller is."""
        caller = call.caller
        return {
            "loggedIn": caller.logged_in,
            "username": caller.subject,
            "iss": caller.issuer,
            "groups": list(caller.groups),
        }
