{{- define "weir.topics.own" -}}
{{- $computed := merge (dict "replication_factor" (ternary 1 3 .Values.kafka.enabled)) (include "weir.kafka.settings" . | fromYaml) -}}
{{- $sources := include "weir.kafka.sources" (list . "topics") | fromYamlArray -}}
{{- if $sources -}}
{{- $_ := set $computed "secrets_dir" "/run/weir/secrets" -}}
{{- end -}}
image: {{- toYaml .Values.ingest.image | nindent 2 }}
restartPolicy: Never
command: [python, -m, weir_ingest.topics, apply]
env: {{- include "weir.env" (dict "prefix" "WEIR_TOPICS_" "computed" $computed "config" .Values.topics.config "extra" .Values.topics.extraEnv) | nindent 2 }}
{{- with $sources }}
mounts:
  - {name: secrets, mountPath: /run/weir/secrets, readOnly: true}
volumes:
  - name: secrets
    projected:
      defaultMode: 288
      sources: {{- toYaml . | nindent 8 }}
{{- end }}
{{- end -}}
