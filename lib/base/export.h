/*
 * export: marks the functions of the contract; everything else is hidden.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_EXPORT_H
#define SHMLIMIT_LIB_EXPORT_H

#define EXPORT __attribute__((visibility("default")))

#endif
