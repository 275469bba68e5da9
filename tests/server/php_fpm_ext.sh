#!/bin/sh
# php_fpm_ext: PHP-FPM with the extension.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tests/server/php.inc"
. "$SOURCE/tests/server/server.inc"
with_extension
. "$SOURCE/tests/server/php_fpm.inc"
