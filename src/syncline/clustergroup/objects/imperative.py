"""Imperative jobs: playbooks that run in turn, again and again (reference clustergroup §10)."""

from __future__ import annotations

from typing import Any

from syncline.clustergroup.facts import Facts
from syncline.clustergroup.objects.argocd import BUNDLE, CERTIFICATES, GATHER, SOURCES, trusted
from syncline.clustergroup.objects.namespaces import MANAGED_BY
from syncline.clustergroup.printing import Printer, expanded, first, is_empty, printed, to_yaml
from syncline.kube.objects import Obj

_HOME: list[Obj] = [{"name": "HOME", "value": "/git/home"}]
_MOUNTS: list[Obj] = [
    {"name": "git", "mountPath": "/git"},
    {"name": "values-volume", "mountPath": "/values/values.yaml", "subPath": "values.yaml"},
    *CERTIFICATES,
    {"mountPath": "/etc/pki/tls/certs", "name": "ca-bundles"},
]
_BLANKS = " " * 12
"""Upstream's text ends with the indentation of the container that comes next."""
_VAULT_TAGS = "vault_init,vault_unseal,vault_secrets_init,vault_spokes_init,vault_jwt"


def namespace(facts: Facts) -> list[Obj]:
    if facts.plumbing:
        return []
    out = facts.printer("imperative/namespace")
    name = out.plain(facts.imperative.get("namespace"))
    labels = {"name": name, MANAGED_BY: out.plain(facts.argo_namespace)}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": labels, "name": name}}]


def config_maps(facts: Facts) -> list[Obj]:
    """Return the ConfigMap with all values, which playbooks read; texts of the values are expanded once more."""
    out, given = facts.printer("imperative/configmap"), facts.imperative
    where = out.plain(given.get("namespace"))
    name = out.plain(f"{printed(given.get('valuesConfigMap'))}-{printed(facts.group.get('name'))}")
    text = expanded(to_yaml(facts.values), facts.values, out.part, "values", facts.release)
    values = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": where},
        "data": {"values.yaml": f"{text}\n"},
    }
    return [values, trusted(where, {"annotations": None})]


def jobs(facts: Facts) -> list[Obj]:
    """Return the CronJob of the group's playbooks, in the order in which they are listed."""
    out, given = facts.printer("imperative/job"), facts.imperative
    listed = out.each(given.get("jobs"), "clusterGroup.imperative.jobs")
    if not listed:
        return []
    live = [one for one in listed if printed(first(one.get("disabled"), "false")).lower() != "true"]
    schedule, names = out.quoted(given.get("schedule")), ("cronJobName", "jobName", "serviceAccountName")
    cron_job, job, account = (given.get(key) for key in names)
    return [_cron_job(out, facts, cron_job, schedule, job, account, [_playbook(out, given, one) for one in live])]


def _playbook(out: Printer, given: Obj, one: Obj) -> Obj:
    command: list[Any] = ["timeout", printed(first(one.get("timeout"), "600")), "ansible-playbook"]
    command += [out.plain(one["verbosity"])] if not is_empty(one.get("verbosity")) else []
    command += ["-t", out.plain(one["tags"])] if not is_empty(one.get("tags")) else []
    command += ["-e", "@/values/values.yaml"]
    for each in out.each(one.get("extravars"), "extravars"):
        command += ["-e", out.quoted(each)]
    image = first(one.get("image"), given.get("image"))
    command = [*command, *_more(out, given), out.plain(one.get("playbook"))]
    return _runs(out, given, out.plain(one.get("name")), image, command)


def _more(out: Printer, given: Obj) -> list[Any]:
    return [out.quoted(one) for one in out.each(given.get("extraPlaybookArgs"), "extraPlaybookArgs")]


def _global_playbook(out: Printer, given: Obj, name: str, *last: str) -> Obj:
    command: list[Any] = ["timeout", "600", "ansible-playbook"]
    command += [out.plain(given["verbosity"])] if not is_empty(given.get("verbosity")) else []
    command = [*command, "-e", "@/values/values.yaml", *_more(out, given), *last]
    return _runs(out, given, name, given.get("image"), command)


