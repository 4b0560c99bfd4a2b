"""The fields of a Pattern that values files of a pattern give, as the chart ``pattern-install`` takes them; pure."""

from __future__ import annotations

from typing import Any, Final

from syncline.kube.objects import Obj, dig

_SOURCES: Final = (
    "helmRepoUrl",
    "clusterGroupChartVersion",
    "clusterGroupGitRepoUrl",
    "clusterGroupChartGitRevision",
)


def spec_given(values: Any) -> Obj:
    """Return what values say of a Pattern's ``spec``, without its repository; validatedpatterns/common
    ``operator-install/templates/pattern.yaml``."""
    main, shared = dig(values, "main") or {}, dig(values, "global") or {}
    made: Obj = {}
    if group := str(main.get("clusterGroupName") or dig(values, "clusterGroup", "name") or ""):
        made["clusterGroupName"] = group
    given = main.get("multiSourceConfig") or {}
    sources: Obj = {key: str(given[key]) for key in _SOURCES if given.get(key)}
    if isinstance(given.get("enabled"), bool):
        sources["enabled"] = given["enabled"]
    if sources:
        made["multiSourceConfig"] = sources
    if main.get("experimentalCapabilities"):
        made["experimentalCapabilities"] = str(main["experimentalCapabilities"])
    if main.get("extraParameters"):
        pairs = ((one.get("name"), one.get("value")) for one in main["extraParameters"])
        made["extraParameters"] = [{"name": str(name), "value": str(value)} for name, value in pairs]
    if shared.get("extraValueFiles"):
        made["extraValueFiles"] = [str(one) for one in shared["extraValueFiles"]]
    return made
