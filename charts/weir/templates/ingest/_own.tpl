{{- define "weir.ingest.own" -}}
image: {{- toYaml .Values.ingest.image | nindent 2 }}
command: [python, -m, weir_ingest]
env: {{- include "weir.serviceEnv" (list . "ingest" "WEIR_INGEST_" (dict "port" 8080)) | nindent 2 }}
ports:
  - {name: http, containerPort: 8080}
  - {name: mgmt, containerPort: 9090}
probes: {{- include "weir.probes" .Values.ingest.probes | nindent 2 }}
# Endpoints forget the pod before it takes no more connections.
lifecycle: {preStop: {sleep: {seconds: 5}}}
mounts:
  - {name: secrets, mountPath: /run/weir/secrets, readOnly: true}
volumes: {{- include "weir.secretsVolume" (list . "ingest" (list)) | nindent 2 }}
{{- end -}}
