"""Evaluate admission expressions here or in another process (``kube/transport/elsewhere.py``).

``enforcing``, ``changing`` and ``dispatching`` call it. The authorizer stays in this process: the other one stops at a
query without a known result, and restarts with the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from syncline.cluster.admission.dynamic.judging import Judging
from syncline.cluster.admission.dynamic.subject import Subject
from syncline.kube.cel.authorizing import Asked, AuthorizerValue, ResourceCheck, Ruling
from syncline.kube.transport.elsewhere import elsewhere, key_of
from syncline.kube.transport.outbound import Computation

AUTHORIZER, CHECK = "authorizer", "authorizer.requestResource"
Account = tuple[str, str] | None
Rulings = dict[tuple[Account, Asked], Ruling]
T = TypeVar("T")


class _Undecided(BaseException):
    """An authorizer query without a known result. No expression can catch it."""

    def __init__(self, account: Account, asked: Asked) -> None:
        super().__init__()
        self.question = account, asked


class _Question(tuple[Account, Asked]):
    """Result of an evaluation that must restart: the query it needs first."""

    __slots__ = ()


def evaluated(
    judging: Judging, subject: Subject, name: str, function: Callable[..., T], values: Mapping[str, Any], *given: Any
) -> T:
    """Return ``function(values, *given)``, a plain pure function; ``name`` identifies the call within its request."""
    mine: AuthorizerValue = values[AUTHORIZER]
    plain = {key: value for key, value in values.items() if key not in (AUTHORIZER, CHECK)}
    asked: Asked = values[CHECK].asked
    rulings: Rulings = {}
    while True:
        found = elsewhere(
            name,
            lambda: key_of(f"{name}/{len(rulings)}", plain),
            lambda: function(values, *given),
            lambda: Computation(_evaluate, (function, plain, asked, dict(rulings), given)),
        )
        if not isinstance(found, _Question):
            return found
        account, question = found
        decide = mine.decide if account is None else mine.account(*account)
        rulings[account, question] = decide(question)


def _evaluate(
    function: Callable[..., Any], plain: Mapping[str, Any], asked: Asked, rulings: Rulings, given: tuple[Any, ...]
) -> Any:
    """Evaluate in another process."""

    def of(account: Account) -> Callable[[Asked], Ruling]:
        def decide(question: Asked) -> Ruling:
            found = rulings.get((account, question))
            if found is None:
                raise _Undecided(account, question)
            return found

        return decide

    value = AuthorizerValue(of(None), lambda namespace, name: of((namespace, name)))
    try:
        return function({**plain, AUTHORIZER: value, CHECK: ResourceCheck(value.decide, asked)}, *given)
    except _Undecided as undecided:
        return _Question(undecided.question)
