"""The functions of Go templates: sprig's, and upstream's normalize, slugify, toYaml, fromYaml, fromYamlArray."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from syncline.appset.rendering.goforms import GoError, plain, yaml_list, yaml_map
from syncline.appset.rendering.slug import normalize, slugify
from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_text
from syncline.kube.gotemplate.sprig.dates.functions import clock_functions
from syncline.kube.gotemplate.sprig.library import IMPURE, SPRIG, sprig_functions
from syncline.kube.yaml.loading import dump


def _to_yaml(value: Any) -> str:
    made = dump(plain(value)).removesuffix("\n")
    check_text(len(made))
    return made


def _from_yaml(text: str) -> dict[str, Any]:
    try:
        return yaml_map(text)
    except GoError as error:
        raise FunctionError(str(error)) from None


def _from_yaml_array(text: str) -> list[Any]:
    try:
        return yaml_list(text)
    except GoError as error:
        raise FunctionError(str(error)) from None


OWN: Mapping[str, Function] = MappingProxyType(
    {
        "normalize": Function(normalize, (Kind.STRING,), result=Kind.STRING),
        "slugify": Function(slugify, (Kind.ANY,), variadic=True, result=Kind.STRING),
        "toYaml": Function(_to_yaml, (Kind.ANY,), result=Kind.STRING),
        "fromYaml": Function(_from_yaml, (Kind.STRING,), result=Kind.DICT),
        "fromYamlArray": Function(_from_yaml_array, (Kind.STRING,), result=Kind.LIST),
    }
)
FUNCTIONS: Mapping[str, Function] = MappingProxyType({**SPRIG, **OWN})
"""The functions whose result depends on their arguments alone."""
_CHANGING = re.compile(rf"\b(?:{'|'.join(sorted(IMPURE))})\b")
_WRITING = re.compile(r"\b(?:set|unset|merge|mergeOverwrite|mustMerge|mustMergeOverwrite)\b")


def changes(text: str) -> bool:
    """Whether a template may give something else in the next moment: it names a function of time or chance."""
    return "{{" in text and _CHANGING.search(text) is not None


def writes(text: str) -> bool:
    """Whether a template may change the parameters that it gets."""
    return "{{" in text and _WRITING.search(text) is not None


def changing_functions(now: datetime | None, seed: str) -> Mapping[str, Function]:
    """Return all functions, for one generation. Without ``now`` or ``seed`` those that need them fail."""
    clock = _without("the present moment") if now is None else lambda: now
    made = sprig_functions(clock, Entropy(seed))
    if not seed:
        absent = _without("a source of chance")
        drawing = IMPURE - clock_functions(clock).keys()
        made = {**made, **{name: replace(made[name], call=absent) for name in drawing}}
    return MappingProxyType({**made, **OWN})


def _without(what: str) -> Callable[..., Any]:
    def fail(*given: Any) -> Any:
        raise FunctionError(f"{what} is not known here")

    return fail
