{{- define "weir.analytics.own" -}}
image: {{- toYaml .Values.analytics.image | nindent 2 }}
args: [python, -m, weir_analytics.panes]
env: {{- include "weir.serviceEnv" (list . "analytics" "WEIR_ANALYTICS_" (dict "state_dir" "/var/weir/state")) | nindent 2 }}
ports:
  - {name: mgmt, containerPort: 9090}
probes: {{- include "weir.probes" .Values.analytics.probes | nindent 2 }}
# RocksDB, zstd and netty unpack native code into /tmp: never mount it noexec.
tmpSize: 1Gi
mounts:
  - {name: secrets, mountPath: /run/weir/secrets, readOnly: true}
  - {name: state, mountPath: /var/weir/state}
  - {name: work, mountPath: /var/weir/state/spark}
volumes:
  {{- include "weir.secretsVolume" (list . "analytics" (list)) | nindent 2 }}
  - name: work
    emptyDir: {sizeLimit: {{ .Values.analytics.workSize }}}
{{- end -}}
