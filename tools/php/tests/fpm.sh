#!/bin/sh
# fpm: PHP-FPM with the classes over FFI.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tools/php/tests/fpm_laws.inc"
