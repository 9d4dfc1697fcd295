# SPDX-License-Identifier: Apache-2.0
"""The manifests fit each other and the programs; what does not is named.

usage: manifests_test.py README REPLAY_SERVER_MAIN DISTRIBUTED_DQN_MAIN MANIFEST...
"""
import pathlib
import re
import sys
import unittest

import manifests
import yaml_subset

try:
    import yaml
except ImportError:
    yaml = None

README, SERVER, RUN, *FILES = (pathlib.Path(path).read_text() for path in sys.argv[1:])
TEXT = "\n---\n".join(FILES)
FLAGS = {"replay_server": re.findall(r"ABSL_FLAG\(\s*[\w:<>]+, (\w+),", SERVER),
         "distributed_dqn": re.findall(r"ABSL_FLAG\(\s*[\w:<>]+, (\w+),", RUN)}
# The README's command makes it.
SECRETS = {name: [key] for name, key in
           re.findall(r"kubectl create secret generic ([\w-]+) --from-literal=(\w+)=", README)}


def faults(text):
    return manifests.check(yaml_subset.parse(text), FLAGS, SECRETS)


class ManifestsTest(unittest.TestCase):
    def test_all_is_right(self):
        self.assertEqual(faults(TEXT), [])

    def test_the_kinds_are_these(self):
        self.assertEqual(sorted(one["kind"] for one in yaml_subset.parse(TEXT)),
                         ["ConfigMap", "Job", "NetworkPolicy", "PersistentVolumeClaim", "Service", "Service",
                          "Service", "StatefulSet", "StatefulSet"])

    def test_a_shard_has_the_lanes_of_its_collectors(self):
        documents = yaml_subset.parse(TEXT)
        replicas = {one["metadata"]["name"]: one["spec"]["replicas"] for one in documents
                    if one["kind"] == "StatefulSet"}
        table = manifests.config_of(documents, "rill-tables", "tables.json")["tables"]["replay"]
        lanes_of_a_collector = 2
        self.assertEqual(table["lanes"] * replicas["rill-shard"], lanes_of_a_collector * replicas["rill-collector"])

    def test_each_fault_is_named(self):
        for old, new, sentence in [
                ("replicas: 2", "replica: 2", "has no field replica"),
                ("image: registry", "picture: registry", "lacks image"),
                ("apiVersion: apps/v1", "apiVersion: v1", "apiVersion: got v1, want apps/v1"),
                ("kind: Job", "kind: Jobs", "kind: got Jobs"),
                ("replicas: 2", "replicas: 1", "there is no pod rill-shard-1"),
                ("secretName: rill-token", "secretName: token", "nothing makes the secret token"),
                ("--token_file=/token/token", "--token_file=/token/text", "the secret has no text"),
                ("--token_file=/token/token", "--token_file=/tokens/token", "no volume is mounted there"),
                ("--config=/tables/tables.json", "--config=/tables/table.json", "the ConfigMap has no table.json"),
                ("--grace=30s", "--patience=30s", "replay_server has no flag --patience=30s"),
                ("--role=learner", "--part=learner", "distributed_dqn has no flag --part=learner"),
                ("/opt/rill/distributed_dqn", "/opt/rill/dqn", "the image has no program dqn"),
                ("--number=$(NUMBER)", "--number=$(INDEX)", "there is no variable INDEX"),
                ("--learner=grpc://rill-learner:7071", "--learner=grpc://learner:7071", "there is no Service learner"),
                ("--learner=grpc://rill-learner:7071", "--learner=grpc://rill-learner:7070",
                 "the Service has no port 7070"),
                ("containerPort: 7071", "containerPort: 7070", "the container has no port 7071"),
                ("targetPort: flight", "targetPort: http", "targetPort http"),
                ("port: flight\n            periodSeconds: 5", "port: http\n            periodSeconds: 5",
                 "readinessProbe: there is no port http"),
                ("--health=grpc://127.0.0.1:7070", "--health=grpc://127.0.0.1:7071", "the container has no port 7071"),
                ("claimName: rill-learner", "claimName: learner", "there is no PersistentVolumeClaim learner"),
                ("          name: rill-tables", "          name: tables", "there is no ConfigMap tables"),
                ("serviceName: rill-shard", "serviceName: shard", "there is no Service shard"),
                ("- name: tables\n              mountPath", "- name: table\n              mountPath",
                 "there is no volume table"),
                ("  selector:\n    app.kubernetes.io/name: rill-shard", "  selector:\n    app.kubernetes.io/name: shard",
                 "selects 0 kinds of pods"),
                ("    matchLabels:\n      app.kubernetes.io/name: rill-shard",
                 "    matchLabels:\n      app.kubernetes.io/name: shard", "does not choose its pods")]:
            with self.subTest(new):
                self.assertIn(old, TEXT)
                self.assertIn(sentence, "\n".join(faults(TEXT.replace(old, new))))


class YamlSubsetTest(unittest.TestCase):
    @unittest.skipIf(yaml is None, "no library for YAML")
    def test_a_library_reads_the_same(self):
        self.assertEqual(yaml_subset.parse(TEXT), list(yaml.safe_load_all(TEXT)))

    def test_what_it_does_not_know_is_an_error(self):
        for text in ["a: [1, 2]\n", "a: 'b'\n", "a: b # c\n", "a:\n", "a: 1\na: 2\n", "a: 1\n  b: 2\n", "- a\n"]:
            with self.subTest(text), self.assertRaises(yaml_subset.YamlError):
                yaml_subset.parse(text)
