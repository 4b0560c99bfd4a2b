"""The kind ApplicationSet, with upstream's fields, types and rules (``applicationset_types.go``)."""

from __future__ import annotations

from syncline.kube.kinds.argoproj import GROUP, PART_OF, VERSION, application_spec_schema
from syncline.kube.kinds.structure import (
    BOOL,
    INT,
    INT_OR_STRING,
    JSON,
    SELECTOR,
    STR,
    TIME,
    Fields,
    definition,
    enum,
    items,
    mapping,
    obj,
    strings,
)
from syncline.kube.objects import GVK, Obj

APPLICATION_SET = GVK(GROUP, VERSION, "ApplicationSet")

_POLLED: Fields = {"requeueAfterSeconds": INT, "values": mapping(STR)}


def _template() -> Obj:
    metadata: Fields = {
        "annotations": mapping(STR),
        "finalizers": strings(),
        "labels": mapping(STR),
        "name": STR,
        "namespace": STR,
    }
    return obj({"metadata": obj(metadata), "spec": application_spec_schema()}, "metadata", "spec")


def _key_of(name: str) -> Obj:
    """A key of a Secret (``secretName``) or of a ConfigMap (``configMapName``)."""
    return obj({"key": STR, name: STR}, "key", name)


_SECRET_KEY = _key_of("secretName")
_BASIC = obj({"passwordRef": _SECRET_KEY, "username": STR}, "passwordRef", "username")
_BEARER = obj({"tokenRef": _SECRET_KEY}, "tokenRef")
_TLS: Fields = {"caRef": _key_of("configMapName"), "insecure": BOOL}


def _texts(*names: str) -> Fields:
    return dict.fromkeys(names, STR)


def _pull_request() -> Obj:
    labelled: Fields = {"api": STR, "labels": strings(), "tokenRef": _SECRET_KEY}
    gitlab: Fields = {**labelled, **_TLS, **_texts("project", "pullRequestState")}
    server: Fields = {**_texts("api", "project", "repo"), **_TLS, "basicAuth": _BASIC, "bearerToken": _BEARER}
    fields: Fields = {
        "azuredevops": obj(
            {**labelled, **_texts("organization", "project", "repo")}, "organization", "project", "repo"
        ),
        "bitbucket": obj(
            {**_texts("api", "owner", "repo"), "basicAuth": _BASIC, "bearerToken": _BEARER}, "owner", "repo"
        ),
        "bitbucketServer": obj(server, "api", "project", "repo"),
        "continueOnRepoNotFoundError": BOOL,
        "filters": items(obj(_texts("branchMatch", "targetBranchMatch", "titleMatch"))),
        "gitea": obj({**labelled, **_texts("owner", "repo"), "insecure": BOOL}, "api", "owner", "repo"),
        "github": obj({**labelled, **_texts("appSecretName", "owner", "repo")}, "owner", "repo"),
        "gitlab": obj(gitlab, "project"),
    }
    return obj({**fields, **_POLLED, "template": _template()})


def _scm_provider() -> Obj:
    common: Fields = {"allBranches": BOOL, "api": STR, "tokenRef": _SECRET_KEY}
    tag = obj(_texts("key", "value"), "key")
    flags = ("includeArchivedRepos", "includeSharedProjects", "includeSubgroups")
    gitlab: Fields = {**common, **_TLS, **_texts("group", "topic"), **dict.fromkeys(flags, BOOL)}
    server: Fields = {**_texts("api", "project"), **_TLS, "basicAuth": _BASIC, "bearerToken": _BEARER}
    azure: Fields = {**_texts("api", "organization", "teamProject"), "accessTokenRef": _SECRET_KEY, "allBranches": BOOL}
    bitbucket: Fields = {"allBranches": BOOL, "appPasswordRef": _SECRET_KEY, **_texts("owner", "user")}
    commits: Fields = {"allBranches": BOOL, **_texts("region", "role"), "tagFilters": items(tag)}
    matches: Fields = {
        **_texts("branchMatch", "labelMatch", "repositoryMatch"),
        "pathsDoNotExist": strings(),
        "pathsExist": strings(),
    }
    fields: Fields = {
        "awsCodeCommit": obj(commits),
        "azureDevOps": obj(azure, "accessTokenRef", "organization", "teamProject"),
        "bitbucket": obj(bitbucket, "appPasswordRef", "owner", "user"),
        "bitbucketServer": obj({**server, "allBranches": BOOL}, "api", "project"),
        "cloneProtocol": STR,
        "filters": items(obj(matches)),
        "gitea": obj({**common, "excludeArchivedRepos": BOOL, "insecure": BOOL, "owner": STR}, "api", "owner"),
        "github": obj(
            {**common, "excludeArchivedRepos": BOOL, **_texts("appSecretName", "organization")}, "organization"
        ),
        "gitlab": obj(gitlab, "group"),
    }
    return obj({**fields, **_POLLED, "template": _template()})


