#!/bin/sh
# pacer: the laws of the class Pacer, over FFI; ext.sh has them with the extension.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"

block tools/php/README.md php Pacer | own | sed "s/'pacers'/'$SEGMENT.pacer.readme'/" >"$TMP/readme.php"
php "$SOURCE/tools/php/tests/pacer.php" "$TMP/readme.php"
