/*
 * folder: a folder in memory that is gone, with the files in it, when the
 * program ends.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_KIT_FOLDER_H
#define BENCH_KIT_FOLDER_H

/* Its path; made at the first call. */
const char *folder_path(void);

/* The path of a file in it. Good until the next call. */
const char *folder_file(const char *name);

#endif
