{{- define "weir.alerts.own" -}}
{{- $computed := dict "dashboard_url" (include "weir.url" (list . "dashboard" 8080)) -}}
image: {{- toYaml .Values.alerts.image | nindent 2 }}
args: [python, -m, weir_analytics.alerts]
env: {{- include "weir.serviceEnv" (list . "alerts" "WEIR_ALERTS_" $computed) | nindent 2 }}
ports:
  - {name: mgmt, containerPort: 9090}
probes: {{- include "weir.probes" .Values.alerts.probes | nindent 2 }}
mounts:
  - {name: secrets, mountPath: /run/weir/secrets, readOnly: true}
volumes: {{- include "weir.secretsVolume" (list . "alerts" .Values.alerts.channelSecrets) | nindent 2 }}
{{- end -}}
