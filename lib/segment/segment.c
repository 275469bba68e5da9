/*
 * segment: see segment.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "decimal.h"
#include "keep_errno.h"
#include "layout.h"
#include "segment.h"

/*
 * Where shm_open(3) puts them on Linux; its interface has no way to make a file complete before it
 * has a name.
 */
#define FOLDER "/dev/shm"

/*
 * A file is named shmlimit.LAYOUT.NAME. WHY the layout: processes of two versions, such as a
 * server's old and new workers during an upgrade, never meet in one file, and each version finds
 * its own.
 */
#define PREFIX "shmlimit."
#define LAYOUT_DIGITS 6

_Static_assert(sizeof(PREFIX) - 1 + LAYOUT_DIGITS + 1 + SHMLIMIT_NAME_MAX == 255, "what a name of a file has room for");
_Static_assert(sizeof(FOLDER) + 255 + 1 <= SHMLIMIT_PATH_MAX, "what a path has room for");
_Static_assert(LAYOUT_VERSION <= SHMLIMIT_LAYOUT_MAX, "a layout has LAYOUT_DIGITS digits");

#define PAGE 4096u
#define SPACE_LOCKS ((uint64_t)1 << 62)
#define NAP_MIN_NS 50000u
#define NAP_MAX_NS 20000000u

struct path {
	char text[SHMLIMIT_PATH_MAX];
};

static struct path path_at(const char *name, uint32_t layout)
{
	struct path path;

	snprintf(path.text, sizeof(path.text), "%s/%s%" PRIu32 ".%s", FOLDER, PREFIX, layout, name);
	return path;
}

static struct path path_of(const char *name)
{
	return path_at(name, LAYOUT_VERSION);
}

void segment_path(const char *name, char path[SHMLIMIT_PATH_MAX])
{
	memcpy(path, path_of(name).text, SHMLIMIT_PATH_MAX);
}

/* The layout and the name of the segment that a file is by its name. Returns 0 if it is none. */
static uint32_t file_parse(const char *file, const char **name)
{
	const char *digits = file + sizeof(PREFIX) - 1;
	uint64_t layout;

	if (strncmp(file, PREFIX, sizeof(PREFIX) - 1) != 0 || *digits == '0' || digits_scan(&digits, &layout) != 0 ||
	    layout > SHMLIMIT_LAYOUT_MAX || *digits != '.')
		return 0;
	*name = digits + 1;
	return (uint32_t)layout;
}

/*
 * What a system call that failed says, as the contract has it (shmlimit_strerror()): there some
 * numbers have another meaning. The kernel refuses none of these calls with EPERM by itself, except
 * where a caller says so below: a sandbox does, such as a seccomp filter.
 */
static int failed_with(int error)
{
	switch (error) {
	case EPERM:
		return -ENOSYS;
	case EFBIG:
		return -EDQUOT;
	case EAGAIN:
	case EBUSY:
	case EINVAL:
	case EOPNOTSUPP:
	case EXDEV:
		return -EIO;
	default:
		return -error;
	}
}

static int failed(void)
{
	return failed_with(errno);
}

/*
 * Every close of ours is of a file that we only read, or whose data is in memory anyway: nothing
 * can be lost.
 */
static int close_with(int fd, int error)
{
	close(fd);
	return error;
}

int segment_link(int fd, const char *name)
{
	KEEP_ERRNO;
	struct path to = path_of(name);
	char from[32];

	/* This needs a capability until Linux 6.10, the detour through /proc needs /proc. */
	if (linkat(fd, "", AT_FDCWD, to.text, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno == EEXIST)
		return -EEXIST;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, from, AT_FDCWD, to.text, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	/* ENOENT: no /proc */
	return errno == ENOENT ? -ENODEV : errno == EEXIST ? -EEXIST : failed();
}

static int write_all(int fd, const void *from, size_t len)
{
	const char *p = from;
	off_t at = 0;

	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? failed() : -EIO;
		p += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* WHY NOT ftruncate alone: on a full tmpfs that succeeds, and the first touch is a SIGBUS. */
int segment_reserve_in(int fd, const struct layout_range *range)
{
	int error = 0;

	for (uint32_t i = 0; i < range->pieces && error == 0; i++) {
		do {
			error = posix_fallocate(fd, (off_t)(range->offset + i * range->stride), (off_t)range->size);
		} while (error == EINTR);
	}
	return failed_with(error);
}

/* Is it a group of this process, which may give its files to it? */
static int is_member(gid_t group)
{
	gid_t groups[1024];
	int n = getgroups(sizeof(groups) / sizeof(groups[0]), groups);

	for (int i = 0; i < n; i++)
		if (groups[i] == group)
			return 1;
	return group == getegid();
}

/*
 * Make the file longer, up to its size or what this process may make: beyond that would be a
 * signal. No memory is reserved.
 */
static int lengthen_file(int fd, uint64_t size)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < size)
		size = most.rlim_cur;
	return ftruncate(fd, (off_t)size) == 0 ? 0 : failed();
}

