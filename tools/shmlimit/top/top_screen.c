/*
 * top_screen.c: what top looks at, on a terminal, and what keys do.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "top.h"

#define MS UINT64_C(1000000)
#define INTERVAL_MIN (125 * MS)         /* as far as keys go; --interval goes further */
#define INTERVAL_MAX (64000 * MS)
#define LINE 1024                       /* bytes of a line: no screen shows more of one */
#define REDRAW 12                       /* control-L */

struct screen {
	struct top *top;
	char selected[SHMLIMIT_RULE_NAME_MAX + 1];     /* the rule that f means */
	size_t first;                          /* row that is shown first */
	int name_columns;                      /* of a rule */
	int paused;
};

/* ---- signals: the terminal is restored, then they do what they would have done ---- */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
#define ENDING (sizeof(ending) / sizeof(ending[0]))
static volatile sig_atomic_t ended;

static void end(int number)
{
	ended = number;
}

/* Those and changes of size come only while poll() waits for them, so none is missed. */
static void hold_signals(struct sigaction old[ENDING], sigset_t *before)
{
	struct sigaction action = { .sa_handler = end };
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGWINCH);
	for (size_t i = 0; i < ENDING; i++) {
		sigaction(ending[i], &action, &old[i]);
		if (old[i].sa_handler == SIG_IGN)
			sigaction(ending[i], &old[i], NULL);
		sigaddset(&held, ending[i]);
	}
	sigprocmask(SIG_BLOCK, &held, before);
}

static void release_signals(const struct sigaction old[ENDING], const sigset_t *before)
{
	for (size_t i = 0; i < ENDING; i++)
		sigaction(ending[i], &old[i], NULL);
	sigprocmask(SIG_SETMASK, before, NULL);
	if (ended != 0)
		raise(ended);
}

/* ---- drawing ---- */

/* Bytes of the text, which is escaped, that fit into so many columns. */
static int fitting(const char *text, int columns)
{
	mbstate_t state = { 0 };
	int at = 0;

	while (text[at] != '\0') {
		wchar_t c;
		size_t n = mbrtowc(&c, text + at, strlen(text + at), &state);
		int width = wcwidth(c);

		if (width > columns)
			break;
		columns -= width;
		at += (int)n;
	}
	return at;
}

static void draw(int y, attr_t look, const char *text)
{
	char safe[4 * LINE];

	if (y < 0 || y >= LINES)
		return;
	escape(safe, text, strnlen(text, LINE - 1), 0);
	attrset(look);
	mvaddnstr(y, 0, safe, fitting(safe, COLS));
	clrtoeol();
	if (look & A_REVERSE)
		mvchgat(y, 0, -1, A_REVERSE, 0, NULL);
	attrset(A_NORMAL);
}

#define NAME_COLUMNS 18
#define NUMBER_COLUMNS 62               /* of a line about a rule, without its name */

/* As wide as the longest name, as far as that leaves the numbers on the screen. */
static int name_columns(const struct top *top)
{
	int columns = NAME_COLUMNS, most = COLS - NUMBER_COLUMNS;

	for (size_t i = 0; i < top->rows; i++)
		if ((int)strlen(top->row[i].name) > columns)
			columns = (int)strlen(top->row[i].name);
	if (columns > most)
		columns = most > NAME_COLUMNS ? most : NAME_COLUMNS;
	return columns;
}

/* Padded, or cut, which a tilde at the end shows. */
static const char *name_text(char text[LINE], const char *name, int columns)
{
	if ((int)strlen(name) <= columns)
		snprintf(text, LINE, "%-*s", columns, name);
	else
		snprintf(text, LINE, "%.*s~", columns - 1, name);
	return text;
}

static void draw_rule(int y, const struct screen *s, const struct top_row *row)
{
	char a[TEXT_LEN], d[TEXT_LEN], sh[TEXT_LEN], e[TEXT_LEN], line[LINE], name[LINE];

	snprintf(line, sizeof(line), "%c%.100s %9s %9s %9s %8s %10" PRIu64 " %10" PRIu64,
	         strcmp(row->name, s->selected) == 0 ? '>' : ' ', name_text(name, row->name, s->name_columns), top_rate_text(a, row->allowed_s),
	         top_rate_text(d, row->denied_s), top_rate_text(sh, row->shadow_s), top_rate_text(e, row->evictions_s),
	         row->allowed, row->denied);
	draw(y, row->denied_s > 0 ? A_BOLD : A_NORMAL, line);
}

