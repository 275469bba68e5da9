#!/bin/sh
# forwarded_ext: PHP-FPM with the extension, behind a proxy that is not configured.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"
. "$SOURCE/tests/server/server.inc"
with_extension
. "$SOURCE/tools/php/tests/forwarded.inc"
