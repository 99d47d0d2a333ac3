#!/usr/bin/env python3
"""Who a pod is: the policies of the chart stamp pods and templates with the user that made them, nobody forges that, and the jobs in
berth are that user's. Two persons, ada and mallory, speak to the API server with client certificates; in berth they sign in with
tokens of an issuer."""
import json
import os
import subprocess
import sys

from cluster import HERE, ROOT, eventually, stretched
from fleet import Fleet, berth_binary, main, shorter_waits
from owners_test import install_kind
from sign_in_test import signed_anew

STAMP = "berth.dev/made-by"
MARK = "0123456789abcdef"
FORGED = {STAMP: f"{MARK} oidc:ada"}
STAMPS = {"enabled": True, "mark": MARK, "names": {"oidc:": "corp:"},
          "controllers": ["system:serviceaccount:operators:jobset"]}
CHART = os.path.join(ROOT, "deploy", "helm", "berth")
HELM = ""


def rendered(template, values=None):
    ran = subprocess.run([HELM, "template", "berth", CHART, "--namespace", "berth", "--set-json",
                          "userStamps=" + json.dumps(values or STAMPS), "--show-only", f"templates/{template}.yaml"],
                         capture_output=True, text=True, check=True)
    return ran.stdout


class Stamped:
    """The policies are in force, and ada and mallory may edit the namespace of the fleet; both are gone behind it."""

    def __init__(self, fleet):
        self.fleet, self.cluster = fleet, fleet.cluster
        self.kubeconfigs = {}

    def __enter__(self):
        for template in ("rbac", "user-stamps"):
            self.cluster.kubectl("apply", "-f", "-", text=rendered(template))
        for name in ("ada", "mallory"):
            if not os.path.exists(f"{self.cluster.pki}/{name}.crt"):
                self.cluster.certify(name, f"/CN=oidc:{name}", "clientAuth")
            pki = f"{self.cluster.pki}/{name}"
            self.kubeconfigs[name] = self.cluster.write_kubeconfig(
                name, {"client-certificate": pki + ".crt", "client-key": pki + ".key"}, self.fleet.namespace)
            self.cluster.kubectl("create", "rolebinding", name, "--clusterrole=admin", f"--user=oidc:{name}", "-n", self.fleet.namespace)

        def stamped():
            made = self.cluster.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-",
                                        text=json.dumps(self.fleet.pod("tried", 0)), kubeconfig=self.kubeconfigs["ada"])
            return STAMP in made
        eventually("pods are stamped", stamped, 30)
        return self

    def __exit__(self, kind, value, trace):
        self.cluster.kubectl("delete", "--ignore-not-found", "-f", "-", text=rendered("user-stamps"))

    def kubectl(self, name, *words, **more):
        return self.cluster.kubectl(*words, kubeconfig=self.kubeconfigs[name], **more)

    def make(self, name, *objects):
        for one in objects:
            self.kubectl(name, "create", "-f", "-", text=json.dumps(one))


def stamp_of(one):
    return one["metadata"].get("annotations", {}).get(STAMP, "")


def template_of(pod):
    return {"metadata": {key: pod["metadata"][key] for key in ("labels", "annotations")}, "spec": pod["spec"]}


