{{/* The namespaces in which berth makes the pods of jobs, each once, as JSON. */}}
{{- define "berth.jobNamespaces" -}}
{{- if .Values.jobs.namespace }}{{ concat (list .Values.jobs.namespace) (values .Values.jobs.queues | sortAlpha) | uniq | toJson }}
{{- else }}[]{{ end }}
{{- end }}

{{/* The value of --job-namespace. */}}
{{- define "berth.jobNamespaceFlag" -}}
{{- if .Values.jobs.namespace }}{{ .Values.jobs.namespace }}
{{- range $queue, $namespace := .Values.jobs.queues }},{{ $queue }}={{ $namespace }}{{ end }}
{{- else }}none{{ end }}
{{- end }}

{{/* The account, as a subject of a binding. */}}
{{- define "berth.subject" -}}
[{kind: ServiceAccount, name: berth, namespace: {{ .Release.Namespace }}}]
{{- end }}

{{/* The arguments of the program, as JSON. */}}
{{- define "berth.args" -}}
{{- $args := list "serve" "--backend" "kubernetes" "--data" "/var/lib/berth" "--config" "/etc/berth/cluster.yaml" "--port" "6380" -}}
{{- $args = concat $args (list "--job-namespace" (include "berth.jobNamespaceFlag" .)) -}}
{{- with .Values.topologyLabels }}{{ $args = concat $args (list "--topology-labels" (join "," .)) }}{{ end -}}
{{- with .Values.pullWait }}{{ $args = concat $args (list "--pull-wait" .) }}{{ end -}}
{{- if .Values.userStamps.enabled -}}
{{- $names := list -}}
{{- range $from, $to := .Values.userStamps.names }}{{ $names = append $names (printf "%s=%s" $from $to) }}{{ end -}}
{{- if not $names }}{{ fail "userStamps.names is missing: say which users of the API server are users of berth, as {\"oidc:\": \"corp:\"}" }}{{ end -}}
{{- $args = concat $args (list "--user-stamps" (join "," $names)) -}}
{{- end -}}
{{- if .Values.tls.secretName -}}
{{- $args = concat $args (list "--listen" "0.0.0.0" "--tls-cert" "/etc/berth-tls/tls.crt" "--tls-key" "/etc/berth-tls/tls.key") -}}
{{- end -}}
{{- with .Values.tls.clientCa -}}{{- if .secretName -}}
{{- if not $.Values.tls.secretName }}{{ fail "tls.clientCa needs tls.secretName: client certificates come with TLS" }}{{ end -}}
{{- $args = concat $args (list "--client-ca" (printf "/etc/berth-client-ca/%s" .key)) -}}
{{- end -}}{{- end -}}
{{- if .Values.signIn.issuers }}{{ $args = concat $args (list "--issuers" "/etc/berth/issuers.yaml") }}{{ end -}}
{{- with .Values.url }}{{ $args = concat $args (list "--url" .) }}{{ end -}}
{{- concat $args .Values.extraArgs | toJson -}}
{{- end }}

