#!/usr/bin/env python3
"""The chart in deploy/helm with helm itself and a real API server: the plain manifests are what it makes, its objects are
taken, and berth schedules with the account that they make and no more.

helm is built by tests/kubernetes/helm/build. The ServiceMonitor is of a minimal CRD, which stands for that of its operator."""
import base64
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

from cluster import HERE, ROOT, Refused, eventually, node_of, stretched
from fleet import DEPLOY, Fleet, main
from server import berth_binary

CHART = os.path.join(ROOT, "deploy", "helm", "berth")
PRICES = {"currency": "EUR", "prices": [{"valid_from": "2026-11-01", "gpus": {"H100-SXM5-80GB": {"floor": 2.5, "burst": 3}}}]}
ISSUERS = [{"name": "k8s", "url": "https://kubernetes.default.svc", "audience": "berth", "keys_file": "/etc/berth-sign-in/keys.json",
            "page": {"client_id": "page", "client_secret_file": "/etc/berth-sign-in/client-secret", "url": "https://berth.example.com"}}]
STAMPS = {"enabled": True, "mark": "0123456789abcdef", "names": {"oidc:": "corp:"}}
# Every option that is not on by default, in another namespace than the default one.
OPTIONS = {
    "image": {"repository": "registry.example.com/berth", "tag": "1"}, "imagePullSecrets": [{"name": "pull"}],
    "config": {"cluster": "fleet", "queues": {"red": {}, "blue": {"max": {"gpus": 4}}},
               "roles": [{"subject": "user:k8s:system:serviceaccount:gpu-system:trainer", "role": "viewer"},
                         {"subject": "cert:robot", "role": "auditor"}]},
    "prices": PRICES, "topologyLabels": ["topology.kubernetes.io/zone", "topology.kubernetes.io/rack"],
    "jobs": {"namespace": "gpu-jobs", "queues": {"blue": "blue-jobs"}}, "extraArgs": ["--keep-finished", "7d"],
    "extraVolumes": [{"name": "more", "configMap": {"name": "more"}}], "extraVolumeMounts": [{"name": "more", "mountPath": "/etc/more"}],
    "tls": {"secretName": "berth-tls", "clientCa": {"secretName": "berth-clients", "key": "authority.crt"}},
    "signIn": {"issuers": ISSUERS, "secretName": "berth-sign-in"}, "url": "https://berth.example.com",
    "service": {"type": "LoadBalancer", "port": 8443, "annotations": {"example.com/internal": "true"}},
    "ingress": {"enabled": True, "className": "nginx", "host": "berth.example.com", "tlsSecretName": "berth-example-com",
                "annotations": {"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"}},
    "networkPolicy": {"from": [{"namespaceSelector": {}}]},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}, "dashboard": {"enabled": True},
    "userStamps": STAMPS, "shells": {"enabled": True, "namespaces": ["gpu-jobs", "blue-jobs"]},
    "admissionPolicy": {"namespaceSelector": {"matchLabels": {"team": "closed"}}, "exempt": {"users": ["system:serviceaccount:ops:tool"]}},
    "volume": {"size": "5Gi", "storageClassName": "fast"}, "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}]}
