/*
 * memory: the command without memory. Each subcommand runs in a child process once for each allocation that it makes,
 * and that one fails, or that one and all after it: the command's own, and those of the C library and of jansson, zlib,
 * libinih and uthash, since this program defines what they call. A command that cannot go on says so and fails; what
 * it prints with its usual status is complete. No allocation that fails ends it by a signal.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "command.h"
#include "fail.h"
#include "../rng.h"
#include "../process/process.h"

#define SECOND_NS UINT64_C(1000000000)
#define WORDS 24
#define OUTPUT 65536
#define EACH 60   /* allocations of a command that fail one by one; of those after it each seventh does */
#define MOST 5000 /* that fail at all */

/* Shared with the child: it may end without a word. */
static struct play {
	int armed;    /* allocations fail */
	int for_ever; /* also those after the one that failed */
	long left;    /* before that one */
	int met;
} * play;

#if defined(UNDER_ASAN) || defined(UNDER_TSAN)
#define ALLOCATIONS_ARE_THE_SANITIZERS 1
#else
#define ALLOCATIONS_ARE_THE_SANITIZERS 0

/* Visible to the libraries that are linked, too. */
#pragma GCC visibility push(default)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int fails(void)
{
	if (play == NULL || !play->armed || play->left-- > 0)
		return 0;
	if (play->met && !play->for_ever)
		return 0;
	play->met = 1;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}

/* The C library's calls its own realloc(). */
void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	return __builtin_mul_overflow(n, size, &bytes) ? NULL : realloc(p, bytes);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
	if (fails() || (*p = __libc_memalign(alignment, size)) == NULL)
		return ENOMEM;
	return 0;
}

/*
 * glibc 2.36 crashes itself where these have no memory (nss_database_check_reload_and_get), so they have some. The
 * command prints a number for a name that it is not given.
 */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))
#define WITH_MEMORY(type, name, parameter, argument) \
	type *name(parameter argument) \
	{ \
		int armed = play->armed; \
		type *found; \
\
		play->armed = 0; \
		found = NEXT(name)(argument); \
		play->armed = armed; \
		return found; \
	}

WITH_MEMORY(struct passwd, getpwuid, uid_t, id)
WITH_MEMORY(struct passwd, getpwnam, const char *, name)
WITH_MEMORY(struct group, getgrgid, gid_t, id)
WITH_MEMORY(struct group, getgrnam, const char *, name)

#pragma GCC visibility pop

#endif

/* ---- What the commands find ---- */

static char folder[] = "/tmp/shmlimit-memory.XXXXXX";
static pid_t owner;
static char made[80]; /* the segment that a command creates */

static const char rules[] = "[*]\nenabled = yes\nslots = 64\n\n[login]\ncapacity = 3\nrate = 5/h\n\n"
			    "[window]\nalgorithm = window\nrate = 3/h\n";
static const char keys[] = "alice\nbob\n203.0.113.9\n";
static const char log_lines[] = "203.0.113.9 - - [21/Nov/2026:09:00:00 +0000] \"GET / HTTP/1.1\" 200 512\n"
				"203.0.113.10 - alice [21/Nov/2026:09:00:01 +0000] \"GET /login HTTP/1.1\" 200 512\n"
				"203.0.113.9 - - [21/Nov/2026:09:00:02 +0000] \"GET / HTTP/1.1\" 200 512\n";

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put_file(const char *name, const char *text)
{
	FILE *to = fopen(path_of(name), "w");

	if (to == NULL || fputs(text, to) < 0 || fclose(to) != 0)
		bail("%s: %s", name, strerror(errno));
}

/* More rules than the first room for them. */
static void put_many_rules(void)
{
	FILE *to = fopen(path_of("many"), "w");

	for (int i = 0; to != NULL && i < 140; i++)
		fprintf(to, "[rule%d]\ncapacity = 1\nrate = 1/s\n", i);
	if (to == NULL || fclose(to) != 0)
		bail("no file");
}

static void clean(void)
{
	static const char *const names[] = { "rules", "keys", "log",   "many", "apply.rules",
		                             "saved", "out",  "state", "to" };
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(path_of(names[i]));
	snprintf(path, sizeof(path), "%s/apply", folder);
	rmdir(path);
	rmdir(folder);
	shmlimit_destroy(made);
}

/* A command may end by exit(). */
static void clean_at_exit(void)
{
	if (getpid() == owner)
		clean();
}

