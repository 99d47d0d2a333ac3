"""A Kubernetes cluster of the tests' own, on loopback: etcd, kube-apiserver, kube-controller-manager, and KWOK, which plays
nodes and what runs on them. Everything lies in one temporary folder, and every process is ended by its id."""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from patience import eventually, stretched  # noqa: E402

PATCH = "application/merge-patch+json"


def programs():
    """The folder of the built programs, or None and why not."""
    ran = subprocess.run([os.path.join(HERE, "build"), "--where"], capture_output=True, text=True, check=False)
    return (ran.stdout.strip(), "") if ran.returncode == 0 else (None, ran.stderr.strip())


def free_ports(count):
    """Ports that are free now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Refused(Exception):
    """An answer of the API server other than 2xx."""

    def __init__(self, status, answer):
        super().__init__(f"{status}: {answer.get('message', answer)}")
        self.status, self.answer = status, answer


class Cluster:
    def __init__(self, gates="", runtime="", count_writes=False, own_issuer=False):
        """With count_writes, the API server keeps a line of each write of the user `scheduler` (writes_of_scheduler). With
        own_issuer, tokens of service accounts are issued by the address of the API server, at which its discovery document is."""
        self.count_writes, self.own_issuer = count_writes, own_issuer
        self.bin, why = programs()
        if self.bin is None:
            raise SystemExit(why)
        self.gates, self.runtime = gates, runtime
        self.directory = tempfile.mkdtemp(prefix="berth-kubernetes-")
        self.pki = os.path.join(self.directory, "pki")
        self.port, self.etcd_port, self.peer_port, controller_port, kwok_port = free_ports(5)
        self.controller_port, self.kwok_port = controller_port, kwok_port
        self.url = f"https://127.0.0.1:{self.port}"
        self.running = {}
        self.connection = None
        self.make_certificates()
        self.admin = self.path("admin.kubeconfig")
        self.tls = ssl.create_default_context(cafile=os.path.join(self.pki, "ca.crt"))
        self.tls.load_cert_chain(os.path.join(self.pki, "admin.crt"), os.path.join(self.pki, "admin.key"))

    def path(self, name):
        return os.path.join(self.directory, name)

    # Certificates and kubeconfigs.

    def openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.pki)

    def make_certificates(self):
        os.makedirs(self.pki)
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "ca.key")
        self.openssl("req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=berth-test-ca", "-days", "2", "-out", "ca.crt",
                     "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,digitalSignature")
        self.openssl("genrsa", "-out", "sa.key", "2048")
        self.openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
        self.certify("server", "/CN=kube-apiserver", "serverAuth", "IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc")
        for name, subject in [("admin", "/O=system:masters/CN=admin"), ("kwok", "/O=system:masters/CN=kwok"), ("scheduler", "/O=system:masters/CN=scheduler"),
                              ("kube-controller-manager", "/CN=system:kube-controller-manager"),
                              ("kube-scheduler", "/CN=system:kube-scheduler")]:
            self.certify(name, subject, "clientAuth")
            self.write_kubeconfig(name, {"client-certificate": f"{self.pki}/{name}.crt", "client-key": f"{self.pki}/{name}.key"})

    def certify(self, name, subject, usage, names=""):
        extensions = os.path.join(self.pki, name + ".ext")
        with open(extensions, "w") as file:
            file.write(f"basicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage={usage}\n")
            if names:
                file.write(f"subjectAltName={names}\n")
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", name + ".key")
        self.openssl("req", "-new", "-key", name + ".key", "-subj", subject, "-out", name + ".csr")
        self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                     "-out", name + ".crt", "-extfile", extensions)

    def write_kubeconfig(self, name, user, namespace="default"):
        """Returns its path."""
        config = {"apiVersion": "v1", "kind": "Config",
                  "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": f"{self.pki}/ca.crt"}}],
                  "users": [{"name": name, "user": user}],
                  "contexts": [{"name": "test", "context": {"cluster": "test", "user": name, "namespace": namespace}}],
                  "current-context": "test"}
        path = self.path(name + ".kubeconfig")
        with open(path, "w") as file:
            json.dump(config, file)  # JSON is YAML
        os.chmod(path, 0o600)
        return path

    # Processes.

    def launch(self, name, *flags, program=None, environment=None):
        """Starts the program of that name, or the words of `program`."""
        with open(self.path(name + ".log"), "ab") as log:
            self.running[name] = subprocess.Popen([*(program or [os.path.join(self.bin, name)]), *flags], stdout=log, stderr=log,
                                                  stdin=subprocess.DEVNULL, start_new_session=True, cwd=self.directory,
                                                  env={**os.environ, **(environment or {})})

    def end(self, name, sig=signal.SIGTERM):
        process = self.running.pop(name, None)
        if process is None:
            return
        process.send_signal(sig)
        try:
            process.wait(stretched(15))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start(self):
        """Starts all of it, and returns when a pod could be made."""
        self.start_etcd()
        self.start_api_server()
        self.start_controllers()
        self.start_nodes()
        eventually("the account `default`", lambda: self.get("/api/v1/namespaces/default/serviceaccounts/default"), 120)

    def start_controllers(self):
        self.launch("kube-controller-manager", f"--kubeconfig={self.path('kube-controller-manager.kubeconfig')}",
                    "--bind-address=127.0.0.1", f"--secure-port={self.controller_port}",
                    f"--service-account-private-key-file={self.pki}/sa.key", f"--root-ca-file={self.pki}/ca.crt",
                    "--use-service-account-credentials", "--leader-elect=false", "--profiling=false",
                    f"--cert-dir={self.path('controller-certificates')}",
                    *([f"--feature-gates={self.gates}"] if self.gates else []))

    def start_nodes(self):
        """KWOK; another kind of cluster starts its kubelets."""
        self.launch("kwok", f"--kubeconfig={self.path('kwok.kubeconfig')}", "--manage-all-nodes=false",
                    "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", f"--config={HERE}/kwok_stages.yaml",
                    "--node-lease-duration-seconds=40", "--cidr=10.244.0.0/16", "--node-ip=127.0.0.1",
                    f"--server-address=127.0.0.1:{self.kwok_port}", f"--config={self.logs_of_pods()}",
                    f"--tls-cert-file={self.pki}/server.crt", f"--tls-private-key-file={self.pki}/server.key")

    def logs_of_pods(self):
        """What KWOK serves as the log of any container, as a kubelet does: the file pod.log, once it is there. Returns the path of
        its configuration."""
        path = self.path("kwok_logs.yaml")
        with open(path, "w") as file:
            json.dump({"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterLogs", "metadata": {"name": "all"},
                       "spec": {"logs": [{"logsFile": self.path("pod.log"), "follow": False}]}}, file)
        return path

    def give_kubelet(self, name):
        """The node says that KWOK is its kubelet. Without that its pods run, but their logs cannot be read."""
        self.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.kwok_port}}}}, PATCH)

    def start_etcd(self):
        url, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{self.peer_port}"
        self.launch("etcd", "--data-dir", self.path("etcd"), "--listen-client-urls", url, "--advertise-client-urls", url,
                    "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
                    "--unsafe-no-fsync", "--log-level=warn")

    def start_api_server(self):
        self.launch("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", "--bind-address=127.0.0.1",
                    "--advertise-address=127.0.0.1", f"--secure-port={self.port}", f"--tls-cert-file={self.pki}/server.crt",
                    f"--tls-private-key-file={self.pki}/server.key", f"--client-ca-file={self.pki}/ca.crt",
                    "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
                    f"--service-account-key-file={self.pki}/sa.pub", f"--service-account-signing-key-file={self.pki}/sa.key",
                    f"--service-account-issuer={self.url if self.own_issuer else 'https://kubernetes.default.svc'}",
                    "--api-audiences=https://kubernetes.default.svc,berth", "--service-cluster-ip-range=10.0.0.0/24",
                    "--endpoint-reconciler-type=none", "--allow-privileged=true", "--profiling=false",
                    *([f"--feature-gates={self.gates}"] if self.gates else []),
                    *([f"--runtime-config={self.runtime}"] if self.runtime else []),
                    *(self.audit_flags() if self.count_writes else []), *self.more_server_flags())

        def ready():
            if self.running["kube-apiserver"].poll() is not None:
                raise AssertionError("kube-apiserver ended:\n" + self.tail("kube-apiserver"))
            try:
                return self.raw("GET", "/readyz")[0] == 200
            except OSError:
                return False
        eventually(lambda: "kube-apiserver is ready:\n" + self.tail("kube-apiserver"), ready, 180)

    def more_server_flags(self):
        """What another kind of cluster asks of its API server."""
        return []

    def audit_flags(self):
        with open(self.path("audit.yaml"), "w") as file:
            json.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
                {"level": "Metadata", "users": ["scheduler"], "verbs": ["create", "update", "patch", "delete"]},
                {"level": "None"}]}, file)
        return [f"--audit-policy-file={self.path('audit.yaml')}", f"--audit-log-path={self.path('audit.log')}", "--audit-log-maxsize=1000"]

    def writes_of_scheduler(self):
        """How often the user `scheduler` has written what, as {"pods/binding": 12}."""
        counts = {}
        with open(self.path("audit.log")) as file:
            for line in file:
                about = json.loads(line)["objectRef"]
                name = about["resource"] + ("/" + about["subresource"] if about.get("subresource") else "")
                counts[name] = counts.get(name, 0) + 1
        return counts

    def stop(self):
        for name in ("kwok", "kube-controller-manager"):
            self.end(name)
        for name in ("kube-apiserver", "etcd", *list(self.running)):
            self.end(name, signal.SIGKILL)  # nothing of it is kept

    def tail(self, name, size=3000):
        with open(self.path(name + ".log"), errors="replace") as file:
            return file.read()[-size:]

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    # Requests, as the administrator.

    def raw(self, method, path, body=None, content_type="application/json"):
        """(status, bytes) over one connection that is kept; an OSError where the server is away."""
        for attempt in (0, 1):
            fresh = self.connection is None
            if fresh:
                self.connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.tls, timeout=stretched(30))
            try:
                self.connection.request(method, path, body, {"Content-Type": content_type} if body is not None else {})
                answer = self.connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.connection.close()
                self.connection = None
                if fresh or attempt or method == "POST":  # an idle connection may have been closed; a POST may have happened
                    raise error if isinstance(error, OSError) else OSError(str(error)) from error
        return None

    def ask(self, method, path, body=None, content_type="application/json"):
        status, content = self.raw(method, path, json.dumps(body) if body is not None else None, content_type)
        try:
            answer = json.loads(content) if content else {}
        except ValueError:
            answer = {"message": content.decode(errors="replace")}
        if status >= 300:
            raise Refused(status, answer)
        return answer

    def get(self, path):
        """The object, or None if there is none."""
        try:
            return self.ask("GET", path)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def items(self, path):
        return self.ask("GET", path)["items"]

    def make(self, path, body):
        return self.ask("POST", path, body)

    def patch(self, path, body):
        return self.ask("PATCH", path, body, PATCH)

    def delete(self, path, grace_s=None):
        """True if it was there."""
        try:
            self.ask("DELETE", path, {"gracePeriodSeconds": grace_s} if grace_s is not None else None)
            return True
        except Refused as refused:
            if refused.status == 404:
                return False
            raise

    def kubectl(self, *words, text=None, code=0, kubeconfig=None):
        """What kubectl printed; it must end with `code`, if that is not None."""
        ran = subprocess.run([os.path.join(self.bin, "kubectl"), "--kubeconfig", kubeconfig or self.admin, *words],
                             input=text, capture_output=True, text=True, timeout=stretched(120), check=False,
                             env={**os.environ, "HOME": self.directory})
        if code is not None and ran.returncode != code:
            raise AssertionError(f"kubectl {' '.join(words)}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return ran.stdout if code == 0 else ran.stdout + ran.stderr

    def account_kubeconfig(self, namespace, account, name=None):
        """A kubeconfig with a true token of a service account."""
        token = self.kubectl("create", "token", account, "-n", namespace, "--duration=2h").strip()
        return self.write_kubeconfig(name or f"{namespace}-{account}", {"token": token}, namespace)

    # Nodes and pods.

    def add_node(self, name, gpus=8, labels=None, taints=None, model="NVIDIA-H100-80GB-HBM3", cpu="64", fake=True, devices=None):
        """`devices`: counts of further resources, such as MIG instances."""
        room = {"cpu": cpu, "memory": "512Gi", "pods": "110", "ephemeral-storage": "1Ti"}
        if gpus:
            room["nvidia.com/gpu"] = str(gpus)
        room.update({resource: str(count) for resource, count in (devices or {}).items()})
        product = {"nvidia.com/gpu.product": model, "nvidia.com/gpu.count": str(gpus), "nvidia.com/gpu.memory": "81559"} if gpus else {}
        node = {"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"} if fake else {},
                             "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                                        "kubernetes.io/arch": "amd64", **product, **(labels or {})}},
                "spec": {"taints": taints} if taints else {}, "status": {"capacity": room, "allocatable": room}}
        self.make("/api/v1/nodes", node)
        eventually(f"node {name} is ready", lambda: is_ready(self.get(f"/api/v1/nodes/{name}")))

    def pods(self, namespace=None):
        return self.items(f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods")

    def events_of(self, namespace, name):
        """The messages of an object's events."""
        found = self.items(f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name={name}")
        return [f"{event.get('reason')}: {event.get('message')}" for event in found]


def is_ready(node):
    if node is None:
        return False
    conditions = {one["type"]: one["status"] for one in node["status"].get("conditions", [])}
    tainted = [one["key"] for one in node["spec"].get("taints", []) if one["key"].startswith("node.kubernetes.io/")]
    return conditions.get("Ready") == "True" and not tainted


def gpus_of(pod):
    return sum(count_of(one.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", "0")) for one in pod["spec"]["containers"])


def node_of(pod):
    return pod["spec"].get("nodeName")


def lives(pod):
    return pod["status"].get("phase") not in ("Succeeded", "Failed")


def condition(pod, kind):
    return next((one for one in pod["status"].get("conditions", []) if one["type"] == kind), None)


def count_of(quantity):
    """A count as the API server writes it: 900000000000000 is 900T."""
    scale = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
    return int(quantity[:-1]) * scale[quantity[-1]] if quantity[-1] in scale else int(quantity)


def overcommitted(cluster):
    """The nodes on which live pods ask for more GPUs than it has, as {name: (asked, allocatable)}: looked at from outside."""
    room = {node["metadata"]["name"]: count_of(node["status"].get("allocatable", {}).get("nvidia.com/gpu", "0"))
            for node in cluster.items("/api/v1/nodes")}
    asked = {}
    for pod in cluster.pods():
        if node_of(pod) and lives(pod):
            asked[node_of(pod)] = asked.get(node_of(pod), 0) + gpus_of(pod)
    return {name: (gpus, room[name]) for name, gpus in asked.items() if name in room and gpus > room[name]}


def decoded_token(kubeconfig):
    """The claims of the token in a kubeconfig."""
    with open(kubeconfig) as file:
        payload = json.load(file)["users"][0]["user"]["token"].split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