static void draw_key(int y, const struct screen *s, const struct live_slot *slot)
{
	const struct top *top = s->top;
	char name[LINE], rule[SHMLIMIT_RULE_NAME_MAX + 1], debt[TEXT_LEN] = "-", full[TEXT_LEN], key[KEY_TEXT_LEN], line[LINE];

	if (shmlimit_rule_name(top->limiter, slot->rule, rule) < 0)
		strcpy(rule, "-");
	if (slot->debt_ns > 0)
		top_span_text(debt, slot->debt_ns);
	snprintf(line, sizeof(line), " %.100s %9" PRIu64 " %9s %9s  %.800s",
	         name_text(name, rule, s->name_columns), slot->remaining, debt,
	         top_span_text(full, slot->reset_after_ns), top_key_text(key, top, slot));
	draw(y, slot->share == 0 ? A_BOLD : A_NORMAL, line);
}

/* Rules get what they need, up to half of what the lines around them leave. */
static size_t rule_lines(const struct top *top)
{
	size_t half = LINES < 9 ? 1 : (size_t)(LINES - 7) / 2;

	return top->rows < half ? top->rows : half;
}

static size_t selected_row(const struct screen *s)
{
	for (size_t i = 0; i < s->top->rows; i++)
		if (strcmp(s->top->row[i].name, s->selected) == 0)
			return i;
	return 0;
}

/* No line stays empty, and the rule that is chosen is seen. */
static void scroll_rules(struct screen *s, size_t lines)
{
	size_t selected = selected_row(s), last = s->top->rows - lines;

	if (s->first > last)
		s->first = last;
	if (s->first > selected)
		s->first = selected;
	if (lines > 0 && s->first + lines <= selected)
		s->first = selected - lines + 1;
}

static void draw_all(struct screen *s)
{
	const struct top *top = s->top;
	size_t lines = rule_lines(top);
	char text[TOP_LINE_LEN], line[LINE], every[TEXT_LEN], name[LINE];
	int y = 0;

	scroll_rules(s, lines);
	s->name_columns = name_columns(top);
	top_segment_text(text, top, (size_t)COLS);
	draw(y++, A_BOLD, text);
	top_all_text(text, top);
	snprintf(line, sizeof(line), "a second: %s", text);
	draw(y++, A_NORMAL, line);
	draw(y++, A_BOLD, top->news);
	snprintf(text, sizeof(text), "RULE by %s", choice_word(choices_top_sort, top->sort));
	snprintf(line, sizeof(line), " %.100s %9s %9s %9s %8s %10s %10s", name_text(name, text, s->name_columns), "ALLOWED/S", "DENIED/S", "SHADOW/S", "EVICT/S",
	         "ALLOWED", "DENIED");
	draw(y++, A_REVERSE, line);
	for (size_t i = s->first; i < s->first + lines; i++)
		draw_rule(y++, s, &top->row[i]);
	draw(y++, A_NORMAL, "");
	snprintf(line, sizeof(line), " %.100s %9s %9s %9s  KEY by %s%s%s", name_text(name, "RULE", s->name_columns), "REMAINING", "DEBT", "FULL-IN",
	         choice_word(choices_top_order, top->order), top->rule[0] != '\0' ? " of " : "", top->rule);
	draw(y++, A_REVERSE, line);
	for (size_t i = 0; i < top->live.count && y < LINES - 1; i++)
		draw_key(y++, s, &top->live.slot[i]);
	for (; y < LINES - 1; y++)
		draw(y, A_NORMAL, "");
	snprintf(line, sizeof(line), "%s%s  q quit  s sort  k keys  f of one rule  p pause  + - interval",
	         duration_text(every, top->interval_ns), s->paused ? " PAUSED" : "");
	draw(LINES - 1, A_REVERSE, line);
	refresh();
}

/* ---- keys ---- */

static void select_row(struct screen *s, int step)
{
	size_t row = selected_row(s);

	if (s->top->rows == 0)
		return;
	if (s->selected[0] != '\0')
		row = step < 0 ? row - (row > 0) : row + (row + 1 < s->top->rows);
	strcpy(s->selected, s->top->row[row].name);
}

