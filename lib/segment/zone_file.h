/*
 * zone_file: finds the time zone of a rule in the system's data.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_ZONE_FILE_H
#define SHMLIMIT_LIB_ZONE_FILE_H

#include "shmlimit.h"

/*
 * Fill rule->zone_offsets, if the rule has a zone and they are 0. Returns 0; or, with nothing
 * changed: -EINVAL zone is no name that a zone can have, or not terminated; -ENOPKG the system has
 * no data of this zone, or its offset will not change by one yearly rule.
 */
int zone_file_fill(struct shmlimit_rule *rule);

#endif
