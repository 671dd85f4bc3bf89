{{/* Every pod of Weir is made here, so that every one is as restricted as the others. */}}

{{/* Reference of an image: (list root block.image). A digest wins over a tag. */}}
{{- define "weir.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $name := $image.repository -}}
{{- with $image.registry -}}
{{- $name = printf "%s/%s" . $image.repository -}}
{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $name $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default $root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/*
The variables of a container: (dict prefix computed config extra), settings first. What
`config` says wins over what the chart computed.
*/}}
{{- define "weir.env" -}}
{{- $prefix := .prefix -}}
{{- $settings := merge (dict) (.config | default dict) (.computed | default dict) -}}
{{- range $key, $value := $settings -}}
{{- $text := include "weir.text" $value -}}
{{- if and (not (kindIs "invalid" $value)) (ne $text "") }}
- name: {{ printf "%s%s" $prefix (upper $key) }}
  value: {{ $text | quote }}
{{- end }}
{{- end }}
{{- with .extra }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What all services are told: (list root "ingest" "WEIR_INGEST_" computed). */}}
{{- define "weir.serviceEnv" -}}
{{- $root := index . 0 -}}
{{- $block := index $root.Values (index . 1) -}}
{{- $shared := dict
      "host" "0.0.0.0"
      "ops_port" 9090
      "redis_url" (include "weir.redis.url" (list $root (index . 1)))
      "secrets_dir" "/run/weir/secrets" -}}
{{- $shared = merge $shared (include "weir.kafka.settings" $root | fromYaml) -}}
- name: {{ index . 2 }}INSTANCE
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- include "weir.env" (dict "prefix" (index . 2) "computed" (merge (dict) (index . 3) $shared) "config" $block.config "extra" $block.extraEnv) }}
{{- end -}}

{{/* Probes at the ops port: (dict probes). No liveness probe looks at a dependency. */}}
{{- define "weir.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: mgmt}
  {{- toYaml .startup | nindent 2 }}
livenessProbe:
  httpGet: {path: /livez, port: mgmt}
  {{- toYaml .liveness | nindent 2 }}
readinessProbe:
  httpGet: {path: /readyz, port: mgmt}
  {{- toYaml .readiness | nindent 2 }}
{{- end -}}

{{/* The volume of a pod's own secrets, readable by its group only: (list root "ingest" more). */}}
{{- define "weir.secretsVolume" -}}
{{- $root := index . 0 -}}
- name: secrets
  projected:
    defaultMode: 288
    sources:
      - secret: {name: {{ include "weir.secret" (list $root (index . 1)) }}}
      {{- with $root.Values.externalRedis.existingSecret }}
      - secret: {name: {{ . }}, items: [{key: redis_password, path: redis_password}]}
      {{- end }}
      {{- with include "weir.kafka.sources" (list $root (index . 1)) | fromYamlArray }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- range (index . 2) }}
      - secret: {name: {{ . }}}
      {{- end }}
{{- end -}}

{{- define "weir.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "weir.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/*
A pod template: (dict root component block own). `own` is what only this component has: image,
command, args, env, ports, probes, lifecycle, mounts, volumes, tmpSize, restartPolicy,
annotations, name (of the container), account (with its token).
*/}}
{{- define "weir.podTemplate" -}}
{{- $own := .own -}}
{{- $annotations := merge (dict) (.block.podAnnotations | default dict) ($own.annotations | default dict) -}}
{{- with .root.Values.secretsRevision -}}
{{- $_ := set $annotations "weir/secrets-revision" (toString .) -}}
{{- end -}}
metadata:
  labels:
    {{- include "weir.selector" (list .root .component) | nindent 4 }}
    {{- if has .component (list "ingest" "analytics" "alerts" "dashboard") }}
    weir/mgmt: "true"
    {{- end }}
    {{ include "weir.kafka.fullname" .root }}-client: "true"
    {{- with .root.Values.commonLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .block.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec: {{- include "weir.podSpec" . | nindent 2 }}
{{- end -}}

{{- define "weir.podSpec" -}}
{{- $own := .own -}}
{{- $block := .block -}}
serviceAccountName: {{ $own.account | default (include "weir.serviceAccount" .root) }}
automountServiceAccountToken: {{ hasKey $own "account" }}
# With them, a Service called weir-ingest would set WEIR_INGEST_PORT to tcp://….
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext: {{- mustMergeOverwrite (include "weir.podSecurity" .root | fromYaml) ($block.podSecurityContext | default dict) | toYaml | nindent 2 }}
terminationGracePeriodSeconds: {{ int $block.terminationGracePeriodSeconds }}
{{- with $own.restartPolicy }}
restartPolicy: {{ . }}
{{- end }}
{{- with $block.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with get $block $key }}
{{ $key }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
containers:
  - name: {{ $own.name | default .component }}
    image: {{ include "weir.image" (list .root $own.image) }}
    imagePullPolicy: {{ $own.image.pullPolicy }}
    securityContext: {{- mustMergeOverwrite (include "weir.containerSecurity" .root | fromYaml) ($block.securityContext | default dict) | toYaml | nindent 6 }}
    {{- range $key := list "command" "args" "env" "ports" "lifecycle" }}
    {{- with get $own $key }}
    {{ $key }}: {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- end }}
    {{- with $own.probes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    resources: {{- toYaml $block.resources | nindent 6 }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      {{- with $own.mounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with $block.extraVolumeMounts }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: {{ $own.tmpSize | default "64Mi" }}}
  {{- with $own.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with $block.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
