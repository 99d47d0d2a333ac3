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
{{- if .Values.tls.secretName -}}
{{- $args = concat $args (list "--listen" "0.0.0.0" "--tls-cert" "/etc/berth-tls/tls.crt" "--tls-key" "/etc/berth-tls/tls.key") -}}
{{- end -}}
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
