{{/* Executors as pods that the driver makes (analytics.mode kubernetes). */}}

{{- define "weir.driverAccount" -}}
{{- default (include "weir.name" (list . "analytics")) .Values.analytics.driverAccount -}}
{{- end -}}

{{/* MiB that an executor's pod may use: the heap and what is beside it. */}}
{{- define "weir.executors.mebi" -}}
{{- $executors := .Values.analytics.executors -}}
{{- add (include "weir.mebi" $executors.memory | int) (include "weir.mebi" $executors.memoryOverhead | int) -}}
{{- end -}}

{{/* What the driver is told of executors. */}}
{{- define "weir.executors.settings" -}}
{{- $executors := .Values.analytics.executors -}}
{{- $name := include "weir.name" (list . "analytics") -}}
master: k8s://https://kubernetes.default.svc:443
driver_name: {{ printf "%s-0.%s.%s.svc" $name $name .Release.Namespace }}
driver_port: 7078
blocks_port: 7079
namespace: {{ .Release.Namespace }}
executor_image: {{ include "weir.image" (list . .Values.analytics.image) }}
executor_pull_policy: {{ .Values.analytics.image.pullPolicy }}
executor_prefix: {{ include "weir.fullname" . }}
executor_template: /run/weir/executor/pod.yaml
executor_instances: {{ int $executors.instances }}
executor_cores: {{ int $executors.cores }}
executor_cpu: {{ $executors.cpu | quote }}
executor_memory: {{ include "weir.mebi" $executors.memory }}m
executor_overhead: {{ include "weir.mebi" $executors.memoryOverhead }}m
{{- end -}}

{{/*
What every executor has. Spark adds names, variables, the one argument `executor`, and sets image
and resources to what the settings above say, which is the same.
*/}}
{{- define "weir.executor.own" -}}
image: {{- toYaml .Values.analytics.image | nindent 2 }}
name: spark-kubernetes-executor
restartPolicy: Never
env: {{- toYaml .Values.analytics.executors.extraEnv | nindent 2 }}
ports:
  - {name: blocks, containerPort: 7079}
tmpSize: 1Gi
mounts:
  - {name: secrets, mountPath: /run/weir/secrets, readOnly: true}
  - {name: state, mountPath: /var/weir/state}
  # By its name Spark knows that it needs no other place to write to.
  - {name: spark-local-dir-1, mountPath: /var/weir/state/spark}
volumes:
  {{- include "weir.secretsVolume" (list . "analytics" (list)) | nindent 2 }}
  - name: state
    persistentVolumeClaim: {claimName: {{ printf "state-%s-0" (include "weir.name" (list . "analytics")) }}}
  - name: spark-local-dir-1
    emptyDir: {sizeLimit: {{ .Values.analytics.workSize }}}
{{- end -}}

{{- define "weir.executors.template" -}}
{{- $executors := .Values.analytics.executors -}}
{{- $memory := printf "%sMi" (include "weir.executors.mebi" .) -}}
{{- $resources := dict "requests" (dict "cpu" $executors.cpu "memory" $memory) "limits" (dict "memory" $memory) -}}
{{- $block := merge (dict "resources" $resources) $executors -}}
apiVersion: v1
kind: Pod
{{ include "weir.podTemplate" (dict "root" . "component" "executor" "block" $block "own" (include "weir.executor.own" . | fromYaml)) }}
{{- end -}}
