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

#include "choice.h"
#include "duration.h"
#include "escape.h"
#include "fail.h"
#include "key_text.h"
#include "monotonic.h"
#include "number_text.h"
#include "top.h"

#define MS UINT64_C(1000000)
#define INTERVAL_MIN (125 * MS) /* as far as keys go; --interval goes further */
#define INTERVAL_MAX (64000 * MS)
#define LINE 1024 /* bytes of a line: no screen shows more of one */
#define REDRAW 12 /* control-L */
#define ESCAPE 27
#define DELETE 127

struct screen {
	struct top *top;
	char selected[SHMLIMIT_RULE_NAME_MAX + 1]; /* the rule that f means */
	size_t first;                              /* row that is shown first */
	int name_columns;                          /* of a rule */
	int paused;
	int in_keys;          /* up and down choose a key, not a rule */
	uint64_t fingerprint; /* the key that r means; 0: none */
	char key_rule[SHMLIMIT_RULE_NAME_MAX + 1];
	enum { ASK_NOTHING, ASK_FILTER, ASK_RESET, ASK_BAN, ASK_SWITCH, ASK_HELP } asked;
	char typed[TEXT_LEN - 2]; /* at ASK_FILTER */
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

/* Bytes of the text, which is escaped, that fit into a number of columns. */
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
#define NUMBER_COLUMNS 62 /* of a line about a rule, without its name */

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
	         strcmp(row->name, s->selected) == 0 ? '>' : ' ', name_text(name, row->name, s->name_columns),
	         top_rate_text(a, row->allowed_s), top_rate_text(d, row->denied_s), top_rate_text(sh, row->shadow_s),
	         top_rate_text(e, row->evictions_s), row->allowed, row->denied);
	draw(y, row->denied_s > 0 ? A_BOLD : A_NORMAL, line);
}

static void slot_rule(const struct screen *s, const struct top_key *slot, char rule[SHMLIMIT_RULE_NAME_MAX + 1])
{
	if (shmlimit_rule_name(s->top->limiter, slot->rule, rule) < 0)
		strcpy(rule, "-");
}

static int is_selected(const struct screen *s, const struct top_key *slot)
{
	char rule[SHMLIMIT_RULE_NAME_MAX + 1];

	if (slot->fingerprint != s->fingerprint)
		return 0;
	slot_rule(s, slot, rule);
	return strcmp(rule, s->key_rule) == 0;
}

