"""Commands and flags of argocd that Syncline lacks, each with a sentence on what to use instead.

Data and look-up only; imported for an unknown command or flag. ``docs/compatibility.md`` lists all of it in the table
of argocd's commands; a test compares both.
"""

from __future__ import annotations

from collections.abc import Sequence

NO_SERVER = "there is no argocd-server: commands talk to the API of the cluster"
AZURE = "Azure identities are not supported; give --username and --password-stdin, or --bearer-token"
ACCOUNTS = (
    "there are no accounts: access is Kubernetes RBAC; make a ServiceAccount or a user, bind roles to it, and see "
    "`kubectl auth whoami` and `kubectl create token`"
)
PROGRAM = "programs that give credentials are not run for other clusters; store a token or a client certificate"
ROBOT = "no service account is made in the other cluster; give a context that uses the one which syncs need"
JQ = "expressions are bounded by steps, the same on every machine; leave it out"
DRY_RUNS = "dry runs are asked one after the other; leave it out"

COMMANDS: dict[str, str] = {
    "account": ACCOUNTS,
    "account can-i": "access is Kubernetes RBAC; ask `kubectl auth can-i VERB applications.argoproj.io -n argocd`",
    "account bcrypt": "there are no passwords of accounts; access is Kubernetes RBAC",
    "admin app diff-reconcile-results": "nothing replays reconciliations; `syncline plan APP` says what a sync does",
    "admin app get-reconcile-results": "nothing replays reconciliations; `syncline plan APP` says what a sync does",
    "admin cluster kubeconfig": "credentials of Secrets are not printed; take them from `kubectl get secret -o yaml`",
    "admin cluster namespaces": "name the namespaces of a cluster: `syncline cluster set NAME --namespace NS`",
    "admin cluster shards": "Applications are shared by Leases; `kubectl get leases -n argocd` shows who holds which",
    "admin cluster stats": "`syncline cluster list` shows clusters, the metrics of the controllers count Applications",
    "admin dashboard": "there is no web interface; `syncline app list` and `syncline explain APP` say what is there",
    "admin initial-password": "there are no accounts with passwords; access is Kubernetes RBAC",
    "admin notifications": "notifications are not served; watch Events, metrics or traces (`--otlp-endpoint`)",
    "admin proj generate-allow-list": "write the lists: `syncline proj allow-cluster-resource PROJECT GROUP KIND`",
    "admin proj update-role-policy": "`syncline proj role add-policy` and `remove-policy` change one project each",
    "admin redis-initial-password": "there is no Redis; state is in the cluster's API alone",
    "admin settings resource-overrides ignore-resource-updates": (
        "every change of an object costs one pass of its Application, so there are no updates to ignore"
    ),
    "cert": (
        "known hosts and authorities are ConfigMaps: `kubectl edit configmap argocd-ssh-known-hosts-cm` and "
        "`argocd-tls-certs-cm`, in namespace argocd"
    ),
    "configure": "there is no configuration of the command line; give --yes where a command asks",
    "gpg": "public keys are a ConfigMap: `kubectl edit configmap argocd-gpg-keys-cm -n argocd`",
    "login": (
        "there is no argocd-server to log in to: the kubeconfig holds the credentials (`syncline context` lists its "
        "contexts, --context names one)"
    ),
    "logout": "there is no session to end; `kubectl config delete-context NAME` takes a context away",
    "proj role create-token": (
        "tokens are signed by argocd-server; make one of a ServiceAccount: `kubectl create token NAME`"
    ),
    "relogin": "there is no session that could expire; the kubeconfig holds the credentials",
}
"""Command → its sentence. A group's sentence covers its verbs without one."""

