{{/* Where Redis is, and who may do what there. */}}

{{/* Address for a component's user: (list root "ingest"). The password is a file. */}}
{{- define "weir.redis.url" -}}
{{- $root := index . 0 -}}
{{- if $root.Values.redis.enabled -}}
{{- printf "redis://%s@%s:6379/0" (index . 1) (include "weir.name" (list $root "redis")) -}}
{{- else -}}
{{- $root.Values.externalRedis.url -}}
{{- end -}}
{{- end -}}

{{- define "weir.redis.port" -}}
{{- if .Values.redis.enabled -}}
6379
{{- else -}}
{{- default "6379" (regexFind ":[0-9]+(/|$)" .Values.externalRedis.url | trimPrefix ":" | trimSuffix "/") -}}
{{- end -}}
{{- end -}}

{{/*
The file of users. Each has the keys that it needs of weir/names.py, and only a hash of its
password is written. %R~ is read only. INFO tells the driver whether Redis may evict, and the
alerts job how much memory is left.
*/}}
{{- define "weir.redis.acl" -}}
{{- $calm := "resetchannels +@all -@admin -@dangerous" -}}
user default reset off
user probe reset on nopass resetchannels -@all +ping
user ingest reset on #{{ sha256sum .ingest }} ~weir:1:tail:* ~weir:1:part:ingest:* ~weir:1:used:* {{ $calm }}
user analytics reset on #{{ sha256sum .analytics }} ~weir:1:{s* ~weir:1:batches ~weir:1:part:panes:* ~weir:1:job:* ~weir:1:slots:* {{ $calm }} +info
user alerts reset on #{{ sha256sum .alerts }} %R~weir:1:{s* %R~weir:1:batches %R~weir:1:part:* ~weir:1:part:alerts:* {{ $calm }} +info
user dashboard reset on #{{ sha256sum .dashboard }} %R~weir:1:{s* %R~weir:1:batches %R~weir:1:part:* %R~weir:1:job:* %R~weir:1:tail:* ~weir:1:part:dashboard:* ~weir:1:slots:* ~weir:1:session:* ~weir:1:once:* ~weir:1:used:* {{ $calm }}
{{- end -}}