static int fill_file(int fd, const struct segment_file *file)
{
	int error = 0;

	for (size_t i = 0; i < file->ranges && error == 0; i++)
		error = segment_reserve_in(fd, &file->reserved[i]);
	if (error == 0)
		error = lengthen_file(fd, file->size);
	if (error == 0)
		error = write_all(fd, file->head, file->head_len);
	if (error != 0)
		return error;
	/*
	 * The kernel says so of a group that the user does not belong to; of another one a sandbox
	 * does.
	 */
	if (file->group != 0 && fchown(fd, (uid_t)-1, (gid_t)(file->group - 1)) != 0) {
		error = errno;
		return error == EPERM && !is_member((gid_t)(file->group - 1)) ? -EPERM : failed_with(error);
	}
	return fchmod(fd, (mode_t)file->mode) == 0 ? 0 : failed();
}

static void describe_file(struct segment *segment, const struct stat *status)
{
	*segment = (struct segment){
		.base = NULL,
		.size = (uint64_t)status->st_size,
		.allocated = (uint64_t)status->st_blocks * 512u,
		.device = status->st_dev,
		.inode = status->st_ino,
		.links = status->st_nlink,
		.mode = status->st_mode & 07777,
		.uid = status->st_uid,
		.gid = status->st_gid,
	};
}

/* What segment_make() does with the open file. */
static int make_in(int fd, const struct segment_file *file, struct segment *segment, int *fd_out)
{
	struct stat status;
	int error;

	/* No /dev/shm, or one that is no tmpfs. */
	if (fd < 0)
		return errno == ENOENT || errno == EOPNOTSUPP || errno == EISDIR ? -ENODEV : failed();
	error = fill_file(fd, file);
	if (error == 0 && fstat(fd, &status) != 0)
		error = failed();
	if (error != 0)
		return close_with(fd, error);
	describe_file(segment, &status);
	*fd_out = fd;
	return 0;
}

int segment_make(const struct segment_file *file, struct segment *segment, int *fd_out)
{
	KEEP_ERRNO;
	return make_in(open(FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), file, segment, fd_out);
}

int segment_make_private(const struct segment_file *file, struct segment *segment, int *fd_out)
{
	KEEP_ERRNO;
	return make_in(memfd_create("shmlimit", MFD_CLOEXEC), file, segment, fd_out);
}

uint64_t segment_room(void)
{
	KEEP_ERRNO;
	struct statvfs status;

	/* A tmpfs of any size (size=0) says that it has no blocks. */
	return statvfs(FOLDER, &status) == 0 && status.f_blocks != 0 ? (uint64_t)status.f_bavail * status.f_frsize
	                                                             : UINT64_MAX;
}

void segment_give(int fd, uint32_t uid, struct segment *segment)
{
	KEEP_ERRNO;
	if (uid != segment->uid && fchown(fd, (uid_t)uid, (gid_t)-1) == 0)
		segment->uid = uid;
}

/*
 * After a read or write that failed: is it to be tried again? A pipe that another process
 * told not to wait is waited for here.
 */
static int goes_on(int fd, short events)
{
	struct pollfd pipe = { .fd = fd, .events = events };

	if (errno == EINTR)
		return 1;
	if (errno != EAGAIN)
		return 0;
	return poll(&pipe, 1, -1) >= 0 || errno == EINTR;
}

int segment_write(int fd, const void *from, size_t len)
{
	KEEP_ERRNO;
	const char *p = from;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && goes_on(fd, POLLOUT))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int segment_read(int fd, void *to, size_t len, size_t *got)
{
	KEEP_ERRNO;
	char *p = to;

	for (*got = 0; *got < len;) {
		ssize_t n = read(fd, p + *got, len - *got);

		if (n < 0 && goes_on(fd, POLLIN))
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		*got += (size_t)n;
	}
	return 0;
}

