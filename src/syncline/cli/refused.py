"""What argocd has and Syncline has not, with the sentence that says what to use instead.

Data and the look-up alone; read where a command or a flag is not known. ``docs/argocd-commands.md`` lists all of it,
and a test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["COMMANDS", "EVERYWHERE", "FLAGS", "refused_command", "refused_flag"]

NO_SERVER = "there is no argocd-server: commands talk to the API of the cluster"
AZURE = "Azure identities are not supported; give --username and --password-stdin, or --bearer-token"
HYDRATOR = "write spec.sourceHydrator into the manifest and give it with -f FILE, or `syncline app edit`"
CREDENTIALS = (
    "credentials of the other cluster come from its kubeconfig; write it there (`kubectl config set-credentials`)"
)
ACCOUNTS = (
    "there are no accounts: access is Kubernetes RBAC; make a ServiceAccount or a user, bind roles to it, and see "
    "`kubectl auth whoami` and `kubectl create token`"
)
APPLICATION_SETS = "ApplicationSets are not served yet; `kubectl get applicationsets -A` shows those that were applied"
ADMIN = "it looks into programs of Argo CD that are not here (argocd-server, Redis, the notifications controller)"

COMMANDS: dict[str, str] = {
    "account": ACCOUNTS,
    "account can-i": "access is Kubernetes RBAC; ask `kubectl auth can-i VERB applications.argoproj.io -n argocd`",
    "account bcrypt": "there are no passwords of accounts; access is Kubernetes RBAC",
    "appset": APPLICATION_SETS,
    "proj role create-token": (
        "tokens are signed by argocd-server; make one of a ServiceAccount: `kubectl create token NAME`"
    ),
    "relogin": "there is no session that could expire; the kubeconfig holds the credentials",
    "configure": "there is no configuration of the command line; give --yes where a command asks",
}
"""Command → what it says. A group's sentence is that of all its verbs that have none."""

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
"""Flag of every command of argocd → what it says."""

FLAGS: dict[str, dict[str, str]] = {}
"""Command → flag → what it says."""


def refused_command(words: Sequence[str]) -> str:
    """The sentence for a command line that begins with ``words``; empty where argocd has no such command either."""
    names = list(words[:8])
    while names:
        found = COMMANDS.get(" ".join(names))
        if found:
            return f"`{' '.join(names)}` of argocd is not here: {found}"
        names.pop()
    return ""


def refused_flag(words: Sequence[str], flag: str) -> str:
    """The sentence for a flag of the command ``words``; empty where argocd has none either."""
    found = FLAGS.get(" ".join(words), {}).get(flag) or EVERYWHERE.get(flag)
    return f"{flag} of argocd is not here: {found}" if found else ""
