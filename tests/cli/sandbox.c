/*
 * sandbox: each system call that the library makes is refused in turn, as a seccomp filter of a container or a service
 * does, with EPERM or ENOSYS. The command says which call it is: not that a group, an owner or a rule is wrong.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "command.h"
#include "../unit/unit.h"

#define WORDS 12
#define OUTPUT 4096
#define ANY_FILE 1 /* the call is refused only where it has a descriptor */

/* ---- The sandbox ---- */

/* All calls of this number fail with `error`. Returns 0, or -1: no filter can be set here. */
static int refuse(int call, int fifth_is_a_file, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
		/* MAP_ANONYMOUS has -1. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, fifth_is_a_file ? UINT32_MAX : 0xfffffffe, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) : -1;
}

/* ---- A command in it ---- */

static char made[80], folder[] = "/tmp/shmlimit-sandbox.XXXXXX", saved[64], to[64], own_group[16];

/* aarch64 has unlinkat() only, which unlink() calls. */
#ifndef SYS_unlink
#define SYS_unlink SYS_unlinkat
#endif

static const struct refusal {
	const char *name; /* as the message has it */
	int call, fifth_is_a_file;
	const char *
		command; /* % is a segment, + one that is to be made, @ a file that is, = a saved segment, ^ the group of this process */
} refusals[] = {
	{ "fallocate", SYS_fallocate, 0, "create + --slots 16" },
	{ "pwrite", SYS_pwrite64, 0, "create + --slots 16" },
	{ "fchmod", SYS_fchmod, 0, "create + --slots 16" },
	{ "linkat", SYS_linkat, 0, "create + --slots 16" },
	{ "getrandom", SYS_getrandom, 0, "create + --slots 16" },
	{ "fallocate", SYS_fallocate, 0, "create + --slots 16 --group 1" },
	{ "fchown", SYS_fchown, 0, "create + --slots 16 --group ^" },
	{ "pread", SYS_pread64, 0, "take % login user:42" },
	{ "mmap", SYS_mmap, ANY_FILE, "take % login user:42" },
	{ "flock", SYS_flock, 0, "rule set % login --capacity 4" },
	{ "flock", SYS_flock, 0, "rule remove % login" },
	{ "flock", SYS_flock, 0, "grow % --slots 64" },
	{ "fallocate", SYS_fallocate, 0, "grow % --slots 64" },
	{ "memfd_create", SYS_memfd_create, 0, "save % @" },
	{ "linkat", SYS_linkat, 0, "load + =" },
	{ "unlink", SYS_unlink, 0, "destroy %" },

};

static int split(const char *command, char text[512], char *word[WORDS])
{
	size_t at = 0;
	int n = 0;

	for (; *command != '\0'; command++)
		at += (size_t)snprintf(text + at, 512 - at, "%s",
		                       *command == '%'   ? unit_name
		                       : *command == '+' ? made
		                       : *command == '@' ? to
		                       : *command == '=' ? saved
		                       : *command == '^' ? own_group
		                                         : (char[2]){ *command, '\0' });
	for (char *next = strtok(text, " "); next != NULL; next = strtok(NULL, " "))
		word[n++] = next;
	word[n] = NULL;
	return n;
}

/* Its standard error. Returns its status, or -1: no filter can be set here. */
static int run(const struct refusal *refusal, int error, char err[OUTPUT])
{
	int fd = memfd_create("err", MFD_CLOEXEC), status;
	char text[512], *word[WORDS];
	pid_t pid = fork();
	ssize_t len;

	if (pid == 0) {
		int words = split(refusal->command, text, word);

		/* What the C library does once, it does before. */
		fputs("", stderr);
		if (dup2(fd, STDERR_FILENO) < 0 || refuse(refusal->call, refusal->fifth_is_a_file, error) != 0)
			_exit(99);
		_exit(commands_run(words, word));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		bail("no child");
	len = pread(fd, err, OUTPUT - 1, 0);
	err[len > 0 ? len : 0] = '\0';
	close(fd);
	return !WIFEXITED(status) ? -2 : WEXITSTATUS(status) == 99 ? -1 : WEXITSTATUS(status);
}

static void clean_made(void)
{
	shmlimit_destroy(made);
	unlink(saved);
	unlink(to);
	rmdir(folder);
}

static void save(struct shmlimit *l)
{
	int fd = open(saved, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || shmlimit_save(l, fd) != 0)
		bail("nothing is saved");
	close(fd);
}

int main(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16, .slots_max = 256 };
	struct shmlimit_rule rule = { .struct_size = sizeof(rule), .capacity = 3, .refill = 1, .period_ns = SECOND };
	static const int errors[] = { EPERM, ENOSYS };
	struct shmlimit *l = unit_create("sandbox", &options);
	char err[OUTPUT], want[64];

	snprintf(own_group, sizeof(own_group), "%ju", (uintmax_t)getegid());
	snprintf(made, sizeof(made), "%.60s.made", unit_name);
	if (mkdtemp(folder) == NULL)
		bail("no folder");
	snprintf(saved, sizeof(saved), "%s/saved", folder);
	snprintf(to, sizeof(to), "%s/to", folder);
	guard_begin(clean_made);
	shmlimit_rule_set(l, "login", &rule);
	save(l);
	shmlimit_close(l);
	if (run(&refusals[0], EPERM, err) == -1)
		return tap_skip_all("no seccomp filter can be set here");
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		for (size_t e = 0; e < 2; e++) {
			const struct refusal *r = &refusals[i];
			int status;

			/* The C library does without fallocate() where there is none. */
			if (r->call == SYS_fallocate && errors[e] == ENOSYS)
				continue;
			status = run(r, errors[e], err);
			snprintf(want, sizeof(want), "a sandbox refuses %s:", r->name);
			is(status, STATUS_ERROR, "%s without %s (%s): it fails", r->command, r->name,
			   strerror(errors[e]));
			if (!ok(strstr(err, want) != NULL, "%s without %s (%s): the message names the call", r->command,
			        r->name, strerror(errors[e])))
				diag("%s", err);
			ok(shmlimit_destroy(made) == -ENOENT, "%s without %s (%s): it makes no segment", r->command,
			   r->name, strerror(errors[e]));
		}
	return tap_done();
}
