/*
 * state: pages, their checks, and reading and writing by them. See state.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <string.h>

#include "hash.h"
#include "segment.h"
#include "state.h"

/*
 * Of a page and, through what those gave, of all before it. The keyed hash is there anyway; it has
 * 64 bits.
 */
static uint64_t check_page(const struct state_file *file, uint32_t version)
{
	const uint64_t key[2] = { file->check, file->number };

	return hash_bytes(key, version, file->page, STATE_PAGE_ROOM);
}

static void turn(struct state_file *file, uint64_t check)
{
	file->check = check;
	file->number++;
	file->used = 0;
}

static int write_page(struct state_file *file)
{
	uint64_t check = check_page(file, STATE_VERSION);
	int error;

	memcpy(file->page + STATE_PAGE_ROOM, &check, sizeof(check));
	error = segment_write(file->fd, file->page, STATE_PAGE);
	turn(file, check);
	memset(file->page, 0, STATE_PAGE);
	return error;
}

int state_put(struct state_file *file, const void *from, size_t len)
{
	const unsigned char *p = from;
	int error = 0;

	while (len > 0 && error == 0) {
		size_t room = STATE_PAGE_ROOM - file->used, n = len < room ? len : room;

		memcpy(file->page + file->used, p, n);
		file->used += n;
		p += n;
		len -= n;
		if (file->used == STATE_PAGE_ROOM)
			error = write_page(file);
	}
	return error;
}

int state_end(struct state_file *file)
{
	return file->used == 0 ? 0 : write_page(file);
}

/* Whose page it is has to be known before it is checked: another version may check otherwise. */
static int check_kind(const unsigned char *page, size_t len, uint32_t *version)
{
	struct state_header header;

	memcpy(&header, page, sizeof(header));
	if (len < sizeof(header.magic) || memcmp(header.magic, STATE_MAGIC, sizeof(header.magic)) != 0)
		return -EMEDIUMTYPE;
	if (len < sizeof(header))
		return -EUCLEAN;
	*version = header.version;
	return (header.version != STATE_VERSION && header.version != STATE_VERSION_3 &&
	        header.version != STATE_VERSION_2) ||
	                       header.byte_order != LAYOUT_BYTE_ORDER
	               ? -EPROTO
	               : 0;
}

static int read_page(struct state_file *file)
{
	uint64_t check;
	size_t len;
	int error = segment_read(file->fd, file->page, STATE_PAGE, &len);

	if (error == 0 && file->number == 0)
		error = check_kind(file->page, len, &file->version);
	if (error != 0)
		return error;
	if (len != STATE_PAGE)
		return -EUCLEAN;
	memcpy(&check, file->page + STATE_PAGE_ROOM, sizeof(check));
	if (check != check_page(file, file->version))
		return -EUCLEAN;
	turn(file, check);
	return 0;
}

int state_get(struct state_file *file, void *to, size_t len)
{
	unsigned char *p = to;

	while (len > 0) {
		size_t left = file->number == 0 ? 0 : STATE_PAGE_ROOM - file->used, n = len < left ? len : left;

		if (n == 0) {
			int error = read_page(file);

			if (error != 0)
				return error;
			continue;
		}
		memcpy(p, file->page + file->used, n);
		file->used += n;
		p += n;
		len -= n;
	}
	return 0;
}

int state_get_end(struct state_file *file)
{
	size_t more;
	int error;

	for (; file->used < STATE_PAGE_ROOM; file->used++)
		if (file->page[file->used] != 0)
			return -EUCLEAN;
	error = segment_read(file->fd, file->page, 1, &more);
	return error != 0 ? error : more != 0 ? -EUCLEAN : 0;
}
