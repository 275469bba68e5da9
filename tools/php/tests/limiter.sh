#!/bin/sh
# limiter: the laws of the class Limiter.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/php/tests/php.inc"

shmlimit create "$SEGMENT" --slots 64
shmlimit rule set "$SEGMENT" r --capacity 5 --rate 1/d --max-wait 9d
shmlimit rule set "$SEGMENT" s --capacity 1 --rate 1/d
shmlimit rule set "$SEGMENT" client --capacity 1 --rate 1/d
block tools/php/README.md php "Limiter('web'" | own >"$TMP/readme.php"
[ "$(php "$TMP/readme.php" && php "$TMP/readme.php")" = "welcome
later" ] || { diag "README.md's program does not do what it says"; exit 1; }
php "$SOURCE/tools/php/tests/limiter.php"
