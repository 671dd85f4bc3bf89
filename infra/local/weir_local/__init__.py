"""Weir on one machine: real Kafka, real Redis and the services, as plain processes.

`python -m weir_local` is what `make up`, `demo`, `down`, `status`, `logs` and
`reset` run. `weir_local.kafka.Broker` and `weir_local.redis.RedisServer` are also
what the tests start. Nothing here is needed on Kubernetes.
"""
