{{- define "weir.check.own" -}}
image: {{- toYaml .Values.ingest.image | nindent 2 }}
restartPolicy: Never
command: [python, /opt/check/check.py]
env:
  - {name: WEIR_INGEST_URL, value: {{ printf "http://%s:%d" (include "weir.name" (list . "ingest")) (int .Values.ingest.service.port) | quote }}}
  - {name: WEIR_DASHBOARD_URL, value: {{ printf "http://%s:%d" (include "weir.name" (list . "dashboard")) (int .Values.dashboard.service.port) | quote }}}
  - {name: WEIR_API_KEY_FILE, value: /run/weir/secrets/bootstrap_key}
  {{- with .Values.check.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
mounts:
  - {name: secrets, mountPath: /run/weir/secrets, readOnly: true}
  - {name: check, mountPath: /opt/check, readOnly: true}
volumes:
  {{- include "weir.bootstrapVolume" . | nindent 2 }}
  - name: check
    configMap: {name: {{ include "weir.name" (list . "check") }}}
{{- end -}}