static int read_head(int fd, void *head, size_t head_len)
{
	char *p = head;
	off_t at = 0;

	while (head_len > 0) {
		ssize_t n = pread(fd, p, head_len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed();
		if (n == 0)
			return 0;
		p += n;
		at += n;
		head_len -= (size_t)n;
	}
	return 0;
}

static int peek(const struct path path, int writable, void *head, size_t head_len, struct segment *segment, int *fd_out)
{
	struct stat status;
	int fd, error;

	/* NOFOLLOW, NONBLOCK: any user may put links and pipes into /dev/shm. */
	fd = open(path.text, (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP || errno == ENXIO || errno == EISDIR ? -EMEDIUMTYPE : failed();
	if (fstat(fd, &status) != 0)
		return close_with(fd, failed());
	if (!S_ISREG(status.st_mode))
		return close_with(fd, -EMEDIUMTYPE);
	error = read_head(fd, head, head_len);
	if (error != 0)
		return close_with(fd, error);
	describe_file(segment, &status);
	if (fd_out == NULL)
		close(fd);
	else
		*fd_out = fd;
	return 0;
}

int segment_peek(const char *name, int writable, void *head, size_t head_len, struct segment *segment, int *fd)
{
	KEEP_ERRNO;
	return peek(path_of(name), writable, head, head_len, segment, fd);
}

int segment_peek_layout(const char *name, uint32_t layout, void *head, size_t head_len)
{
	KEEP_ERRNO;
	struct segment segment;

	return peek(path_at(name, layout), 0, head, head_len, &segment, NULL);
}

int segment_map(struct segment *segment, int fd, uint64_t size, int writable)
{
	KEEP_ERRNO;
	void *base = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);

	/* EAGAIN: the process locks its memory, and this would be too much of it. */
	if (base == MAP_FAILED)
		return errno == EAGAIN ? -ENOMEM : failed();
	segment->base = base;
	return 0;
}

/*
 * The kernel compares the word with a number, and returns EFAULT where reading it
 * here would be a SIGBUS. It does not wait: the numbers differ, or else the time is
 * up at once. WHY NOT madvise(MADV_POPULATE_READ): it needs Linux 5.14.
 */
int segment_has(const void *word)
{
	KEEP_ERRNO;
	static const struct timespec at_once = { 0, 0 };

	return syscall(SYS_futex, word, FUTEX_WAIT, UINT32_MAX, &at_once, NULL, 0) == 0 || errno != EFAULT;
}

/* A /dev/shm with huge pages would give each key 2 MiB. */
static void without_huge_pages(void *base, uint64_t size)
{
	/* Ignoring failure: a kernel without them. */
	(void)madvise(base, size, MADV_NOHUGEPAGE);
}

/*
 * WHY NOT mmap(2): it needs a descriptor. With an old size of 0 mremap(2) duplicates a shared
 * mapping.
 */
void *segment_map_ahead(void *from, uint64_t ahead, uint64_t size)
{
	KEEP_ERRNO;
	char *base;

	/*
	 * Where the program has locked its memory (mlockall(2)), a duplicate would be locked, too,
	 * and all of the file that it maps would be reserved.
	 */
	(void)munlock(from, PAGE);
	base = mremap(from, 0, ahead + size, MREMAP_MAYMOVE);
	if (base == MAP_FAILED)
		return NULL;
	if (ahead != 0)
		munmap(base, ahead);
	without_huge_pages(base + ahead, size);
	return base + ahead;
}

/* Linux has it since 5.14, which its libc's headers may not know. */
#define POPULATE_WRITE 23

int segment_populate(char *from, uint64_t size)
{
	KEEP_ERRNO;
	int error;

	do
		error = madvise(from, size, POPULATE_WRITE) == 0 ? 0 : errno;
	while (error == EINTR || error == EAGAIN);
	if (error != EINVAL && error != EPERM && error != ENOSYS)
		return error == 0;
	for (char *page = from; page < from + size; page += PAGE)
		if (!segment_has(page))
			return 0;
	return 1;
}

void segment_close(int fd)
{
	KEEP_ERRNO;
	close(fd);
}

void segment_unmap(void *base, uint64_t size)
{
	KEEP_ERRNO;
	munmap(base, size);
}

int segment_unlink(const char *name, uint32_t layout)
{
	KEEP_ERRNO;
	struct path path = path_at(name, layout);
	struct stat status;
	int error;

	if (unlink(path.text) == 0)
		return 0;
	error = errno;
	/*
	 * A sticky folder says so of a file that belongs to another user; of one's own a sandbox
	 * does.
	 */
	if (error == EPERM && (lstat(path.text, &status) != 0 || status.st_uid != geteuid()))
		return -EACCES;
	return failed_with(error);
}

int segment_moved(const char *name, uint64_t device, uint64_t inode)
{
	KEEP_ERRNO;
	struct path path = path_of(name);
	struct stat status;

	if (lstat(path.text, &status) != 0)
		return errno == ENOENT ? 1 : failed();
	return status.st_dev != device || status.st_ino != inode;
}

static int begins_with(const char *name, uint32_t layout, const char magic[SEGMENT_MAGIC_LEN])
{
	char head[SEGMENT_MAGIC_LEN] = { 0 };
	int error = segment_peek_layout(name, layout, head, sizeof(head));

	/* These say nothing of the file: passed over, all of them would seem to be missing. */
	if (error == -EMFILE || error == -ENFILE || error == -ENOMEM)
		return error;
	return error == 0 && memcmp(head, magic, sizeof(head)) == 0;
}

/* Is (a, a_layout) after (b, b_layout)? */
static int comes_after(const char *a, uint32_t a_layout, const char *b, uint32_t b_layout)
{
	int order = strcmp(a, b);

	return order > 0 || (order == 0 && a_layout > b_layout);
}

int segment_next(char name[SHMLIMIT_NAME_MAX + 1], uint32_t *layout, uint32_t only, const char magic[SEGMENT_MAGIC_LEN])
{
	KEEP_ERRNO;
	char best[SHMLIMIT_NAME_MAX + 1] = "";
	uint32_t best_layout = 0;
	struct dirent *entry;
	DIR *folder = opendir(FOLDER);
	int error;

	if (folder == NULL)
		return failed();
	for (errno = 0; (entry = readdir(folder)) != NULL; errno = 0) {
		const char *found = "";
		uint32_t of = file_parse(entry->d_name, &found);
		int begins;

		if (of == 0 || (only != 0 && of != only) || strlen(found) > SHMLIMIT_NAME_MAX)
			continue;
		if (!comes_after(found, of, name, *layout))
			continue;
		if (best_layout != 0 && comes_after(found, of, best, best_layout))
			continue;
		begins = begins_with(found, of, magic);
		if (begins > 0) {
			strcpy(best, found);
			best_layout = of;
		}
		if (begins < 0) {
			errno = -begins;
			break;
		}
	}
	error = errno;
	closedir(folder);
	if (error != 0)
		return failed_with(error);
	memcpy(name, best, sizeof(best));
	*layout = best_layout;
	return best_layout != 0;
}

/* Open the file again, if it still has its name. */
static int reopen(const char *name, uint64_t device, uint64_t inode, int how, int *fd_out)
{
	struct path path = path_of(name);
	int fd = open(path.text, how | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return failed();
	if (fstat(fd, &status) != 0)
		return close_with(fd, failed());
	if (status.st_dev != device || status.st_ino != inode)
		return close_with(fd, -ENOENT);
	*fd_out = fd;
	return 0;
}

void *segment_map_part(int fd, int read_only, uint64_t offset, uint64_t size)
{
	KEEP_ERRNO;
	void *base = mmap(NULL, size, read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (base == MAP_FAILED)
		return NULL;
	without_huge_pages(base, size);
	return base;
}

void *segment_map_again(const char *name, uint64_t device, uint64_t inode, int read_only, uint64_t offset,
                        uint64_t size)
{
	KEEP_ERRNO;
	int fd;
	void *base;

	if (reopen(name, device, inode, read_only ? O_RDONLY : O_RDWR, &fd) != 0)
		return NULL;
	base = segment_map_part(fd, read_only, offset, size);
	close(fd);
	return base;
}

/* Bytes of the file that no other lock is of. */
static struct flock space_lock(short type, uint64_t space)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)(SPACE_LOCKS + (space & UINT32_MAX)), .l_len = 1
	};
}

void *segment_lock_space(const char *name, uint64_t device, uint64_t inode, uint64_t space)
{
	KEEP_ERRNO;
	struct flock lock = space_lock(F_RDLCK, space);
	void *page;
	int fd;

	if (reopen(name, device, inode, O_RDONLY, &fd) != 0)
		return NULL;
	page = fcntl(fd, F_OFD_SETLK, &lock) != 0 ? NULL : segment_map_part(fd, 1, 0, PAGE);
	/* The mapping keeps the open file, and so the lock. */
	close(fd);
	if (page != NULL && madvise(page, PAGE, MADV_DONTFORK) != 0) {
		munmap(page, PAGE);
		return NULL;
	}
	return page;
}

int segment_space_locked(const char *name, uint64_t device, uint64_t inode, uint64_t space)
{
	KEEP_ERRNO;
	struct flock lock = space_lock(F_WRLCK, space);
	int fd, error = reopen(name, device, inode, O_RDONLY, &fd);

	if (error != 0)
		return error;
	error = fcntl(fd, F_OFD_GETLK, &lock) != 0 ? failed() : 0;
	close(fd);
	return error != 0 ? error : lock.l_type != F_UNLCK;
}

void *segment_page_of_process(void)
{
	KEEP_ERRNO;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, PAGE, MADV_WIPEONFORK) == 0)
		return page;
	munmap(page, PAGE);
	return NULL;
}