def _git() -> Obj:
    patterns = items(obj({"exclude": BOOL, "path": STR}, "path"))
    fields: Fields = {
        "directories": patterns,
        "files": patterns,
        **_texts("pathParamPrefix", "repoURL", "revision"),
        **_POLLED,
        "template": _template(),
    }
    return obj(fields, "repoURL", "revision")


def _plugin() -> Obj:
    fields: Fields = {
        "configMapRef": obj({"name": STR}, "name"),
        "input": obj({"parameters": mapping(JSON)}),
        **_POLLED,
        "template": _template(),
    }
    return obj(fields, "configMapRef")


def _decision_resource() -> Obj:
    fields: Fields = {"labelSelector": SELECTOR, **_texts("configMapRef", "name"), **_POLLED}
    return obj({**fields, "template": _template()}, "configMapRef")


def _leaves() -> Fields:
    """The generators that hold no other generators."""
    clusters: Fields = {"flatList": BOOL, "selector": SELECTOR, "template": _template(), "values": mapping(STR)}
    return {
        "clusterDecisionResource": _decision_resource(),
        "clusters": obj(clusters),
        "git": _git(),
        "list": obj({"elements": items(JSON), "elementsYaml": STR, "template": _template()}),
        "plugin": _plugin(),
        "pullRequest": _pull_request(),
        "scmProvider": _scm_provider(),
        "selector": SELECTOR,
    }


def _generator() -> Obj:
    """One element of ``spec.generators``. A matrix or merge inside another is any JSON, as upstream's."""
    child = obj({**_leaves(), "matrix": JSON, "merge": JSON})
    matrix = obj({"generators": items(child), "template": _template()}, "generators")
    merged: Fields = {"generators": items(child), "mergeKeys": strings(), "template": _template()}
    return obj({**_leaves(), "matrix": matrix, "merge": obj(merged, "generators", "mergeKeys")})


def _spec() -> Obj:
    expression = obj({"key": STR, "operator": STR, "values": strings()})
    step = obj({"matchExpressions": items(expression), "maxUpdate": INT_OR_STRING})
    rule = obj({"jqPathExpressions": strings(), "jsonPointers": strings(), "name": STR})
    policy = enum("create-only", "create-update", "create-delete", "sync")
    fields: Fields = {
        "applyNestedSelectors": BOOL,
        "generators": items(_generator()),
        "goTemplate": BOOL,
        "goTemplateOptions": strings(),
        "ignoreApplicationDifferences": items(rule),
        "preservedFields": obj({"annotations": strings(), "labels": strings()}),
        "strategy": obj({"deletionOrder": STR, "rollingSync": obj({"steps": items(step)}), "type": STR}),
        "syncPolicy": obj({"applicationsSync": policy, "preserveResourcesOnDeletion": BOOL}),
        "template": _template(),
        "templatePatch": STR,
    }
    return obj(fields, "generators", "template", about="what makes Applications, and the template of each")


def _status() -> Obj:
    health = obj({"lastTransitionTime": TIME, **_texts("message", "status")})
    application: Fields = {
        "lastTransitionTime": TIME,
        "targetRevisions": strings(),
        **_texts("application", "message", "status", "step"),
    }
    condition: Fields = {"lastTransitionTime": TIME, **_texts("message", "reason", "status", "type")}
    resource: Fields = {
        "health": health,
        "syncWave": INT,
        **dict.fromkeys(("hook", "requiresDeletionConfirmation", "requiresPruning"), BOOL),
        **_texts("group", "kind", "name", "namespace", "status", "version"),
    }
    required = ("application", "message", "status", "step", "targetRevisions")
    return obj(
        {
            "applicationStatus": items(obj(application, *required)),
            "conditions": items(obj(condition, "message", "reason", "status", "type")),
            "health": health,
            "resources": items(obj(resource)),
            "resourcesCount": INT,
        },
        about="what the controller generated, and how far a rollout is",
    )


def application_set_crd() -> Obj:
    """CustomResourceDefinition ``applicationsets.argoproj.io``; with a status subresource, as upstream."""
    schema = obj(
        {"apiVersion": STR, "kind": STR, "metadata": {"type": "object"}, "spec": _spec(), "status": _status()},
        "metadata",
        "spec",
        about="An ApplicationSet makes an Application of each row that its generators give.",
    )
    short = ("appset", "appsets")
    return definition(APPLICATION_SET, "applicationsets", schema, short=short, namespaced=True, labels=PART_OF)
