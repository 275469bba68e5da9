#!/bin/sh
# glibc.sh FILE...: prints the oldest version of glibc that these libraries run with, by the symbols that they ask for. Fails if one
# needs a library that neither glibc has nor is among them.
#
# SPDX-License-Identifier: BSD-2-Clause
set -eu

here=" libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libanl.so.1 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 "
for file in "$@"; do here="$here$(basename "$file") "; done
for file in "$@"; do
	for needed in $(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
		case $here in *" $needed "*) ;; *) echo "glibc.sh: $file needs $needed, which is not in the bundle" >&2; exit 1 ;; esac
	done
done
readelf -W --version-info "$@" | grep -o 'GLIBC_[0-9.]*' | sort -uV | sed -n '$s/GLIBC_//p'
