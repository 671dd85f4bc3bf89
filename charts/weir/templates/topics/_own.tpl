{{- define "weir.topics.own" -}}
{{- $computed := dict
      "kafka_bootstrap" (include "weir.kafka.bootstrap" .)
      "replication_factor" (ternary 1 3 .Values.kafka.enabled) -}}
image: {{- toYaml .Values.ingest.image | nindent 2 }}
restartPolicy: Never
command: [python, -m, weir_ingest.topics, apply]
env: {{- include "weir.env" (dict "prefix" "WEIR_TOPICS_" "computed" $computed "config" .Values.topics.config "extra" .Values.topics.extraEnv) | nindent 2 }}
{{- end -}}
