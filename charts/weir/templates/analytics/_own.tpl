{{- define "weir.analytics.own" -}}
{{- $inPods := eq .Values.analytics.mode "kubernetes" -}}
{{- $computed := dict "state_dir" "/var/weir/state" "master" "local[2,4]" -}}
{{- if $inPods -}}
{{- $computed = merge (include "weir.executors.settings" . | fromYaml) (dict "state_dir" "/var/weir/state") -}}
{{- end -}}
image: {{- toYaml .Values.analytics.image | nindent 2 }}
{{- if $inPods }}
account: {{ include "weir.driverAccount" . }}
# The driver reads the template once.
annotations: {weir/executor-template: {{ include "weir.executors.template" . | sha256sum | trunc 16 | quote }}}
{{- end }}
args: [python, -m, weir_analytics.panes]
env:
  {{- include "weir.serviceEnv" (list . "analytics" "WEIR_ANALYTICS_" $computed) | nindent 2 }}
  {{- if $inPods }}
  - name: WEIR_ANALYTICS_DRIVER_POD
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  # Not 0.0.0.0: an executor may be sent to the address that the driver binds to.
  - name: WEIR_ANALYTICS_DRIVER_ADDRESS
    valueFrom: {fieldRef: {fieldPath: status.podIP}}
  {{- end }}
ports:
  - {name: mgmt, containerPort: 9090}
  {{- if $inPods }}
  - {name: driver, containerPort: 7078}
  - {name: blocks, containerPort: 7079}
  {{- end }}
probes: {{- include "weir.probes" .Values.analytics.probes | nindent 2 }}
# RocksDB, zstd and netty unpack native code into /tmp: never mount it noexec.
tmpSize: 1Gi
mounts:
  - {name: secrets, mountPath: /run/weir/secrets, readOnly: true}
  - {name: state, mountPath: /var/weir/state}
  - {name: work, mountPath: /var/weir/state/spark}
  {{- if $inPods }}
  - {name: executor, mountPath: /run/weir/executor, readOnly: true}
  {{- end }}
volumes:
  {{- include "weir.secretsVolume" (list . "analytics" (list)) | nindent 2 }}
  - name: work
    emptyDir: {sizeLimit: {{ .Values.analytics.workSize }}}
  {{- if $inPods }}
  - name: executor
    configMap: {name: {{ include "weir.name" (list . "executor") }}}
  {{- end }}
{{- end -}}