/* The segment, as each command finds it. */
static void put_back(void)
{
	struct shmlimit_options options = {
		.struct_size = sizeof(options), .slots = 64, .slots_max = 256, .rules = 160, .store_keys = 32
	};
	struct shmlimit_rule funnel = {
		.struct_size = sizeof(funnel), .capacity = 3, .refill = 5, .period_ns = 3600 * SECOND_NS
	};
	struct shmlimit_rule hold = {
		.struct_size = sizeof(hold), .algorithm = SHMLIMIT_HOLD, .capacity = 3, .period_ns = 3600 * SECOND_NS
	};
	struct shmlimit_rule counter = { .struct_size = sizeof(counter),
		                         .algorithm = SHMLIMIT_COUNTER,
		                         .capacity = 1000,
		                         .period_ns = 3600 * SECOND_NS };
	struct shmlimit_rule lease = { .struct_size = sizeof(lease),
		                       .algorithm = SHMLIMIT_LEASE,
		                       .capacity = 100,
		                       .refill = 10,
		                       .period_ns = SECOND_NS };
	struct shmlimit *l = NULL;

	shmlimit_destroy(made);
	shmlimit_destroy(stage_name);
	if (shmlimit_create(stage_name, &options, &l) != 0 || shmlimit_rule_set(l, "login", &funnel) < 0 ||
	    shmlimit_rule_set(l, "work", &hold) < 0 || shmlimit_rule_set(l, "bytes", &counter) < 0 ||
	    shmlimit_rule_set(l, "shared", &lease) < 0 || shmlimit_take(l, 0, "alice", 5, 1, NULL) != 0 ||
	    shmlimit_take(l, 0, "bob", 3, 2, NULL) != 0)
		bail("no segment");
	shmlimit_close(l);
}

/* ---- One command in a child ---- */

struct outcome {
	int status; /* as waitpid() has it */
	int met;    /* the allocation was reached */
	char out[OUTPUT], err[OUTPUT];
};

/* Its words: % is the segment, + the one that is to be made, @ the folder with files. */
static int words_of(const char *command, char text[1024], char *word[WORDS])
{
	size_t at = 0;
	int n = 0;

	for (; *command != '\0'; command++)
		at += (size_t)snprintf(text + at, 1024 - at, "%s",
		                       *command == '%'   ? stage_name
		                       : *command == '+' ? made
		                       : *command == '@' ? folder
		                                         : (char[2]){ *command, '\0' });
	for (char *next = strtok(text, " "); next != NULL; next = strtok(NULL, " "))
		word[n++] = next;
	word[n] = NULL;
	return n;
}

static void read_back(int fd, char text[OUTPUT])
{
	ssize_t len = pread(fd, text, OUTPUT - 1, 0);

	text[len > 0 ? len : 0] = '\0';
}

static void run(const char *command, long number, int for_ever, struct outcome *to)
{
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC), status = STATUS_ERROR;
	char text[1024], *word[WORDS];
	pid_t pid;

	put_back();
	play->left = number;
	play->for_ever = for_ever;
	play->met = 0;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int words = words_of(command, text, word);

		alarm(60);
		if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0 ||
		    freopen(path_of("keys"), "r", stdin) == NULL)
			_exit(99);
		play->armed = 1;
		status = commands_run(words, word);
		if (fflush(stdout) != 0 || ferror(stdout))
			status = fail("standard output: not all could be written: %s", strerror(errno));
		play->armed = 0;
		_exit(status);
	}
	if (pid < 0 || waitpid(pid, &to->status, 0) != pid)
		bail("no child");
	play->armed = 0;
	to->met = play->met;
	read_back(out, to->out);
	read_back(err, to->err);
	close(out);
	close(err);
}

/* The same, except for numbers and fingerprints, which are of the moment. */
static int is_alike(const char *a, const char *b)
{
	static const char digits[] = "0123456789abcdef.";

	while (*a != '\0' || *b != '\0') {
		size_t of_a = strspn(a, digits), of_b = strspn(b, digits);

		if ((of_a == 0) != (of_b == 0) || (of_a == 0 && *a != *b))
			return 0;
		a += of_a > 0 ? of_a : 1;
		b += of_b > 0 ? of_b : 1;
	}
	return 1;
}

