/*
 * failing: each system call that the library makes fails in turn, with each errno that it can have, and so does each
 * allocation. The caller gets the error, or the call was not needed. No file, descriptor or mapping is left behind, no
 * other segment has changed, errno is as it was, and the same call works when the fault is over.
 *
 * Calls are intercepted where the library calls the C library: this program has functions of those names, which count,
 * fail, or call the real ones. (Allocations are wrapped at link time, since sanitizers also define those names.)
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "process.h"

/* What is called, told apart by what for. */
enum call {
	NONE,
	OPEN_NEW, /* a file without a name */
	OPEN_FOLDER,
	OPEN_NAME,
	OPEN_BOOT_ID,
	STAT_NAMESPACE,
	READ_BOOT_ID,
	FALLOCATE,
	PWRITE,
	FCHMOD,
	FCHOWN, /* to a group */
	GIVE,   /* to another owner */
	FSTAT,
	PREAD,
	MMAP,
	LINK,      /* by the descriptor */
	LINK_PROC, /* by /proc */
	UNLINK,
	LSTAT,
	FLOCK,
	UNLOCK,
	READDIR,
	GETRANDOM,
	CLOSE,
	READ_STATE, /* of a saved segment */
	WRITE_STATE,
	SLEEP,
	COUNT_CPUS,
	MEMORY,
	CALLS,
};

#define NONE_FOUND 1
#define GOES_ON 1    /* the operation does without, or does it again */
#define AS_IT_IS 0   /* it returns -errno */
#define NOTHING 9999 /* no error: it comes back without having done anything */