TLS = {"tls": {"secretName": "t"}}
# Each value: what is given, what is then in the objects and is not with the defaults. A pair of texts: what is there only without it.
EFFECTS = {
    "image.repository": ({"image": {"repository": "r.example.com/b"}}, "image: r.example.com/b:latest"),
    "image.tag": ({"image": {"tag": "7"}}, "image: berth:7"),
    "image.digest": ({"image": {"digest": "sha256:" + "a" * 64}}, "image: berth:latest@sha256:aaaa"),
    "image.pullPolicy": ({"image": {"pullPolicy": "Always"}}, "imagePullPolicy: Always"),
    "imagePullSecrets": ({"imagePullSecrets": [{"name": "pull"}]}, 'imagePullSecrets: [{"name":"pull"}]'),
    "config": ({"config": {"cluster": "x", "queues": {"ml": {}}}}, "    cluster: x\n    queues:\n      ml: {}"),
    "prices.currency": ({"prices": PRICES}, "  prices.yaml: |\n    currency: EUR\n    prices:\n    - gpus:"),
    "prices.prices": ({"prices": PRICES}, '"/etc/berth/prices.yaml"'),
    "check.enabled": ({"check": {"enabled": False}}, ("name: berth-check",)),
    "topologyLabels": ({"topologyLabels": ["zone", "rack"]}, '"--topology-labels","zone,rack"'),
    "jobs.namespace": ({"jobs": {"namespace": "train"}}, '"--job-namespace","train"'),
    "jobs.queues": ({"jobs": {"queues": {"ml": "ml-jobs"}}}, '"--job-namespace","berth-jobs,ml=ml-jobs"'),
    "jobs.createNamespaces": ({"jobs": {"createNamespaces": False}}, ("kind: Namespace\n",)),
    "pullWait": ({"pullWait": "30m"}, '"--pull-wait","30m"'),
    "extraArgs": ({"extraArgs": ["--cell", "east"]}, '"--cell","east"]'),
    "extraVolumes": ({"extraVolumes": [{"name": "more", "configMap": {"name": "m"}}]}, '- {"configMap":{"name":"m"},"name":"more"}'),
    "extraVolumeMounts": ({"extraVolumeMounts": [{"name": "more", "mountPath": "/more"}]}, '- {"mountPath":"/more","name":"more"}'),
    "tls.secretName": (TLS, '"--tls-cert","/etc/berth-tls/tls.crt","--tls-key","/etc/berth-tls/tls.key"'),
    "tls.clientCa.secretName": ({"tls": {"secretName": "t", "clientCa": {"secretName": "c"}}}, '"--client-ca","/etc/berth-client-ca/ca.crt"'),
    "tls.clientCa.key": ({"tls": {"secretName": "t", "clientCa": {"secretName": "c", "key": "k"}}}, '"/etc/berth-client-ca/k"'),
    "signIn.issuers": ({"signIn": {"issuers": ISSUERS}}, '"--issuers","/etc/berth/issuers.yaml"'),
    "signIn.secretName": ({"signIn": {"secretName": "s"}}, "mountPath: /etc/berth-sign-in"),
    "url": ({"url": "https://b.example.com"}, '"--url","https://b.example.com"'),
    "service.type": ({**TLS, "service": {"type": "NodePort"}}, "type: NodePort"),
    "service.port": ({**TLS, "service": {"type": "NodePort", "port": 8443}}, "port: 8443, targetPort: https"),
    "service.annotations": ({**TLS, "service": {"type": "NodePort", "annotations": {"a": "b"}}}, 'annotations: {"a":"b"}'),
    "ingress.enabled": ({**TLS, "ingress": {"enabled": True, "host": "h.example.com"}}, "kind: Ingress"),
    "ingress.host": ({**TLS, "ingress": {"enabled": True, "host": "h.example.com"}}, "host: h.example.com"),
    "ingress.className": ({**TLS, "ingress": {"enabled": True, "host": "h", "className": "nginx"}}, "ingressClassName: nginx"),
    "ingress.tlsSecretName": ({**TLS, "ingress": {"enabled": True, "host": "h", "tlsSecretName": "own"}}, "secretName: own"),
    "ingress.annotations": ({**TLS, "ingress": {"enabled": True, "host": "h", "annotations": {"c": "d"}}}, 'annotations: {"c":"d"}'),
    "networkPolicy.enabled": ({"networkPolicy": {"enabled": False}}, ("kind: NetworkPolicy",)),
    "networkPolicy.from": ({**TLS, "networkPolicy": {"from": [{"podSelector": {}}]}}, 'from: [{"podSelector":{}}]'),
    "networkPolicy.egressPorts": ({"networkPolicy": {"egressPorts": [8443]}}, "- {port: 8443, protocol: TCP}"),
    "dashboard.enabled": ({"dashboard": {"enabled": True}}, "name: berth-dashboard"),
    "dashboard.labels": ({"dashboard": {"enabled": True, "labels": {"board": "x"}}}, '"board":"x"'),
    "serviceMonitor.enabled": ({**TLS, "serviceMonitor": {"enabled": True}}, "kind: ServiceMonitor"),
    "serviceMonitor.interval": ({**TLS, "serviceMonitor": {"enabled": True, "interval": "9s"}}, "interval: 9s"),
    "serviceMonitor.tokenSecret.name": ({**TLS, "serviceMonitor": {"enabled": True, "tokenSecret": {"name": "n"}}}, "{name: n, key: token}"),
    "serviceMonitor.tokenSecret.key": ({**TLS, "serviceMonitor": {"enabled": True, "tokenSecret": {"key": "k"}}}, "{name: berth-metrics, key: k}"),
    "serviceMonitor.labels": ({**TLS, "serviceMonitor": {"enabled": True, "labels": {"release": "p"}}}, '"release":"p"'),
    "admissionPolicy.enabled": ({"admissionPolicy": {"enabled": False}}, ("kind: ValidatingAdmissionPolicy\n",)),
    "admissionPolicy.namespaceSelector": ({"admissionPolicy": {"namespaceSelector": {}}}, ('"matchLabels":{"berth.dev/only":"yes"}',)),
    "admissionPolicy.exempt.namespaces": ({"admissionPolicy": {"exempt": {"namespaces": ["ops"]}}}, '"values":["ops","berth"]'),
    "admissionPolicy.exempt.users": ({"admissionPolicy": {"exempt": {"users": ["ann"]}}}, '["system:serviceaccount:berth:berth","ann"]'),
    "userStamps.enabled": ({"userStamps": STAMPS}, "kind: MutatingAdmissionPolicy\n"),
    "userStamps.mark": ({"userStamps": STAMPS}, "{name: mark, expression: \"'0123456789abcdef'\"}"),
    "userStamps.names": ({"userStamps": STAMPS}, '"--user-stamps","oidc:=corp:"'),
    "userStamps.controllers": ({"userStamps": {**STAMPS, "controllers": ["system:serviceaccount:a:b"]}},
                               '["system:serviceaccount:berth:berth","system:serviceaccount:a:b"]'),
    "queueObjects.enabled": ({"queueObjects": {"enabled": False}}, ("kind: CustomResourceDefinition",)),
    "workloads.enabled": ({"workloads": {"enabled": False}}, ("name: berth-workloads",)),
    "claims.enabled": ({"claims": {"enabled": False}}, ("name: berth-volumes",)),
    "shells.enabled": ({"shells": {"enabled": True}}, "resources: [pods/exec], verbs: [get, create]"),
    "shells.namespaces": ({"shells": {"enabled": True, "namespaces": ["ml-jobs"]}}, "name: berth-shells, namespace: ml-jobs"),
    "flowControl.enabled": ({"flowControl": {"enabled": False}}, ("kind: FlowSchema",)),
    "flowControl.concurrencyShares": ({"flowControl": {"concurrencyShares": 31}}, "nominalConcurrencyShares: 31"),
    "podDisruptionBudget.maxUnavailable": ({"podDisruptionBudget": {"maxUnavailable": 0}}, "maxUnavailable: 0"),
    "volume.size": ({"volume": {"size": "7Gi"}}, "storage: 7Gi"),
    "volume.storageClassName": ({"volume": {"storageClassName": "fast"}}, "storageClassName: fast"),
    "priorityClassName": ({"priorityClassName": "mine"}, "priorityClassName: mine"),
    "resources.requests": ({"resources": {"requests": {"cpu": "3"}}}, '"cpu":"3"'),
    "resources.limits": ({"resources": {"limits": {"memory": "9Gi"}}}, '"memory":"9Gi"'),
    "nodeSelector": ({"nodeSelector": {"pool": "system"}}, 'nodeSelector: {"pool":"system"}'),
    "tolerations": ({"tolerations": [{"key": "system", "operator": "Exists"}]}, 'tolerations: [{"key":"system","operator":"Exists"}]')}
