"""The Secrets that declare repositories, as records: :class:`Shelf`, one for reading and one for pushing.

Rules: Argo CD ``util/db/repository.go`` and ``repository_secrets.go``.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncline.argo.stores.records import (
    CREDENTIAL,
    REPOSITORY,
    Form,
    RecordError,
    declared_as,
    has_credentials,
    longest_prefix,
    with_credentials,
)
from syncline.argo.stores.secrets import is_managed, of_type, repository_secret_name, secret_object, unlabelled
from syncline.kube import client
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, name_of, resource_version
from syncline.web.state import SECRET, State
from syncline.web.wire.status import Code, RpcError

WRONG = {"status": "Failed", "message": "Configuration error - please check the server logs"}
"""How the connection of a repository is whose Secret cannot be read."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """Repositories of one purpose; the words are upstream's."""

    state: State
    resource: str
    """In rights."""
    kinds: tuple[str, str]
    """Types of the Secrets of repositories, and of credentials for many."""
    prefixes: tuple[str, str]
    """With which the names of these Secrets begin."""
    word: str = ""
    """Before ``repo`` in messages."""

    def repositories(self) -> list[tuple[Obj, Obj]]:
        """Return Secrets and records, in the order of names; one that cannot be read says so in its connection."""
        return [(secret, _lenient(secret)) for secret in self._secrets(0)]

    def credentials(self) -> list[tuple[Obj, Obj]]:
        """Return Secrets and records of credentials for many repositories. Raises :class:`RpcError`."""
        try:
            return [(secret, CREDENTIAL.read(secret)) for secret in self._secrets(1)]
        except RecordError as error:
            raise RpcError(Code.UNKNOWN, str(error)) from None

    def _secrets(self, which: int) -> list[Obj]:
        found = self.state.cache.objects(SECRET, self.state.namespace)
        return [one for one in found if of_type(one, self.kinds[which])]

    def shared(self, url: str) -> Obj | None:
        """Return the credentials for many repositories that fit this one best."""
        return longest_prefix([record for _, record in self.credentials()], url)

    def completed(self, record: Obj) -> Obj:
        """Return a record with the credentials that it shares, if it has none of its own."""
        shared = None if has_credentials(record) else self.shared(record["repo"])
        return record if shared is None else with_credentials(record, shared) | {"inheritedCreds": True}

    def find(self, url: str, project: str) -> Obj:
        """Return the repository of a project, else that of all projects, else an undeclared one, with credentials."""
        pairs = ((record, record) for _, record in self.repositories())
        return self.completed(declared_as(pairs, url, project, fallback=True) or {"repo": url})

    def exists(self, url: str, project: str) -> bool:
        """Return whether a repository is declared for a project or for all."""
        return declared_as(self.repositories(), url, project, fallback=True) is not None

    def secret_of(self, url: str, project: str) -> Obj | None:
        """Return the Secret of a repository of exactly this project."""
        found: Obj | None = declared_as(self.repositories(), url, project, fallback=False)
        return found

    async def create(self, record: Obj) -> bool:
        """Declare a repository; False: there is one. Raises :class:`RpcError` and ``ApiError``."""
        if self.secret_of(record["repo"], record.get("project", "")) is not None:
            return False
        return await self._created(REPOSITORY, record, 0, record.get("project", ""))

    async def create_credentials(self, record: Obj) -> bool:
        """Declare credentials for many repositories; False: there are some."""
        return await self._created(CREDENTIAL, record, 1, "")

    async def _created(self, form: Form, record: Obj, which: int, project: str) -> bool:
        name = repository_secret_name(record[form.address], project, self.prefixes[which])
        kind = self.kinds[which]
        secret = form.written(record, secret_object(kind, self.state.namespace, name, {}), kind)
        try:
            await self.state.write(SECRET, client.create, secret)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            found = self.state.secret(name)
            if found is None or not of_type(found, kind):
                label = "argocd.argoproj.io/secret-type"
                message = (
                    f'secret "{name}" doesn\'t have the proper "{label}" label: please fix the secret or delete it'
                )
                raise RpcError(Code.INVALID_ARGUMENT, message) from None
            return False
        return True

    async def update(self, record: Obj) -> None:
        """Change a declared repository. Raises :class:`RpcError` if it is not declared."""
        secret = self.secret_of(record["repo"], record.get("project", ""))
        if secret is None:
            raise RpcError(Code.NOT_FOUND, f"repo '{record['repo']}' not found")
        await self.state.write(SECRET, client.update, REPOSITORY.written(record, secret, self.kinds[0]))

    async def update_credentials(self, record: Obj) -> None:
        """Change credentials, those with the longest fitting URL. Raises :class:`RpcError` if none fit."""
        secret = self._fitting(record["url"])
        await self.state.write(SECRET, client.update, CREDENTIAL.written(record, secret, self.kinds[1]))

    def _fitting(self, url: str) -> Obj:
        pairs = self.credentials()
        fitting = longest_prefix([record for _, record in pairs], url)
        found = next((secret for secret, record in pairs if record is fitting), None)
        if found is None:
            raise RpcError(Code.NOT_FOUND, f"{self.word}repository credentials '{url}' not found")
        return found

    async def delete(self, url: str, project: str) -> None:
        """Take a repository back. Raises :class:`RpcError` if it is not declared."""
        secret = self.secret_of(url, project)
        if secret is None:
            raise RpcError(Code.NOT_FOUND, f"repo '{url}' not found")
        await removed(self.state, secret)

    async def delete_credentials(self, url: str) -> None:
        """Take credentials back, those with the longest fitting URL."""
        await removed(self.state, self._fitting(url))


def reading_shelf(state: State) -> Shelf:
    """Return the repositories that Applications read."""
    return Shelf(state, "repositories", ("repository", "repo-creds"), ("repo", "creds"))


def pushing_shelf(state: State) -> Shelf:
    """Return the repositories to which hydrated manifests are pushed."""
    kinds, prefixes = ("repository-write", "repo-write-creds"), ("repo-write", "creds-write")
    return Shelf(state, "write-repositories", kinds, prefixes, "write ")


async def removed(state: State, secret: Obj) -> None:
    """Delete a Secret that Argo CD made; one of people only loses its label."""
    if is_managed(secret):
        version = resource_version(secret)
        await state.write(SECRET, client.delete, state.namespace, name_of(secret), resource_version=version)
    else:
        await state.write(SECRET, client.update, unlabelled(secret))


def _lenient(secret: Obj) -> Obj:
    try:
        return REPOSITORY.read(secret)
    except RecordError as error:
        return error.record | {"connectionState": WRONG}