/* What may happen to a call, and what becomes of it then: AS_IT_IS, GOES_ON, or the error that it is made into. */
static const struct plan {
	const char *title;
	struct {
		int error, becomes;
	} fault[12];
} plans[CALLS] = {
	/* clang-format off */
	[OPEN_NEW] = { "open of a new file",
		       { { EACCES, 0 },
			 { EMFILE, 0 },
			 { ENFILE, 0 },
			 { ENOENT, ENODEV },
			 { ENOMEM, 0 },
			 { ENOSPC, 0 },
			 { EROFS, 0 },
			 { EPERM, ENOSYS },
			 { EOPNOTSUPP, ENODEV } } },
	[OPEN_FOLDER] = { "opendir", { { EACCES, 0 }, { EMFILE, 0 }, { ENFILE, 0 }, { ENOENT, 0 }, { ENOMEM, 0 } } },
	[OPEN_NAME] = { "open by name",
			{ { EACCES, 0 },
			  { EMFILE, 0 },
			  { ENFILE, 0 },
			  { ENOENT, 0 },
			  { ENOMEM, 0 },
			  { EPERM, ENOSYS },
			  { EROFS, 0 },
			  { EINVAL, EIO },
			  { ETXTBSY, 0 } } },
	[OPEN_BOOT_ID] = { "open of the boot id", { { EACCES, GOES_ON }, { EMFILE, GOES_ON }, { ENOENT, GOES_ON } } },
	[READ_BOOT_ID] = { "read of the boot id", { { EIO, GOES_ON }, { EINTR, GOES_ON } } },
	[STAT_NAMESPACE] = { "stat of the time namespace", { { EACCES, GOES_ON }, { ENOENT, GOES_ON } } },
	[FALLOCATE] = { "posix_fallocate",
			{ { EINTR, GOES_ON },
			  { ENOSPC, 0 },
			  { EFBIG, EDQUOT },
			  { EIO, 0 },
			  { EOPNOTSUPP, EIO },
			  { EPERM, ENOSYS } } },
	[PWRITE] = { "pwrite", { { EINTR, GOES_ON }, { EIO, 0 }, { ENOSPC, 0 }, { EDQUOT, 0 }, { EPERM, ENOSYS }, { NOTHING, EIO } } },
	[FCHMOD] = { "fchmod", { { EPERM, ENOSYS }, { EROFS, 0 }, { EIO, 0 } } },
	[FCHOWN] = { "fchown", { { EPERM, ENOSYS }, { EROFS, 0 }, { EDQUOT, 0 }, { EIO, 0 } } },
	[GIVE] = { "fchown to another owner", { { EPERM, GOES_ON }, { EROFS, GOES_ON } } },
	[FSTAT] = { "fstat", { { EIO, 0 }, { EPERM, ENOSYS }, { ENOMEM, 0 }, { EOVERFLOW, 0 } } },
	[PREAD] = { "pread", { { EINTR, GOES_ON }, { EIO, 0 }, { EAGAIN, EIO }, { EPERM, ENOSYS } } },
	[MMAP] = { "mmap", { { ENOMEM, 0 }, { EACCES, 0 }, { EAGAIN, ENOMEM }, { ENFILE, 0 }, { EPERM, ENOSYS } } },
	[LINK] = { "linkat", { { EEXIST, 0 }, { ENOENT, GOES_ON }, { EPERM, GOES_ON }, { EINVAL, GOES_ON } } },
	[LINK_PROC] = { "linkat by /proc",
			{ { EEXIST, 0 },
			  { ENOENT, ENODEV },
			  { EACCES, 0 },
			  { EPERM, ENOSYS },
			  { ENOSPC, 0 },
			  { EXDEV, EIO } } },
	[UNLINK] = { "unlink", { { EACCES, 0 }, { EPERM, ENOSYS }, { EBUSY, EIO }, { ENOENT, 0 }, { EROFS, 0 } } },
	[LSTAT] = { "lstat", { { EACCES, 0 }, { EPERM, ENOSYS }, { ENOMEM, 0 }, { EIO, 0 } } },
	[FLOCK] = { "flock", { { EINTR, GOES_ON }, { ENOLCK, 0 }, { EPERM, ENOSYS }, { EACCES, ENOSYS }, { EWOULDBLOCK, GOES_ON } } },
	[UNLOCK] = { "flock to unlock", { { EINTR, GOES_ON }, { EBADF, GOES_ON } } },
	[READDIR] = { "readdir", { { EIO, 0 }, { ENOENT, 0 } } },
	[CLOSE] = { "close", { { EINTR, GOES_ON }, { EIO, GOES_ON }, { EDQUOT, GOES_ON } } },
	[GETRANDOM] = { "getrandom", { { EINTR, 0 }, { ENOSYS, 0 }, { EPERM, ENOSYS }, { EAGAIN, EIO }, { NOTHING, EIO } } },
	[READ_STATE] = { "read", { { EINTR, GOES_ON }, { EIO, 0 }, { EISDIR, 0 } } },
	[WRITE_STATE] = { "write",
			  { { EINTR, GOES_ON }, { EIO, 0 }, { ENOSPC, 0 }, { EPIPE, 0 }, { NOTHING, EIO } } },
	[SLEEP] = { "clock_nanosleep", { { EINTR, GOES_ON } } },
	[COUNT_CPUS] = { "sysconf", { { EINVAL, GOES_ON } } },
	[MEMORY] = { "an allocation", { { ENOMEM, 0 } } },
	/* clang-format on */
};

static struct {
	int armed;
	enum call which;
	int number; /* of that call: the first is 1 */
	int error;
	int refuse_links; /* as a kernel without the newer way does, so that /proc is asked */
	int met[CALLS];
} fault;

static int state_fd = -1; /* of a saved segment */

/* True if this call is the one that shall fail; errno says how. */
static int fails(enum call which)
{
	if (!fault.armed)
		return 0;
	fault.met[which]++;
	if (which == LINK && fault.refuse_links && fault.which != LINK) {
		errno = ENOENT;
		return 1;
	}
	if (which != fault.which || fault.met[which] != fault.number)
		return 0;
	errno = fault.error;
	return 1;
}

/* What one that fails returns. */
static int as_failed(void)
{
	return errno == NOTHING ? 0 : -1;
}