# The flags of `berth serve` that take a file: the value that gives it one.
FILE_FLAGS = {"--config": "config", "--issuers": "signIn.issuers", "--tls-cert": "tls.secretName", "--tls-key": "tls.secretName",
              "--client-ca": "tls.clientCa.secretName"}
NOT_IN_A_POD = {"--kubeconfig", "--ready-file"}  # the pod has its service account; who starts the server looks at its probes
HELM = ""


def helm(*words, code=0, kubeconfig=None):
    """What helm printed; it must end with `code`."""
    ran = subprocess.run([HELM, *words, *(["--kubeconfig", kubeconfig] if kubeconfig else [])], capture_output=True, text=True,
                         check=False, timeout=stretched(120))
    assert ran.returncode == code, (words, ran.stdout, ran.stderr)
    return ran.stdout if code == 0 else ran.stdout + ran.stderr


def values_file(cluster, values):
    path = cluster.path(f"values-{len(os.listdir(cluster.directory))}.yaml")
    with open(path, "w") as file:
        json.dump(values, file)  # JSON is YAML
    return path


def template(cluster, values=None, *words):
    """What the chart makes with these values, but for the Job before an upgrade, which is helm's to run."""
    given = ["--values", values_file(cluster, values)] if values else []
    return helm("template", "berth", CHART, "--namespace", "berth", "--no-hooks", *given, *words)


def the_plain_manifests_are_those_of_the_chart(cluster, kubeconfig):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(ROOT, "deploy", "helm", "render"), folder], check=True, env={**os.environ, "HELM": HELM})
        made = sorted(os.listdir(folder))
        with open(os.path.join(DEPLOY, "kustomization.yaml")) as file:
            listed = [line.strip()[2:] for line in file if line.startswith("  - ")]
        assert sorted([*listed, "job-namespaces.yaml"]) == sorted(made), (listed, made)
        differ = [name for name in made if not filecmp.cmp(os.path.join(folder, name), os.path.join(DEPLOY, name), shallow=False)]
        assert not differ, f"run deploy/helm/render: {differ} in deploy/kubernetes differ from what the chart makes"


