"""Call the API in process, without HTTP: the transport of controllers and rehearsals.

:class:`DirectTransport` implements ``kube.client.Transport``. Request bodies are objects; responses are decoded only on
demand. Objects in responses are the store's own, so callers must not change them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from syncline.cluster.access.impersonation import Acting, Headers
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.api import Api
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError

IMPERSONATE = "impersonate-user"
Impersonate: TypeAlias = Callable[[UserInfo, Headers, Request], Acting]


class DirectTransport:
    """Sends every request as one user, or as the user that its impersonation headers name.

    ``waits``: responses may be pending, for callers that can make outbound calls. ``judged``: False skips webhooks and
    policies.
    """

    def __init__(
        self,
        api: Api,
        user: UserInfo = ADMIN,
        acting: Impersonate | None = None,
        *,
        waits: bool = False,
        judged: bool = True,
    ) -> None:
        self._answer = (api.begin if waits else api.handle) if judged else api.unjudged
        self._user = user
        self._acting = acting

    def send(self, request: Request) -> Response:
        user = self._user
        if IMPERSONATE in request.headers and self._acting is not None:
            try:
                headers = {name: (value,) for name, value in request.headers.items()}
                user = self._acting(user, headers, request).user
            except ApiError as error:
                return Response.refused(error)
        return self._answer(request, user)
