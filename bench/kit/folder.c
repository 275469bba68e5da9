/*
 * folder: see folder.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "folder.h"

static char folder[64];

/* At the end of a program that may have been interrupted in malloc(); it ends then whatever comes of this. */
static void remove_folder(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir != NULL)
		closedir(dir);
	rmdir(folder);
}

const char *folder_path(void)
{
	if (folder[0] == '\0') {
		snprintf(folder, sizeof(folder), "/dev/shm/bench.folder.%d.XXXXXX", (int)getpid());
		if (mkdtemp(folder) == NULL)
			bench_fail(folder, "cannot be made");
		bench_at_end(remove_folder);
	}
	return folder;
}

const char *folder_file(const char *name)
{
	static char path[sizeof(folder) + 256];

	snprintf(path, sizeof(path), "%s/%s", folder_path(), name);
	return path;
}
