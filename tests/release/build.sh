# build.sh: in a bare root, makes the packages of /first and of /second, and installs what the hour needs besides.
#
# SPDX-License-Identifier: BSD-2-Clause
set -e

export DEBIAN_FRONTEND=noninteractive DEB_BUILD_OPTIONS='nocheck noautodbgsym parallel=2'
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
apt-get update -qq
apt-get install -y -qq --no-install-recommends make git
git config --global --add safe.directory '*'
make -C /first deb
make -C /second deb
apt-get install -y -qq --no-install-recommends ./first/build/deb/*.deb nginx gunicorn python3-flask-limiter curl iproute2 procps