/* The C library's own. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

int open(const char *path, int flags, ...)
{
	enum call which = (flags & O_TMPFILE) == O_TMPFILE     ? OPEN_NEW
	                  : strncmp(path, "/dev/shm/", 9) == 0 ? OPEN_NAME
	                  : strstr(path, "boot_id") != NULL    ? OPEN_BOOT_ID
	                                                       : NONE;
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & O_CREAT || which == OPEN_NEW ? va_arg(ap, int) : 0;
	va_end(ap);
	return fails(which) ? -1 : NEXT(open)(path, flags, mode);
}

DIR *opendir(const char *path)
{
	return fails(OPEN_FOLDER) ? NULL : NEXT(opendir)(path);
}

struct dirent *readdir(DIR *folder)
{
	return fails(READDIR) ? NULL : NEXT(readdir)(folder);
}

/* A thousand bytes at a time: the library must go on after a short read or write. */
ssize_t read(int fd, void *to, size_t len)
{
	if (fd != state_fd)
		return fails(READ_BOOT_ID) ? -1 : NEXT(read)(fd, to, len);
	return fails(READ_STATE) ? as_failed() : NEXT(read)(fd, to, fault.armed && len > 1000 ? 1000 : len);
}

ssize_t write(int fd, const void *from, size_t len)
{
	if (fd != state_fd)
		return NEXT(write)(fd, from, len);
	return fails(WRITE_STATE) ? as_failed() : NEXT(write)(fd, from, fault.armed && len > 1000 ? 1000 : len);
}

int stat(const char *path, struct stat *status)
{
	return fails(STAT_NAMESPACE) ? -1 : NEXT(stat)(path, status);
}

int lstat(const char *path, struct stat *status)
{
	return fails(LSTAT) ? -1 : NEXT(lstat)(path, status);
}

int fstat(int fd, struct stat *status)
{
	return fails(FSTAT) ? -1 : NEXT(fstat)(fd, status);
}

int posix_fallocate(int fd, off_t at, off_t len)
{
	return fails(FALLOCATE) ? errno : NEXT(posix_fallocate)(fd, at, len);
}

/* And here a hundred. */
ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
{
	return fails(PWRITE) ? as_failed() : NEXT(pwrite)(fd, from, fault.armed && len > 100 ? 100 : len, at);
}

ssize_t pread(int fd, void *to, size_t len, off_t at)
{
	return fails(PREAD) ? -1 : NEXT(pread)(fd, to, fault.armed && len > 100 ? 100 : len, at);
}

int fchmod(int fd, mode_t mode)
{
	return fails(FCHMOD) ? -1 : NEXT(fchmod)(fd, mode);
}

int fchown(int fd, uid_t uid, gid_t gid)
{
	return fails(uid != (uid_t)-1 ? GIVE : FCHOWN) ? -1 : NEXT(fchown)(fd, uid, gid);
}

void *mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
	return fd >= 0 && fails(MMAP) ? MAP_FAILED : NEXT(mmap)(at, len, protection, flags, fd, offset);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
	return fails(flags & AT_EMPTY_PATH ? LINK : LINK_PROC) ? -1
	                                                       : NEXT(linkat)(from_folder, from, to_folder, to, flags);
}

int unlink(const char *path)
{
	return fails(UNLINK) ? -1 : NEXT(unlink)(path);
}

int flock(int fd, int operation)
{
	return fails(operation == LOCK_UN ? UNLOCK : FLOCK) ? -1 : NEXT(flock)(fd, operation);
}

/* Linux has closed it all the same. */
int close(int fd)
{
	int failing = fails(CLOSE), error = errno;

	if (!failing)
		return NEXT(close)(fd);
	NEXT(close)(fd);
	errno = error;
	return -1;
}

ssize_t getrandom(void *to, size_t len, unsigned flags)
{
	return fails(GETRANDOM) ? as_failed() : NEXT(getrandom)(to, len, flags);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	return fails(SLEEP) ? errno : NEXT(clock_nanosleep)(clock, flags, time, left);
}

long sysconf(int name)
{
	return name == _SC_NPROCESSORS_CONF && fails(COUNT_CPUS) ? -1 : NEXT(sysconf)(name);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails(MEMORY) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails(MEMORY) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails(MEMORY) ? NULL : __real_realloc(p, size);
}

/* ---- What is done while they fail ---- */

static char made[80]; /* the name that is created; stage_name's segment is there all the time */
static struct shmlimit *handle, *opened;
static int stage_grown;