def a_packed_chart_names_its_image_by_digest(cluster, kubeconfig):
    """As tools/packers/chart.py writes it; a tag or a digest of one's own is another image."""
    packed, digest = cluster.path("packed"), "sha256:" + "b" * 64
    shutil.copytree(CHART, packed)
    with open(os.path.join(packed, "Chart.yaml"), "a") as file:
        file.write(f"annotations:\n  berth.dev/image-digest: {digest}\n")
    for given, image in (((), f"image: berth:latest@{digest}\n"), (("image.repository=r.example.com/b",), f"image: r.example.com/b:latest@{digest}\n"),
                         (("image.tag=7",), "image: berth:7\n"), (("image.digest=sha256:" + "c" * 64,), f"image: berth:latest@sha256:{'c' * 64}\n")):
        made = helm("template", "berth", packed, *(word for one in given for word in ("--set-string", one)))
        assert made.count(image) == made.count("image: "), (given, [line for line in made.splitlines() if "image: " in line])


def what_cannot_be_is_said(cluster, kubeconfig):
    helm("lint", "--strict", CHART, "--values", values_file(cluster, OPTIONS))
    for wrong, word in (("serviceMonitor.enabled=true", "serviceMonitor.enabled needs tls.secretName"),
                        ("service.type=LoadBalancer", "service.type and ingress.enabled need tls.secretName"),
                        ("tls.clientCa.secretName=c", "tls.clientCa needs tls.secretName"),
                        ("ingress.enabled=true,tls.secretName=t", "ingress.host is missing"),
                        ("userStamps.enabled=true", "userStamps.mark is missing"),
                        ("userStamps.enabled=true,userStamps.mark=0123456789abcdef", "userStamps.names is missing")):
        said = helm("template", "berth", CHART, "--set", wrong, code=1)
        assert word in said, (wrong, said)
    for wrong, word in (("imagee.tag=1", "'imagee' not allowed"), ("networkPolicy.egressPorts=443", "/networkPolicy/egressPorts"),
                        ("jobs.namespace=Not_One", "Not_One"), ("podDisruptionBudget.maxUnavailable=x", "maxUnavailable"),
                        ("prices.price[0].from=2026-11-01", "'price' not allowed"), ("tls.secret=t", "'secret' not allowed"),
                        ("url=berth.example.com", "/url"), ("service.type=Nodeport", "/service/type"),
                        ("admissionPolicy.exempt.user[0]=x", "'user' not allowed"), ("resources.request.cpu=1", "'request' not allowed"),
                        ("tolerations[0].effects=NoSchedule", "'effects' not allowed"), ("imagePullSecrets[0].nam=x", "'nam' not allowed"),
                        ("admissionPolicy.namespaceSelector.labels.a=b", "namespaceSelector"), ("volume.size=big", "/volume/size"),
                        ("userStamps.mark=x", "/userStamps/mark"), ("userStamps.controllers[0]=oidc:ada", "/userStamps/controllers"),
                        ("userStamps.names.oidc=corp", "/userStamps/names"), ("shells.namespaces=ml", "/shells/namespaces"),
                        ("shells.namespace=ml", "'namespace' not allowed"),
                        ("networkPolicy.from[0].namespace=x", "'namespace' not allowed")):
        said = helm("template", "berth", CHART, "--set", wrong, code=1)
        assert word in said, (wrong, said)


def leaves(schema, path=""):
    """The paths of values that the schema has; a map without keys of its own is one value."""
    found = []
    for name, one in schema["properties"].items():
        here = path + name
        found += leaves(one, here + ".") if "properties" in one else [here]
    return found


def each_value_has_its_effect(cluster, kubeconfig):
    """The values of values.yaml are those of the schema, each is set here, and is then seen in the objects."""
    with open(os.path.join(CHART, "values.schema.json")) as file:
        schema = json.load(file)
    paths = set(leaves(schema)) - {"global"}  # helm's own
    assert paths == set(EFFECTS), paths ^ set(EFFECTS)
    with open(os.path.join(CHART, "values.yaml")) as file:
        text = file.read()
    assert set(re.findall(r"^(\w+):", text, re.M)) == set(schema["properties"]) - {"global"}, "values.yaml and its schema differ"
    before = helm("template", "berth", CHART, "--namespace", "berth")
    for path, (values, effect) in EFFECTS.items():
        after = helm("template", "berth", CHART, "--namespace", "berth", "--values", values_file(cluster, values))
        there, absent = (before, after) if isinstance(effect, tuple) else (after, before)
        effect = effect[0] if isinstance(effect, tuple) else effect
        assert effect in there, f"{path}: {effect!r} is not there"
        assert effect not in absent, f"{path}: {effect!r} is there in any case"


