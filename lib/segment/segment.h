/*
 * segment: every system call of the library but holder.h's, and nothing else: the file in
 * /dev/shm, its mapping, its lock, and what the kernel says of this boot. A name
 * is that of a segment; its file's is shmlimit.LAYOUT.NAME, of this library's
 * layout unless another one is given.
 * Returns 0 or -errno everywhere, and leaves errno itself as it was.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef SHMLIMIT_LIB_SEGMENT_H
#define SHMLIMIT_LIB_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

#include "layout.h"

/* A mapped file, or (base NULL) what is known of one that is not mapped. */
struct segment {
	void *base;
	uint64_t size;
	uint64_t allocated; /* bytes of it that the file system has reserved */
	uint64_t device, inode;
	uint64_t links;
	uint32_t mode, uid, gid;
};

/* A file that is to be made: its bytes are zero except the first `head_len`. */
struct segment_file {
	const void *head;
	size_t head_len;
	const struct layout_range *reserved; /* pieces that are reserved, ... */
	size_t ranges;
	uint64_t size;  /* of the file, as far as the process may make one so long: the rest is holes */
	uint32_t mode;  /* exactly these permissions */
	uint64_t group; /* 0 or 1 + gid */
};

/*
 * Make it. It has no name, so it is gone if its maker is killed. Fills *segment, base NULL;
 * *fd gets the open file.
 */
int segment_make(const struct segment_file *file, struct segment *segment, int *fd);

/* The same in the process's memory, whatever room /dev/shm has: it can never get a name. */
int segment_make_private(const struct segment_file *file, struct segment *segment, int *fd);

/* Bytes of /dev/shm that are free, as the file system says; UINT64_MAX: it does not say. */
uint64_t segment_room(void);

/* Give it its name, in one step. -EEXIST if that is taken. */
int segment_link(int fd, const char *name);

/*
 * Read up to `head_len` bytes from the front of the file (what it is shorter by
 * stays as it was) and fill *segment, base NULL. Where `fd` is not NULL it gets
 * the open file, for segment_map(); else the file is closed.
 */
int segment_peek(const char *name, int writable, void *head, size_t head_len, struct segment *segment, int *fd);

/* Map `size` bytes, which may be more than the file has yet. */
int segment_map(struct segment *segment, int fd, uint64_t size, int writable);

/*
 * Is the file long enough to have this word of a mapping? Asks the kernel, since a
 * look at it would be a SIGBUS. One system call, which needs no descriptor and no
 * permission, and is safe in signal handlers.
 */
int segment_has(const void *word);

/*
 * Map `size` bytes of the file that begin `ahead` bytes after the page `from` of a mapping. No
 * descriptor and no permission is needed. Returns NULL where there are no addresses for it, and as
 * many before it.
 */
void *segment_map_ahead(void *from, uint64_t ahead, uint64_t size);

/* Map `size` bytes of a file from `offset` on. Returns NULL where there are no addresses. */
void *segment_map_part(int fd, int read_only, uint64_t offset, uint64_t size);

/*
 * The same of a segment's file, which is opened again under its name for that.
 * Returns NULL where it does not have its name any more, may not be opened, or there are no
 * addresses. Safe in signal handlers.
 */
void *segment_map_again(const char *name, uint64_t device, uint64_t inode, int read_only, uint64_t offset,
                        uint64_t size);

/*
 * Take a lock that processes share which are of one pid namespace, and keep it by a page of the
 * file that a forked child does not inherit. Returns the page, or NULL where the file cannot be
 * opened, or has no such locks. Safe in signal handlers.
 */
void *segment_lock_space(const char *name, uint64_t device, uint64_t inode, uint64_t space);

/* Does a process keep that lock? 1, 0, or -errno where it is not known. */
int segment_space_locked(const char *name, uint64_t device, uint64_t inode, uint64_t space);

/* A page of memory, zero, which is zero again in a forked child; NULL: there is none. */
void *segment_page_of_process(void);

/* Reserve pages of a mapping. Returns 0 where there is no memory for one of them. */
int segment_populate(char *from, uint64_t size);
void segment_close(int fd);
void segment_unmap(void *base, uint64_t size);

/* The path of the file. */
void segment_path(const char *name, char path[SHMLIMIT_PATH_MAX]);

/* As segment_peek() does, of a segment of any layout. */
int segment_peek_layout(const char *name, uint32_t layout, void *head, size_t head_len);

int segment_unlink(const char *name, uint32_t layout);

/* Does the name now belong to another file, or to none? 1, or 0 when it is this file's. */
int segment_moved(const char *name, uint64_t device, uint64_t inode);

/*
 * The next segment after this one, by name and then layout, whose file begins with `magic`: 1, or 0
 * when there is none. `only` 0: of any layout.
 */
#define SEGMENT_MAGIC_LEN 8
int segment_next(char name[SHMLIMIT_NAME_MAX + 1], uint32_t *layout, uint32_t only,
                 const char magic[SEGMENT_MAGIC_LEN]);

/*
 * Lock the file against other writers (threads and forked children of this
 * process included), waiting for them about that long, or not at all. -EAGAIN if the
 * lock is still held then: any process that can read the file can hold it.
 * -ENOENT if the name now belongs to another file or to none. The kernel drops the
 * lock when the process dies.
 */
#define SEGMENT_LOCK_WAIT_NS 5000000000u
int segment_lock(const char *name, uint64_t device, uint64_t inode, uint64_t wait_ns, int *lock);
/* Let other processes run. */
void segment_yield(void);
void segment_unlock(int lock);

/*
 * Reserve pieces of the file, and make it that long; those that were reserved before stay as they
 * are. After an error some may be reserved.
 */
int segment_reserve_in(int fd, const struct layout_range *range);
int segment_reserve(const char *name, uint64_t device, uint64_t inode, const struct layout_range *range);
/* Give the file to another user, as far as this process may: root may, others leave it as it is. */
void segment_give(int fd, uint32_t uid, struct segment *segment);

/* All of `len` bytes, to or from where the file stands; *got is less than `len` only at its end. */
int segment_write(int fd, const void *from, size_t len);
int segment_read(int fd, void *to, size_t len, size_t *got);

/* Sleep until this time of CLOCK_MONOTONIC, whatever signals come. */
void segment_sleep_until(uint64_t ns);

/* Facts of the host. */
int segment_random(void *to, size_t len);
void segment_boot_id(uint8_t id[16]);  /* zero where the kernel does not say */
uint64_t segment_time_namespace(void); /* 0 where there are none */
/*
 * Read the system's data of a time zone: at most `size` bytes. Its folders are those of most
 * systems, after the environment's TZDIR. Returns 0, or -ENOPKG.
 */
int segment_zone(const char *name, unsigned char *to, size_t size, size_t *len);
uint32_t segment_user(void); /* the effective user of this process */
uint32_t segment_cpus(void); /* that can ever be, at least 1 */
uint64_t segment_unix_ns(void);

#endif
