"""The verbs of ``syncline admin`` by name; each is imported when it is called."""

from __future__ import annotations

import click

from syncline.cli.frame.lazy import CONTEXT, LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "app": ("admin.group:app", "Print the manifest of an Application."),
    "cluster": ("admin.group:cluster", "Print the Secret of a cluster."),
    "export": ("admin.backup:export", "Write settings, projects, Applications and their Secrets to a file."),
    "import": ("admin.backup:import_", "Put back what export wrote."),
    "proj": ("admin.group:proj", "Print the manifest of a project."),
    "repo": ("admin.group:repo", "Print the Secret of a repository."),
    "settings": ("admin.group:settings", "Check settings, and try them on an object."),
}
SETTINGS = {
    "rbac": ("admin.group:rbac", "Try and check the rights of argocd-rbac-cm."),
    "resource-overrides": ("admin.group:overrides", "Try health, ignored differences and actions on an object."),
    "validate": ("admin.settings:validate", "Check the settings of argocd-cm."),
}
RBAC = {
    "can": ("admin.rbac:can", "Say whether a role, account or group may do something."),
    "validate": ("admin.rbac:validate", "Check the policies."),
}
OVERRIDES = {
    "health": ("admin.settings:health", "Say how healthy an object is."),
    "ignore-differences": ("admin.settings:ignored", "Show which fields of an object are not compared."),
    "list-actions": ("admin.settings:list_actions", "List the actions that an object offers."),
    "run-action": ("admin.settings:run", "Show what an action would make of an object."),
}


def _group(name: str, table: dict[str, tuple[str, str]], about: str, example: str) -> click.Command:
    return LazyGroup(
        name, table=table, context_settings=CONTEXT, help=f"{about}\n\n\b\nExample:  syncline admin {example}"
    )


def _spec(name: str, example: str) -> click.Command:
    table = {"generate-spec": (f"admin.specs:{name}_spec", "Print it; nothing is sent to a cluster.")}
    return _group(name, table, "Manifests to be kept in Git.", example)


admin = _group(
    "admin", VERBS, "What an administrator does with settings, projects and Applications.", "export -o f.yaml"
)
settings = _group("settings", SETTINGS, "Settings in argocd-cm.", "settings validate --argocd-cm-path argocd-cm.yaml")
overrides = _group(
    "resource-overrides",
    OVERRIDES,
    "What resource.customizations make of an object.",
    "settings resource-overrides health pod.yaml --argocd-cm-path argocd-cm.yaml",
)
rbac = _group(
    "rbac",
    RBAC,
    "What accounts, groups and roles may do through the server.",
    "settings rbac can role:dev sync app 'shop/*' --policy-file policy.csv",
)
app = _spec("app", "app generate-spec shop --repo https://github.com/org/shop --path deploy")
proj = _spec("proj", "proj generate-spec team --src 'https://github.com/team/*'")
repo = _spec("repo", "repo generate-spec https://github.com/org/shop")
cluster = _spec("cluster", "cluster generate-spec prod")
