/*
 * trust: whose segments are opened, and that this is decided before they are mapped.
 * Any user can create a segment under a name that is free, and the owner of a file can
 * truncate it, which is a SIGBUS for every process that has it mapped.
 *
 * Strangers are other users: those tests need root, which becomes them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <grp.h>
#include <sys/stat.h>

#include "process.h"

#include "layout.h"

#define NOBODY 65534u
#define OPENS 20000
#define TRUNCATIONS 20000 /* the truncating process makes these at least beside the opens */

static char path[SHMLIMIT_PATH_MAX], other_path[SHMLIMIT_PATH_MAX + 8];

static void make(uint32_t mode, uint32_t gid)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options),
		.flags = gid != 0 ? SHMLIMIT_OPTION_GROUP : 0,
		.gid = gid,
		.slots = 64,
		.rules = 2,
		.mode = mode,
	};
	int error;

	(void)unlink(path);
	error = shmlimit_create(stage_name, &options, NULL);
	if (error != 0)
		bail("create: %s", shmlimit_strerror(error));
}

static int opens(uint32_t flags)
{
	struct shmlimit *l;
	int error = shmlimit_open(stage_name, flags, NULL, &l);

	if (error == 0)
		shmlimit_close(l);
	return error;
}

static int opens_owned(uint32_t owner)
{
	struct shmlimit *l;
	struct shmlimit_options options = { .struct_size = sizeof(options), .owner = owner };
	int error = shmlimit_open(stage_name, SHMLIMIT_OPEN_TRUSTED, &options, &l);

	if (error == 0)
		shmlimit_close(l);
	return error;
}

static void become(uint32_t user, uint32_t group)
{
	worker_check(setgroups(0, NULL) == 0 && setresgid(group, group, group) == 0 && setresuid(user, user, user) == 0,
	             "cannot become user %u: %s", user, strerror(errno));
}

/* What a process of that user and group gets. */
static int opens_as(uint32_t user, uint32_t group, uint32_t flags)
{
	int *answer = shared_memory(sizeof(*answer)), got;
	pid_t pid = fork_bound();

	if (pid == 0) {
		become(user, group);
		*answer = opens(flags);
		_exit(0);
	}
	if (!wait_for(pid))
		bail("the process that opens ended badly");
	got = *answer;
	munmap(answer, sizeof(*answer));
	return got;
}

/* ---- One's own ---- */

static void own(void)
{
	struct layout_header header;
	struct shmlimit *l;
	int fd;

	make(0600, 0);
	is(opens(SHMLIMIT_OPEN_TRUSTED), 0, "a segment of this process's user is opened");
	is(opens(SHMLIMIT_OPEN_TRUSTED | SHMLIMIT_OPEN_READ_ONLY), 0,
	   "a segment of this process's user is opened read-only");
	is(opens(SHMLIMIT_OPEN_TRUSTED << 4), -EINVAL, "an unknown flag is refused");

	if (shmlimit_open(stage_name, SHMLIMIT_OPEN_TRUSTED, NULL, &l) != 0 || shmlimit_grow(l, 256) != 0)
		bail("grow");
	shmlimit_close(l);
	is(opens(SHMLIMIT_OPEN_TRUSTED), 0, "a segment that has grown is opened");

	if (link(path, other_path) != 0)
		bail("link: %s", strerror(errno));
	is(opens(SHMLIMIT_OPEN_TRUSTED), -EPERM, "a file with two hard links is not trusted");
	is(opens(0), 0, "a file with two hard links is opened without the flag");
	unlink(other_path);
	is(opens(SHMLIMIT_OPEN_TRUSTED), 0, "a file is trusted again when its second hard link is gone");

	/* As long as before, but only its header is there. */
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) || ftruncate(fd, 0) != 0 ||
	    ftruncate(fd, (off_t)header.size) != 0 || pwrite(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		bail("no sparse file: %s", strerror(errno));
	close(fd);
	is(opens(SHMLIMIT_OPEN_TRUSTED), -EUCLEAN, "a file whose table is a hole is damaged");

	make(0600, 0);
	is(shmlimit_destroy(stage_name), 0, "the segment is destroyed");
	is(opens(SHMLIMIT_OPEN_TRUSTED), -ENOENT, "a destroyed segment is not found");
}

/* ---- Strangers' ---- */