/* The segment that is there all the time: a window and a funnel with a key each, and room for a larger table. */
static struct shmlimit *make_stage(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .slots_max = 64, .rules = 8 };
	struct shmlimit_rule window = {
		.struct_size = sizeof(window), .algorithm = SHMLIMIT_WINDOW, .capacity = 4, .period_ns = 3600000000000
	};
	struct shmlimit_rule paced = { .struct_size = sizeof(paced),
		                       .capacity = 1,
		                       .refill = 1,
		                       .period_ns = 1000000,
		                       .max_wait_ns = 3600000000000 };
	struct shmlimit *l;

	if (shmlimit_create(stage_name, &options, &l) != 0 || shmlimit_rule_set(l, "window", &window) < 0 ||
	    shmlimit_take(l, shmlimit_rule_find(l, "window"), "key", 3, 1, NULL) != 0 ||
	    shmlimit_rule_set(l, "paced", &paced) < 0 ||
	    shmlimit_take(l, stage_rule(l, "slow", 2, 1, 3600000000000), "key", 3, 1, NULL) != 0)
		bail("no segment");
	stage_grown = 0;
	return l;
}

static int create(void)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = 16, .gid = getgid(), .flags = SHMLIMIT_OPTION_GROUP
	};

	return shmlimit_create(made, &options, &opened);
}

static int create_only(void)
{
	return shmlimit_create(made, NULL, NULL);
}

static int open_it(void)
{
	return shmlimit_open(stage_name, 0, NULL, &opened);
}

static int verify(void)
{
	return shmlimit_verify(stage_name, NULL, 0);
}

static int repair(void)
{
	return shmlimit_repair(stage_name, NULL, 0);
}

static int gone(void)
{
	return shmlimit_gone(handle);
}

static int next_after(const char *before)
{
	char name[SHMLIMIT_NAME_MAX + 1] = "";
	int found;

	strcpy(name, before);
	found = shmlimit_next(name);
	return found == 0 ? NONE_FOUND : found == 1 ? strcmp(name, stage_name) : found;
}

static int next(void)
{
	return next_after("");
}

/* A walk over segments passes over a file that may not be read; if no file could be read, the walk reports that. */
static int is_passed_over(int (*operation)(void), enum call which, int error)
{
	return operation == next && (which == OPEN_NAME || which == FSTAT || which == PREAD) && error != EMFILE &&
	       error != ENFILE && error != ENOMEM && error != EINTR;
}

static int rule_set(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 1, .refill = 1, .period_ns = 1000 };
	int id = shmlimit_rule_set(handle, "new", &rule);

	return id < 0 ? id : 0;
}

static int throttle(void)
{
	int64_t reply[5];
	int answer = shmlimit_throttle(handle, "key", 3, 7, 8, 9, 1, reply);

	return answer < 0 ? answer : 0;
}

/* Of another algorithm, which needs larger windows. Where it fails, the old rule is in force, and decides. */
static int change_algorithm(void)
{
	struct shmlimit_rule rule = {
		.struct_size = sizeof(rule), .algorithm = SHMLIMIT_WINDOW, .capacity = 20, .period_ns = 1000
	};
	int id = shmlimit_rule_ensure(handle, "there", &rule), there, was = fault.armed;

	if (id >= 0) {
		stage_grown = 1;
		return shmlimit_rule_algorithm(handle, id) == SHMLIMIT_WINDOW ? 0 : -EPROTO;
	}
	fault.armed = 0;
	there = shmlimit_rule_find(handle, "there");
	if (shmlimit_rule_algorithm(handle, there) != SHMLIMIT_FUNNEL ||
	    shmlimit_take(handle, there, "key", 3, 1, NULL) != SHMLIMIT_ALLOWED ||
	    shmlimit_take(handle, there, "key", 3, 2, NULL) != SHMLIMIT_DENIED)
		id = -EPROTO;
	shmlimit_reset(handle, there, "key", 3);
	fault.armed = was;
	return id;
}

static int rule_remove(void)
{
	return shmlimit_rule_remove(handle, "there");
}

static int destroy(void)
{
	return shmlimit_destroy(stage_name);
}

