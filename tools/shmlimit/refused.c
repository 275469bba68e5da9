/*
 * refused.c: see refused.h. The library says only that some call was refused, which is all that an
 * error number can say. A filter refuses a call whatever it is about, so the calls are made here
 * once more, on a file without a name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "refused.h"

struct list {
	char *text;
	size_t len;
};

/* `worked` is what the call said. */
static void note(struct list *list, const char *name, int worked)
{
	if (worked || (errno != EPERM && errno != ENOSYS && errno != EACCES))
		return;
	list->len += (size_t)snprintf(list->text + list->len, REFUSED_LEN - list->len, "%s%s",
	                              list->len > 0 ? ", " : "", name);
}

const char *refused_calls(char text[REFUSED_LEN])
{
	int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct list list = { text, 0 };
	char byte = 0;
	void *page;

	note(&list, "open (O_TMPFILE)", fd >= 0);
	if (fd >= 0) {
		note(&list, "fallocate", fallocate(fd, 0, 0, 4096) == 0);
		note(&list, "pwrite", pwrite(fd, &byte, 1, 0) == 1);
		note(&list, "pread", pread(fd, &byte, 1, 0) == 1);
		note(&list, "fchmod", fchmod(fd, 0600) == 0);
		note(&list, "fchown", fchown(fd, (uid_t)-1, getegid()) == 0);
		note(&list, "flock", flock(fd, LOCK_EX | LOCK_NB) == 0);
		/* A name that exists: so it makes none. */
		note(&list, "linkat", linkat(fd, "", AT_FDCWD, "/dev/shm", AT_EMPTY_PATH) == 0);
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		note(&list, "mmap", page != MAP_FAILED);
		if (page != MAP_FAILED)
			munmap(page, 4096);
		close(fd);
	}
	note(&list, "unlink", unlink("") == 0);
	fd = memfd_create("shmlimit", MFD_CLOEXEC);
	note(&list, "memfd_create", fd >= 0);
	if (fd >= 0)
		close(fd);
	note(&list, "getrandom", getrandom(&byte, 1, 0) == 1);
	return list.len > 0 ? text : strcpy(text, "a system call");
}
