"""SettingsService: what pages and programs must know. Rules: Argo CD ``server/settings/settings.go``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from syncline.argo.access.accounts import AccountsError, Capability, read_accounts
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import load
from syncline.web.state import State
from syncline.web.wire.calls import Call, Handler

INSTANCE_LABEL = "app.kubernetes.io/instance"
PASSWORD_PATTERN = "^.{8,32}$"
"""Upstream's default."""
BANNER = {
    "uiBannerContent": "ui.bannercontent",
    "uiBannerURL": "ui.bannerurl",
    "uiBannerPosition": "ui.bannerposition",
}
BINARIES = "help.download."
PROVIDER = ("name", "issuer", "clientID", "cliClientID")


@dataclass(frozen=True, slots=True)
class Settings:
    """The service; see :meth:`handlers`."""

    state: State

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        return {"/cluster.SettingsService/Get": self.get}

    async def get(self, call: Call, _: Obj) -> Obj:
        """Return the settings; callers without a login see only what a login page needs."""
        data = self.state.data("argocd-cm")
        shown: Obj = {
            "url": data.get("url", ""),
            "additionalUrls": _texts(data.get("additionalUrls", "")),
            "appLabelKey": data.get("application.instanceLabelKey") or INSTANCE_LABEL,
            "statusBadgeEnabled": data.get("statusbadge.enabled") == "true",
            "statusBadgeRootUrl": data.get("statusbadge.url", ""),
            "googleAnalytics": {
                "trackingID": data.get("ga.trackingid", ""),
                "anonymizeUsers": data.get("ga.anonymizeusers") != "false",
            },
            "kustomizeOptions": {"buildOptions": data.get("kustomize.buildOptions", "")},
            "help": _help(data),
            "userLoginsDisabled": not self._logins(),
            "kustomizeVersions": sorted(
                key.removeprefix("kustomize.path.") for key in data if key.startswith("kustomize.path.")
            ),
            "uiCssURL": data.get("ui.cssurl", ""),
            "uiLoginButtonText": data.get("ui.loginButtonText", ""),
            "trackingMethod": data.get("application.resourceTrackingMethod") or "annotation",
            "installationID": data.get("installationID", ""),
            "execEnabled": data.get("exec.enabled") == "true",
            "appsInAnyNamespaceEnabled": bool(self.state.namespaces),
            "impersonationEnabled": data.get("application.sync.impersonation.enabled") == "true",
        }
        provider = _provider(data.get("oidc.config", ""))
        if provider:
            shown["oidcConfig"] = provider
        if call.caller.logged_in:
            shown |= {name: data.get(key, "") for name, key in BANNER.items()}
            shown["uiBannerPermanent"] = data.get("ui.bannerpermanent") == "true"
            shown["controllerNamespace"] = self.state.namespace
            shown["passwordPattern"] = data.get("passwordPattern") or PASSWORD_PATTERN
        return shown

    def _logins(self) -> bool:
        """Return whether any local account may log in."""
        try:
            accounts = read_accounts({"data": dict(self.state.data("argocd-cm"))}, self.state.secret("argocd-secret"))
        except AccountsError:
            return False
        return any(one.enabled and Capability.LOGIN in one.capabilities for one in accounts.by_name.values())


def _help(data: Mapping[str, str]) -> Obj:
    chat = data.get("help.chatUrl", "")
    binaries = {key.removeprefix(BINARIES): url for key, url in data.items() if key.startswith(BINARIES)}
    return {
        "chatUrl": chat,
        "chatText": data.get("help.chatText") or ("Chat now!" if chat else ""),
        "binaryUrls": binaries,
    }


def _texts(text: str) -> list[str]:
    found = _yaml(text)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _provider(text: str) -> Obj:
    """Return what a program needs to log in by a provider; secrets of the provider are not among it."""
    found = _yaml(text)
    if not isinstance(found, dict) or not found.get("issuer"):
        return {}
    shown: Obj = {key: str(found[key]) for key in PROVIDER if found.get(key)}
    scopes = found.get("requestedScopes")
    shown["scopes"] = [str(one) for one in scopes] if isinstance(scopes, list) else []
    shown["enablePKCEAuthentication"] = found.get("enablePKCEAuthentication") is True
    return shown


def _yaml(text: str) -> Any:
    try:
        return load(text, file="argocd-cm") if text else None
    except ValueError:
        return None
