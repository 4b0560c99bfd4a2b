"""Replays recorded API conversations with watches, tokens and impersonation against the API in process.

Built on ``replaying``: this adds what conversations about access and watches need. Time is virtual.
"""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

from syncline.cluster.access.authn import Authenticator
from syncline.cluster.access.pki import create_keys
from syncline.cluster.access.tokens import ServiceAccountTokens
from syncline.cluster.access.users import ADMIN, ANONYMOUS
from syncline.cluster.bootstrap import bootstrap_objects, install
from syncline.cluster.storage.store import Key
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError

from .replaying import _kubecheck, recordings
from .world import World

__all__ = ["conversation"]

ADMIN_TOKEN = "administrator"
STEP_S = 0.25


def _text(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode()


def _with_agent(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    named = any(name.lower() == "user-agent" for name, _ in headers)
    return headers if named else [("User-Agent", "kubecheck/1.0"), *headers]


class _Server:
    """What ``kubecheck`` calls; credentials are judged as over HTTP."""

    def __init__(self) -> None:
        self.world = World()
        backend = self.world.api.backend
        install(self.world.transport.send, bootstrap_objects())
        self.world.settle()
        self.world.store.compact(self.world.store.revision)

        def uid_of(resource: str, namespace: str, name: str) -> str:
            stored = self.world.store.get(Key(resource, namespace, name))
            return stored.uid if stored else ""

        keys = create_keys(self.world.clock.now())
        backend.tokens = ServiceAccountTokens(keys.service_accounts, uid_of, self.world.entropy)
        self._authenticator = Authenticator(
            authorize=backend.authorizer.decide,
            tokens=backend.tokens,
            fixed_tokens={ADMIN_TOKEN: ADMIN},
            without_credentials=ANONYMOUS,
        )
        backend.review_token = self._authenticator.token_user

    def answer(self, method: str, path: str, body: Any = None, headers: Any = None) -> Response:
        self.world.settle()
        path, _, text = path.partition("?")
        given: dict[str, list[str]] = {}
        for name, value in [("Authorization", f"Bearer {ADMIN_TOKEN}"), *_with_agent(headers or [])]:
            if name == "Authorization":
                given[name.lower()] = [value]
            else:
                given.setdefault(name.lower(), []).append(value)
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        raw = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        joined = {name: ", ".join(values) for name, values in given.items()}
        request = Request(method, urllib.parse.unquote(path), query, joined, raw)
        try:
            user = self._authenticator.authenticate(given, None, self.world.clock.now(), request)
        except ApiError as error:
            return Response.refused(error)
        return self.world.api.handle(request, user)

    def call(self, method: str, path: str, body: Any = None, headers: Any = None, timeout: float = 30) -> Any:
        answer = self.answer(method, path, body, headers)
        listed = {name.lower(): value.split("\n") for name, value in answer.headers.items()}
        listed.setdefault("content-type", ["application/json"])
        return answer.status, _text(answer.raw), listed


class _Watch:
    """``kubecheck``'s watch: events are taken when it is collected, time passes only as far as it must."""

    def __init__(self, server: _Server, path: str, headers: Any) -> None:
        self._server = server
        self._answer = server.answer("GET", path, None, headers)
        self._events: list[Any] = []

    def collect(self, count: int | None, seconds: float) -> tuple[int, list[Any]]:
        stream = self._answer.stream
        if stream is None:
            return self._answer.status, [_text(self._answer.raw)]
        left = seconds
        while True:
            self._server.world.settle()
            self._events += [json.loads(frame) for frame in stream.take()]
            if stream.ended or left <= 0 or (count is not None and len(self._events) >= count):
                break
            self._server.world.advance(STEP_S)
            left -= STEP_S
            stream.tick(self._server.world.clock.now())  # type: ignore[attr-defined]
        stream.close()
        return self._answer.status, self._events[:count]


def conversation(name: str) -> tuple[list[str], int]:
    """Steps of one recording that answer otherwise, and the number of steps compared."""
    folder = recordings()
    server = _Server()
    module = _kubecheck(folder, server.world)
    module.Watch = _Watch  # type: ignore[attr-defined]
    scenario = json.loads((folder / "recorded" / f"{name}.json").read_text())
    run = module.Run(server, scenario)
    run.prepare()
    wrong: list[str] = []
    compared = 0
    for step in scenario["steps"]:
        outcome = run.run(step)
        if outcome is None:
            continue
        compared += 1
        found = module.differences(step["expect"], outcome)
        if found:
            wrong.append(f"{name}/{step['id']}: " + "; ".join(found[:6]))
    return wrong, compared