{{/* The namespaces in which the admission policy holds, as a JSON selector: never berth's own, nor those of the exemption. */}}
{{- define "berth.policySelector" -}}
{{- $chosen := .Values.admissionPolicy.namespaceSelector -}}
{{- if kindIs "invalid" $chosen }}{{ $chosen = dict "matchLabels" (dict "berth.dev/only" "yes") }}{{ end -}}
{{- $left := concat .Values.admissionPolicy.exempt.namespaces (list .Release.Namespace) | uniq -}}
{{- $other := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" $left -}}
{{- merge (dict "matchExpressions" (append ($chosen.matchExpressions | default list) $other)) $chosen | toJson -}}
{{- end }}

{{/* Whose requests the admission policy looks at. */}}
{{- define "berth.policyConditions" -}}
{{- $berth := printf "system:serviceaccount:%s:berth" .Release.Namespace -}}
- {name: not-a-kubelet, expression: "!('system:nodes' in request.userInfo.groups)"}
- name: not-exempt  # berth itself makes pods for jobs
  expression: >-
    !(request.userInfo.username in {{ concat (list $berth) .Values.admissionPolicy.exempt.users | toJson }})
{{- end }}

{{/* Where pods and templates are stamped with their user: everywhere but in berth's own namespace and those of the exemption. */}}
{{- define "berth.stampedNamespaces" -}}
{{- $left := concat .Values.admissionPolicy.exempt.namespaces (list .Release.Namespace) | uniq -}}
{{- $other := dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" $left -}}
matchPolicy: Equivalent
objectSelector: {}
namespaceSelector: {{ dict "matchExpressions" (list $other) | toJson }}
{{- end }}

{{/* Whose requests are stamped: not those of kubelets, nor of controllers, whose pods have the stamp of the template. */}}
{{- define "berth.stampConditions" -}}
{{- $berth := printf "system:serviceaccount:%s:berth" .Release.Namespace -}}
- {name: not-a-kubelet, expression: "!('system:nodes' in request.userInfo.groups)"}
- name: not-of-kubernetes
  expression: >-
    !(request.userInfo.username in ['system:kube-controller-manager',
    'system:serviceaccount:kube-system:deployment-controller', 'system:serviceaccount:kube-system:replicaset-controller',
    'system:serviceaccount:kube-system:replication-controller', 'system:serviceaccount:kube-system:statefulset-controller',
    'system:serviceaccount:kube-system:daemon-set-controller', 'system:serviceaccount:kube-system:job-controller',
    'system:serviceaccount:kube-system:cronjob-controller'])
- name: not-of-a-controller
  expression: >-
    !(request.userInfo.username in {{ concat (list $berth) .Values.userStamps.controllers | toJson }})
{{- end }}

{{/* What a stamp begins with, as a variable of a policy. */}}
{{- define "berth.stampMark" -}}
- {name: mark, expression: "'{{ .Values.userStamps.mark }}'"}
{{- end }}

{{/* A term of a CEL sum of lists: the pod template at this path, if it is there. */}}
{{- define "berth.templateAt" -}}
+ (object.?{{ . | replace "." ".?" }}.hasValue() ?
[{'path': dyn('/{{ . | replace "." "/" }}'), 'pod': dyn(object.{{ . }})}] : [])
{{- end }}

{{/* Likewise: those of a list or map at the first path, each at the second path in its element. */}}
{{- define "berth.templatesIn" -}}
{{- $all := index . 0 -}}
{{- $each := index . 1 -}}
+ (object.?{{ $all | replace "." ".?" }}.hasValue() ?
object.{{ $all }}.transformList(at, one, one.?{{ $each | replace "." ".?" }}.hasValue(),
{'path': dyn('/{{ $all | replace "." "/" }}/' + string(at) + '/{{ $each | replace "." "/" }}'), 'pod': dyn(one.{{ $each }})}) : [])
{{- end }}

{{/* What is mounted as files, as JSON: a volume, and where it is. */}}
{{- define "berth.files" -}}
{{- $files := list (dict "name" "config" "path" "/etc/berth" "source" (dict "configMap" (dict "name" "berth"))) -}}
{{- with .Values.tls.secretName -}}
{{- $files = append $files (dict "name" "tls" "path" "/etc/berth-tls" "source" (dict "secret" (dict "secretName" . "defaultMode" 0440))) -}}
{{- end -}}
{{- with .Values.tls.clientCa.secretName -}}
{{- $files = append $files (dict "name" "client-ca" "path" "/etc/berth-client-ca" "source" (dict "secret" (dict "secretName" . "defaultMode" 0440))) -}}
{{- end -}}
{{- with .Values.signIn.secretName -}}
{{- $files = append $files (dict "name" "sign-in" "path" "/etc/berth-sign-in" "source" (dict "secret" (dict "secretName" . "defaultMode" 0440))) -}}
{{- end -}}
{{- toJson $files -}}
{{- end }}

{{/* What a pod of berth runs as. */}}
{{- define "berth.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* A packed chart knows the digest of the image that was made with it; a tag of one's own is another image. */}}
{{- define "berth.image" -}}
{{- $digest := .Values.image.digest -}}
{{- if not (or $digest .Values.image.tag) -}}
{{- $digest = index (.Chart.Annotations | default dict) "berth.dev/image-digest" -}}
{{- end -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with $digest }}@{{ . }}{{ end }}
{{- end }}

{{/* The files that the chart writes, each with its name; the same for the server and for the check before an upgrade. */}}
{{- define "berth.documents" -}}
cluster.yaml: |
{{- if .Values.config }}
{{ toYaml .Values.config | indent 2 }}
{{- else }}
  cluster: kubernetes
  # What pods may not ask for: nothing is refused yet. `berth policy test` says what would be; then mode: enforce.
  admission:
    pod-security: {use: baseline, mode: dry-run}
  queues:
    team-a: {guaranteed: {gpus: 8}}
    team-b: {guaranteed: {gpus: 8}}
{{- end }}
{{- with .Values.prices }}
prices.yaml: |
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .Values.signIn.issuers }}
issuers.yaml: |
{{ toYaml (dict "issuers" .) | indent 2 }}
{{- end }}
{{- end }}

{{/* The arguments of the check, as JSON. */}}
{{- define "berth.checked" -}}
{{- $args := list "check" "/etc/berth/cluster.yaml" -}}
{{- if .Values.prices }}{{ $args = append $args "/etc/berth/prices.yaml" }}{{ end -}}
{{- if .Values.signIn.issuers }}{{ $args = append $args "/etc/berth/issuers.yaml" }}{{ end -}}
{{- toJson $args -}}
{{- end }}
