{{- define "weir.apply.own" -}}
image: {{- toYaml .Values.ingest.image | nindent 2 }}
restartPolicy: Never
command:
  - python
  - -m
  - weir_cli
  - apply
  - --url
  - {{ printf "http://%s:%d" (include "weir.name" (list . "dashboard")) (int .Values.dashboard.service.port) }}
  - --key-file
  - /run/weir/secrets/bootstrap_key
  - --wait
  - "300"
  - -f
  - /etc/weir/definitions
{{- with .Values.apply.extraEnv }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
mounts:
  - {name: secrets, mountPath: /run/weir/secrets, readOnly: true}
  - {name: definitions, mountPath: /etc/weir/definitions, readOnly: true}
volumes:
  {{- include "weir.bootstrapVolume" . | nindent 2 }}
  - name: definitions
    configMap: {name: {{ include "weir.name" (list . "definitions") }}}
annotations:
  weir/definitions: {{ toYaml .Values.definitions | sha256sum }}
{{- end -}}

{{/* The first API key, for pods that speak to Weir as a client. */}}
{{- define "weir.bootstrapVolume" -}}
- name: secrets
  secret:
    secretName: {{ include "weir.secret" (list . "bootstrap") }}
    defaultMode: 288
    items: [{key: bootstrap_key, path: bootstrap_key}]
{{- end -}}