int segment_reserve(const char *name, uint64_t device, uint64_t inode, const struct layout_range *range)
{
	KEEP_ERRNO;
	int fd, error = reopen(name, device, inode, O_RDWR, &fd);

	return error != 0 ? error : close_with(fd, segment_reserve_in(fd, range));
}

/*
 * BOUND: the naps that add up to `wait_ns`. WHY NOT flock() that waits, ended by a
 * signal: signals and timers are the program's.
 */
static int lock_within(int fd, uint64_t wait_ns)
{
	uint64_t napped_ns = 0, nap_ns = NAP_MIN_NS;

	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		struct timespec nap = { 0, (long)nap_ns };

		if (errno == EINTR)
			continue;
		/* AppArmor refuses a lock with EACCES, which a lock has no other use for. */
		if (errno != EWOULDBLOCK)
			return errno == EACCES ? -ENOSYS : failed();
		if (napped_ns >= wait_ns)
			return -EAGAIN;
		/* Cut short by a signal, it is a shorter nap. */
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		napped_ns += nap_ns;
		nap_ns = 2 * nap_ns < NAP_MAX_NS ? 2 * nap_ns : NAP_MAX_NS;
	}
	return 0;
}

int segment_lock(const char *name, uint64_t device, uint64_t inode, uint64_t wait_ns, int *lock)
{
	KEEP_ERRNO;
	int fd, error;

	/*
	 * WHY NOT a descriptor kept in the handle: flock() belongs to the open
	 * file, which forked children and threads share: they would not exclude
	 * one another. So each writer opens the file again.
	 */
	error = reopen(name, device, inode, O_RDONLY, &fd);
	if (error != 0)
		return error;
	error = lock_within(fd, wait_ns);
	if (error != 0)
		return close_with(fd, error);
	*lock = fd;
	return 0;
}

