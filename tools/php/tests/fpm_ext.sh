#!/bin/sh
# fpm_ext: PHP-FPM with the extension.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
. "$SOURCE/tests/server/server.inc"
with_extension
. "$SOURCE/tools/php/tests/fpm_laws.inc"
