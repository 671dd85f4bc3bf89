{{- define "weir.dashboard.own" -}}
{{- $computed := dict "port" 8080 "ingest_url" (include "weir.url" (list . "ingest" 8081)) -}}
{{- if ne .Values.expose.kind "none" -}}
{{- $_ := set $computed "origins" (include "weir.url" (list . "dashboard" 8080)) -}}
{{- end -}}
image: {{- toYaml .Values.dashboard.image | nindent 2 }}
command: [python, -m, weir_dashboard]
env: {{- include "weir.serviceEnv" (list . "dashboard" "WEIR_DASHBOARD_" $computed) | nindent 2 }}
ports:
  - {name: http, containerPort: 8080}
  - {name: mgmt, containerPort: 9090}
probes: {{- include "weir.probes" .Values.dashboard.probes | nindent 2 }}
lifecycle: {preStop: {sleep: {seconds: 5}}}
mounts:
  - {name: secrets, mountPath: /run/weir/secrets, readOnly: true}
volumes: {{- include "weir.secretsVolume" (list . "dashboard" (list)) | nindent 2 }}
{{- end -}}

{{/* Address that people or clients use: (list root "ingest" port-of-a-port-forward). */}}
{{- define "weir.url" -}}
{{- $root := index . 0 -}}
{{- if eq $root.Values.expose.kind "none" -}}
{{- printf "http://localhost:%d" (int (index . 2)) -}}
{{- else -}}
{{- printf "%s://%s" $root.Values.expose.scheme (index $root.Values.expose (index . 1)).host -}}
{{- end -}}
{{- end -}}
