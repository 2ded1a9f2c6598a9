#!/bin/sh
# Starts a command of Exegesis in a container. Where a Ray cluster is set, this container first joins it, without taking
# work from it, and without the secrets of the server: Ray is driven from a node of the cluster. Without the cluster the pages still open, and jobs say why they fail.
set -eu
if [ -n "${EXEGESIS_RAY_ADDRESS:-}" ]; then
  env -u EXEGESIS_ADMIN_PASSWORD -u EXEGESIS_DATABASE_URL ray start --address="$EXEGESIS_RAY_ADDRESS" --num-cpus=0 --num-gpus=0 --disable-usage-stats ||
    echo "The Ray cluster at $EXEGESIS_RAY_ADDRESS was not joined. Restart this container once it is there." >&2
fi
exec exegesis "$@"