def each_flag_of_the_server_that_takes_a_file_has_a_value(cluster, kubeconfig):
    text = subprocess.run([berth_binary(), "serve", "--help"], capture_output=True, text=True, check=True).stdout
    flags = set(re.findall(r"(--[a-z-]+) FILE", text))
    assert flags == set(FILE_FLAGS) | NOT_IN_A_POD, flags ^ (set(FILE_FLAGS) | NOT_IN_A_POD)
    assert set(FILE_FLAGS.values()) <= set(EFFECTS), FILE_FLAGS
    objects = json.loads(cluster.kubectl("apply", "--dry-run=client", "-o", "json", "-f", "-", text=template(
        cluster, {key: OPTIONS[key] for key in ("config", "tls", "signIn")})))["items"]
    pod = next(one for one in objects if one["kind"] == "StatefulSet")["spec"]["template"]["spec"]
    args = pod["containers"][0]["args"]
    mounts = [one["mountPath"] + "/" for one in pod["containers"][0]["volumeMounts"]]
    for flag in FILE_FLAGS:
        path = args[args.index(flag) + 1]
        assert any(path.startswith(one) for one in mounts), f"{flag} {path} lies in no volume: {mounts}"


def what_the_chart_makes_is_what_berth_reads(cluster, kubeconfig):
    """The files in its ConfigMap: `berth check` has no objection, and a mistake is told."""
    for values in ({}, OPTIONS):
        folder, args = mounted_check(cluster, helm("template", "berth", CHART, "--namespace", "berth", "--values",
                                                   values_file(cluster, values), "--show-only", "templates/check.yaml"))
        ran = subprocess.run([berth_binary(), *(one.replace("/etc/berth", folder) for one in args)], capture_output=True, text=True,
                             check=False)
        assert ran.returncode == 0 and len(args) == (2 if values == {} else 4), (args, ran)
    assert "a price book with 1 period" in ran.stdout and "1 issuer" in ran.stdout, ran.stdout


def mounted_check(cluster, text):
    """A folder with the files that the Job before an upgrade reads, and its arguments."""
    objects = json.loads(cluster.kubectl("apply", "--dry-run=client", "-o", "json", "-f", "-", text=text))["items"]
    job = next(one for one in objects if one["kind"] == "Job")
    folder = tempfile.mkdtemp(dir=cluster.directory)
    write_files(folder, next(one for one in objects if one["kind"] == "ConfigMap")["data"])
    return folder, job["spec"]["template"]["spec"]["containers"][0]["args"]


def write_files(folder, content, mode=0o644):
    os.makedirs(folder, exist_ok=True)
    for name, text in content.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        os.chmod(os.path.join(folder, name), mode)


