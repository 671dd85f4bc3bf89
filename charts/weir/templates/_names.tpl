{{/* Names and labels. The full name is cut at 40: revision labels and Job names stay below 63. */}}

{{- define "weir.chart" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "weir.fullname" -}}
{{- $name := include "weir.chart" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Name of a component's object: (list root "ingest"). */}}
{{- define "weir.name" -}}
{{- printf "%s-%s" (include "weir.fullname" (index . 0)) (index . 1) -}}
{{- end -}}

{{/* What selects a component's pods; immutable, so nothing else is ever added. */}}
{{- define "weir.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "weir.chart" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of an object: (list root "ingest"). */}}
{{- define "weir.labels" -}}
{{- $root := index . 0 -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name ($root.Chart.Version | replace "+" "_") }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "weir.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "weir.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Name of the Secret that a component reads: (list root "ingest"). */}}
{{- define "weir.secret" -}}
{{- $block := index (index . 0).Values (index . 1) -}}
{{- default (include "weir.name" .) $block.existingSecret -}}
{{- end -}}

{{- define "weir.secret.acl" -}}
{{- default (include "weir.name" (list . "redis-acl")) .Values.redis.existingSecret -}}
{{- end -}}

{{/* A value as the text of a variable: lists by commas, whole numbers without exponent. */}}
{{- define "weir.text" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if kindIs "float64" . -}}
{{- if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* An amount of memory in MiB, rounded up: "512Mi", "2Gi", "1500M", and "1000m" or "1g" of a JVM, in
lower case, since a JVM's M is MiB. The values' schema refuses every other unit. */}}
{{- define "weir.mebi" -}}
{{- $text := toString . -}}
{{- $number := regexFind "^[0-9.]+" $text | float64 -}}
{{- $unit := regexReplaceAll "^[0-9.]+" $text "" -}}
{{- $sizes := dict "" 0.00000095367431640625 "k" 0.0009765625 "K" 0.00095367431640625 "Ki" 0.0009765625 "m" 1.0 "M" 0.95367431640625 "Mi" 1.0 "g" 1024.0 "G" 953.67431640625 "Gi" 1024.0 "t" 1048576.0 "T" 953674.31640625 "Ti" 1048576.0 -}}
{{- mulf $number (get $sizes $unit) | ceil | int64 -}}
{{- end -}}