static void strangers(void)
{
	make(0666, 0);
	is(opens_as(NOBODY, NOBODY, SHMLIMIT_OPEN_TRUSTED), 0, "a worker without privileges opens root's segment");
	make(0660, NOBODY);
	is(opens_as(NOBODY, NOBODY, SHMLIMIT_OPEN_TRUSTED), 0, "a worker of the segment's group opens root's segment");
	is(opens_as(NOBODY - 1, NOBODY - 1, SHMLIMIT_OPEN_TRUSTED), -EACCES,
	   "a process that is not in the group has no permission");

	make(0666, 0);
	if (chown(path, NOBODY, NOBODY) != 0)
		bail("chown: %s", strerror(errno));
	is(opens(SHMLIMIT_OPEN_TRUSTED), -EPERM, "root does not open a stranger's segment");
	is(opens(SHMLIMIT_OPEN_TRUSTED | SHMLIMIT_OPEN_READ_ONLY), -EPERM,
	   "root does not open a stranger's segment to read it");
	is(opens_as(NOBODY - 1, NOBODY - 1, SHMLIMIT_OPEN_TRUSTED), -EPERM,
	   "a user does not open a stranger's segment");
	is(opens_as(NOBODY, NOBODY, SHMLIMIT_OPEN_TRUSTED), 0, "the owner opens it");
	is(opens(0), 0, "a process that does not check the owner opens it");
	is(opens_owned(NOBODY), 0, "a segment is opened whose owner is named");
	is(opens_owned(NOBODY - 1), -EPERM, "naming another owner does not help");
	make(0600, 0);
	is(opens_owned(NOBODY), 0, "root's segment is opened whatever owner is named");
}

/* ---- A stranger that truncates ---- */

struct seen {
	_Atomic uint64_t truncations;
	uint64_t opened, refused, other;
	_Atomic int done;
};

static struct seen *seen;

/* A segment that is whole for one moment, and empty in the next. */
static void truncate_and_restore(void)
{
	static char page[4096];
	struct stat status;
	ssize_t n;
	int fd;

	become(NOBODY, NOBODY);
	fd = open(path, O_RDWR | O_CLOEXEC);
	worker_check(fd >= 0 && fstat(fd, &status) == 0, "open: %s", strerror(errno));
	n = pread(fd, page, sizeof(page), 0);
	while (!atomic_load(&seen->done)) {
		worker_check(ftruncate(fd, status.st_size) == 0 && pwrite(fd, page, (size_t)n, 0) == n, "restore: %s",
		             strerror(errno));
		/* Whole for as long as it takes to open it, so that some openers are inside. */
		for (int i = 0; i < 2000; i++)
			relax();
		worker_check(ftruncate(fd, 0) == 0, "truncate: %s", strerror(errno));
		atomic_fetch_add(&seen->truncations, 1);
	}
}

static void open_often(void)
{
	signal(SIGBUS, SIG_DFL);
	for (uint64_t i = 0; i < scaled(OPENS) || atomic_load(&seen->truncations) < scaled(TRUNCATIONS); i++) {
		int error = opens(SHMLIMIT_OPEN_TRUSTED);

		seen->opened += error == 0;
		seen->refused += error == -EPERM;
		seen->other += error != 0 && error != -EPERM;
	}
}

static void squatter(void)
{
	pid_t stranger, opener;

	make(0600, 0);
	if (chown(path, NOBODY, NOBODY) != 0)
		bail("chown: %s", strerror(errno));
	seen = shared_memory(sizeof(*seen));
	stranger = fork_bound();
	if (stranger == 0) {
		truncate_and_restore();
		_exit(0);
	}
	opener = fork_bound();
	if (opener == 0) {
		open_often();
		_exit(0);
	}
	ok(wait_for(opener), "a process that opens a segment by its name survives an owner that truncates it");
	atomic_store(&seen->done, 1);
	ok(wait_for(stranger), "the owner truncated it all the time");
	is(seen->opened, 0, "the segment was never opened");
	is(seen->other, 0, "the owner was always the reason");
}

int main(void)
{
	stage_begin("trust");
	(void)shmlimit_path(stage_name, path);
	snprintf(other_path, sizeof(other_path), "%s.link", path);
	own();
	if (geteuid() != 0) {
		tap_skip("whose segments are opened", "needs root, to become other users");
	} else {
		strangers();
		squatter();
	}
	return tap_done();
}
