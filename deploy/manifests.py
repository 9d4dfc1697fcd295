# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a set of Kubernetes manifests, as far as it can be seen
without a cluster: fields that a kind does not have or lacks, names that nothing
has, and flags that a program does not have.
"""
import json
import re

# kind: (apiVersion, fields). "!" marks one that must be there; a list of one is
# a list of such; None is any text, number or truth; {"*": X} is any name.
_NAMES = {"*": None}
_META = {"name!": None, "labels": _NAMES}
_RESOURCES = {"requests": _NAMES, "limits": _NAMES}
_PROBE = {"tcpSocket": {"port!": None}, "exec": {"command!": [None]}, "periodSeconds": None,
          "timeoutSeconds": None, "failureThreshold": None}
_POD = {
    "automountServiceAccountToken": None, "terminationGracePeriodSeconds": None, "restartPolicy": None,
    "securityContext": {"runAsNonRoot": None, "runAsUser": None, "fsGroup": None},
    "containers!": [{
        "name!": None, "image!": None, "command": [None], "args": [None],
        "env": [{"name!": None, "valueFrom!": {"fieldRef!": {"fieldPath!": None}}}],
        "ports": [{"name": None, "containerPort!": None}],
        "startupProbe": _PROBE, "livenessProbe": _PROBE, "readinessProbe": _PROBE, "resources": _RESOURCES,
        "securityContext": {"allowPrivilegeEscalation": None, "readOnlyRootFilesystem": None},
        "volumeMounts": [{"name!": None, "mountPath!": None, "readOnly": None}]}],
    "volumes": [{"name!": None, "configMap": {"name!": None}, "secret": {"secretName!": None},
                 "persistentVolumeClaim": {"claimName!": None}}]}
_TEMPLATE = {"metadata!": {"labels!": _NAMES}, "spec!": _POD}
_CLAIM = {"accessModes!": [None], "resources!": _RESOURCES}
_LABELS = {"matchLabels!": _NAMES}
KINDS = {
    "ConfigMap": ("v1", {"data!": _NAMES}),
    "PersistentVolumeClaim": ("v1", {"spec!": _CLAIM}),
    "Service": ("v1", {"spec!": {"clusterIP": None, "publishNotReadyAddresses": None, "selector!": _NAMES,
                                 "ports": [{"name": None, "port!": None, "targetPort": None}]}}),
    "StatefulSet": ("apps/v1", {"spec!": {
        "serviceName!": None, "replicas": None, "podManagementPolicy": None, "selector!": _LABELS,
        "template!": _TEMPLATE, "volumeClaimTemplates": [{"metadata!": {"name!": None}, "spec!": _CLAIM}]}}),
    "Job": ("batch/v1", {"spec!": {"backoffLimit": None, "podReplacementPolicy": None, "template!": _TEMPLATE}}),
    "NetworkPolicy": ("networking.k8s.io/v1", {"spec!": {
        "podSelector!": _LABELS, "policyTypes": [None], "ingress": [{"from": [{"podSelector!": _LABELS}]}]}}),
}
WORKLOADS = ("StatefulSet", "Job")


def check_fields(path, got, want):
    """Sentences on what `got` has and lacks."""
    if want is None:
        if isinstance(got, (dict, list)):
            yield f"{path}: want a text or a number"
    elif isinstance(want, list):
        if not isinstance(got, list):
            yield f"{path}: want a list"
        else:
            for i, one in enumerate(got):
                yield from check_fields(f"{path}[{i}]", one, want[0])
    elif not isinstance(got, dict):
        yield f"{path}: want fields"
    else:
        names = {name.rstrip("!"): of for name, of in want.items()}
        for name in got:
            if name in names or "*" in names:
                yield from check_fields(f"{path}.{name}", got[name], names.get(name, names.get("*")))
            else:
                yield f"{path}: has no field {name}"
        for name in want:
            if name.endswith("!") and name[:-1] not in got:
                yield f"{path}: lacks {name[:-1]}"


def check_kind(document):
    kind = document.get("kind")
    if kind not in KINDS:
        yield f"kind: got {kind}, want one of {', '.join(KINDS)}"
        return
    version, fields = KINDS[kind]
    if document.get("apiVersion") != version:
        yield f"{kind}: apiVersion: got {document.get('apiVersion')}, want {version}"
    yield from check_fields(kind, document, dict(fields, **{"apiVersion!": None, "kind!": None, "metadata!": _META}))


class Manifests:
    """Documents whose fields are right, and what they say of one another."""

    def __init__(self, documents, flags, secrets):
        """`flags`: names by program; `secrets`: keys by name, of what else makes them."""
        self.of = {(one["kind"], one["metadata"]["name"]): one for one in documents}
        self.flags, self.secrets = flags, secrets

    def check(self):
        for (kind, name), one in self.of.items():
            where = f"{kind} {name}"
            if kind in WORKLOADS:
                yield from self.check_workload(where, one["spec"])
            if kind == "Service":
                yield from self.check_service(where, one["spec"])

    def pods(self, labels):
        """Templates that a selector chooses."""
        return [one["spec"]["template"] for (kind, _), one in self.of.items() if kind in WORKLOADS and
                labels.items() <= one["spec"]["template"]["metadata"]["labels"].items()]

    def check_service(self, where, spec):
        pods = self.pods(spec["selector"])
        if len(pods) != 1:
            yield f"{where}: selects {len(pods)} kinds of pods, want 1"
            return
        names = [port.get("name") for container in pods[0]["spec"]["containers"] for port in container.get("ports", [])]
        for port in spec.get("ports", []):
            if port.get("targetPort") not in names:
                yield f"{where}: targetPort {port.get('targetPort')}: no container has that port"

    def check_workload(self, where, spec):
        template = spec["template"]
        if "selector" in spec and not spec["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items():
            yield f"{where}: its selector does not choose its pods"
        if "serviceName" in spec and ("Service", spec["serviceName"]) not in self.of:
            yield f"{where}: there is no Service {spec['serviceName']}"
        volumes = {one["metadata"]["name"]: None for one in spec.get("volumeClaimTemplates", [])}
        for volume in template["spec"].get("volumes", []):
            volumes[volume["name"]] = volume
            yield from self.check_volume(where, volume)
        for container in template["spec"]["containers"]:
            yield from self.check_container(where, container, volumes)

    def check_volume(self, where, volume):
        wanted = {"configMap": ("ConfigMap", "name"), "persistentVolumeClaim": ("PersistentVolumeClaim", "claimName")}
        for field, (kind, key) in wanted.items():
            if field in volume and (kind, volume[field][key]) not in self.of:
                yield f"{where}: there is no {kind} {volume[field][key]}"
        if "secret" in volume and volume["secret"]["secretName"] not in self.secrets:
            yield f"{where}: nothing makes the secret {volume['secret']['secretName']}"

    def check_container(self, where, container, volumes):
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                yield f"{where}: there is no volume {mount['name']}"
        used = {mount["name"] for mount in container.get("volumeMounts", [])}
        for name in volumes:
            if name not in used:
                yield f"{where}: nothing mounts the volume {name}"
        ports = {port.get("name"): port["containerPort"] for port in container.get("ports", [])}
        commands = [container.get("command", []) + container.get("args", [])]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            found = container.get(probe, {})
            if "exec" in found:
                commands.append(found["exec"]["command"])
            if "tcpSocket" in found and found["tcpSocket"]["port"] not in ports:
                yield f"{where}: {probe}: there is no port {found['tcpSocket']['port']}"
        for command in commands:
            yield from self.check_command(where, command, container, volumes, ports)

    def check_command(self, where, command, container, volumes, ports):
        program = command[0].rsplit("/", 1)[-1]
        if program not in self.flags:
            yield f"{where}: the image has no program {program}"
            return
        for word in command[1:]:
            match = re.fullmatch(r"--(\w+)=(.*)", word)
            if not match or match[1] not in self.flags[program]:
                yield f"{where}: {program} has no flag {word}"
                continue
            for variable in re.findall(r"\$\((\w+)\)", match[2]):
                if variable not in [one["name"] for one in container.get("env", [])]:
                    yield f"{where}: {word}: there is no variable {variable}"
            if match[2].startswith("/"):
                yield from self.check_path(where, word, match[2], container, volumes)
            for host, port in re.findall(r"grpc://([\w.-]+):(\d+)", match[2]):
                yield from self.check_address(f"{where}: {word}", host, int(port), ports)

    def check_path(self, where, word, path, container, volumes):
        for mount in container.get("volumeMounts", []):
            if not path.startswith(mount["mountPath"] + "/"):
                continue
            key, volume = path[len(mount["mountPath"]) + 1:], volumes.get(mount["name"]) or {}
            # One that is not there at all is named by check_volume.
            made = self.of.get(("ConfigMap", volume.get("configMap", {}).get("name")))
            if made is not None and key not in made["data"]:
                yield f"{where}: {word}: the ConfigMap has no {key}"
            if key not in self.secrets.get(volume.get("secret", {}).get("secretName"), [key]):
                yield f"{where}: {word}: the secret has no {key}"
            return
        yield f"{where}: {word}: no volume is mounted there"

    def check_address(self, where, host, port, own_ports):
        if host in ("0.0.0.0", "127.0.0.1"):
            if port not in own_ports.values():
                yield f"{where}: the container has no port {port}"
            return
        service = self.of.get(("Service", host.rsplit(".", 1)[-1]))
        if service is None:
            yield f"{where}: there is no Service {host.rsplit('.', 1)[-1]}"
            return
        if port not in [one["port"] for one in service["spec"].get("ports", [])]:
            yield f"{where}: the Service has no port {port}"
        if "." in host:
            name, number = host.split(".")[0].rsplit("-", 1)
            workload = self.of.get(("StatefulSet", name))
            if workload is None or int(number) >= workload["spec"].get("replicas", 1):
                yield f"{where}: there is no pod {host.split('.')[0]}"


def check(documents, flags, secrets):
    """All that is wrong, as sentences."""
    faults = [fault for one in documents for fault in check_kind(one)]
    # What refers to what is looked at where the fields are right.
    return faults or list(Manifests(documents, flags, secrets).check())


def config_of(documents, name, key):
    """A ConfigMap's value that is JSON."""
    return next(json.loads(one["data"][key]) for one in documents
                if one["kind"] == "ConfigMap" and one["metadata"]["name"] == name)