def a_stamp_is_not_forged_at_creation_or_by_annotate(cluster, kubeconfig):
    """Of a pod, of the template of each kind that Kubernetes makes pods of, and of the pods that follow from it."""
    with Fleet(cluster, kubeconfig, start=False) as fleet, Stamped(fleet) as stamped:
        def forged(name, restart="Always"):
            return fleet.pod(name, 0, {"app": name}, {**FORGED, "note": "mine"}, restartPolicy=restart, schedulerName="none")

        def owner(kind, version="apps/v1", **more):
            name = kind.lower()
            return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {
                "selector": {"matchLabels": {"app": name}}, "template": template_of(forged(name)), **more}}
        owners = [owner("Deployment"), owner("ReplicaSet"), owner("StatefulSet", serviceName="s"), owner("DaemonSet"),
                  owner("ReplicationController", "v1", selector={"app": "replicationcontroller"})]
        job = {"template": template_of(forged("job", "Never"))}
        cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cron"}, "spec": {
            "schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}}
        bare = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"}, "spec": {
            "template": {"spec": forged("plain", "Never")["spec"]}}}
        hold = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "held"}, "spec": {**job, "suspend": True}}
        stamped.make("mallory", forged("p"), *owners, cron, bare, hold)
        stamped.kubectl("mallory", "create", "job", "from-cron", "--from=cronjob/cron")
        mine = f"{MARK} oidc:mallory"

        def made():
            found = fleet.pods()
            of = sorted(pod["metadata"].get("ownerReferences", [{}])[0].get("kind", "Pod") for pod in found)
            return of == ["Job", "Job", "Pod", "ReplicaSet", "ReplicaSet", "ReplicationController", "StatefulSet"] and found
        pods = eventually(lambda: f"the pods are made: {[one['metadata']['name'] for one in fleet.pods()]}", made)
        assert {stamp_of(pod) for pod in pods} == {mine}, [(pod["metadata"]["name"], stamp_of(pod)) for pod in pods]
        assert next(pod for pod in pods if pod["metadata"]["name"] == "p")["metadata"]["annotations"]["note"] == "mine"
        for change in (f"{STAMP}={FORGED[STAMP]}", f"{STAMP}-"):
            stamped.kubectl("mallory", "annotate", "--overwrite", "pod", "p", change, "note=new")
            pod = cluster.get(f"/api/v1/namespaces/{fleet.namespace}/pods/p")
            assert stamp_of(pod) == mine and pod["metadata"]["annotations"]["note"] == "new", pod["metadata"]
        for value in (FORGED[STAMP], None):
            patch = {"spec": {"template": {"metadata": {"annotations": {STAMP: value}}}}}
            for kind in ("deployment", "statefulset", "daemonset", "job/held"):
                name = kind if "/" in kind else f"{kind}/{kind}"
                stamped.kubectl("mallory", "patch", name, "--type=merge", "-p", json.dumps(patch))
                one = json.loads(stamped.kubectl("mallory", "get", name, "-o", "json"))
                assert stamp_of(one["spec"]["template"]) == mine, (name, one["spec"]["template"]["metadata"])
            stamped.kubectl("mallory", "patch", "cronjob/cron", "--type=merge", "-p", json.dumps({"spec": {"jobTemplate": {"spec": patch["spec"]}}}))
            one = json.loads(stamped.kubectl("mallory", "get", "cronjob/cron", "-o", "json"))
            assert stamp_of(one["spec"]["jobTemplate"]["spec"]["template"]) == mine, one
        # Another person changes what it does not make: it stays with its maker, and no pod is made anew for that.
        before = json.loads(stamped.kubectl("ada", "get", "deployment/deployment", "-o", "json"))["metadata"]["generation"]
        stamped.kubectl("ada", "label", "deployment/deployment", "team=red")
        after = json.loads(stamped.kubectl("ada", "get", "deployment/deployment", "-o", "json"))
        assert after["metadata"]["generation"] == before and stamp_of(after["spec"]["template"]) == mine, after["metadata"]


OPERATED = {  # kind: its API version, a specification, and where its templates are
    "JobSet": ("jobset.x-k8s.io/v1alpha2", lambda pod: {"replicatedJobs": [
        {"name": "one", "template": {"spec": {"template": pod}}}, {"name": "two", "template": {"spec": {"template": {"spec": pod["spec"]}}}}]},
               lambda spec: [one["template"]["spec"]["template"] for one in spec["replicatedJobs"]]),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", lambda pod: {"leaderWorkerTemplate": {"workerTemplate": pod, "leaderTemplate": pod}},
                        lambda spec: [spec["leaderWorkerTemplate"][one] for one in ("workerTemplate", "leaderTemplate")]),
    "RayCluster": ("ray.io/v1", lambda pod: {"headGroupSpec": {"rayStartParams": {}, "template": pod}, "workerGroupSpecs": [
        {"groupName": "a", "rayStartParams": {}, "replicas": 1, "minReplicas": 0, "maxReplicas": 1, "template": pod}]},
                   lambda spec: [spec["headGroupSpec"]["template"], spec["workerGroupSpecs"][0]["template"]]),
    "PyTorchJob": ("kubeflow.org/v1", lambda pod: {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": pod}, "Worker": {"template": pod}}},
                   lambda spec: [one["template"] for one in spec["pytorchReplicaSpecs"].values()])}


def templates_of_operators_are_stamped(cluster, kubeconfig):
    """The operator itself, which is listed, makes pods of them with the stamp that they have; one that is not listed does not."""
    with Fleet(cluster, kubeconfig, start=False) as fleet, Stamped(fleet) as stamped:
        pod = template_of(fleet.pod("p", 0, {"app": "x"}, FORGED))
        mine = f"{MARK} oidc:mallory"
        cluster.kubectl("create", "clusterrolebinding", "persons", "--clusterrole=cluster-admin", "--user=oidc:mallory")
        for kind, (version, spec, templates) in OPERATED.items():
            install_kind(cluster, kind)
            name = kind.lower() + "/x"

            def of_cluster():
                one = json.loads(stamped.kubectl("mallory", "get", name, "-o", "json"))
                return [stamp_of(one), *(stamp_of(each) for each in templates(one["spec"]))]
            made = {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "annotations": {"a": "b"}}, "spec": spec(pod)}
            # A policy looks at a new kind when it has heard of it; before, none of it is made.
            eventually(f"{kind} can be made", lambda: "/x created" in stamped.kubectl(
                "mallory", "create", "-f", "-", text=json.dumps(made), code=None))
            assert of_cluster() == [mine] * 3, (kind, of_cluster())
            forged = {"metadata": {"annotations": FORGED}, "spec": spec(pod)}
            try:
                stamped.kubectl("mallory", "patch", name, "--type=merge", "-p", json.dumps(forged))
            except AssertionError as refused:
                assert "immutable" in str(refused), refused
            assert of_cluster() == [mine] * 3, (kind, of_cluster())
        cluster.kubectl("create", "namespace", "operators")
        for account, expected in (("jobset", FORGED[STAMP]), ("other", f"{MARK} system:serviceaccount:operators:other")):
            cluster.kubectl("create", "serviceaccount", account, "-n", "operators")
            cluster.kubectl("create", "clusterrolebinding", account, "--clusterrole=cluster-admin", f"--serviceaccount=operators:{account}")
            cluster.kubectl("create", "-f", "-", text=json.dumps(fleet.pod("of-" + account, 0, annotations=FORGED)),
                            kubeconfig=cluster.account_kubeconfig("operators", account))
            assert stamp_of(cluster.get(f"/api/v1/namespaces/{fleet.namespace}/pods/of-{account}")) == expected
        cluster.kubectl("delete", "namespace", "operators")
        cluster.kubectl("delete", "clusterrolebinding", "jobset", "other", "persons")


