# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster
short_description: Nodes of a cluster and clusters of a hub
description:
  - Hosts are the nodes of a cluster (group C(nodes)) and the clusters that joined a hub (group C(clusters)).
  - Groups are machine config pools (C(pool_NAME)), cluster sets (C(set_NAME)) and what Placements select
    (C(placement_NAMESPACE_NAME)). Characters that group names may not have become C(_).
  - Variables begin with C(syncline_). Of a node - C(kind), C(name), C(ready), C(schedulable), C(pool), C(roles),
    C(labels), C(zone), C(addresses), C(versions), C(taints), C(state), C(config_current), C(config_desired),
    C(updating), C(note). Of a cluster - C(kind), C(name), C(accepted), C(available), C(reason), C(labels), C(claims),
    C(sets), C(version), C(url), C(taints). Of a group of a pool - C(pool_name), C(pool_state), C(pool_paused),
    C(pool_holds), C(pool_machines).
  - A kind that the cluster does not serve is left out. One that may not be listed is an error, since an empty group
    would say that nothing is there; see O(refused).
version_added: 0.1.0
author: The Syncline authors (@syncline)
requirements:
  - The C(syncline) program on the controller.
extends_documentation_fragment:
  - constructed
  - inventory_cache
options:
  plugin:
    description: Marks the file as one for this plugin.
    type: str
    required: true
    choices: [syncline.syncline.cluster]
  program:
    description: The C(syncline) program, by name on C(PATH) or by its path.
    type: str
    default: syncline
    env:
      - name: SYNCLINE_PROGRAM
  kubeconfig:
    description:
      - Kubeconfig.
      - Without it the program's own default, E(KUBECONFIG) or the cluster that C(syncline up) started last.
    type: path
  context:
    description: Context of the kubeconfig.
    type: str
  parts:
    description: What is read. V(nodes) also reads the pools, as a node's pool follows from them.
    type: list
    elements: str
    choices: [nodes, pools, clusters, placements]
    default: [nodes, pools, clusters, placements]
  refused:
    description:
      - What follows when a kind may not be listed. With V(warn) it is left out with a warning, and the variable
        C(syncline_refused) of the group C(all) names it.
    type: str
    choices: [fail, warn]
    default: fail
  address_types:
    description: Types of a node's addresses, best first. The first that it has becomes C(ansible_host).
    type: list
    elements: str
    default: [ExternalIP, InternalIP, Hostname]
  timeout:
    description: Seconds that the program may take.
    type: int
    default: 120
  max_hosts:
    description: More hosts than this are an error.
    type: int
    default: 20000
"""

EXAMPLES = r"""
# fleet.syncline.yml
plugin: syncline.syncline.cluster
kubeconfig: ~/.kube/hub
refused: warn
keyed_groups:
  - key: syncline_zone
    prefix: zone
groups:
  updating: syncline_updating | default(false)
