"""All functions of sprig 3.3.0 that templates of ApplicationSets may call: :data:`SPRIG`, :func:`sprig_functions`.

``env``, ``expandenv`` and ``getHostByName`` do not exist: they would show the controller's environment and network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.functions import Function
from syncline.kube.gotemplate.sprig.arithmetic import ARITHMETIC
from syncline.kube.gotemplate.sprig.casting import CASTING
from syncline.kube.gotemplate.sprig.chance import chance_functions
from syncline.kube.gotemplate.sprig.crypto.budget import Budget
from syncline.kube.gotemplate.sprig.crypto.certificates import CERTIFICATES, certificate_functions
from syncline.kube.gotemplate.sprig.crypto.passwords import PASSWORDS, password_functions
from syncline.kube.gotemplate.sprig.dates.functions import DATES, clock_functions
from syncline.kube.gotemplate.sprig.dicts import DICTS
from syncline.kube.gotemplate.sprig.lists import LISTS
from syncline.kube.gotemplate.sprig.reflection import REFLECTION
from syncline.kube.gotemplate.sprig.text.encoding import ENCODING
from syncline.kube.gotemplate.sprig.text.json import JSON
from syncline.kube.gotemplate.sprig.text.regex import REGEX
from syncline.kube.gotemplate.sprig.text.strings import STRINGS
from syncline.kube.gotemplate.sprig.text.urls import URLS
from syncline.kube.gotemplate.sprig.text.versions import VERSIONS

SPRIG: Final[Mapping[str, Function]] = {
    **ARITHMETIC,
    **CASTING,
    **CERTIFICATES,
    **DATES,
    **DICTS,
    **ENCODING,
    **JSON,
    **LISTS,
    **PASSWORDS,
    **REFLECTION,
    **REGEX,
    **STRINGS,
    **URLS,
    **VERSIONS,
}
"""The functions that need nothing but their arguments."""


def sprig_functions(now: Callable[[], datetime], entropy: Entropy) -> Mapping[str, Function]:
    """Return all functions. Make one map for each reconcile, with one instant and one entropy.

    ``now`` gives the present moment (aware); with one instant for a reconcile all rows see the same time. ``entropy``
    gives what is drawn: with a seed that is drawn once for a reconcile, evaluating the same rows twice in it gives the
    same values. Upstream draws again in each rendering, so an ApplicationSet that draws never comes to rest
    there; keep the seed as secret as the values. The map also holds the budget of keys and passwords.
    """
    budget = Budget()
    return {
        **SPRIG,
        **clock_functions(now),
        **chance_functions(entropy),
        **password_functions(entropy, budget),
        **certificate_functions(now, entropy, budget),
    }


IMPURE: Final[frozenset[str]] = frozenset(
    sprig_functions(lambda: datetime(1970, 1, 1, tzinfo=UTC), Entropy(0)).keys() - SPRIG.keys() - {"derivePassword"}
)
"""Functions whose result is not a function of their arguments (the present moment, chance): what a template that names
one of them renders must not be cached."""
