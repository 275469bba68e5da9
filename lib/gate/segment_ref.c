/*
 * segment_ref: see segment_ref.h.
 *
 * A thread may be inside a decision while another one finds that the segment was replaced. So
 * threads reach the view through one pointer, under liburcu's read lock, which never waits. The
 * thread that replaces the view waits until all threads that may have seen the old one have left
 * it, and then closes it. A decision on a LEASE rule may delay that one thread by a deadline; it
 * delays no other.
 *
 * A forked child has one thread, and may inherit a lock from any other thread. So each process has
 * a number, its depth of forks. A lock with the number of another process is free, and a child
 * looks at the segment before its first decision. liburcu has functions that repair its own locks
 * and readers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <urcu/urcu-bp.h>

#include "segment_ref.h"
#include "multi_take.h"
#include "room.h"
#include "traits.h"

#define LOOK_EVERY_MS 1000u

/*
 * A writer of rules holds the lock for microseconds. A stopped one delays requests by at most this
 * many tries of this length.
 */
#define LOCK_TRIES 20
#define LOCK_WAIT_NS 1000000

/* 1 + the number of forks between this process and the one that loaded the library */
static unsigned long process = 1;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void after_fork_child(void)
{
	urcu_bp_after_fork_child();
	process++;
}

static void watch_forks(void)
{
	pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent, after_fork_child);
}

/*
 * liburcu makes room for a thread when it reads for the first time, and aborts the process where it
 * cannot. So room is asked for first. BOUND: another thread may take it in between; this is more
 * than liburcu needs for 4,000 threads.
 */
#define READER_BYTES (1u << 20)

/*
 * WHY initial-exec: glibc allocates other thread-local variables of a module when they are first
 * used. musl has room for all when it loads the module, and refuses initial-exec.
 */
#ifdef __GLIBC__
static __thread int is_reader __attribute__((tls_model("initial-exec")));
#else
static __thread int is_reader;
#endif

static int become_reader(void)
{
	int error = errno;
	void *room = mmap(NULL, READER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = error;
	if (room == MAP_FAILED)
		return 0;
	munmap(room, READER_BYTES);
	is_reader = 1;
	return 1;
}

static unsigned long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (unsigned long)now.tv_sec * 1000u + (unsigned long)now.tv_nsec / 1000000u;
}

static void wait_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOCK_WAIT_NS }, NULL);
}

/*
 * Not an error of the library: requests bring their limits, and the rule is of another algorithm.
 */
#define NOT_GCRA (-EBADRQC)

/* Is there one of another layout, which another version of the library made? */
static int has_other_layout(const char *segment)
{
	char name[SHMLIMIT_NAME_MAX + 1];
	uint32_t layout = 0;

	snprintf(name, sizeof(name), "%s", segment);
	return shmlimit_next_layout(name, &layout) == 1 && strcmp(name, segment) == 0;
}

static const char *words(const struct segment_ref *ref, int error)
{
	switch (error) {
	case -ENOENT:
		return has_other_layout(ref->spec->segment)
		               ? "it has another layout version, of another version of shmlimit: create or load it again"
		               : shmlimit_strerror(error);
	case -EPERM:
		return ref->spec->create ? "it belongs to neither root nor this user, or its group cannot be set"
		                         : "it belongs to neither root nor this user, or has another hard link";
	case -EDESTADDRREQ:
		return "it is a lease, and needs the backend's URL (backend=)";
	case -EOPNOTSUPP:
		return "it is a lease, which cannot be peeked at";
	case NOT_GCRA:
		return "it is not a gcra rule, which limits that come with requests need";
	case -EINVAL:
		return "it is a lease, and the backend's URL is wrong";
	case -ELIBBAD:
		return "it is a lease, and libshmlimit-global.so.1 is of another version: restart the server after an "
		       "upgrade";
	case -ELIBACC:
		return "it is a lease, and libshmlimit-global.so.1 is not installed";
	default:
		return shmlimit_strerror(error);
	}
}

/* Returns whether the text was passed on. The same text is passed on at most once a minute. */
static int report_once(struct segment_ref *ref, int bad, const char *text)
{
	if (ref->report == NULL || (bad && log_once_has(&ref->log_once, text, now_ms())))
		return 0;
	ref->report(ref->arg, bad, text);
	return 1;
}

/*
 * Not an error: with backend= a rule that was set by hand limits this host alone, and no limit says
 * that it is `local`. Hosts that were to share it admit its limit each.
 */
