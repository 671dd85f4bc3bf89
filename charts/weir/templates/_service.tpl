{{/* The Service of a component that people or clients call: (list root "ingest" "http"). */}}
{{- define "weir.service" -}}
{{- $root := index . 0 -}}
{{- $service := (index $root.Values (index . 1)).service -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "weir.name" (list $root (index . 1)) }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "weir.labels" (list $root (index . 1)) | nindent 4 }}
  {{- with $service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $service.type }}
  selector: {{- include "weir.selector" (list $root (index . 1)) | nindent 4 }}
  ports:
    - name: http
      port: {{ int $service.port }}
      targetPort: http
      appProtocol: {{ index . 2 }}
{{- end -}}

{{/* Scaling by CPU: (list root "ingest"). */}}
{{- define "weir.autoscaler" -}}
{{- $root := index . 0 -}}
{{- $scaling := (index $root.Values (index . 1)).autoscaling -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "weir.name" (list $root (index . 1)) }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "weir.labels" (list $root (index . 1)) | nindent 4 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "weir.name" (list $root (index . 1)) }}
  minReplicas: {{ int $scaling.minReplicas }}
  maxReplicas: {{ int $scaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ int $scaling.targetCPUUtilizationPercentage }}}
    {{- with $scaling.extraMetrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  behavior:
    scaleUp: {stabilizationWindowSeconds: 0}
    scaleDown: {stabilizationWindowSeconds: 300}
{{- end -}}

{{/* A budget, only where more than one pod is certain: (list root "ingest"). */}}
{{- define "weir.disruptionBudget" -}}
{{- $root := index . 0 -}}
{{- $block := index $root.Values (index . 1) -}}
{{- $pods := ternary $block.autoscaling.minReplicas $block.replicaCount $block.autoscaling.enabled | int -}}
{{- if and $block.podDisruptionBudget.enabled (gt $pods 1) -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "weir.name" (list $root (index . 1)) }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "weir.labels" (list $root (index . 1)) | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "weir.selector" (list $root (index . 1)) | nindent 6 }}
{{- end -}}
{{- end -}}

{{/* A headless Service that names a StatefulSet's pods: (list root "analytics" "mgmt" 9090). */}}
{{- define "weir.headless" -}}
{{- $root := index . 0 -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "weir.name" (list $root (index . 1)) }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "weir.labels" (list $root (index . 1)) | nindent 4 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {{- include "weir.selector" (list $root (index . 1)) | nindent 4 }}
  ports:
    - {name: {{ index . 2 }}, port: {{ index . 3 }}, targetPort: {{ index . 2 }}}
{{- end -}}

{{/* A StatefulSet of one pod with one volume: (list root "redis" own "data"). */}}
{{- define "weir.statefulSet" -}}
{{- $root := index . 0 -}}
{{- $block := index $root.Values (index . 1) -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ include "weir.name" (list $root (index . 1)) }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "weir.labels" (list $root (index . 1)) | nindent 4 }}
spec:
  replicas: 1
  serviceName: {{ include "weir.name" (list $root (index . 1)) }}
  # OrderedReady would wait for a broken revision's pod before it takes the one that mends it.
  podManagementPolicy: Parallel
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}
  selector:
    matchLabels: {{- include "weir.selector" (list $root (index . 1)) | nindent 6 }}
  template: {{- include "weir.podTemplate" (dict "root" $root "component" (index . 1) "block" $block "own" (index . 2)) | nindent 4 }}
  volumeClaimTemplates:
    - apiVersion: v1
      kind: PersistentVolumeClaim
      metadata:
        name: {{ index . 3 }}
        {{- with $block.persistence.annotations }}
        annotations: {{- toYaml . | nindent 10 }}
        {{- end }}
      spec:
        accessModes: {{- toYaml $block.persistence.accessModes | nindent 10 }}
        {{- with $block.persistence.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
        resources: {requests: {storage: {{ $block.persistence.size }}}}
{{- end -}}
