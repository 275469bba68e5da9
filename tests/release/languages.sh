# languages.sh: in a bare root, installs Python, Ruby and Node as Debian has them, without what compiles, and a Redis server.
#
# SPDX-License-Identifier: BSD-2-Clause
set -e

export DEBIAN_FRONTEND=noninteractive
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
apt-get update -qq
apt-get install -y -qq --no-install-recommends python3-pip ruby npm redis-server iproute2
