{{/*
What a schema cannot see: values that contradict each other. All faults are told at once, each
with the value and the mend.
*/}}
{{- define "weir.validate" -}}
{{- $faults := concat
      (include "weir.validate.stores" . | fromYamlArray)
      (include "weir.validate.kafka" . | fromYamlArray)
      (include "weir.validate.single" . | fromYamlArray)
      (include "weir.validate.memory" . | fromYamlArray)
      (include "weir.validate.executors" . | fromYamlArray)
      (include "weir.validate.env" . | fromYamlArray)
      (include "weir.validate.secrets" . | fromYamlArray)
      (include "weir.validate.expose" . | fromYamlArray) -}}
{{- if $faults -}}
{{- fail (printf "\n%s" (join "\n" $faults)) -}}
{{- end -}}
{{- end -}}

{{- define "weir.validate.stores" -}}
{{- $faults := list -}}
{{- if and .Values.kafka.enabled .Values.externalKafka.brokers -}}
{{- $faults = append $faults (printf "externalKafka.brokers must be empty while kafka.enabled is true, got %q; set kafka.enabled=false to use your own Kafka" .Values.externalKafka.brokers) -}}
{{- end -}}
{{- if and (not .Values.kafka.enabled) (not .Values.externalKafka.brokers) -}}
{{- $faults = append $faults "externalKafka.brokers must name your Kafka while kafka.enabled is false, got none; set externalKafka.brokers=host:9092 or kafka.enabled=true" -}}
{{- end -}}
{{- if and .Values.redis.enabled .Values.externalRedis.url -}}
{{- $faults = append $faults (printf "externalRedis.url must be empty while redis.enabled is true, got %q; set redis.enabled=false to use your own Redis" .Values.externalRedis.url) -}}
{{- end -}}
{{- if and (not .Values.redis.enabled) (not .Values.externalRedis.url) -}}
{{- $faults = append $faults "externalRedis.url must name your Redis while redis.enabled is false, got none; set externalRedis.url=rediss://user@host:6379/0 or redis.enabled=true" -}}
{{- end -}}
{{- $replicas := int (default 1 .Values.topics.config.replication_factor) -}}
{{- $brokers := int .Values.kafka.controller.replicaCount -}}
{{- if and .Values.kafka.enabled (gt $replicas $brokers) -}}
{{- $faults = append $faults (printf "topics.config.replication_factor must be at most the %d brokers of kafka.controller.replicaCount, got %d; lower it, or use your own Kafka" $brokers $replicas) -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{/* What is named and would not be used is a fault, too: whoever named it counts on it. */}}
{{- define "weir.validate.kafka" -}}
{{- $faults := list -}}
{{- $protocol := .Values.externalKafka.securityProtocol -}}
{{- $sasl := .Values.externalKafka.sasl.existingSecret -}}
{{- $tls := .Values.externalKafka.tls -}}
{{- if and .Values.kafka.enabled (ne $protocol "PLAINTEXT") -}}
{{- $faults = append $faults (printf "externalKafka.securityProtocol must be PLAINTEXT while kafka.enabled is true, got %s; set kafka.enabled=false to use your own Kafka" $protocol) -}}
{{- end -}}
{{- $made := dict -}}
{{- range $reader := list "ingest" "analytics" "alerts" "dashboard" "bootstrap" -}}
{{- if not (index $.Values $reader).existingSecret -}}
{{- $_ := set $made (include "weir.secret" (list $ $reader)) true -}}
{{- end -}}
{{- end -}}
{{- $own := list -}}
{{- $nameless := list -}}
{{- range $component := list "topics" "ingest" "analytics" "alerts" "dashboard" -}}
{{- $block := index $.Values $component -}}
{{- if $block.kafkaSecret -}}
{{- $own = append $own (printf "%s.kafkaSecret" $component) -}}
{{- if hasKey $made $block.kafkaSecret -}}
{{- $faults = append $faults (printf "%s.kafkaSecret must name a Secret of yours, got %q, which the chart makes; give yours another name" $component $block.kafkaSecret) -}}
{{- end -}}
{{- else if $block.enabled -}}
{{- $nameless = append $nameless $component -}}
{{- end -}}
{{- end -}}
{{- if and (hasPrefix "SASL_" $protocol) (not $sasl) $nameless -}}
{{- $faults = append $faults (printf "externalKafka.sasl.existingSecret must name a Secret with user and password while externalKafka.securityProtocol is %s, got none for %s; set it, or kafkaSecret of each" $protocol (join ", " $nameless)) -}}
{{- end -}}
{{- if and (not (hasPrefix "SASL_" $protocol)) $sasl -}}
{{- $faults = append $faults (printf "externalKafka.sasl.existingSecret must be empty while externalKafka.securityProtocol is %s, got %q; set the protocol to SASL_SSL, or remove it" $protocol $sasl) -}}
{{- end -}}
{{- range $name, $secret := dict "tls.existingSecret" $tls.existingSecret "tls.client.existingSecret" $tls.client.existingSecret -}}
{{- if and (not (hasSuffix "SSL" $protocol)) $secret -}}
{{- $faults = append $faults (printf "externalKafka.%s must be empty while externalKafka.securityProtocol is %s, got %q; set the protocol to SSL or SASL_SSL, or remove it" $name $protocol $secret) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $protocol "PLAINTEXT") $own -}}
{{- $faults = append $faults (printf "kafkaSecret must be empty while externalKafka.securityProtocol is PLAINTEXT, which asks nobody who they are, got %s; set the protocol, or remove it" (join ", " $own)) -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "weir.validate.single" -}}
{{- $faults := list -}}
{{- range $component := list "analytics" "alerts" "redis" -}}
{{- $count := int (index $.Values $component).replicaCount -}}
{{- if ne $count 1 -}}
{{- $faults = append $faults (printf "%s.replicaCount must be 1, got %d; a second one is never of use: remove it" $component $count) -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "weir.validate.memory" -}}
{{- $faults := list -}}
{{- $config := .Values.analytics.config -}}
{{- $heap := include "weir.mebi" (default "1g" $config.driver_memory | lower) | int -}}
{{- $cores := regexFind "[0-9]+" (default "local[2,4]" $config.master) | default "1" | int -}}
{{- $parts := "the heap, 400 Mi beside it, 200 Mi a core" -}}
{{- if eq .Values.analytics.mode "kubernetes" -}}
{{- $cores = 0 -}}
{{- $parts = "the heap, 400 Mi beside it" -}}
{{- end -}}
{{- $needed := add $heap 400 (mul $cores 200) | int -}}
{{- $limit := include "weir.mebi" .Values.analytics.resources.limits.memory | int -}}
{{- if gt $needed $limit -}}
{{- $faults = append $faults (printf "analytics.resources.limits.memory must be at least %dMi (%s), got %dMi; raise it, or lower analytics.config.driver_memory" $needed $parts $limit) -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "weir.validate.executors" -}}
{{- $faults := list -}}
{{- $analytics := .Values.analytics -}}
{{- $master := default "" $analytics.config.master -}}
{{- if eq $analytics.mode "kubernetes" -}}
{{- if not (has "ReadWriteMany" $analytics.persistence.accessModes) -}}
{{- $faults = append $faults (printf "analytics.persistence.accessModes must have ReadWriteMany while analytics.mode is kubernetes, got %s: executors keep the dedup runs where all of them see them; set it, with a storage class that can be shared" (join ", " $analytics.persistence.accessModes)) -}}
{{- end -}}
{{- $executors := $analytics.executors -}}
{{- $needed := add 400 (mul (int $executors.cores) 200) | int -}}
{{- $beside := include "weir.mebi" $executors.memoryOverhead | int -}}
{{- if lt $beside $needed -}}
{{- $faults = append $faults (printf "analytics.executors.memoryOverhead must be at least %dMi (400 Mi, 200 Mi a core), got %dMi; raise it, or lower analytics.executors.cores" $needed $beside) -}}
{{- end -}}
{{- $heap := include "weir.mebi" $executors.memory | int -}}
{{- if lt $heap 512 -}}
{{- $faults = append $faults (printf "analytics.executors.memory must be at least 512Mi, with less Spark does not start, got %dMi; raise it" $heap) -}}
{{- end -}}
{{- if and $master (not (hasPrefix "k8s://" $master)) -}}
{{- $faults = append $faults (printf "analytics.config.master must be left out while analytics.mode is kubernetes, got %q; remove it, or set analytics.mode=local" $master) -}}
{{- end -}}
{{- else if hasPrefix "k8s://" $master -}}
{{- $faults = append $faults (printf "analytics.config.master must be local while analytics.mode is local, got %q; set analytics.mode=kubernetes" $master) -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{/* A name that comes twice is refused by the cluster, with words that name no value. */}}
{{- define "weir.validate.env" -}}
{{- $faults := list -}}
{{- range $component := list "ingest" "analytics" "alerts" "dashboard" "redis" "topics" "apply" "check" -}}
{{- $seen := dict -}}
{{- $own := include (printf "weir.%s.own" $component) $ | fromYaml -}}
{{- range $own.env -}}
{{- if hasKey $seen .name -}}
{{- $faults = append $faults (printf "%s.extraEnv must not repeat a variable, got %s; remove it, or set it in %s.config" $component .name $component) -}}
{{- end -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{/* A password stands in two Secrets: who makes one of them must make all. */}}
{{- define "weir.validate.secrets" -}}
{{- $faults := list -}}
{{- $readers := list "ingest" "analytics" "alerts" "dashboard" "bootstrap" -}}
{{- if .Values.redis.enabled -}}
{{- $readers = append $readers "redis" -}}
{{- end -}}
{{- $missing := list -}}
{{- range $reader := $readers -}}
{{- if not (index $.Values $reader).existingSecret -}}
{{- $missing = append $missing (printf "%s.existingSecret" $reader) -}}
{{- end -}}
{{- end -}}
{{- if and $missing (lt (len $missing) (len $readers)) -}}
{{- $faults = append $faults (printf "either every existingSecret must be set or none, missing %s; passwords stand in two Secrets" (join ", " $missing)) -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}

{{- define "weir.validate.expose" -}}
{{- $faults := list -}}
{{- if ne .Values.expose.kind "none" -}}
{{- range $component := list "ingest" "dashboard" -}}
{{- if not (index $.Values.expose $component).host -}}
{{- $faults = append $faults (printf "expose.%s.host must be the host's name while expose.kind is %s, got none; set it, or expose.kind=none" $component $.Values.expose.kind) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.expose.kind "httpRoute") (not .Values.expose.httpRoute.parentRefs) -}}
{{- $faults = append $faults "expose.httpRoute.parentRefs must name a Gateway while expose.kind is httpRoute, got none; set expose.httpRoute.parentRefs[0].name" -}}
{{- end -}}
{{- toYaml $faults -}}
{{- end -}}