#define UNSHARED 1

static void report_unshared(struct segment_ref *ref, const char *rule, int *reported)
{
	char text[SHMLIMIT_NAME_MAX + SHMLIMIT_RULE_NAME_MAX + 200];

	snprintf(text, sizeof(text),
	         "segment %.*s: rule %.*s: it limits this host alone, beside backend=: hosts share a rule of "
	         "--algorithm lease; the word local says that this is meant",
	         SHMLIMIT_NAME_MAX, ref->spec->segment, SHMLIMIT_RULE_NAME_MAX, rule);
	if (report_once(ref, 1, text))
		*reported = UNSHARED;
}

/*
 * WHY the limit is left out, rather than that requests fail: a limit that is added to a site's
 * configuration would refuse all requests, or with fail=open switch off the limits beside it.
 */
static int report_no_room(struct segment_ref *ref, const struct view *view, const struct spec_rule *rule, int error)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };
	char text[SHMLIMIT_NAME_MAX + SHMLIMIT_RULE_NAME_MAX + 300];
	int at;

	(void)shmlimit_info(view->limiter, &info);
	at = snprintf(text, sizeof(text), "segment %.*s: rule %.*s: not in force: ", SHMLIMIT_NAME_MAX,
	              ref->spec->segment, SHMLIMIT_RULE_NAME_MAX, rule->name);
	at += room_text(text + at, sizeof(text) - (size_t)at, error, &info);
	at += snprintf(text + at, sizeof(text) - (size_t)at, ": requests are limited by their other limits only");
	/* Each look tries again: there may be room by then. */
	if (error == -EXFULL)
		snprintf(text + at, sizeof(text) - (size_t)at, ", until the segment is made again");
	return report_once(ref, 1, text);
}

/* Report a new problem with the segment or one of its rules, or the end of one. */
static void report_state(struct segment_ref *ref, const char *rule, int error, int *reported)
{
	const char *what = ref->spec->fail_open ? "pass without a limit" : "are refused";
	char text[SHMLIMIT_NAME_MAX + SHMLIMIT_RULE_NAME_MAX + 200];
	int at;

	if (error == UNSHARED && *reported < 0)
		report_state(ref, rule, 0, reported);
	if (error == *reported)
		return;
	if (error == UNSHARED) {
		report_unshared(ref, rule, reported);
		return;
	}
	if (error == 0 && *reported == UNSHARED) {
		*reported = 0;
		return;
	}
	if (error == 0 && room_lacks(*reported)) {
		snprintf(text, sizeof(text), "segment %.*s: rule %.*s: now in force", SHMLIMIT_NAME_MAX,
		         ref->spec->segment, SHMLIMIT_RULE_NAME_MAX, rule);
		if (report_once(ref, 0, text))
			*reported = 0;
		return;
	}
	at = snprintf(text, sizeof(text), "segment %.*s: ", SHMLIMIT_NAME_MAX, ref->spec->segment);
	if (rule != NULL)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "rule %.*s: ", SHMLIMIT_RULE_NAME_MAX, rule);
	if (error != 0)
		snprintf(text + at, sizeof(text) - (size_t)at, "%s: requests that need it %s", words(ref, error), what);
	else
		snprintf(text + at, sizeof(text) - (size_t)at, "in order again; requests that %s: %lu",
		         ref->spec->fail_open ? "passed without a limit" : "were refused",
		         __atomic_exchange_n(&ref->failed, 0, __ATOMIC_RELAXED));
	if (report_once(ref, error != 0, text))
		*reported = error;
}

/*
 * The rule, of this id, has not the spec's rate, but an older one; or, again, the spec's. What is
 * missing has none, which is reported as an error of the rule.
 */
static void report_unchanged(struct segment_ref *ref, const char *rule, int id, struct rule_state *state)
{
	char text[SHMLIMIT_NAME_MAX + SHMLIMIT_RULE_NAME_MAX + 200];
	int at;

	if (id < 0)
		state->unchanged_reported = 0;
	if (state->unchanged == state->unchanged_reported)
		return;
	at = snprintf(text, sizeof(text), "segment %.*s: rule %.*s: ", SHMLIMIT_NAME_MAX, ref->spec->segment,
	              SHMLIMIT_RULE_NAME_MAX, rule);
	if (state->unchanged != 0)
		snprintf(text + at, sizeof(text) - (size_t)at, "its new rate is refused, and the old one stays: %s",
		         words(ref, state->unchanged));
	else
		snprintf(text + at, sizeof(text) - (size_t)at, "its new rate is in force");
	if (report_once(ref, state->unchanged != 0, text))
		state->unchanged_reported = state->unchanged;
}

