/*
 * saved: files that earlier versions saved, as words, made files again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_UNIT_SAVED_H
#define TESTS_UNIT_SAVED_H

#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#include "hash.h"
#include "save.h"
#include "state.h"

struct word {
	uint32_t at; /* bytes from the beginning */
	uint64_t word;
};

/*
 * A file of one page. By this user's group: a user who is not in that of the user who wrote the file could not load it.
 */
static inline int saved_file(const struct word *words, size_t n, uint32_t version)
{
	uint8_t saved[STATE_PAGE] __attribute__((aligned(16))) = { 0 };
	const uint64_t key[2] = { 0, 0 };
	int fd = memfd_create("saved", MFD_CLOEXEC);
	uint64_t check;

	for (size_t i = 0; i < n; i++)
		memcpy(saved + words[i].at, &words[i].word, 8);
	memcpy(&check, saved + STATE_PAGE_ROOM, sizeof(check));
	is(hash_bytes(key, version, saved, STATE_PAGE_ROOM), check, "the check of a saved page is one of version %u",
	   version);
	((struct state_header *)(void *)saved)->gid = getgid();
	check = hash_bytes(key, version, saved, STATE_PAGE_ROOM);
	memcpy(saved + STATE_PAGE_ROOM, &check, sizeof(check));
	if (write(fd, saved, sizeof(saved)) != (ssize_t)sizeof(saved) || lseek(fd, 0, SEEK_SET) != 0)
		bail("no saved file");
	return fd;
}

#endif
