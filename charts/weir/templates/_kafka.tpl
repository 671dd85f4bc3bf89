{{/* Where Kafka is. The bundled chart's name follows that chart's own rule. */}}

{{- define "weir.kafka.fullname" -}}
{{- $kafka := .Values.kafka -}}
{{- $name := default "kafka" $kafka.nameOverride -}}
{{- if $kafka.fullnameOverride -}}
{{- $kafka.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "weir.kafka.bootstrap" -}}
{{- if .Values.kafka.enabled -}}
{{- printf "%s:9092" (include "weir.kafka.fullname" .) -}}
{{- else -}}
{{- .Values.externalKafka.brokers -}}
{{- end -}}
{{- end -}}

{{/* The brokers' ports as a YAML list, each once. */}}
{{- define "weir.kafka.ports" -}}
{{- $ports := list -}}
{{- range splitList "," (include "weir.kafka.bootstrap" .) -}}
{{- $ports = append $ports (regexFind "[0-9]+$" (trim .) | int) -}}
{{- end -}}
{{- uniq $ports | toYaml -}}
{{- end -}}