/* The keys of the rule that is chosen, or of all again. Rules stay all of them, to choose another. */
static void choose_rule(struct screen *s)
{
	struct top *top = s->top;

	if (s->selected[0] == '\0')
		select_row(s, 0);
	strcpy(top->rule, strcmp(top->rule, s->selected) != 0 ? s->selected : "");
}

/* Returns 0 at q; *again: keys are to be looked at. */
static int act(struct screen *s, int key, int *again)
{
	struct top *top = s->top;

	switch (key) {
	case 'q':
		return 0;
	case 's':
		top->sort = (top->sort + 1) % TOP_SORTS;
		break;
	case 'k':
		top->order = top->order == LIVE_DENIAL ? LIVE_NEAR : top->order == LIVE_NEAR ? LIVE_RESET : LIVE_DENIAL;
		*again = 1;
		break;
	case 'f':
		choose_rule(s);
		*again = 1;
		break;
	case 'p':
		s->paused = !s->paused;
		break;
	case '+':
		top->interval_ns = top->interval_ns < INTERVAL_MAX / 2 ? 2 * top->interval_ns : INTERVAL_MAX;
		break;
	case '-':
		top->interval_ns = top->interval_ns > 2 * INTERVAL_MIN ? top->interval_ns / 2 : INTERVAL_MIN;
		break;
	case KEY_UP:
	case KEY_DOWN:
		select_row(s, key == KEY_UP ? -1 : 1);
		break;
	case REDRAW:
		clearok(stdscr, TRUE);
		break;
	default:
		break;
	}
	return 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum { TIME_OVER, KEY_TYPED, TERMINAL_GONE };

/* Until the time, a key, or a signal, which counts as a key: getch() says which of those there was. */
static int await(const struct screen *s, uint64_t until_ns, const sigset_t *open)
{
	struct pollfd terminal = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t now = now_ns(), left = until_ns > now ? until_ns - now : 0;
	struct timespec time = { (time_t)(left / 1000000000), (long)(left % 1000000000) };
	int ready = ppoll(&terminal, 1, s->paused ? NULL : &time, open);

	if (ready > 0 && (terminal.revents & (POLLHUP | POLLERR | POLLNVAL)))
		return TERMINAL_GONE;
	return ready == 0 ? TIME_OVER : KEY_TYPED;
}

static int watch(struct screen *s, uint64_t count, uint64_t keys, const sigset_t *open)
{
	struct top *top = s->top;
	uint64_t next_ns = now_ns(), looks = 0;
	int status = STATUS_OK, go_on = 1, again = 0, what = TIME_OVER, key;

	while (go_on && status == STATUS_OK && ended == 0 && what != TERMINAL_GONE) {
		top->keys = keys < (uint64_t)LINES ? keys : (uint64_t)LINES;
		if (what == TIME_OVER) {
			status = top_look(top);
			next_ns = now_ns() + top->interval_ns;
			if (count != 0 && ++looks == count)
				go_on = 0;
		} else if (again) {
			status = top_look_at_keys(top);
		}
		again = 0;
		top_rows_sort(top->row, top->rows, top->sort);
		draw_all(s);
		if (!go_on)
			break;
		what = await(s, next_ns, open);
		while (go_on && (key = getch()) != ERR) {
			if (key == KEY_RESIZE)
				again = 1;
			go_on = act(s, key, &again);
		}
		if (next_ns > now_ns() + top->interval_ns)
			next_ns = now_ns() + top->interval_ns;
	}
	return status;
}

int top_screen(struct top *top, uint64_t count)
{
	struct screen s = { .top = top };
	struct sigaction old[ENDING];
	sigset_t before;
	SCREEN *terminal;
	int status;

	hold_signals(old, &before);
	terminal = newterm(NULL, stdout, stdin);
	if (terminal == NULL) {
		release_signals(old, &before);
		return fail("terminal %s: not known here: must be one that is (TERM), or the output no terminal",
		            getenv("TERM") != NULL ? getenv("TERM") : "\"\"");
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	if (top->rule[0] != '\0')
		strcpy(s.selected, top->rule);
	status = watch(&s, count, top->keys, &before);
	endwin();
	delscreen(terminal);
	release_signals(old, &before);
	return status;
}
