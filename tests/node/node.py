"""A Kubernetes cluster with real kubelets: containerd and runc, and devices that do not exist. See alone.py for where it runs."""
import json
import os
import signal
import subprocess
import sys

from alone import CGROUPS, GROUP, HERE, hierarchies, run

sys.path.insert(0, os.path.join(os.path.dirname(HERE), "kubernetes"))
from cluster import Cluster, eventually, is_ready, stretched  # noqa: E402

STATE = "/run/berth-node-test"  # a file system of the test's own, in memory
DEVICES = {"nvidia.com/gpu": 8, "nvidia.com/mig-1g.10gb": 4, "nvidia.com/gpu.shared": 2, "rdma/hca": 2}
IMAGES = ("pause", "shell", "train")


def node_programs():
    """The folder of what a node consists of, or None and why not."""
    ran = subprocess.run([os.path.join(HERE, "build"), "--where"], capture_output=True, text=True, check=False)
    return (ran.stdout.strip(), "") if ran.returncode == 0 else (None, ran.stderr.strip())


class Node:
    """One kubelet with a containerd and a device plugin of its own. `numa`: the kubelet's policy of aligning devices."""

    def __init__(self, cluster, name, number, numa="none"):
        self.cluster, self.name, self.number, self.numa = cluster, name, number, numa
        self.address = f"10.99.0.{number}"
        self.programs = node_programs()[0]
        self.state = os.path.join(STATE, name)
        self.socket = os.path.join(self.state, "containerd.sock")
        self.plugins = os.path.join(self.state, "varlib", "device-plugins")
        self.orders_file = os.path.join(self.state, "orders")
        for folder in ("cni", "varlib", "kubelet", "logs"):
            os.makedirs(os.path.join(self.state, folder))
        self.environment = {"LD_LIBRARY_PATH": os.path.join(self.programs, "root", "usr", "lib", "x86_64-linux-gnu"),
                            "PATH": ":".join([self.program("usr/bin"), self.program("usr/sbin"), os.environ["PATH"]])}

    def program(self, path):
        return os.path.join(self.programs, "root", path)

    def write(self, name, content):
        path = os.path.join(self.state, name)
        with open(path, "w") as file:
            file.write(content)
        return path

    # Its start, in two steps, so that those of several nodes overlap.

    def begin(self):
        run("ip", "address", "add", f"{self.address}/32", "dev", "lo")
        self.make_groups()
        self.start_containerd()

    def finish(self):
        eventually(lambda: f"containerd of {self.name} answers:\n" + self.cluster.tail(f"containerd-{self.name}"),
                   lambda: self.ctr("version", check=False).returncode == 0)
        for image in IMAGES:
            self.ctr("images", "import", os.path.join(self.programs, image + ".tar"))
        self.cluster.certify(self.name, f"/O=system:nodes/CN=system:node:{self.name}", "clientAuth")
        self.cluster.write_kubeconfig(self.name, {"client-certificate": f"{self.cluster.pki}/{self.name}.crt",
                                                  "client-key": f"{self.cluster.pki}/{self.name}.key"})
        self.write("kubelet.json", json.dumps(self.kubelet_configuration()))
        self.start_kubelet()
        eventually(lambda: f"the kubelet of {self.name} takes plugins:\n" + self.cluster.tail(self.kubelet),
                   lambda: os.path.exists(os.path.join(self.plugins, "kubelet.sock")))
        self.start_plugin()

    def wait_ready(self):
        eventually(lambda: f"node {self.name} is ready, with its devices: {self.object()}\n" + self.cluster.tail(self.kubelet),
                   lambda: is_ready(self.object()) and all(self.allocatable(name) == count for name, count in DEVICES.items()))

    def make_groups(self):
        """The control group below which the kubelet makes those of pods."""
        for folder in hierarchies():
            at = os.path.join(folder, GROUP, self.name)
            os.makedirs(at)
            if folder == CGROUPS:
                continue
            for top in (os.path.join(folder, GROUP), at):
                for name in ("cpuset.cpus", "cpuset.mems"):
                    if os.path.exists(os.path.join(folder, name)):
                        with open(os.path.join(folder, name)) as source, open(os.path.join(top, name), "w") as target:
                            target.write(source.read())

    def start_containerd(self):
        subnet = f"10.244.{self.number}.0/24"
        self.write("cni/10-test.conflist", json.dumps({"cniVersion": "1.0.0", "name": "test", "plugins": [
            {"type": "bridge", "bridge": f"pods{self.number}", "isGateway": False, "ipMasq": False,
             "ipam": {"type": "host-local", "ranges": [[{"subnet": subnet}]], "dataDir": f"{self.state}/ipam"}}]}))
        config = self.write("containerd.toml", f"""
version = 2
root = "{self.state}/containerd"
state = "{self.state}/containerd-state"
[grpc]
  address = "{self.socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "berth.test/pause:1"
  restrict_oom_score_adj = true
  stream_server_address = "{self.address}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{self.program('usr/lib/cni')}"
    conf_dir = "{self.state}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{self.program('usr/sbin/runc')}"
      SystemdCgroup = false
""")
        # The folder of device plugins is fixed in the kubelet: each has a namespace of mounts with its own.
        script = ('mount --make-rprivate / && mkdir -p /var/lib/kubelet && mount --bind "$1/varlib" /var/lib/kubelet && '
                  'mount --make-rshared / && exec "$2" --config "$3"')
        self.cluster.launch(f"containerd-{self.name}", program=[
            "unshare", "--mount", "sh", "-c", script, "sh", self.state, self.program("usr/bin/containerd"), config],
            environment=self.environment)

    def ctr(self, *words, check=True):
        return subprocess.run([self.program("usr/bin/ctr"), "--address", self.socket, "-n", "k8s.io", *words], capture_output=True,
                              text=True, check=check, timeout=stretched(60))

    def kubelet_configuration(self):
        return {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
                "failCgroupV1": False, "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{GROUP}/{self.name}", "enforceNodeAllocatable": [],
                "failSwapOn": False, "containerRuntimeEndpoint": f"unix://{self.socket}", "address": self.address,
                "readOnlyPort": 0, "healthzBindAddress": self.address, "evictionHard": {}, "imageGCHighThresholdPercent": 100,
                "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                                   "x509": {"clientCAFile": f"{self.cluster.pki}/ca.crt"}},
                "authorization": {"mode": "Webhook"}, "podLogsDir": f"{self.state}/logs", "resolvConf": "",
                "volumePluginDir": f"{self.state}/volume-plugins", "topologyManagerPolicy": self.numa,
                "nodeStatusUpdateFrequency": "5s", "syncFrequency": "10s"}

    @property
    def kubelet(self):
        return f"kubelet-{self.name}"

    def start_kubelet(self):
        containerd = self.cluster.running[f"containerd-{self.name}"].pid
        self.cluster.launch(self.kubelet, f"--kubeconfig={self.cluster.path(self.name + '.kubeconfig')}",
                            f"--config={self.state}/kubelet.json", f"--root-dir={self.state}/kubelet",
                            f"--cert-dir={self.state}/kubelet/pki", f"--hostname-override={self.name}", f"--node-ip={self.address}",
                            "--node-labels=nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3",
                            program=["nsenter", "--mount", f"--target={containerd}", os.path.join(self.programs, "kubelet")],
                            environment=self.environment)

    def start_plugin(self):
        self.cluster.launch(f"device-plugin-{self.name}", "-dir", self.plugins, "-orders", self.orders_file,
                            *[f"{resource}={count}" for resource, count in DEVICES.items()],
                            program=[os.path.join(self.programs, "device-plugin")])

    def kill_kubelet(self):
        self.cluster.end(self.kubelet, signal.SIGKILL)

    # What it is told, and what it says.

    def order(self, *orders):
        """What the device plugin is to do from now on, and no more: see cmd/device-plugin."""
        with open(self.orders_file + ".new", "w") as file:
            file.write("".join(order + "\n" for order in orders))
        os.rename(self.orders_file + ".new", self.orders_file)

    def object(self):
        return self.cluster.get(f"/api/v1/nodes/{self.name}")

    def allocatable(self, resource):
        node = self.object() or {}
        return int(node.get("status", {}).get("allocatable", {}).get(resource, "0"))

    def wait_allocatable(self, resource, count):
        eventually(lambda: f"{self.name} offers {count} of {resource}: {self.allocatable(resource)}",
                   lambda: self.allocatable(resource) == count)

    def cordon(self, closed=True):
        self.cluster.patch(f"/api/v1/nodes/{self.name}", {"spec": {"unschedulable": closed or None}})


class NodeCluster(Cluster):
    """Two kubelets; that of `b` starts no pod whose devices are not all at one NUMA node."""

    def __init__(self):
        super().__init__()
        self.certify("apiserver-kubelet", "/O=system:masters/CN=apiserver-kubelet", "clientAuth")
        self.a, self.b = Node(self, "a", 1), Node(self, "b", 2, numa="single-numa-node")

    def more_server_flags(self):
        # The names of nodes do not resolve: without the second flag no log can be read.
        return [f"--kubelet-client-certificate={self.pki}/apiserver-kubelet.crt",
                f"--kubelet-client-key={self.pki}/apiserver-kubelet.key", "--kubelet-preferred-address-types=InternalIP"]

    def start(self):
        for node in (self.a, self.b):
            node.begin()
        super().start()

    def start_nodes(self):
        for node in (self.a, self.b):
            node.finish()
        for node in (self.a, self.b):
            node.wait_ready()

    def stop(self):
        """Pods end with the namespace; see alone.py."""
        for name in list(self.running):
            self.end(name, signal.SIGKILL)


__all__ = ["DEVICES", "Node", "NodeCluster", "node_programs"]