static int lines(const char *text)
{
	int n = 0;

	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

/* NULL, or what is wrong with it. */
static const char *wrong(const char *command, const struct outcome *usual, const struct outcome *got)
{
	if (WIFSIGNALED(got->status))
		return strsignal(WTERMSIG(got->status));
	if (strstr(got->err, "emory") != NULL || strstr(got->out, "out of memory") != NULL)
		return got->status == 0 && strstr(got->out, "out of memory") == NULL ? "it says so and exits with 0"
		                                                                     : NULL;
	if (got->status != usual->status)
		return "it does not say that there is no memory";
	if (strstr(command, "--json") != NULL ? !is_alike(got->out, usual->out) : lines(got->out) != lines(usual->out))
		return "what it prints is not complete";
	return NULL;
}

static void each_allocation_fails(const char *command)
{
	static struct outcome usual, got;
	int bad = 0, failed = 0;

	run(command, MOST, 0, &usual);
	if (usual.met || WIFSIGNALED(usual.status))
		bail("%s: does too much, or ends by a signal: %s", command, usual.err);
	for (int for_ever = 0; for_ever <= 1; for_ever++) {
		got.met = 1;
		for (long n = 0; got.met; n += n < EACH ? 1 : 7) {
			const char *why;

			run(command, n, for_ever, &got);
			why = wrong(command, &usual, &got);
			failed += got.met;
			bad += why != NULL;
			if (why != NULL && bad <= 3)
				diag("%s: allocation %ld%s: %s (status 0x%x, usually 0x%x)\n%s%s", command, n + 1,
				     for_ever ? " and all after it" : "", why, (unsigned)got.status,
				     (unsigned)usual.status, got.out, got.err);
		}
	}
	diag("%d allocations failed", failed);
	is(bad, 0, "%s: fails and says why, or goes on, whichever allocation fails", command);
}

static const char *const commands[] = {
	"help",
	"size --keys 5000/h --rate 5/h --capacity 3",
	"size --keys 5000/h --rate 5/h --capacity 3 --json",
	"replay @/log --rule 1/h",
	"replay @/log --rule 1/h --rule 2/h --key addr+path --json",
	"replay @/log --suggest 50% --json",
	"create + --slots 64 --mode 0600",
	"destroy %",
	"grow % --slots 128 --json",
	"list",
	"list --json",
	"rule set % new --capacity 3 --rate 5/h",
	"rule set % login --capacity 4",
	"rule show % login --json",
	"rule list %",
	"rule list % --json",
	"rule remove % login",
	"rule export %",
	"apply % @/rules",
	"apply % @/rules --dry-run --prune --json",
	"apply % @/many --dry-run",
	"apply + @/rules --create --json",
	"apply --all @/apply --json",
	"take % login carol",
	"take % login carol --json",
	"take % login --keys-from -",
	"peek % login alice --json",
	"reserve % login carol",
	"acquire % login carol",
	"exec % login carol -- true",
	"hold % work carol -- true",
	"charge % login carol --json",
	"refund % login alice --json",
	"count % bytes carol --by 5 --json",
	"throttle % carol 5 5 60 --json",
	"reset % login alice --json",
	"ban % mallory --for 1h --json",
	"unban % mallory",
	"bans % --json",
	"bans % --nft --over bytes=1 --for 1h",
	"global take % unix:///nonexistent shared carol --json",
	"global status % --json",
	"enable %",
	"disable %",
	"inspect %",
	"inspect % --json",
	"inspect % --rule login --key alice --json",
	"keys % --sort remaining",
	"keys % --sort remaining --json",
	"top % --count 1 --interval 1ms",
	"top % --count 1 --interval 1ms --json",
	"stat % --count 1 --interval 1ms --json",
	"metrics %",
	"metrics % --output @/out",
	"check % --max-denied 1 --interval 1ms",
	"check % --max-denied 1 --state @/state",
	"verify % --json",
	"verify % --repair --json",
	"save % @/to",
	"load + @/saved",
};

static void save(void)
{
	int fd = open(path_of("saved"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct shmlimit *l;

	put_back();
	if (fd < 0 || shmlimit_open(stage_name, 0, NULL, &l) != 0 || shmlimit_save(l, fd) != 0)
		bail("nothing is saved");
	shmlimit_close(l);
	close(fd);
}

int main(void)
{
	char path[128];

	if (ALLOCATIONS_ARE_THE_SANITIZERS)
		return tap_skip_all("a sanitizer defines the functions that this program fails");
	play = mmap(NULL, sizeof(*play), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (play == MAP_FAILED || mkdtemp(folder) == NULL)
		bail("no folder");
	snprintf(made, sizeof(made), "test.memory.%ld.made", (long)getpid());
	owner = getpid();
	stage_begin("memory");
	atexit(clean_at_exit);
	guard_begin(clean);
	if (private_shm("size=16m") != 0)
		return tap_skip_all("no /dev/shm of one's own is permitted");
	put_file("rules", rules);
	put_file("keys", keys);
	put_file("log", log_lines);
	put_many_rules();
	snprintf(path, sizeof(path), "%s/apply", folder);
	if (mkdir(path, 0700) != 0)
		bail("no folder");
	save();
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (getenv("COMMAND") == NULL || strstr(commands[i], getenv("COMMAND")) != NULL)
			each_allocation_fails(commands[i]);
	return tap_done();
}
