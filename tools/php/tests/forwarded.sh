#!/bin/sh
# forwarded: PHP-FPM with the classes over FFI, behind a proxy that is not configured.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tools/php/tests/forwarded.inc"
