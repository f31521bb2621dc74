#!/usr/bin/env bash
# Installs the servers that the tests start, where they are missing: with apt, on Debian and
# its kin, as root. Anywhere else it prints what to install, and fails. With the argument "spin" it
# installs only the checker for the model in docs/spec.
#
# It only adds packages. No service is started, and none that was there before is stopped,
# restarted or upgraded: the tests start servers of their own.
set -euo pipefail
only=${1:-}

# One line for each server: the Debian package, then the binary that shows that it is there,
# by name or, with a slash, by a pattern of paths.
needed() {
	if [ "$only" = spin ]; then
		echo spin spin
		return
	fi
	cat <<-'EOF'
		redis-server    redis-server
		prometheus      promtool
		postgresql      /usr/lib/postgresql/*/bin/postgres
		mariadb-server  mariadbd
		memcached       memcached
		pgbouncer       pgbouncer
		default-jre-headless java
		libzookeeper-java /usr/share/java/zookeeper.jar
		etcd-server     etcd
		faketime        /usr/lib/*/faketime/libfaketime.so.1
		chromium        chromium
	EOF
}

have() {
	case $1 in
	*/*) compgen -G "$1" >/dev/null ;;
	*) PATH=$PATH:/usr/local/sbin:/usr/sbin command -v "$1" >/dev/null ;;
	esac
}

missing_packages() {
	while read -r package binary; do
		have "$binary" || echo "$package"
	done < <(needed)
}

# apt starts what it installs unless this script says no; see invoke-rc.d(8). One that is
# there already is the administrator's, and stays.
policy=/usr/sbin/policy-rc.d

forbid_starts() {
	if [ ! -e "$policy" ]; then
		trap 'rm -f "$policy"' EXIT
		trap 'exit 1' INT TERM # through EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	# Honoured where no policy decides: in runlevel 1 nothing is started.
	export RUNLEVEL=1
}

mapfile -t missing < <(missing_packages)
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo "Missing, and needed here: ${missing[*]}" >&2
	echo "On Debian: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi

echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
forbid_starts
apt-get -o DPkg::Lock::Timeout=300 -qq update
apt-get -o DPkg::Lock::Timeout=300 -qq -y --no-install-recommends --no-upgrade install "${missing[@]}"

mapfile -t missing < <(missing_packages)
if [ ${#missing[@]} -ne 0 ]; then
	echo "Installed, but their binaries are still missing: ${missing[*]}" >&2
	exit 1
fi