compose:
  ansible_user: "'core'"
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_timeout: 300
"""

import json
import subprocess

from ansible.errors import AnsibleParserError
from ansible.inventory.group import to_safe_group_name
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

SUFFIXES = ("syncline.yml", "syncline.yaml")
MAX_BYTES = 1 << 30
MAX_TEXT = 4000
NODE_FACTS = {
    "kind": lambda one: "node",
    "name": lambda one: one["name"],
    "ready": lambda one: one["ready"] == "Ready",
    "schedulable": lambda one: one["schedulable"] == "yes",
    "pool": lambda one: one["pool"],
    "roles": lambda one: one["roles"],
    "labels": lambda one: one["labels"],
    "zone": lambda one: one["zone"],
    "addresses": lambda one: one["addresses"],
    "versions": lambda one: one["versions"],
    "taints": lambda one: one["taints"],
    "state": lambda one: one["state"],
    "config_current": lambda one: one["current"],
    "config_desired": lambda one: one["desired"],
    "updating": lambda one: one["current"] != one["desired"],
    "note": lambda one: one["note"],
}
CLUSTER_FACTS = {
    "kind": lambda one: "cluster",
    "name": lambda one: one["name"],
    "accepted": lambda one: one["accepted"],
    "available": lambda one: one["available"] == "True",
    "reason": lambda one: one["reason"],
    "labels": lambda one: one["labels"],
    "claims": lambda one: one["claims"],
    "sets": lambda one: one["sets"],
    "version": lambda one: one["version"],
    "url": lambda one: one["url"],
    "taints": lambda one: one["taints"],
}
POOL_FACTS = ("name", "state", "paused", "holds", "machines")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Reads ``syncline inventory`` once, and makes hosts and groups of it."""

    NAME = "syncline.syncline.cluster"

    def verify_file(self, path):
        """Return whether the file is meant for this plugin."""
        return super().verify_file(path) and path.endswith(SUFFIXES)

    def parse(self, inventory, loader, path, cache=True):
        """Fill the inventory from the cluster, or from the cache."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        self._named = {}
        key = self.get_cache_key(path)
        wanted = self.get_option("cache")
        document = self._cache.get(key) if wanted and cache else None
        if document is None:
            document = self._read()
            if wanted:
                self._cache[key] = document
        self._check(document)
        hosts = self._nodes(document) + self._clusters(document)
        self._pools(document.get("pools") or ())
        self._placements(document.get("placements") or ())
        for host in hosts:
            facts = self.inventory.get_host(host).get_vars()
            self._construct(host, facts)

    def _construct(self, host, facts):
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), facts, host, strict=strict)
        facts = self.inventory.get_host(host).get_vars()
        self._add_host_to_composed_groups(self.get_option("groups"), facts, host, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), facts, host, strict=strict)

    def _read(self):
        """Return the program's document."""
        command = [self.get_option("program"), "inventory", "-o", "json"]
        for part in self.get_option("parts"):
            command += ["--only", part]
        for option in ("kubeconfig", "context"):
            if self.get_option(option):
                command += ["--" + option, self.get_option(option)]
        seconds = self.get_option("timeout")
        try:
            done = subprocess.run(command, capture_output=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL)
        except FileNotFoundError:
            raise AnsibleParserError(f"program: there is no {command[0]} on PATH; give its path") from None
        except OSError as error:
            raise AnsibleParserError(f"program: {command[0]}: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise AnsibleParserError(f"timeout: syncline inventory took more than {seconds} seconds") from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()[:MAX_TEXT]
            raise AnsibleParserError(f"syncline inventory ended with {done.returncode}: {said or 'no reason given'}")
        if len(done.stdout) > MAX_BYTES:
            raise AnsibleParserError(f"syncline inventory printed {len(done.stdout)} bytes, {MAX_BYTES} are allowed")
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            raise AnsibleParserError(f"syncline inventory printed no JSON: {error}") from None

    def _check(self, document):
        """Report what may not be listed; a document with too many hosts is refused."""
        refused = document["refused"]
        for kind, why in sorted(refused.items()):
            text = f"{kind} may not be listed: {why}"
            if self.get_option("refused") == "fail":
                raise AnsibleParserError(f"{text}; leave it out with 'parts', or go on without it by 'refused: warn'")
            self.display.warning(f"syncline.syncline.cluster: {text}")
        self.inventory.set_variable("all", "syncline_refused", dict(refused))
        self.inventory.set_variable("all", "syncline_server", document["server"])
        names = [{one["name"] for one in document.get(part) or ()} for part in ("nodes", "clusters")]
        count = sum(map(len, names))
        if count > self.get_option("max_hosts"):
            raise AnsibleParserError(f"max_hosts: there are {count} hosts, {self.get_option('max_hosts')} allowed")
        both = names[0] & names[1]
        if both:
            raise AnsibleParserError(
                f"{sorted(both)[0]}: a node and a cluster have this name; read them in two files, each with its 'parts'"
            )

    def _group(self, *words):
        """Add a group of this name, made of what group names may have, and return it.

        Two objects with one group would put hosts of one into plays for the other, so that is an error.
        """
        name = to_safe_group_name("_".join(words), force=True, silent=True)
        first = self._named.setdefault(name, words)
        if first != words:
            two = f"{' '.join(first)} and {' '.join(words)}"
            raise AnsibleParserError(f"{two} are both group {name}; rename one, or leave them out with 'parts'")
        return self.inventory.add_group(name)

    def _host(self, group, row, facts):
        host = self.inventory.add_host(row["name"], group)
        for name, fact in facts.items():
            self.inventory.set_variable(host, "syncline_" + name, fact(row))
        return host

    def _nodes(self, document):
        if document.get("nodes") is None:
            return []
        group = self._group("nodes")
        hosts = []
        for row in document["nodes"]:
            host = self._host(group, row, NODE_FACTS)
            hosts.append(host)
            types = (one for one in self.get_option("address_types") if one in row["addresses"])
            address = next(types, None)
            if address is not None:
                self.inventory.set_variable(host, "ansible_host", row["addresses"][address])
            if row["pool"]:
                self.inventory.add_host(host, self._group("pool", row["pool"]))
        return hosts

    def _clusters(self, document):
        if document.get("clusters") is None:
            return []
        group = self._group("clusters")
        hosts = []
        for row in document["clusters"]:
            host = self._host(group, row, CLUSTER_FACTS)
            hosts.append(host)
            for name in row["sets"] or ():
                self.inventory.add_host(host, self._group("set", name))
        return hosts

    def _pools(self, rows):
        for row in rows:
            group = self._group("pool", row["name"])
            for name in POOL_FACTS:
                self.inventory.set_variable(group, "syncline_pool_" + name, row[name])

    def _placements(self, rows):
        for row in rows:
            if row["clusters"] is None:
                continue
            group = self._group("placement", row["namespace"], row["name"])
            self.inventory.set_variable(group, "syncline_placement_satisfied", row["satisfied"] == "True")
            for name in row["clusters"]:
                if self.inventory.get_host(name) is not None:
                    self.inventory.add_host(name, group)
                else:
                    place = f"{row['namespace']}/{row['name']}"
                    self.display.warning(
                        f"syncline.syncline.cluster: Placement {place} selects {name}, which is not among the clusters"
                    )