def _runs(out: Printer, given: Obj, name: Any, image: Any, command: list[Any]) -> Obj:
    return {
        "name": name,
        "image": out.plain(image),
        "imagePullPolicy": out.plain(given.get("imagePullPolicy")),
        "env": _HOME,
        "workingDir": "/git/repo",
        "command": command,
        "volumeMounts": _MOUNTS,
    }


def unsealing(facts: Facts) -> list[Obj]:
    """Return the CronJob that unseals a Vault inside the cluster."""
    if not facts.unseals_vault:
        return []
    out, given = facts.printer("imperative/unsealjob"), facts.imperative
    runs = _global_playbook(out, given, "unseal-playbook", "-t", _VAULT_TAGS, "rhvp.cluster_utils.vault")
    schedule = out.quoted(given.get("insecureUnsealVaultInsideClusterSchedule"))
    account = given.get("serviceAccountName")
    return [_cron_job(out, facts, "unsealvault-cronjob", schedule, "unsealvault-job", account, [runs])]


def approving(facts: Facts) -> list[Obj]:
    """Return the CronJob that approves manual InstallPlans."""
    if is_empty(facts.options.get("autoApproveManualInstallPlans")):
        return []
    out, given, name = (
        facts.printer("imperative/auto-approve-installplans"),
        facts.imperative,
        "auto-approve-installplans",
    )
    runs = _global_playbook(out, given, name, "rhvp.cluster_utils.auto_approve_installplans")
    account = given.get("adminServiceAccountName")
    return [_cron_job(out, facts, f"{name}-cronjob", "*/5 * * * *", f"{name}-job", account, [runs])]


def _cron_job(out: Printer, facts: Facts, name: Any, schedule: Any, job: Any, account: Any, runs: list[Obj]) -> Obj:
    given = facts.imperative
    spec = {
        "serviceAccountName": out.plain(account),
        "initContainers": [*_preparing(out, facts), *runs],
        "containers": [
            {
                "name": "done",
                "image": out.plain(given.get("image")),
                "imagePullPolicy": out.plain(given.get("imagePullPolicy")),
                "command": ["sh", "-c", "echo", "done", "\\n"],
            }
        ],
        "volumes": _volumes(out, facts),
        "restartPolicy": "Never",
    }
    template = {"metadata": {"name": out.plain(job)}, "spec": spec}
    deadline = out.plain(given.get("activeDeadlineSeconds"))
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": out.plain(name), "namespace": out.plain(given.get("namespace"))},
        "spec": {
            "schedule": schedule,
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": {"activeDeadlineSeconds": deadline, "template": template}},
        },
    }


def _volumes(out: Printer, facts: Facts) -> list[Obj]:
    given = facts.imperative
    name = out.plain(f"{printed(given.get('valuesConfigMap'))}-{printed(facts.group.get('name'))}")
    values = {"name": "values-volume", "configMap": {"name": name}}
    return [{"name": "git", "emptyDir": {}}, values, *SOURCES, {"name": "ca-bundles", "emptyDir": {}}]


def _preparing(out: Printer, facts: Facts) -> list[Obj]:
    """Return the containers that run before the playbooks: authorities, the repository, collections."""
    given = facts.imperative
    common = {"image": out.plain(given.get("image")), "imagePullPolicy": out.plain(given.get("imagePullPolicy"))}
    authorities = {
        "name": "fetch-ca",
        **common,
        "env": _HOME,
        "command": ["sh", "-c", f"{GATHER}; ls -l /tmp/ca-bundles/"],
        "volumeMounts": BUNDLE,
    }
    clones = {
        "name": "git-init",
        **common,
        "env": _HOME,
        "volumeMounts": [
            {"name": "git", "mountPath": "/git"},
            {"name": "ca-bundles", "mountPath": "/etc/pki/tls/certs"},
        ],
        "command": ["sh", "-c", cloning_script(facts)],
    }
    mode = given.get("ansibleDevMode")
    wanted = isinstance(mode, dict) and not is_empty(mode.get("enabled"))
    installs = {
        "name": "ansible-dev-mode",
        **common,
        "env": _HOME,
        "workingDir": "/git/repo",
        "command": ["sh", "-c", _installing_script(mode)] if isinstance(mode, dict) else [],
        "volumeMounts": _MOUNTS,
    }
    return [authorities, clones, *([installs] if wanted else [])]