def apply_strictly(cluster, text):
    """Server-side dry run with strict validation, then for real, and a second time, which makes nothing."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-", text=text)
    made = cluster.kubectl("apply", "--validate=strict", "-f", "-", text=text).splitlines()
    again = cluster.kubectl("apply", "--validate=strict", "-f", "-", text=text).splitlines()
    assert made and all(line.endswith((" unchanged", " configured")) for line in again), again
    return made


def berth_schedules_with_the_account_of_the_chart(cluster, kubeconfig):
    """The default values, as `helm template` makes them."""
    made = apply_strictly(cluster, template(cluster))
    kinds = {line.split("/")[0] for line in made}
    for kind in ("networkpolicy.networking.k8s.io", "poddisruptionbudget.policy", "statefulset.apps",
                 "flowschema.flowcontrol.apiserver.k8s.io", "validatingadmissionpolicy.admissionregistration.k8s.io"):
        assert kind in kinds, kinds
    with Fleet(cluster, cluster.account_kubeconfig("berth", "berth", "of-the-chart")) as fleet:
        fleet.add_nodes(2, gpus=4)
        fleet.make(*fleet.gang("g", 8))
        fleet.wait_bound("g", 8)
        assert "does not let this user" not in fleet.server.tail(), fleet.server.tail()
        eventually("its queues are objects", lambda: cluster.get("/apis/berth.dev/v1alpha1/queues/red"))
        fleet.check_room()


def all_options_are_taken(cluster, kubeconfig):
    """In another namespace, with TLS, sign-in, an Ingress, a ServiceMonitor, jobs in two namespaces. The pod is made, and keeps
    the standard; and a server with its arguments and the files of its volumes is reached by TLS, knows a client certificate and
    a token of the issuer, takes the prices, and schedules."""
    cluster.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
        "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced",
                 "names": {"plural": "servicemonitors", "singular": "servicemonitor", "kind": "ServiceMonitor"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                     "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    cluster.kubectl("wait", "--for=condition=Established", "crd/servicemonitors.monitoring.coreos.com", "--timeout=30s")
    for name in ("gpu-system", "gpu-jobs", "blue-jobs"):
        cluster.make("/api/v1/namespaces", {"metadata": {"name": name, "labels": {
            "pod-security.kubernetes.io/enforce": "restricted"}}})
    options = {**OPTIONS, "jobs": {**OPTIONS["jobs"], "createNamespaces": False}}
    apply_strictly(cluster, template(cluster, options, "--namespace", "gpu-system"))
    eventually("its account", lambda: cluster.get("/api/v1/namespaces/gpu-system/serviceaccounts/berth"))
    pod = eventually(lambda: "the pod is made: " +
                     str(cluster.events_of("gpu-system", "berth")), lambda: cluster.get("/api/v1/namespaces/gpu-system/pods/berth-0"))
    container = pod["spec"]["containers"][0]
    assert container["image"] == "registry.example.com/berth:1" and container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    secret = next(one for one in pod["spec"]["volumes"] if one["name"] == "tls")["secret"]
    assert secret == {"secretName": "berth-tls", "defaultMode": 0o440}, secret  # the server refuses a key that others may read
    monitor = cluster.get("/apis/monitoring.coreos.com/v1/namespaces/gpu-system/servicemonitors/berth")
    service = cluster.get("/api/v1/namespaces/gpu-system/services/berth")
    selected = monitor["spec"]["selector"]["matchLabels"].items()
    assert selected <= service["metadata"]["labels"].items() and service["spec"]["ports"][0]["name"] == "https", service
    assert monitor["metadata"]["labels"]["release"] == "prometheus", monitor
    outside = cluster.get("/api/v1/namespaces/gpu-system/services/berth-outside")["spec"]
    assert (outside["type"], outside["ports"][0]["port"]) == ("LoadBalancer", 8443), outside
    ingress = cluster.get("/apis/networking.k8s.io/v1/namespaces/gpu-system/ingresses/berth")["spec"]
    assert ingress["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] == "berth-outside", ingress
    make_secrets(cluster)
    account = cluster.account_kubeconfig("gpu-system", "berth")
    with Fleet(cluster, account, start=False) as fleet:
        mount(cluster, pod, fleet.server.directory)
        fleet.server.flags, fleet.server.config = [*flags_of(container, fleet.server.directory), "--kubeconfig", account], None
        fleet.start()
        check_doors(cluster, fleet)
        fleet.add_nodes(1, labels={"topology.kubernetes.io/rack": "r1"})
        fleet.make(*fleet.gang("g", 2))
        fleet.wait_bound("g", 2)
        by_tls(cluster, fleet, "submit", "--queue", "blue", "--image", "example.com/x:1", "--gpus", "2", "--", "train")
        fleet.wait_bound("berth-", 1, namespace="blue-jobs")
        pod = fleet.bound("berth-", "blue-jobs")[0]
        cluster.delete(f"/api/v1/namespaces/blue-jobs/pods/{pod['metadata']['name']}", 0)


def make_secrets(cluster):
    """Those that the values of OPTIONS name, as an operator would make them."""
    cluster.certify("berth-tls", "/CN=berth", "serverAuth", "DNS:localhost,DNS:berth.gpu-system.svc,IP:127.0.0.1")
    cluster.certify("robot", "/CN=robot", "clientAuth")
    cluster.kubectl("create", "serviceaccount", "trainer", "-n", "gpu-system")

    def pki(name):
        with open(os.path.join(cluster.pki, name), "rb") as file:
            return file.read()
    keys = cluster.kubectl("get", "--raw", "/openid/v1/jwks").encode()
    for name, content in {
            "berth-tls": {"tls.crt": pki("berth-tls.crt"), "tls.key": pki("berth-tls.key"), "ca.crt": pki("ca.crt")},
            "berth-clients": {"authority.crt": pki("ca.crt")},
            "berth-sign-in": {"keys.json": keys, "client-secret": b"s3cret"}}.items():
        cluster.make("/api/v1/namespaces/gpu-system/secrets", {"metadata": {"name": name}, "data": {
            key: base64.b64encode(value).decode() for key, value in content.items()}})
    cluster.make("/api/v1/namespaces/gpu-system/configmaps", {"metadata": {"name": "more"}, "data": {"a": "b"}})


def mount(cluster, pod, folder):
    """Does as a kubelet: what the pod's volumes hold lies below the folder, where its container has it."""
    space = f"/api/v1/namespaces/{pod['metadata']['namespace']}"
    at = {one["name"]: one["mountPath"] for one in pod["spec"]["containers"][0]["volumeMounts"]}
    for volume in pod["spec"]["volumes"]:
        if "configMap" in volume:
            write_files(folder + at[volume["name"]], cluster.get(f"{space}/configmaps/{volume['configMap']['name']}")["data"])
        if "secret" in volume:
            secret = cluster.get(f"{space}/secrets/{volume['secret']['secretName']}")["data"]
            mode = volume["secret"]["defaultMode"] if os.geteuid() == 0 else 0o400  # there its files are root's
            write_files(folder + at[volume["name"]], {name: base64.b64decode(text) for name, text in secret.items()}, mode)
    issuers = folder + "/etc/berth/issuers.yaml"
    with open(issuers) as file:
        text = file.read().replace("/etc/", folder + "/etc/")
    write_files(os.path.dirname(issuers), {"issuers.yaml": text})