class Signed:
    """What ada sees in berth, where a provider of the name corp knows her."""

    URL = "https://login.example.com"

    def __init__(self, fleet):
        self.fleet, cluster = fleet, fleet.cluster
        self.issuers, keys, self.token = (os.path.join(fleet.directory, name) for name in ("issuers.yaml", "keys.json", "ada.token"))
        with open(keys, "w") as file:
            file.write(cluster.kubectl("get", "--raw", "/openid/v1/jwks"))
        with open(self.issuers, "w") as file:
            json.dump({"issuers": [{"name": "corp", "url": self.URL, "audience": "berth", "keys_file": keys}]}, file)
        of_account = cluster.kubectl("create", "token", "default", "-n", fleet.namespace, "--audience", "berth").strip()
        with open(self.token, "w") as file:
            file.write(signed_anew(cluster, of_account, iss=self.URL, sub="ada"))

    def jobs(self):
        """The names of the jobs that `berth jobs --me` lists."""
        ran = subprocess.run([berth_binary(), "jobs", "--me", "-o", "json"], capture_output=True, text=True, check=True,
                             timeout=stretched(60), env={**os.environ, "HOME": self.fleet.directory, "BERTH_TOKEN_FILE": self.token,
                                                         "BERTH_SERVER": f"http://127.0.0.1:{self.fleet.server.port}"})
        return {job["name"] for job in json.loads(ran.stdout)}


def the_jobs_of_a_person_are_that_persons_in_berth(cluster, kubeconfig):
    """By kubectl and by berth it is one person, for limits and lists; mallory gets into nobody's. Without the policies no stamp is
    believed."""
    config = {"queues": {"red": {"max_jobs_per_user": 1}}, "roles": [{"subject": "user:corp:ada", "role": "member", "queue": "red"}],
              "admission": {"ours": {"images": ["example.com/*"]}}}
    with Fleet(cluster, kubeconfig, config, start=False) as fleet, Stamped(fleet) as stamped:
        ada = Signed(fleet)
        fleet.server.flags += ["--user-stamps", "oidc:=corp:", "--issuers", ada.issuers, *shorter_waits()]
        fleet.start()
        fleet.add_nodes(1)
        stamped.make("ada", fleet.pod("first", 1))
        fleet.wait_bound("first", 1)
        stamped.make("ada", fleet.pod("second", 1))
        stamped.make("mallory", fleet.pod("posing", 1, annotations=FORGED))
        fleet.wait_bound("posing", 1)
        fleet.wait_reason("second", "max_jobs_per_user|running jobs")
        assert ada.jobs() == {"first", "second"}, ada.jobs()

        def users():
            return {job["name"]: job["user"] for job in fleet.server.all("/v1/jobs")}
        assert users() == {"first": "corp:ada", "second": "corp:ada", "posing": "corp:mallory"}, users()
        sidecar = [*fleet.pod("x")["spec"]["containers"], {"name": "proxy", "image": "elsewhere.example.org/proxy:1"}]
        stamped.make("mallory", fleet.pod("foreign", 1, containers=sidecar))
        fleet.wait_reason("foreign", "image: 'elsewhere.example.org/proxy:1' is not allowed; allowed are example.com/")
        cluster.kubectl("delete", "mutatingadmissionpolicybinding", "berth-users-pods")
        said = "there is no MutatingAdmissionPolicyBinding berth-users-pods"
        eventually(fleet.server.tail, lambda: said in fleet.server.tail(), 90)
        eventually("the status says so", lambda: "no user that a pod is stamped with is believed" in fleet.berth("status"))
        stamped.make("mallory", fleet.pod("late", 1, annotations=FORGED))
        eventually(lambda: f"a job of the namespace: {users()}", lambda: users().get("late") == "kubernetes:" + fleet.namespace)


CASES = [the_jobs_of_a_person_are_that_persons_in_berth, a_stamp_is_not_forged_at_creation_or_by_annotate, templates_of_operators_are_stamped]

if __name__ == "__main__":
    found = subprocess.run([os.path.join(HERE, "helm", "build"), "--where"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print("SKIPPED: helm is not built; `tests/kubernetes/helm/build` or `./test --kubernetes` does it")
        sys.exit(77)
    HELM = found.stdout.strip()
    sys.exit(main(CASES))