def _installing_script(mode: Obj) -> str:
    lines: list[str] = []
    for content, file in (("requirementsContent", "requirementsFile"), ("ansibleCfgContent", "ansibleCfgFile")):
        if not is_empty(mode.get(content)):
            lines += [f"cat <<'EOF' > \"{printed(mode.get(file))}\"", "", *printed(mode[content]).split("\n"), "EOF"]
    lines.append(f'ansible-galaxy collection install -r "{printed(mode.get("requirementsFile"))}"')
    return "\n".join([*lines, "ansible-galaxy collection list"])


def cloning_script(facts: Facts) -> str:
    """Return the shell script that clones the pattern's repository, with the credentials that the cluster has."""
    where = printed(facts.shared.get("vpArgoNamespace"))
    url, revision = (printed(facts.shared.get(key)) for key in ("repoURL", "targetRevision"))
    secret = f"-n {where} vp-private-repo-credentials"

    def field(name: str, space: str = " ") -> str:
        return f"oc get secret {secret} -o go-template='{{{{index .data.{name} | base64decode{space}}}}}'"

    def proxy(name: str, variable: str) -> list[str]:
        asked = f"oc get proxy.config.openshift.io/cluster -o jsonpath='{{.spec.{name}}}' 2>/dev/null"
        return [f'OUT="$({asked})";', f'if [ -n "${{OUT}}" ]; then export {variable}="${{OUT}}"; fi;']

    key = field("sshPrivateKey", "").replace("oc get secret ", "oc get secrets ", 1)
    options = '-i "${HOME}/.ssh/id_rsa" -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no'
    ask = f'git config --global core.sshCommand "ssh {options}";'
    inner = [
        f"  if ! {key} &>/dev/null; then",
        f'    U="$({field("username")})";',
        f'    P="$({field("password")})";',
        f'    URL=$(echo {url} | sed -E "s/(https?:\\/\\/)/\\1${{U}}:${{P}}@/");',
        "  else",
        f'    S="$({field("sshPrivateKey")})";',
        '    mkdir -p --mode 0700 "${HOME}/.ssh";',
        '    echo "${S}" > "${HOME}/.ssh/id_rsa";',
        '    chmod 0600 "${HOME}/.ssh/id_rsa";',
        f'    URL=$(echo {url} | sed -E "s/(https?:\\/\\/)/\\1git@/");',
        f"    {ask}",
        "  fi;",
    ]
    # Lines that are indented more than the others keep their line ends when YAML folds the text.
    before = f'if ! oc get secrets {secret} &> /dev/null; then\n  URL="{url}";\nelse\n'
    after = [
        "fi;",
        *proxy("httpProxy", "HTTP_PROXY"),
        *proxy("httpsProxy", "HTTPS_PROXY"),
        *proxy("noProxy", "NO_PROXY"),
        f'if [ "{revision}" = "HEAD" ]; then BRANCH=""; else BRANCH="--branch {revision}"; fi;',
        "mkdir /git/{repo,home};",
        'git clone --recurse-submodules --single-branch ${BRANCH} --depth 1 -- "${URL}" /git/repo;',
        "chmod 0770 /git/{repo,home};",
    ]
    return f"{before}{_joined(inner)}{' '.join(after)}{_BLANKS}"


def _joined(lines: list[str]) -> str:
    return "".join(f"{one}\n" for one in lines)