static void draw_key(int y, const struct screen *s, const struct top_key *slot)
{
	const struct top *top = s->top;
	char name[LINE], rule[SHMLIMIT_RULE_NAME_MAX + 1], debt[TEXT_LEN] = "-", full[TEXT_LEN], key[KEY_TEXT_LEN],
							   queue[TEXT_LEN], found[2 * TEXT_LEN] = "",
							   line[LINE + KEY_TEXT_LEN];

	slot_rule(s, slot, rule);
	if (slot->debt_ns > 0)
		top_span_text(debt, slot->debt_ns);
	if (top_finds_numbers(top))
		snprintf(found, sizeof(found), " %6.*" PRIu32 " %6s", slot->number != 0, slot->number,
		         top_queue_text(queue, slot));
	snprintf(line, sizeof(line), "%c%.100s %9" PRIu64 " %9s %9s%s  %.800s", is_selected(s, slot) ? '>' : ' ',
	         name_text(name, rule, s->name_columns), slot->remaining, debt,
	         top_span_text(full, slot->reset_after_ns), found, top_key_text(key, top, slot));
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

static void draw_help(void)
{
	static const char *const lines[] = {
		"Keys of shmlimit top",
		"",
		"q          quit",
		"s          sort the rules by what is denied or allowed in a second, or by name",
		"k          keys that are denied first, those that are near to it, or far from full",
		"tab        switch the arrow keys between keys and rules",
		"up, down   choose",
		"f          keys of the chosen rule only, or of all again",
		"/          keys only that match: 203.0.113.* or a part of the key; nothing: all",
		"r          reset the chosen key: all its tokens are there again",
		"b          ban the chosen key for an hour",
		"d          the chosen rule: from enforce to dry-run, or back",
		"p          pause, or go on",
		"+ -        double the interval, or halve it",
		"",
		"Bold are rules that deny, and keys that have no token left.",
		"Any key goes on.",
	};

	for (int y = 0; y < LINES; y++)
		draw(y, y == 0 ? A_BOLD : A_NORMAL, y < (int)(sizeof(lines) / sizeof(lines[0])) ? lines[y] : "");
	refresh();
}

/* The last line: what the keys do, or what is asked. */
static void draw_last(const struct screen *s)
{
	const struct top *top = s->top;
	char line[LINE], every[TEXT_LEN];

	switch (s->asked) {
	case ASK_FILTER:
		snprintf(line, sizeof(line), "keys like: %s_  (enter: look, escape: leave it)", s->typed);
		break;
	case ASK_RESET:
		snprintf(line, sizeof(line), "reset #%012" PRIx64 " of rule %.30s? (y: yes)", s->fingerprint,
		         s->key_rule);
		break;
	case ASK_BAN:
		snprintf(line, sizeof(line), "ban #%012" PRIx64 " of rule %.30s for 1h? (y: yes)", s->fingerprint,
		         s->key_rule);
		break;
	case ASK_SWITCH:
		snprintf(line, sizeof(line), "rule %.30s: %s? (y: yes)", s->selected,
		         top_rule_mode(top, s->selected) == SHMLIMIT_DRY_RUN ? "enforce it again"
		                                                             : "dry run, denies nobody");
		break;
	default:
		snprintf(line, sizeof(line),
		         "%s%s  ? help  q quit  s sort  k keys  f of one rule  p pause  + - interval",
		         duration_text(every, top->interval_ns), s->paused ? " PAUSED" : "");
	}
	draw(LINES - 1, A_REVERSE, line);
}

static void draw_all(struct screen *s)
{
	const struct top *top = s->top;
	size_t lines = rule_lines(top);
	char text[TOP_LINE_LEN], line[LINE], name[LINE];
	int y = 0;

	if (s->asked == ASK_HELP) {
		draw_help();
		return;
	}
	scroll_rules(s, lines);
	s->name_columns = name_columns(top);
	top_segment_text(text, top, (size_t)COLS);
	draw(y++, A_BOLD, text);
	top_all_text(text, top);
	snprintf(line, sizeof(line), "a second: %s", text);
	draw(y++, A_NORMAL, line);
	draw(y++, A_BOLD, top->news);
	snprintf(text, sizeof(text), "RULE by %s", choice_word(choices_top_sort, top->sort));
	snprintf(line, sizeof(line), " %.100s %9s %9s %9s %8s %10s %10s", name_text(name, text, s->name_columns),
	         "ALLOWED/S", "DENIED/S", "SHADOW/S", "EVICT/S", "ALLOWED", "DENIED");
	draw(y++, A_REVERSE, line);
	for (size_t i = s->first; i < s->first + lines; i++)
		draw_rule(y++, s, &top->row[i]);
	draw(y++, A_NORMAL, "");
	snprintf(line, sizeof(line), " %.100s %9s %9s %9s%s  KEY by %s%s%s%s%s",
	         name_text(name, "RULE", s->name_columns), "REMAINING", "DEBT", "FULL-IN",
	         top_finds_numbers(top) ? " NUMBER  QUEUE" : "", choice_word(choices_top_order, top->order),
	         top->rule[0] != '\0' ? " of " : "", top->rule, top->match[0] != '\0' ? " like " : "", top->match);
	draw(y++, A_REVERSE, line);
	for (size_t i = 0; i < top->keys.count && y < LINES - 1; i++)
		draw_key(y++, s, &top->keys.slot[i]);
	for (; y < LINES - 1; y++)
		draw(y, A_NORMAL, "");
	draw_last(s);
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

/*
 * The keys of the rule that is chosen, or of all again. Rules stay all of them, to choose another.
 */
static void choose_rule(struct screen *s)
{
	struct top *top = s->top;

	if (s->selected[0] == '\0')
		select_row(s, 0);
	strcpy(top->rule, strcmp(top->rule, s->selected) != 0 ? s->selected : "");
}

static void select_key(struct screen *s, int step)
{
	const struct top_keys *keys = &s->top->keys;
	size_t at = 0;

	if (keys->count == 0 || s->top->limiter == NULL)
		return;
	while (at < keys->count && !is_selected(s, &keys->slot[at]))
		at++;
	if (at == keys->count)
		at = 0;
	else
		at = step < 0 ? at - (at > 0) : at + (at + 1 < keys->count);
	s->fingerprint = keys->slot[at].fingerprint;
	slot_rule(s, &keys->slot[at], s->key_rule);
}

/* A part of a key will do, where no wildcard says more. */
static void apply_filter(struct screen *s)
{
	struct top *top = s->top;
	const char *around = s->typed[0] != '\0' && strpbrk(s->typed, "*?[") == NULL ? "*" : "";

	snprintf(top->match, sizeof(top->match), "%s%s%s", around, s->typed, around);
	if (top->limiter != NULL && top->info.store_keys == 0 && top->match[0] != '\0')
		strcpy(top->news, "the segment keeps no keys: none can match");
}

static void type_filter(struct screen *s, int key, int *again)
{
	size_t len = strlen(s->typed);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		apply_filter(s);
		*again = 1;
	}
	if (key == '\n' || key == '\r' || key == KEY_ENTER || key == ESCAPE) {
		s->asked = ASK_NOTHING;
	} else if (key == KEY_BACKSPACE || key == '\b' || key == DELETE) {
		s->typed[len > 0 ? len - 1 : 0] = '\0';
	} else if (key >= ' ' && key <= 0xff && len + 1 < sizeof(s->typed)) {
		s->typed[len] = (char)key;
		s->typed[len + 1] = '\0';
	}
}

/* Its bytes are kept beside its slot, which is known as long as it is shown. */
static void ban_selected(struct screen *s)
{
	const struct top_keys *keys = &s->top->keys;

	for (size_t i = 0; s->top->limiter != NULL && i < keys->count; i++)
		if (is_selected(s, &keys->slot[i])) {
			top_ban_key(s->top, &keys->slot[i]);
			return;
		}
	strcpy(s->top->news, "not banned: the key is not shown any more");
}

/* What is asked is answered by this key. */
static void answer(struct screen *s, int key, int *again)
{
	struct top *top = s->top;
	int asked = s->asked, dry = top_rule_mode(top, s->selected) == SHMLIMIT_DRY_RUN;

	if (key == KEY_RESIZE)
		return;
	if (asked == ASK_FILTER) {
		type_filter(s, key, again);
		return;
	}
	s->asked = ASK_NOTHING;
	if (asked == ASK_RESET && key == 'y')
		top_reset_key(top, s->key_rule, s->fingerprint);
	if (asked == ASK_BAN && key == 'y')
		ban_selected(s);
	if (asked == ASK_SWITCH && key == 'y')
		top_rule_switch(top, s->selected, dry ? SHMLIMIT_ENFORCE : SHMLIMIT_DRY_RUN);
	*again = 1;
}

/* Something has to be chosen before it can be changed. */
static void ask_to_change(struct screen *s, int key)
{
	struct top *top = s->top;

	if (key != 'd' && s->fingerprint == 0)
		strcpy(top->news, "choose a key first: tab, then up or down");
	else if (key == 'd' && s->selected[0] == '\0')
		strcpy(top->news, "choose a rule first: up or down");
	else if (key == 'd' && top_rule_mode(top, s->selected) >= SHMLIMIT_OFF)
		snprintf(top->news, sizeof(top->news), "rule %.40s is %s: it decides nothing", s->selected,
		         top_rule_mode(top, s->selected) == SHMLIMIT_OFF ? "off" : "blocking");
	else
		s->asked = key == 'r' ? ASK_RESET : key == 'b' ? ASK_BAN : ASK_SWITCH;
}

/* Returns 0 at q; *again: keys are to be looked at. */
static int act(struct screen *s, int key, int *again)
{
	struct top *top = s->top;

	if (top->limiter != NULL)
		top->news[0] = '\0';
	if (s->asked != ASK_NOTHING) {
		answer(s, key, again);
		return 1;
	}
	switch (key) {
	case 'q':
		return 0;
	case 's':
		top->sort = (top->sort + 1) % TOP_SORTS;
		break;
	case 'k':
		top->order = top->order == TOP_KEYS_BY_DENIAL ? TOP_KEYS_BY_NEAR
		             : top->order == TOP_KEYS_BY_NEAR ? TOP_KEYS_BY_RESET
		                                              : TOP_KEYS_BY_DENIAL;
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
	case '\t':
		s->in_keys = !s->in_keys;
		if (s->in_keys && s->fingerprint == 0)
			select_key(s, 1);
		break;
	case KEY_UP:
	case KEY_DOWN:
		if (s->in_keys)
			select_key(s, key == KEY_UP ? -1 : 1);
		else
			select_row(s, key == KEY_UP ? -1 : 1);
		break;
	case '/':
		s->asked = ASK_FILTER;
		s->typed[0] = '\0';
		break;
	case '?':
		s->asked = ASK_HELP;
		break;
	case 'r':
	case 'b':
	case 'd':
		ask_to_change(s, key);
		break;
	case REDRAW:
		clearok(stdscr, TRUE);
		break;
	default:
		break;
	}
	return 1;
}

enum { TIME_OVER, KEY_TYPED, TERMINAL_GONE };

/*
 * Until the time, a key, or a signal, which counts as a key: getch() says which of those there was.
 */
static int await(const struct screen *s, uint64_t until_ns, const sigset_t *open)
{
	struct pollfd terminal = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t now = monotonic_ns(), left = until_ns > now ? until_ns - now : 0;
	struct timespec time = { (time_t)(left / 1000000000), (long)(left % 1000000000) };
	int ready = ppoll(&terminal, 1, s->paused ? NULL : &time, open);

	if (ready > 0 && (terminal.revents & (POLLHUP | POLLERR | POLLNVAL)))
		return TERMINAL_GONE;
	return ready == 0 ? TIME_OVER : KEY_TYPED;
}

static int watch(struct screen *s, uint64_t count, uint64_t keys, const sigset_t *open)
{
	struct top *top = s->top;
	uint64_t next_ns = monotonic_ns(), looks = 0;
	int status = STATUS_OK, go_on = 1, again = 0, what = TIME_OVER, key;

	while (go_on && status == STATUS_OK && ended == 0 && what != TERMINAL_GONE) {
		top->keys_max = keys < (uint64_t)LINES ? keys : (uint64_t)LINES;
		if (what == TIME_OVER) {
			status = top_look(top);
			next_ns = monotonic_ns() + top->interval_ns;
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
		if (next_ns > monotonic_ns() + top->interval_ns)
			next_ns = monotonic_ns() + top->interval_ns;
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
		return fail("terminal %s: not known here (set TERM to one that is, or send the output to a file)",
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
	status = watch(&s, count, top->keys_max, &before);
	endwin();
	delscreen(terminal);
	release_signals(old, &before);
	return status;
}
