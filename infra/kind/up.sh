#!/bin/sh
# Weir on a cluster of kind: cluster, images, chart, test. Run it again after an edit.
# Needs a container engine, kind, kubectl and helm; see docs/install.md.
set -eu
cd "$(dirname "$0")/../.."

for program in docker kind kubectl helm; do
	command -v "$program" >/dev/null || {
		echo "infra/kind/up.sh: $program must be on PATH, found none; install it" >&2
		exit 1
	}
done

kind get clusters | grep -qx weir || kind create cluster --config infra/kind/cluster.yaml --wait 120s

# A tag of its content: pods are replaced only where the image is another.
set --
for name in ingest analytics dashboard; do
	docker build -f "services/$name/Dockerfile" -t "weir-$name:dev" .
	tag=$(docker image inspect --format '{{.Id}}' "weir-$name:dev" | cut -c 8-19)
	docker tag "weir-$name:dev" "weir-$name:$tag"
	kind load docker-image --name weir "weir-$name:$tag"
	set -- "$@" --set "$name.image.tag=$tag"
	[ "$name" != analytics ] || set -- "$@" --set "alerts.image.tag=$tag"
done

helm dependency build charts/weir
helm upgrade weir charts/weir --install --kube-context kind-weir --namespace weir --create-namespace \
	--values charts/weir/ci/dev-values.yaml --wait --wait-for-jobs --timeout 10m "$@"
helm test weir --kube-context kind-weir --namespace weir --logs
helm get notes weir --kube-context kind-weir --namespace weir
