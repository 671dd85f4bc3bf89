{{- define "weir.redis.own" -}}
image: {{- toYaml .Values.redis.image | nindent 2 }}
command: [redis-server, /etc/redis/redis.conf, --dir, /data, --aclfile, /run/weir/secrets/users.acl]
{{- with .Values.redis.extraEnv }}
env: {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - {name: redis, containerPort: 6379}
probes:
  startupProbe:
    tcpSocket: {port: redis}
    {{- toYaml .Values.redis.probes.startup | nindent 4 }}
  livenessProbe:
    tcpSocket: {port: redis}
    {{- toYaml .Values.redis.probes.liveness | nindent 4 }}
  readinessProbe:
    exec:
      # The client exits 0 on an error, too, and LOADING is one. The probe's user has no
      # password, but the client sends its name only with one.
      command: [sh, -c, "redis-cli --no-auth-warning --user probe --pass none ping | grep -q PONG"]
    {{- toYaml .Values.redis.probes.readiness | nindent 4 }}
mounts:
  - {name: config, mountPath: /etc/redis, readOnly: true}
  - {name: acl, mountPath: /run/weir/secrets, readOnly: true}
  - {name: data, mountPath: /data}
volumes:
  - name: config
    configMap: {name: {{ include "weir.name" (list . "redis") }}}
  - name: acl
    secret: {secretName: {{ include "weir.secret.acl" . }}, defaultMode: 288}
annotations:
  weir/config: {{ include "weir.redis.config" . | sha256sum }}
{{- end -}}

{{- define "weir.redis.config" -}}
port 6379
bind * -::*
protected-mode no
save ""
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
maxmemory {{ div (mul (include "weir.mebi" .Values.redis.resources.limits.memory | int64) 60) 100 }}mb
{{- end -}}
