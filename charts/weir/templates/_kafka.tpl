{{/* Where Kafka is, and how it is reached. The bundled chart's name follows that chart's own rule. */}}

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

{{/* How brokers are spoken to; the bundled one is so without TLS and SASL. */}}
{{- define "weir.kafka.protocol" -}}
{{- ternary "PLAINTEXT" .Values.externalKafka.securityProtocol .Values.kafka.enabled -}}
{{- end -}}

{{/* What every client of Kafka is told, as a YAML object of settings. */}}
{{- define "weir.kafka.settings" -}}
{{- $protocol := include "weir.kafka.protocol" . -}}
kafka_bootstrap: {{ include "weir.kafka.bootstrap" . | quote }}
{{- if ne $protocol "PLAINTEXT" }}
kafka_security_protocol: {{ $protocol }}
{{- end }}
{{- if hasPrefix "SASL_" $protocol }}
kafka_sasl_mechanism: {{ .Values.externalKafka.sasl.mechanism }}
{{- end }}
{{- end -}}

{{/*
What tells brokers who comes, and the component whom to trust, as a YAML list of sources of its
volume of secrets: (list root "ingest"). With SASL a component's own Secret has user and password,
else a certificate and its key.
*/}}
{{- define "weir.kafka.sources" -}}
{{- $root := index . 0 -}}
{{- $own := (index $root.Values (index . 1)).kafkaSecret -}}
{{- $protocol := include "weir.kafka.protocol" $root -}}
{{- $sasl := $root.Values.externalKafka.sasl -}}
{{- $tls := $root.Values.externalKafka.tls -}}
{{- $client := $tls.client.existingSecret -}}
{{- $sources := list -}}
{{- if hasPrefix "SASL_" $protocol -}}
{{- $items := list (dict "key" $sasl.userKey "path" "kafka_user") (dict "key" $sasl.passwordKey "path" "kafka_password") -}}
{{- $sources = append $sources (dict "secret" (dict "name" (default $sasl.existingSecret $own) "items" $items)) -}}
{{- else -}}
{{- $client = default $client $own -}}
{{- end -}}
{{- if and (hasSuffix "SSL" $protocol) $tls.existingSecret -}}
{{- $items := list (dict "key" $tls.caKey "path" "kafka_ca") -}}
{{- $sources = append $sources (dict "secret" (dict "name" $tls.existingSecret "items" $items)) -}}
{{- end -}}
{{- if and (hasSuffix "SSL" $protocol) $client -}}
{{- $items := list (dict "key" $tls.client.certificateKey "path" "kafka_certificate") (dict "key" $tls.client.keyKey "path" "kafka_key") -}}
{{- $sources = append $sources (dict "secret" (dict "name" $client "items" $items)) -}}
{{- end -}}
{{- toYaml $sources -}}
{{- end -}}