def flags_of(container, folder):
    """Those of the manifest with their files below the folder, but for the data directory and the port."""
    flags = [word.replace("/etc/", folder + "/etc/", 1) if word.startswith("/etc/") else word for word in container["args"][1:]]
    for own in ("--data", "--port"):
        del flags[flags.index(own):flags.index(own) + 2]
    flags[flags.index("--listen") + 1] = "127.0.0.1"
    return [*flags, "--port", "0"]


def by_tls(cluster, fleet, *words, token=None, cert=None, code=0):
    """What the command printed; as the administrator, or with this token or client certificate."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}
    environment.update(HOME=fleet.directory, BERTH_SERVER=f"https://localhost:{fleet.server.port}", BERTH_CA=cluster.pki + "/ca.crt")
    if cert:
        environment.update(BERTH_CERT=f"{cluster.pki}/{cert}.crt", BERTH_KEY=f"{cluster.pki}/{cert}.key")
    else:
        environment["BERTH_TOKEN"] = token or fleet.server.token
    ran = subprocess.run([berth_binary(), *words], capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert ran.returncode == code, (words, ran)
    return ran.stdout + ran.stderr


def check_doors(cluster, fleet):
    token = cluster.kubectl("create", "token", "trainer", "-n", "gpu-system", "--audience", "berth", "--duration", "10m").strip()
    assert "user:k8s:system:serviceaccount:gpu-system:trainer" in by_tls(cluster, fleet, "whoami", token=token)
    assert "cert:robot" in by_tls(cluster, fleet, "whoami", cert="robot")
    prices = fleet.server.directory + "/etc/berth/prices.yaml"
    assert "H100-SXM5-80GB" in by_tls(cluster, fleet, "prices", "diff", prices, code=1)
    assert "version 1" in by_tls(cluster, fleet, "prices", "apply", prices)
    assert by_tls(cluster, fleet, "prices", "diff", prices) == ""


def gpus_are_kept_for_berth_where_the_selector_says(cluster, kubeconfig):
    """After all_options_are_taken: the policy holds in namespaces with a label, and in no other."""
    with Fleet(cluster, kubeconfig, start=False) as fleet:
        fleet.add_nodes(1)
        fleet.add_namespace(fleet.namespace + "-only")
        cluster.patch(f"/api/v1/namespaces/{fleet.namespace}-only", {"metadata": {"labels": {"team": "closed"}}})
        numbers = iter(range(1000))

        def refusal(space, **change):
            pod = fleet.pod(f"p{next(numbers)}", 1, namespace=space, **{"schedulerName": "other", **change})
            try:
                fleet.make(pod)
            except Refused as refused:
                assert refused.status == 422, refused
                return str(refused)
            return ""
        # A policy is in force a moment after it was made.
        eventually("a pod with GPUs of another scheduler is refused",
                   lambda: "names berth" in refusal(fleet.namespace + "-only"), 30)
        gpu = {"requests": {}, "limits": {"nvidia.com/gpu": "1"}}
        first = [{"name": "first", "image": "x", "resources": gpu}]
        without = [{"name": "main", "image": "x"}]
        assert "names berth" in refusal(fleet.namespace + "-only", containers=without, initContainers=first)
        assert refusal(fleet.namespace + "-only", containers=without) == ""
        assert refusal(fleet.namespace + "-only", schedulerName="berth") == ""
        assert refusal(fleet.namespace) == ""


class Kubelet:
    """Runs the Job that helm waits for as a kubelet would: `berth check` with its arguments, on the files of its ConfigMap, in a
    thread of its own."""

    def __init__(self, cluster):
        self.cluster, self.ended, self.said = cluster, threading.Event(), {}
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, value, trace):
        self.ended.set()
        self.thread.join(30)

    def kubectl(self, *words):
        return self.cluster.kubectl("-n", "berth", *words)

    def run(self):
        while not self.ended.wait(0.2):
            for pod in json.loads(self.kubectl("get", "pods", "-l", "app.kubernetes.io/name=berth-check", "-o", "json"))["items"]:
                if pod["status"]["phase"] == "Pending" and pod["metadata"]["uid"] not in self.said:
                    self.carry_out(pod)

    def carry_out(self, pod):
        folder = tempfile.mkdtemp(dir=self.cluster.directory)
        volume, = [one for one in pod["spec"]["volumes"] if "configMap" in one]
        write_files(folder, json.loads(self.kubectl("get", "configmap", volume["configMap"]["name"], "-o", "json"))["data"])
        ran = subprocess.run([berth_binary(), *(word.replace("/etc/berth", folder) for word in pod["spec"]["containers"][0]["args"])],
                             capture_output=True, text=True, check=False)
        self.said[pod["metadata"]["uid"]] = ran.stdout + ran.stderr
        self.kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge", "-p", json.dumps(
            {"status": {"phase": "Failed" if ran.returncode else "Succeeded"}}))


def helm_installs_upgrades_and_removes(cluster, kubeconfig):
    # What kubectl has made is not helm's.
    everything = template(cluster, OPTIONS, "--namespace", "gpu-system")
    cluster.kubectl("delete", "--ignore-not-found", "--wait=true", "-f", "-", text=everything)
    cluster.kubectl("delete", "--ignore-not-found", "--wait=true", "-f", "-", text=template(cluster))
    with Kubelet(cluster) as kubelet:
        told = helm("install", "berth", CHART, "--namespace", "berth", kubeconfig=cluster.admin)
        assert "kubectl annotate namespace TEAM berth.dev/queues=QUEUE" in told, told
        pod = eventually("the pod is made", lambda: cluster.get("/api/v1/namespaces/berth/pods/berth-0"))
        assert pod["spec"]["serviceAccountName"] == "berth", pod["spec"]
        set_path = "/apis/apps/v1/namespaces/berth/statefulsets/berth"
        before = cluster.get(set_path)["spec"]["template"]
        assert len(kubelet.said) == 1, kubelet.said

        def upgrade(config, prices=None, code=0):
            return helm("upgrade", "berth", CHART, "--namespace", "berth", "--set-json", "config=" + json.dumps(config),
                        *(["--set-json", "prices=" + json.dumps(prices)] if prices else []), kubeconfig=cluster.admin, code=code)
        good = {"cluster": "x", "queues": {"team-c": {}}}
        for config, prices, mistake in (({"queus": {"a": {}}}, None, "'queus'; did you mean 'queues'?"),
                                        (good, {"currency": "EUR", "prices": [{"valid_form": "2026-11-01"}]}, "did you mean 'valid_from'?")):
            told = upgrade(config, prices, code=1)
            assert "berth-check" in told, told
            assert mistake in list(kubelet.said.values())[-1], kubelet.said
            assert cluster.get(set_path)["spec"]["template"] == before, "berth goes on with what it has"
            assert "team-a" in cluster.get("/api/v1/namespaces/berth/configmaps/berth")["data"]["cluster.yaml"]
        upgrade(good)
        config = cluster.get("/api/v1/namespaces/berth/configmaps/berth")["data"]["cluster.yaml"]
        assert "team-c" in config and "team-a" not in config, config
        after = cluster.get(set_path)["spec"]["template"]
        changed = {key for key, value in after["metadata"]["annotations"].items() if before["metadata"]["annotations"][key] != value}
        assert changed == {"checksum/config"} and after["spec"] == before["spec"], "it starts again, and with nothing else new"
        with Fleet(cluster, cluster.account_kubeconfig("berth", "berth", "of-helm"), queues="team-c", start=False) as fleet:
            with open(fleet.config, "w") as file:
                file.write(config)
            fleet.start()
            node, = fleet.add_nodes(1)
            fleet.make(fleet.pod("one", 1))
            assert node_of(fleet.wait_bound("one", 1)[0]) == node
        uid = cluster.get("/api/v1/namespaces/berth-jobs")["metadata"]["uid"]
        helm("uninstall", "berth", "--namespace", "berth", "--wait", kubeconfig=cluster.admin)
        left = cluster.kubectl("get", "clusterroles,clusterrolebindings,flowschemas,validatingadmissionpolicies", "-o", "name").split()
        assert not [one for one in left if one.split("/")[1].startswith("berth")], left
        kept = cluster.get("/api/v1/namespaces/berth-jobs")
        assert kept["metadata"]["uid"] == uid and kept["status"]["phase"] == "Active", "jobs run in it"
        helm("install", "berth", CHART, "--namespace", "berth", kubeconfig=cluster.admin)  # and it takes that namespace up again
        helm("uninstall", "berth", "--namespace", "berth", "--wait", kubeconfig=cluster.admin)


CASES = [the_plain_manifests_are_those_of_the_chart, a_packed_chart_names_its_image_by_digest, what_cannot_be_is_said, each_value_has_its_effect,
         each_flag_of_the_server_that_takes_a_file_has_a_value, what_the_chart_makes_is_what_berth_reads, berth_schedules_with_the_account_of_the_chart,
         all_options_are_taken, gpus_are_kept_for_berth_where_the_selector_says, helm_installs_upgrades_and_removes]

if __name__ == "__main__":
    found = subprocess.run([os.path.join(HERE, "helm", "build"), "--where"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print("SKIPPED: helm is not built; `tests/kubernetes/helm/build` or `./test --kubernetes` does it")
        sys.exit(77)
    HELM = found.stdout.strip()
    sys.exit(main(CASES))