EVERYWHERE: dict[str, str] = {
    **dict.fromkeys(
        ("--server", "--plaintext", "--port-forward", "--port-forward-namespace", "--server-name"),
        f"{NO_SERVER} that --kubeconfig and --context name",
    ),
    **dict.fromkeys(
        ("--grpc-web", "--grpc-web-root-path", "-H", "--header", "--http-retry-max"),
        f"{NO_SERVER}, as kubectl does; leave it out",
    ),
    **dict.fromkeys(
        ("--argocd-context", "--config", "--kube-context"),
        "name the cluster with --context, the file with --kubeconfig, after the verb",
    ),
    **dict.fromkeys(("--kubeconfig", "--context"), "write it after the verb"),
    **dict.fromkeys(("-n", "--namespace"), "name the namespace of Applications and settings with -N, after the verb"),
    **dict.fromkeys(
        (
            "--auth-token",
            "--client-crt",
            "--client-crt-key",
            "--server-crt",
            "--insecure",
            "--as",
            "--as-group",
            "--as-uid",
            "--certificate-authority",
            "--client-certificate",
            "--client-key",
            "--cluster",
            "--disable-compression",
            "--insecure-skip-tls-verify",
            "--password",
            "--proxy-url",
            "--request-timeout",
            "--tls-server-name",
            "--token",
            "--user",
            "--username",
        ),
        "how to reach the cluster, and as whom, is said by the kubeconfig: `kubectl config set-cluster` and "
        "`set-credentials` write it there",
    ),
    "--core": "commands always talk to the API of the cluster; leave it out",
    "--prompts-enabled": "commands ask where something would be lost; give --yes to be asked nothing",
    **dict.fromkeys(
        (
            "--controller-name",
            "--repo-server-name",
            "--redis-name",
            "--redis-haproxy-name",
            "--redis-compress",
        ),
        "these programs of Argo CD are not asked; leave it out",
    ),
    **dict.fromkeys(("--loglevel", "--logformat"), "commands write no log; errors are lines on stderr; leave it out"),
}
"""Flag of every argocd command → its sentence."""

_SPEC = {"--env": "environments of ksonnet are gone from Argo CD too; name a folder with --path"}
_AZURE = dict.fromkeys(
    (
        "--azure-active-directory-endpoint",
        "--azure-service-principal-client-id",
        "--azure-service-principal-client-secret",
        "--azure-service-principal-tenant-id",
        "--use-azure-workload-identity",
    ),
    AZURE,
)
_DIFF = {
    "--ignore-normalizer-jq-execution-timeout": JQ,
    "--server-side-diff-concurrency": DRY_RUNS,
    "--server-side-diff-max-batch-kb": DRY_RUNS,
}
_CLUSTER = {
    **dict.fromkeys(("--aws-cluster-name", "--aws-profile", "--aws-role-arn"), PROGRAM),
    **dict.fromkeys(
        (
            "--exec-command",
            "--exec-command-api-version",
            "--exec-command-args",
            "--exec-command-env",
            "--exec-command-install-hint",
        ),
        PROGRAM,
    ),
    "--service-account": ROBOT,
    "--system-namespace": ROBOT,
    "--cluster-endpoint": "the address is that of the kubeconfig; name another one there, or give --in-cluster",
}
_REPOSITORY = _AZURE | {"--webhook-manifest-cache-warm-disabled": "nothing is rendered beforehand; leave it out"}
FLAGS: dict[str, dict[str, str]] = {
    "admin app generate-spec": _SPEC | {"--validate": "nothing is read or sent here; `syncline app create` does"},
    "admin cluster generate-spec": _CLUSTER
    | {
        "--bearer-token": "the token is that of the kubeconfig's context",
        "--generate-bearer-token": ROBOT,
    },
    "admin repo generate-spec": _REPOSITORY,
    "admin settings": dict.fromkeys(
        ("--argocd-cm-path", "--argocd-secret-path", "--load-cluster-settings"), "write it after the verb"
    ),
    "app add-source": _SPEC,
    "app create": _SPEC,
    "app diff": _DIFF
    | {
        "--local-include": "a folder is read as the controllers read it: every file; leave it out",
        "--server-side-generate": "manifests of a folder are rendered on this machine; leave it out",
    },
    "app set": _SPEC,
    "app sync": _DIFF,
    "cluster add": _CLUSTER,
    "context": {"--delete": "the kubeconfig is not written; `kubectl config delete-context NAME` does it"},
    "repo add": _REPOSITORY,
    "repocreds add": _AZURE,
}
"""Command → flag → its sentence."""


def refused_command(words: Sequence[str]) -> str:
    """Return the sentence for a command line that begins with ``words``; empty if argocd lacks the command too."""
    names = list(words[:8])
    while names:
        found = COMMANDS.get(" ".join(names))
        if found:
            return f"`{' '.join(names)}` of argocd is not here: {found}"
        names.pop()
    return ""


def refused_flag(words: Sequence[str], flag: str) -> str:
    """Return the sentence for a flag of the command ``words``; empty if argocd lacks the flag too."""
    found = FLAGS.get(" ".join(words), {}).get(flag) or EVERYWHERE.get(flag)
    return f"{flag} of argocd is not here: {found}" if found else ""