static int grow(void)
{
	int error = shmlimit_grow(handle, 64);

	stage_grown = error == 0;
	return error;
}

static int save(void)
{
	if (lseek(state_fd, 0, SEEK_SET) != 0)
		bail("no file to save to");
	return shmlimit_save(handle, state_fd);
}

static int load(void)
{
	if (lseek(state_fd, 0, SEEK_SET) != 0)
		bail("no file to load from");
	return shmlimit_load(made, state_fd, 0, &opened);
}

/* What load shall load: the segment as it is, which is another user's where that can be. */
static void save_for_load(void)
{
	struct shmlimit *l;
	char path[SHMLIMIT_PATH_MAX];

	(void)shmlimit_path(stage_name, path);
	if (chown(path, 1, (gid_t)-1) != 0)
		diag("nothing can be given to another user");
	if (lseek(state_fd, 0, SEEK_SET) != 0 || ftruncate(state_fd, 0) != 0 ||
	    shmlimit_open(stage_name, 0, NULL, &l) != 0 || shmlimit_save(l, state_fd) != 0)
		bail("nothing is saved");
	shmlimit_close(l);
}

/* In debt first, so that it waits. */
static int acquire(void)
{
	int paced = shmlimit_rule_find(handle, "paced");

	shmlimit_charge(handle, paced, "key", 3, 1, NULL);
	return shmlimit_acquire(handle, paced, "key", 3, 1, UINT64_MAX, NULL);
}

/* As it was before: rules, names, tables and handles. */
static void put_back(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 1, .refill = 1, .period_ns = 1000 };

	shmlimit_close(opened);
	opened = NULL;
	shmlimit_destroy(made);
	if (stage_grown)
		shmlimit_destroy(stage_name);
	/* With a new handle: an old one remembers answers, and would not ask for them again. */
	if (shmlimit_gone(handle) != 0) {
		shmlimit_close(handle);
		handle = make_stage();
	} else {
		shmlimit_close(handle);
		if (shmlimit_open(stage_name, 0, NULL, &handle) != 0)
			bail("the segment does not open");
	}
	/* It maps the window's cells when it first looks at them. */
	(void)shmlimit_peek(handle, shmlimit_rule_find(handle, "window"), "key", 3, 1, NULL);
	shmlimit_rule_remove(handle, "new");
	shmlimit_rule_remove(handle, "~throttle");
	if (shmlimit_rule_set(handle, "there", &rule) < 0)
		bail("rule_set");
}

static int count_in(const char *path, const char *text)
{
	FILE *from = fopen(path, "r");
	char line[512];
	int n = 0;

	while (from != NULL && fgets(line, sizeof(line), from) != NULL)
		n += strstr(line, text) != NULL;
	if (from != NULL)
		fclose(from);
	return n;
}

static int descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(folder) != NULL)
		n++;
	closedir(folder);
	return n;
}

/* ---- One fault after the other ---- */

struct tally {
	int faults, wrong, errno_changed, left, changed, broken;
};

struct state {
	int descriptors, mappings, made, here, rules;
};

static struct state look(void)
{
	struct state state = {
		.descriptors = descriptors(),
		.mappings = count_in("/proc/self/maps", "/dev/shm/"),
		.here = shmlimit_gone(handle) == 0,
		.rules = (shmlimit_rule_find(handle, "new") >= 0) + (shmlimit_rule_find(handle, "~throttle") >= 0) +
		         4 * (shmlimit_rule_find(handle, "there") >= 0),
	};
	char path[SHMLIMIT_PATH_MAX];

	(void)shmlimit_path(made, path);
	state.made = access(path, F_OK) == 0;
	return state;
}

static void fail_one(const char *title, int (*operation)(void), enum call which, int number, int error, int becomes,
                     struct tally *t)
{
	int want = becomes == GOES_ON ? 0 : becomes == AS_IT_IS ? -error : -becomes, got;
	struct state before, after;

