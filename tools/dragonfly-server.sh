#!/usr/bin/env bash
# Starts Dragonfly with the arguments of a redis-server, for tools/servers-matrix.sh and HOLDFAST_REDIS_SERVER. An
# argument that Dragonfly has nothing for is an error, so that no test passes without it.
set -euo pipefail

args=(--bind=127.0.0.1 --dbfilename= --alsologtostderr --proactor_threads=2)
while [ $# -gt 0 ]; do
	case $1 in
	--version) exec dragonfly --version ;;
	--save | --appendonly | --loglevel | --logfile | --daemonize | --bind) ;; # as we want it in any case
	--port | --dir | --requirepass | --maxmemory | --unixsocket) args+=("$1=$2") ;;
	--cluster-enabled) args+=(--cluster_mode=emulated) ;;
	--rename-command) args+=("--rename_command=$2=$3") && shift ;;
	*) echo "dragonfly-server.sh: Dragonfly has no $1" >&2 && exit 1 ;;
	esac
	shift 2
done
exec dragonfly "${args[@]}"
