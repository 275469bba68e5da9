/*
 * virtual: see virtual.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "bench.h"
#include "virtual.h"

struct task {
	ucontext_t context;
	void (*run)(void *);
	void *of;
};

/* Of those that are due at the same time, the one that said so first comes first. */
struct event {
	uint64_t at_ns, order;
	struct task *task; /* the task that goes on; NULL: call() is called */
	void (*call)(void *);
	void *of;
};

uint64_t virtual_now_ns;

static struct task *tasks, *running;
static char *stacks;
static size_t task_max, task_count;
static struct event *heap;
static size_t heap_count, heap_max;
static uint64_t order, end_ns;
static ucontext_t outside;

static int before(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void push(struct event event)
{
	size_t i = heap_count++;

	if (heap_count > heap_max) {
		heap_max = 2 * heap_max + 64;
		heap = realloc(heap, heap_max * sizeof(*heap));
		if (heap == NULL)
			bench_fail("virtual", "no memory");
	}
	event.order = order++;
	for (; i > 0 && before(&event, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = event;
}

static struct event pop(void)
{
	struct event first = heap[0], last = heap[--heap_count];
	size_t i = 0, next;

	while ((next = 2 * i + 1) < heap_count) {
		if (next + 1 < heap_count && before(&heap[next + 1], &heap[next]))
			next++;
		if (!before(&heap[next], &last))
			break;
		heap[i] = heap[next];
		i = next;
	}
	heap[i] = last;
	return first;
}

void virtual_begin(size_t max)
{
	tasks = calloc(max, sizeof(*tasks));
	stacks = mmap(NULL, max * VIRTUAL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	              -1, 0);
	if (tasks == NULL || stacks == MAP_FAILED)
		bench_fail("virtual", "no memory");
	task_max = max;
	task_count = heap_count = 0;
}

static void start(void)
{
	running->run(running->of);
	bench_fail("virtual", "a task returned");
}

void virtual_task(void (*run)(void *), void *of)
{
	struct task *task = &tasks[task_count];

	if (task_count == task_max)
		bench_fail("virtual", "too many tasks");
	task->run = run;
	task->of = of;
	getcontext(&task->context);
	task->context.uc_stack.ss_sp = stacks + task_count++ * VIRTUAL_STACK;
	task->context.uc_stack.ss_size = VIRTUAL_STACK;
	makecontext(&task->context, start, 0);
	push((struct event){ .at_ns = virtual_now_ns, .task = task });
}

/* Switch to the coroutine that is due next, saving the caller in `from` until that is due itself. */
static void give_way(ucontext_t *from)
{
	struct task *self = running;

	while (heap_count > 0 && heap[0].at_ns < end_ns) {
		struct event event = pop();

		virtual_now_ns = event.at_ns;
		if (event.task == NULL) {
			event.call(event.of);
			continue;
		}
		if (event.task == self)
			return;
		running = event.task;
		swapcontext(from, &running->context);
		return;
	}
	virtual_now_ns = end_ns;
	running = NULL;
	if (from != &outside)
		swapcontext(from, &outside);
}

void virtual_wait(uint64_t until_ns)
{
	if (until_ns < end_ns && (heap_count == 0 || until_ns < heap[0].at_ns)) {
		virtual_now_ns = until_ns > virtual_now_ns ? until_ns : virtual_now_ns;
		return;
	}
	push((struct event){ .at_ns = until_ns > virtual_now_ns ? until_ns : virtual_now_ns, .task = running });
	give_way(&running->context);
}

void virtual_call(uint64_t at_ns, void (*call)(void *), void *of)
{
	push((struct event){ .at_ns = at_ns > virtual_now_ns ? at_ns : virtual_now_ns, .call = call, .of = of });
}

void virtual_run(uint64_t until_ns)
{
	end_ns = until_ns;
	give_way(&outside);
}

void virtual_end(void)
{
	munmap(stacks, task_max * VIRTUAL_STACK);
	free(tasks);
	heap_count = 0;
}
