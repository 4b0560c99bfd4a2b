"""The API in process: what controllers and rehearsals use instead of HTTP.

Implements ``kube.client.Transport``. Bodies go in as objects, answers are decoded only when somebody looks. Objects in
answers are the store's own: callers never change them.
"""

from __future__ import annotations

from syncline.cluster.api import Api
from syncline.cluster.users import ADMIN, UserInfo
from syncline.kube.client import Request, Response

__all__ = ["DirectTransport"]


class DirectTransport:
    """Sends every request as one user."""

    def __init__(self, api: Api, user: UserInfo = ADMIN) -> None:
        self._api = api
        self._user = user

    def send(self, request: Request) -> Response:
        return self._api.handle(request, self._user)