void segment_yield(void)
{
	KEEP_ERRNO;
	sched_yield();
}

void segment_unlock(int lock)
{
	KEEP_ERRNO;
	/* Not left to close(): a child that another thread forked since has the open file too. */
	flock(lock, LOCK_UN);
	close(lock);
}

void segment_sleep_until(uint64_t ns)
{
	KEEP_ERRNO;
	struct timespec until = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

int segment_random(void *to, size_t len)
{
	KEEP_ERRNO;
	/* Up to 256 bytes come whole, uninterrupted, once the kernel's pool is ready. */
	ssize_t n = getrandom(to, len, 0);

	if (n < 0)
		return failed();
	return (size_t)n == len ? 0 : -EIO;
}

void segment_boot_id(uint8_t id[16])
{
	KEEP_ERRNO;
	char text[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	unsigned digits = 0;
	ssize_t n;

	memset(id, 0, 16);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	for (ssize_t i = 0; i < n && digits < 32; i++) {
		const char *hex = "0123456789abcdef";
		const char *digit = memchr(hex, text[i], 16);

		if (digit == NULL)
			continue;
		id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | (digit - hex));
		digits++;
	}
}

int segment_zone(const char *name, unsigned char *to, size_t size, size_t *len)
{
	KEEP_ERRNO;
	const char *folders[] = { secure_getenv("TZDIR"), "/usr/share/zoneinfo", "/etc/zoneinfo" };
	char path[PATH_MAX];
	int fd = -1, error;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && fd < 0; i++)
		if (folders[i] != NULL && snprintf(path, sizeof(path), "%s/%s", folders[i], name) < (int)sizeof(path))
			fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -ENOPKG;
	error = segment_read(fd, to, size, len);
	close(fd);
	return error != 0 ? -ENOPKG : 0;
}

uint64_t segment_time_namespace(void)
{
	KEEP_ERRNO;
	struct stat status;

	return stat("/proc/self/ns/time", &status) == 0 ? status.st_ino : 0;
}

uint32_t segment_user(void)
{
	return geteuid();
}

uint32_t segment_cpus(void)
{
	KEEP_ERRNO;
	long n = sysconf(_SC_NPROCESSORS_CONF);

	return n < 1 ? 1 : (uint32_t)n;
}

uint64_t segment_unix_ns(void)
{
	KEEP_ERRNO;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