int segment_ref_may_report(struct segment_ref *ref, size_t rule)
{
	unsigned long now = now_ms(), last = __atomic_load_n(&ref->rules[rule].rate_ms, __ATOMIC_RELAXED);

	return (last == 0 || now - last >= LOG_ONCE_AGAIN_MS) &&
	       __atomic_compare_exchange_n(&ref->rules[rule].rate_ms, &last, now, 0, __ATOMIC_RELAXED,
	                                   __ATOMIC_RELAXED);
}

void segment_ref_report_rate(struct segment_ref *ref, const char *text)
{
	if (ref->report != NULL)
		ref->report(ref->arg, 1, text);
}

void segment_ref_report(struct segment_ref *ref, const char *text)
{
	(void)report_once(ref, 1, text);
}

static void report_backend(void *segment_ref, const char *text)
{
	(void)report_once(segment_ref, 1, text);
}

void segment_ref_find_rules(struct segment_ref *ref, struct view *view)
{
	for (size_t i = 0; i < ref->spec->rule_count; i++)
		__atomic_store_n(&view->ids[i], shmlimit_rule_find(view->limiter, ref->spec->rules[i].name),
		                 __ATOMIC_RELAXED);
}

/*
 * Set a rule that is missing, or, if `change` is set, that was given another rate last. A rate that
 * was changed by hand since is left alone: workers start at any time, and must not undo it. Where
 * the rate cannot be set, an older one stays in force, *unchanged says why, and each look tries
 * again.
 */
static int set_rule(struct shmlimit *limiter, const struct spec_rule *wanted, int change, int *unchanged)
{
	struct shmlimit_rule rule = wanted->rate;
	int id = shmlimit_rule_find(limiter, wanted->name), set = -EAGAIN;

	if (id >= 0 && !change && *unchanged == 0)
		return id;
	rule.flags |= SHMLIMIT_RULE_NO_WAIT;
	for (int tries = 0; set == -EAGAIN && tries < LOCK_TRIES; tries++) {
		if (tries > 0)
			wait_a_little();
		set = shmlimit_rule_ensure(limiter, wanted->name, &rule);
	}
	*unchanged = set < 0 && id >= 0 ? set : 0;
	return *unchanged != 0 ? id : set;
}

/* Several processes may do this at once: each finds the rules that another one has set. */
static void create_rules(struct segment_ref *ref, struct view *view, int change)
{
	for (size_t i = 0; i < ref->spec->rule_count; i++) {
		const struct spec_rule *rule = &ref->spec->rules[i];

		if (rule->has_rate) {
			int id = set_rule(view->limiter, rule, change, &ref->rules[i].unchanged);

			__atomic_store_n(&ref->rules[i].no_room, room_lacks(id) ? id : 0, __ATOMIC_RELAXED);
			if (room_lacks(id))
				__atomic_store_n(&ref->lacked_room, 1, __ATOMIC_RELAXED);
			__atomic_store_n(&view->ids[i], id, __ATOMIC_RELAXED);
		}
	}
}

static void prepare_rules(struct segment_ref *ref, struct view *view, int change)
{
	segment_ref_find_rules(ref, view);
	if (ref->spec->create)
		create_rules(ref, view, change);
}

/* A failure here matters only when a LEASE rule is needed, so it is kept in view->no_global. */
static void open_global(struct segment_ref *ref, struct view *view)
{
	const struct global_library *library = ref->spec->backend != NULL ? global_library_load() : NULL;
	const struct spec *s = ref->spec;
	struct shmlimit_global_options options = {
		.struct_size = sizeof(options),
		.on_failure = s->local_milli != 0 ? SHMLIMIT_GLOBAL_LOCAL
		              : s->fail_open      ? SHMLIMIT_GLOBAL_ALLOW
		                                  : SHMLIMIT_GLOBAL_ERROR,
		.deadline_ns = UINT64_C(1000) * s->deadline_us,
		.local_milli = s->local_milli,
		.prefix = s->backend_prefix,
		.flags = (s->agent != SPEC_AGENT_NO ? SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD : 0) |
		         (s->no_wait ? SHMLIMIT_GLOBAL_OPTION_NO_WAIT : 0),
		.report = report_backend,
		.arg = ref,
	};

	view->no_global = -EDESTADDRREQ;
	if (s->backend != NULL)
		view->no_global = library == NULL ? global_library_error()
		                                  : library->open(view->limiter, s->backend, &options, &view->global);
	/*
	 * No thread can be made, or the segment is read-only: the process asks the backend itself.
	 */
	if ((view->no_global == -EAGAIN || view->no_global == -EROFS) && s->agent == SPEC_AGENT_IF_POSSIBLE) {
		options.flags &= ~(uint32_t)SHMLIMIT_GLOBAL_OPTION_AGENT_THREAD;
		view->no_global = library->open(view->limiter, s->backend, &options, &view->global);
	}
}

