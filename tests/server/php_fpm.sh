#!/bin/sh
# php_fpm: PHP-FPM with the classes over FFI.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/php.inc"
. "$SOURCE/tests/server/server.inc"
. "$SOURCE/tests/server/php_fpm.inc"