	if (is_passed_over(operation, which, error))
		want = NONE_FOUND;
	put_back();
	before = look();
	memset(fault.met, 0, sizeof(fault.met));
	fault.which = which;
	fault.number = number;
	fault.error = error;
	fault.armed = 1;
	errno = 7777;
	got = operation();
	t->errno_changed += errno != 7777;
	fault.armed = 0;
	t->faults++;
	if (got != want) {
		diag("%s, %s number %d: %s: got %d, want %d", title, plans[which].title, number, strerror(error), got,
		     want);
		t->wrong++;
	}
	/* What was made without something that the kernel would not tell can be used all the same. */
	if (got == 0 && opened != NULL) {
		shmlimit_close(opened);
		opened = NULL;
		t->broken += shmlimit_open(operation == open_it ? stage_name : made, 0, NULL, &opened) != 0;
	}
	if (got < 0) {
		after = look();
		t->left +=
			opened != NULL || after.descriptors != before.descriptors || after.mappings != before.mappings;
		t->changed += after.made != before.made || after.here != before.here || after.rules != before.rules;
		t->broken += operation() != 0;
	}
}

static void fail_all(const char *title, int (*operation)(void))
{
	struct tally t = { 0 };
	int met[CALLS], error;

	put_back();
	memset(&fault, 0, sizeof(fault));
	fault.armed = 1;
	fault.refuse_links = operation == create_only;
	error = operation();
	if (error != 0)
		bail("%s fails by itself: %s", title, shmlimit_strerror(error));
	fault.armed = 0;
	memcpy(met, fault.met, sizeof(met));
	for (enum call which = NONE + 1; which < CALLS; which++)
		for (int number = 1; number <= met[which]; number++)
			for (size_t i = 0; plans[which].fault[i].error != 0; i++)
				fail_one(title, operation, which, number, plans[which].fault[i].error,
				         plans[which].fault[i].becomes, &t);
	diag("%s: %d faults", title, t.faults);
	ok(t.faults > 0, "%s: calls do fail", title);
	is(t.wrong, 0, "%s: the caller gets the error, or the call was not needed", title);
	is(t.errno_changed, 0, "%s: errno is as it was", title);
	is(t.left, 0, "%s: no descriptor and no mapping is left", title);
	is(t.changed, 0, "%s: no file is left or gone, and no rule changed", title);
	is(t.broken, 0, "%s: it works as soon as nothing fails", title);
}

/* One that begins otherwise than a segment, and a segment under a name that none of ours has. */
static void put_foreign_files(void)
{
	char path[SHMLIMIT_PATH_MAX + 16], here[SHMLIMIT_PATH_MAX];
	int fd;

	(void)shmlimit_path(stage_name, here);
	snprintf(path, sizeof(path), "%s\n", here);
	if (link(here, path) != 0)
		bail("no foreign name");

	snprintf(path, sizeof(path), "%s.foreign", here);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "somebody else's file", 20) != 20)
		bail("no foreign file");
	close(fd);
}

int main(void)
{
#ifndef __GLIBC__
	return tap_skip_all("what fails is replaced in a shared C library, and this one is static");
#endif
	stage_begin("failing");
	if (private_shm("size=16m") != 0)
		return tap_skip_all("no /dev/shm of one's own is permitted");
	snprintf(made, sizeof(made), "%s.made", stage_name);
	state_fd = memfd_create("saved", MFD_CLOEXEC);
	handle = make_stage();
	fail_all("create", create);
	fail_all("create alone, by way of /proc", create_only);
	fail_all("open", open_it);
	fail_all("verify", verify);
	fail_all("repair", repair);
	fail_all("gone", gone);
	fail_all("next", next);
	fail_all("rule_set", rule_set);
	fail_all("a rule that changes its algorithm", change_algorithm);
	fail_all("throttle", throttle);
	fail_all("rule_remove", rule_remove);
	fail_all("grow", grow);
	fail_all("save", save);
	save_for_load();
	fail_all("load", load);
	fail_all("acquire", acquire);
	fail_all("destroy", destroy);
	put_back();
	put_foreign_files();
	is(next(), 0, "next: the segment is found");
	is(next_after(stage_name), NONE_FOUND, "next: what is none, or has a name of none, is passed over");
	shmlimit_close(handle);
	return tap_done();
}