static void report_option(void *segment_ref, const char *option)
{
	struct segment_ref *ref = segment_ref;
	char text[SHMLIMIT_NAME_MAX + 300];

	snprintf(text, sizeof(text), "segment %.*s: %s", SHMLIMIT_NAME_MAX, ref->spec->segment, option);
	(void)report_once(ref, 1, text);
}

/* Options of the spec that the segment, which existed before, does not have. */
static void report_options(struct segment_ref *ref, const struct view *view)
{
	struct shmlimit_info info = { .struct_size = sizeof(info) };

	if (shmlimit_info(view->limiter, &info) == 0)
		room_options(ref->spec, &info, report_option, ref);
}

static int open_view(struct segment_ref *ref, int change, struct view **out)
{
	struct view *view = calloc(1, sizeof(*view) + ref->spec->rule_count * sizeof(view->ids[0]));
	struct fixed_fields *fixed = calloc(ref->spec->limit_count + 1, sizeof(*fixed));
	int error = -ENOMEM;

	if (view != NULL && fixed != NULL)
		error = shmlimit_open(ref->spec->segment,
		                      SHMLIMIT_OPEN_TRUSTED | (ref->spec->create ? SHMLIMIT_OPEN_CREATE : 0),
		                      &ref->spec->options, &view->limiter);
	if (error != 0) {
		free(fixed);
		free(view);
		return error;
	}
	view->fixed = fixed;
	view->number = ++ref->views;
	prepare_rules(ref, view, change);
	open_global(ref, view);
	*out = view;
	return 0;
}

static void close_view(struct view *view)
{
	if (view == NULL)
		return;
	if (view->global != NULL)
		global_library_load()->close(view->global);
	shmlimit_close(view->limiter);
	free(view->fixed);
	free(view);
}

/* Add the requests that could not be decided to the segment's counters. */
static void count_failed(struct segment_ref *ref, struct view *view)
{
	for (uint32_t which = 0; view != NULL && which < 2; which++)
		if (__atomic_load_n(&ref->uncounted[which], __ATOMIC_RELAXED) != 0)
			(void)shmlimit_count_undecided(
				view->limiter, which, __atomic_exchange_n(&ref->uncounted[which], 0, __ATOMIC_RELAXED));
}

/*
 * Returns the error of a rule of the spec, UNSHARED, or 0. A rule that is only peeked at may be
 * missing: then it denies nothing.
 */
static int find_fault(const struct segment_ref *ref, struct view *view, const struct spec_rule *rule, int id)
{
	if (id < 0)
		return id == -ESRCH && !rule->taken ? 0 : id;
	if (rule->gcra && !traits_of((uint32_t)shmlimit_rule_algorithm(view->limiter, id))->takes_limits)
		return NOT_GCRA;
	if (!multi_take_is_global(view->limiter, id))
		return ref->spec->backend != NULL && rule->taken && !rule->local ? UNSHARED : 0;
	return rule->peeked ? -EOPNOTSUPP : view->no_global;
}

/*
 * A rule for which there is no room may be one that another error was reported of, which ends then.
 */
static void report_rule(struct segment_ref *ref, const struct view *view, size_t i, int error)
{
	const struct spec_rule *rule = &ref->spec->rules[i];
	int *reported = &ref->rules[i].reported;

	if (!room_lacks(error))
		report_state(ref, rule->name, error, reported);
	else if (*reported != error && report_no_room(ref, view, rule, error))
		*reported = error;
}

/*
 * Open the segment if needed, and find the rules again: they may have been removed and set again.
 */
