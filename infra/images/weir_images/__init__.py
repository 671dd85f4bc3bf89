"""The images where there is no engine and no image registry: built, then run and counted with.

build.py   the real Dockerfiles, by buildah, on a base from Debian's packages
run.py     each on a read-only root as its user, on a real Kafka and Redis
"""
