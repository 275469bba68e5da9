# kit.sh: what the benches in shell share. Each sources it with its own arguments: BUILD [--quick] [--rows FILE].
#
# SPDX-License-Identifier: BSD-2-Clause

LC_ALL=C
export LC_ALL

self=$(basename "$0" .sh)
build=$(cd "$1" && pwd)
shift
quick=no
rows=/dev/null
while [ $# -gt 0 ]; do
	case $1 in
	--quick) quick=yes ;;
	--rows)
		rows=$2
		shift
		;;
	*)
		echo "usage: $0 BUILD [--quick] [--rows FILE]" >&2
		exit 2
		;;
	esac
	shift
done

# Where the Makefile unpacked them: installing a server would start it, as a service of the machine.
PATH=$build/bin:$build/peers/usr/sbin:$PATH:/usr/sbin:/sbin
segment=bench.$self.$$
servers=
dir=

clean() {
	for pid in $servers; do
		kill -CONT "$pid" 2>/dev/null || :
		kill "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	rm -f /dev/shm/shmlimit.*."$segment"
	[ -z "$dir" ] || rm -rf "$dir"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

fail() {
	echo "bench: $self: $*" >&2
	exit 1
}

# within COMMAND...: repeat it until it succeeds, for 20 s at most.
within() {
	tries=0
	until "$@" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 1000 ] || return 1
		sleep 0.02
	done
}