static int look(struct segment_ref *ref, int change)
{
	struct view *old = ref->view, *fresh = NULL;
	int error = 0;

	if (old != NULL && shmlimit_gone(old->limiter) == 0) {
		prepare_rules(ref, old, change);
		fresh = old;
	} else {
		error = open_view(ref, change, &fresh);
		if (error != 0)
			__atomic_store_n(&ref->error, error, __ATOMIC_RELAXED);
		__atomic_store_n(&ref->view, fresh, __ATOMIC_RELEASE);
		if (old != NULL) {
			urcu_bp_synchronize_rcu();
			close_view(old);
		}
	}
	count_failed(ref, fresh);
	report_state(ref, NULL, error, &ref->reported);
	if (fresh != NULL && fresh != old)
		report_options(ref, fresh);
	for (size_t i = 0; fresh != NULL && i < ref->spec->rule_count; i++) {
		int id = __atomic_load_n(&fresh->ids[i], __ATOMIC_RELAXED);

		report_rule(ref, fresh, i, find_fault(ref, fresh, &ref->spec->rules[i], id));
		report_unchanged(ref, ref->spec->rules[i].name, id, &ref->rules[i]);
	}
	return error;
}

/*
 * ORDER acquires what unlock() released. A lock with another process's number was inherited by a
 * fork: it is free here.
 */
static int try_lock(struct segment_ref *ref)
{
	unsigned long holder = __atomic_load_n(&ref->looking, __ATOMIC_RELAXED);

	return holder != process &&
	       __atomic_compare_exchange_n(&ref->looking, &holder, process, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void unlock(struct segment_ref *ref)
{
	__atomic_store_n(&ref->looking, 0, __ATOMIC_RELEASE);
}

/* Look at the segment. The caller has the lock, which is released. */
static int look_locked(struct segment_ref *ref)
{
	int error;

	__atomic_store_n(&ref->looked_ms, now_ms(), __ATOMIC_RELAXED);
	error = look(ref, ref->attached_in == 0);
	/* ORDER releases the view and its error to segment_ref_enter(). */
	__atomic_store_n(&ref->attached_in, process, __ATOMIC_RELEASE);
	unlock(ref);
	return error;
}

int segment_ref_look(struct segment_ref *ref)
{
	/* BOUND: the thread that looks waits at most for the lock of writers of rules. */
	while (!try_lock(ref))
		wait_a_little();
	return look_locked(ref);
}

struct view *segment_ref_enter(struct segment_ref *ref, int *error)
{
	struct view *view;

	/*
	 * Before the first decision in a process, all its threads wait until one of them has
	 * looked.
	 */
	while (__atomic_load_n(&ref->attached_in, __ATOMIC_ACQUIRE) != process) {
		if (try_lock(ref))
			(void)look_locked(ref);
		else
			wait_a_little();
	}
	if (now_ms() - __atomic_load_n(&ref->looked_ms, __ATOMIC_RELAXED) >= LOOK_EVERY_MS && try_lock(ref))
		(void)look_locked(ref);
	if (__builtin_expect(!is_reader, 0) && !become_reader()) {
		*error = -ENOMEM;
		return NULL;
	}
	urcu_bp_read_lock();
	view = __atomic_load_n(&ref->view, __ATOMIC_ACQUIRE);
	*error = view == NULL ? __atomic_load_n(&ref->error, __ATOMIC_RELAXED) : 0;
	return view;
}

void segment_ref_leave(void)
{
	if (is_reader)
		urcu_bp_read_unlock();
}

int segment_ref_no_room(const struct segment_ref *ref, const struct view *view, size_t rule)
{
	int error = __atomic_load_n(&ref->rules[rule].no_room, __ATOMIC_RELAXED);

	return error != 0 && __atomic_load_n(&view->ids[rule], __ATOMIC_RELAXED) < 0 ? error : 0;
}

void segment_ref_count_no_room(struct segment_ref *ref)
{
	__atomic_fetch_add(&ref->uncounted[0], 1, __ATOMIC_RELAXED);
}

void segment_ref_count_failed(struct segment_ref *ref, int passed)
{
	__atomic_fetch_add(&ref->failed, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&ref->uncounted[!passed], 1, __ATOMIC_RELAXED);
}

int segment_ref_begin(struct segment_ref *ref, const struct spec *spec)
{
	*ref = (struct segment_ref){ .spec = spec, .error = -ENOENT };
	ref->rules = calloc(spec->rule_count + 1, sizeof(ref->rules[0]));
	pthread_once(&forks_once, watch_forks);
	return ref->rules == NULL ? -ENOMEM : 0;
}

void segment_ref_end(struct segment_ref *ref)
{
	count_failed(ref, ref->view);
	close_view(ref->view);
	free(ref->rules);
}
