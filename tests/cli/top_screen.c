/*
 * top_screen: what `shmlimit top` shows on a terminal, what its keys do, and that it restores the terminal, however it
 * ends.
 *
 * The terminal is a pseudo-terminal whose other end this program reads. It knows as much of a VT100 as ncurses needs.
 * So screens are compared, and not the bytes that painted them. To wait is to read until the screen has a text.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "../unit/unit.h"

#define ROWS_MAX 40
#define COLUMNS 80
#define SECONDS_MAX 60 /* then it waits for what never comes */

static struct shmlimit *l;
static int login, page;

/* ---- the screen ---- */

static struct {
	char cell[ROWS_MAX][COLUMNS + 1];
	int rows, y, x;
	int top, bottom; /* of the lines that scroll */
	char escape[32]; /* a sequence that has begun */
	size_t n;
} screen;

static void clear_from(int y, int x)
{
	for (; y < screen.rows; y++, x = 0)
		memset(screen.cell[y] + x, ' ', (size_t)(COLUMNS - x));
}

static void scroll_up(void)
{
	memmove(screen.cell[screen.top], screen.cell[screen.top + 1],
	        (size_t)(screen.bottom - screen.top) * sizeof(screen.cell[0]));
	memset(screen.cell[screen.bottom], ' ', COLUMNS);
}

static void scroll_down(void)
{
	memmove(screen.cell[screen.top + 1], screen.cell[screen.top],
	        (size_t)(screen.bottom - screen.top) * sizeof(screen.cell[0]));
	memset(screen.cell[screen.top], ' ', COLUMNS);
}

static int number(const char *at, int otherwise)
{
	int n = atoi(at);

	return n > 0 ? n : otherwise;
}

/* A whole sequence that begins with ESC [. */
static void control(void)
{
	const char *from = screen.escape + 2, *second = strchr(from, ';');
	int n = number(from, 1);

	switch (screen.escape[screen.n - 1]) {
	case 'H':
		screen.y = n - 1;
		screen.x = second != NULL ? number(second + 1, 1) - 1 : 0;
		break;
	case 'A':
		screen.y -= n;
		break;
	case 'B':
		screen.y += n;
		break;
	case 'C':
		screen.x += n;
		break;
	case 'D':
		screen.x -= n;
		break;
	case 'r':
		screen.top = n - 1;
		screen.bottom = (second != NULL ? number(second + 1, screen.rows) : screen.rows) - 1;
		screen.y = screen.x = 0;
		if (screen.top >= screen.bottom || screen.bottom >= screen.rows) {
			screen.top = 0;
			screen.bottom = screen.rows - 1;
		}
		break;
	case 'J':
		clear_from(screen.y, screen.x);
		break;
	case 'K':
		if (*from == '1')
			memset(screen.cell[screen.y], ' ', (size_t)screen.x + 1);
		else
			memset(screen.cell[screen.y] + screen.x, ' ', (size_t)(COLUMNS - screen.x));
		break;
	default:
		break;
	}
}

static int whole_sequence(void)
{
	const char *e = screen.escape;

	if (screen.n < 2)
		return 0;
	if (e[1] == '[')
		return screen.n > 2 && e[screen.n - 1] >= '@';
	return e[1] == '(' || e[1] == ')' ? screen.n == 3 : 1;
}

static void paint(char c)
{
	if (screen.n > 0) {
		screen.escape[screen.n++] = c;
		if (screen.n == sizeof(screen.escape) - 1)
			bail("a sequence without an end");
		if (!whole_sequence())
			return;
		screen.escape[screen.n] = '\0';
		if (screen.escape[1] == '[')
			control();
		else if (screen.escape[1] == 'M' && screen.y == screen.top)
			scroll_down();
		else if (screen.escape[1] == 'M')
			screen.y--;
		screen.n = 0;
	} else if (c == '\033') {
		screen.escape[screen.n++] = c;
	} else if (c == '\r') {
		screen.x = 0;
	} else if (c == '\n') {
		if (screen.y == screen.bottom)
			scroll_up();
		else
			screen.y++;
	} else if (c == '\b') {
		screen.x--;
	} else if ((unsigned char)c >= ' ') {
		if (screen.x >= 0 && screen.x < COLUMNS && screen.y >= 0 && screen.y < screen.rows)
			screen.cell[screen.y][screen.x] = c;
		screen.x++;
	}
	/* As a terminal does; what was painted for a size that the screen had before may lie beyond. */
	screen.x = screen.x < 0 ? 0 : screen.x > COLUMNS ? COLUMNS : screen.x;
	screen.y = screen.y < 0 ? 0 : screen.y >= screen.rows ? screen.rows - 1 : screen.y;
}

/* The line that begins with a text, -1: none does. */
static int line_of(const char *text)
{
	for (int y = 0; y < screen.rows; y++)
		if (strncmp(screen.cell[y], text, strlen(text)) == 0)
			return y;
	return -1;
}

static int has(int y, const char *text)
{
	return y >= 0 && y < screen.rows && strstr(screen.cell[y], text) != NULL;
}

/* ---- the program ---- */

static struct {
	pid_t pid;
	int end, far; /* ours of the terminal; its own, held open to ask it how it is */
	struct termios before;
} top;

static void sized(int rows)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = COLUMNS };

	for (int y = screen.rows; y < rows; y++)
		memset(screen.cell[y], ' ', COLUMNS);
	screen.rows = rows;
	screen.top = 0;
	screen.bottom = rows - 1;
	if (ioctl(top.far, TIOCSWINSZ, &size) != 0)
		bail("size");
}

static void become_top(const char *program, char *const arguments[])
{
	setsid();
	ioctl(top.far, TIOCSCTTY, 0);
	dup2(top.far, STDIN_FILENO);
	dup2(top.far, STDOUT_FILENO);
	dup2(top.far, STDERR_FILENO);
	close(top.end);
	setenv("TERM", "vt100", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	unsetenv("LINES");
	unsetenv("COLUMNS");
	execv(program, arguments);
	_exit(127);
}

static void start(const char *option, const char *value)
{
	static char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 64);
	char *arguments[] = { "shmlimit", "top", unit_name, (char *)(uintptr_t)option, (char *)(uintptr_t)value, NULL };

	if (n <= 0)
		bail("readlink");
	program[n] = '\0';
	strcpy(strstr(program, "/tests/cli/"), "/bin/shmlimit");
	memset(&screen, 0, sizeof(screen));
	top.end = posix_openpt(O_RDWR | O_NOCTTY);
	if (top.end < 0 || grantpt(top.end) != 0 || unlockpt(top.end) != 0)
		bail("no pseudo-terminal");
	top.far = open(ptsname(top.end), O_RDWR | O_NOCTTY);
	if (top.far < 0 || tcgetattr(top.far, &top.before) != 0)
		bail("no other end");
	sized(24);
	top.pid = fork();
	if (top.pid == 0)
		become_top(program, arguments);
	if (top.pid < 0)
		bail("fork");
}

static void type(const char *keys)
{
	if (write(top.end, keys, strlen(keys)) != (ssize_t)strlen(keys))
		bail("typing");
}

static void await(int (*shown)(void))
{
	char some[4096];
	ssize_t n;

	while (!shown()) {
		n = read(top.end, some, sizeof(some));
		if (n <= 0)
			bail("it ended");
		for (ssize_t i = 0; i < n; i++)
			paint(some[i]);
	}
}

/* What it ended with, as a shell has it; and whether the terminal is as it was. Reads what it still prints. */
static int ended(void)
{
	struct termios after;
	char some[4096];
	int status;

	fcntl(top.end, F_SETFL, O_NONBLOCK);
	while (waitpid(top.pid, &status, WNOHANG) == 0)
		while (read(top.end, some, sizeof(some)) > 0)
			;
	if (tcgetattr(top.far, &after) != 0)
		bail("tcgetattr");
	ok(after.c_lflag == top.before.c_lflag && after.c_iflag == top.before.c_iflag &&
	           after.c_oflag == top.before.c_oflag,
	   "the terminal is as it was");
	close(top.far);
	close(top.end);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- what is waited for ---- */

static int help_is_last(void)
{
	return has(screen.rows - 1, "q quit");
}

static int by_denial(void)
{
	return line_of(" login") >= 0 && line_of(" login") < line_of(" page") && has(screen.rows - 1, "q quit") &&
	       has(line_of(" RULE by denied") + 1, "login");
}

static int by_name_again(void)
{
	return has(3, "RULE by name") && line_of(" RULE by name") >= 0;
}

static int near_first(void)
{
	int y = line_of(" RULE               REMAINING");

	return has(y, "KEY by near") && has(y + 1, "alice");
}

static int page_is_chosen(void)
{
	return line_of(">page") >= 0;
}

static int of_page_only(void)
{
	int y = line_of(" RULE               REMAINING");

	return has(y, " of page") && has(y + 1, "alice") && has(y + 2, "carol") && !has(y + 3, "bob");
}

static int is_paused(void)
{
	return has(screen.rows - 1, "PAUSED");
}

static int interval_is_2s(void)
{
	return strncmp(screen.cell[screen.rows - 1], "2s", 2) == 0;
}

static int counted(void)
{
	return has(line_of(" login"), " 5 ") || has(line_of(">login"), " 5 ");
}

static const char *awaited;

static int news_has(void)
{
	return has(2, awaited);
}

static int last_has(void)
{
	return has(screen.rows - 1, awaited);
}

static void await_in(int (*shown)(void), const char *text)
{
	awaited = text;
	await(shown);
	ok(1, "the screen then says: %s", text);
}

static int is_help(void)
{
	return has(0, "Keys of shmlimit top") && has(screen.rows - 1, " ");
}

static int login_is_chosen(void)
{
	return line_of(">login") >= 0;
}

static int first_key(void)
{
	return line_of(" RULE               REMAINING") + 1;
}

static int bob_is_chosen(void)
{
	return has(first_key(), ">login") && has(first_key(), "bob");
}

static int alice_only(void)
{
	return has(first_key() - 1, " like *ali*") && has(first_key(), "alice") && !has(first_key() + 1, "carol") &&
	       help_is_last();
}

static int all_keys(void)
{
	return !has(first_key() - 1, " like ") && has(first_key() + 1, "alice") && help_is_last();
}

static int is_gone(void)
{
	return has(2, "was destroyed");
}

static int is_anew(void)
{
	return has(2, "created again") && line_of(" other") >= 0 && line_of(" page") < 0;
}

/* ---- */

static void take(int rule, const char *key, uint64_t cost)
{
	shmlimit_take(l, rule, key, strlen(key), cost, NULL);
}

/* What the program waits for never comes: print the screen that it waits on. */
static void give_up(int number)
{
	(void)number;
	for (int y = 0; y < screen.rows; y++)
		diag("%.*s", COLUMNS, screen.cell[y]);
	kill(top.pid, SIGKILL);
	_exit(1);
}

static void set_up(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 64, .store_keys = 22 };

	l = unit_create("top_screen", &options);
	login = unit_rule(l, "login", 3, 1, 86400 * SECOND);
	page = unit_rule(l, "page", 100, 100, 86400 * SECOND);
	for (int i = 0; i < 4; i++)
		take(login, "bob", 1);
	take(page, "alice", 70);
	take(page, "carol", 100);
}

static void keys_are_obeyed(void)
{
	start("--interval", "1s");
	await(by_denial);
	ok(has(0, unit_name) && has(0, "64 slots: live 4.7 %"), "the first line is the segment's");
	ok(has(1, "denied"), "the second is about all that happens in a second");
	is_str(strtok(screen.cell[line_of(" RULE               REMAINING") + 1], " "), "login",
	       "the key that is deepest in denial comes first");
	type("ss");
	await(by_name_again);
	ok(1, "s sorts otherwise");
	type("k");
	await(near_first);
	ok(1, "k puts other keys first");
	type("\033OB\033OB");
	await(page_is_chosen);
	ok(1, "down chooses a rule");
	type("f");
	await(of_page_only);
	ok(1, "f shows its keys only");
	type("+");
	await(interval_is_2s);
	ok(1, "+ doubles the interval");
	type("-p");
	await(is_paused);
	ok(1, "p pauses");
	sized(10);
	await(help_is_last);
	ok(line_of(">page") == 4 && has(screen.rows - 2, "carol"), "a screen that shrinks has what fits");
	sized(30);
	await(help_is_last);
	ok(line_of(" login") >= 0 && line_of(">page") >= 0, "one that grows has all");
	take(login, "bobby", 1);
	take(login, "bobby", 1);
	type("p");
	await(counted);
	ok(1, "it goes on, and shows what happened");
	type("q");
	is(ended(), 0, "q ends it");
}

#define LONG_NAME "a-rule-whose-name-is-longer-than-a-screen-of-eighty-columns-has"

static int long_name_is_cut(void)
{
	return line_of(" a-rule-whose-name~ ") >= 0;
}

/* Numbers stand under their heads whatever a rule is called. */
static void long_names_are_cut(void)
{
	int rule = unit_rule(l, LONG_NAME, 3, 1, 86400 * SECOND), head, y;

	take(rule, "bob", 1);
	start("--interval", "1s");
	await(long_name_is_cut);
	await(help_is_last);
	head = line_of(" RULE by denied");
	y = line_of(" a-rule-whose-name~ ");
	ok(y > head && screen.cell[y][strcspn(screen.cell[head], "\n") - 1] != '~' &&
	           strncmp(&screen.cell[head][20], "ALLOWED/S", 9) == 0 && screen.cell[y][28] != ' ' &&
	           screen.cell[y][29] == ' ',
	   "a rule's name that is too long is cut, and its numbers stay in their columns");
	type("q");
	is(ended(), 0, "q ends a screen on which names are cut");
	shmlimit_rule_remove(l, LONG_NAME);
}

static uint32_t mode_of_login(void)
{
	struct shmlimit_rule rule = { .struct_size = sizeof(rule) };

	shmlimit_rule_get(l, login, &rule);
	return rule.mode;
}

static uint64_t tokens_of_bob(void)
{
	struct shmlimit_result r = { 0 };

	shmlimit_peek(l, login, "bob", 3, 1, &r);
	return r.remaining;
}

/* What changes something is asked before. */
static void changes_are_asked_for(void)
{
	start("--interval", "1h");
	await(by_denial);
	type("?");
	await(is_help);
	ok(1, "? shows the keys");
	type("x");
	await(by_denial);
	ok(1, "any key goes on");

	type("d");
	await_in(news_has, "choose a rule first");
	type("\033OB");
	await(login_is_chosen);
	type("d");
	await_in(last_has, "rule login: dry run, denies nobody?");
	type("n");
	await(help_is_last);
	is(mode_of_login(), SHMLIMIT_ENFORCE, "what is not affirmed is not done");
	type("dy");
	await_in(news_has, "rule login: dry-run from now on");
	is(mode_of_login(), SHMLIMIT_DRY_RUN, "d tries a rule in a dry run");
	type("d");
	await_in(last_has, "rule login: enforce it again?");
	type("y");
	await_in(news_has, "rule login: enforce from now on");
	is(mode_of_login(), SHMLIMIT_ENFORCE, "d sets a rule in a dry run back to enforce");

	type("r");
	await_in(news_has, "choose a key first");
	type("\t");
	await(bob_is_chosen);
	ok(1, "tab chooses among keys");
	type("r");
	await_in(last_has, "of rule login? (y: yes)");
	type("n");
	await(help_is_last);
	is(tokens_of_bob(), 0, "a key that is not affirmed is not reset");
	type("b");
	await_in(last_has, "of rule login for 1h? (y: yes)");
	type("n");
	await(help_is_last);
	is(shmlimit_rule_find(l, "ban"), -ESRCH, "a key that is not affirmed is not banned");
	type("by");
	await_in(news_has, "bob: banned for 1h or longer by rule ban");
	is(shmlimit_peek(l, shmlimit_rule_find(l, "ban"), "bob", 3, 1, NULL), SHMLIMIT_DENIED, "b bans a key");
	shmlimit_rule_remove(l, "ban");
	type("ry");
	await_in(news_has, "reset, all its tokens are there");
	is(tokens_of_bob(), 3, "r resets a key");
	type("/alx");
	await_in(last_has, "keys like: alx_");
	type("\177i\n");
	await(alice_only);
	ok(1, "/ shows keys that match");
	type("/zzz\033");
	await(alice_only);
	ok(1, "escape leaves the pattern as it is");
	type("/\n");
	await(all_keys);
	ok(1, "an empty pattern is none");
	type("\t\tr");
	await_in(last_has, "of rule login? (y: yes)");
	take(login, "bob", 1);
	type("y");
	await(help_is_last);
	is(tokens_of_bob(), 3, "tab keeps the key that was chosen before");
	type("q");
	is(ended(), 0, "q ends it");
	for (int i = 0; i < 3; i++)
		take(login, "bob", 1);
}

static void rule_is_chosen_by_option(void)
{
	start("--rule", "page");
	await(help_is_last);
	ok(line_of(">page") >= 0, "the rule of --rule is chosen from the start");
	type("q");
	is(ended(), 0, "q ends a screen of one rule's keys");
}

static void signals_end_it(void)
{
	static const int number[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
		start("--interval", "1h");
		await(help_is_last);
		kill(top.pid, number[i]);
		is(ended(), 128 + number[i], "signal %d ends it, as it would any program", number[i]);
	}
	start("--count", "2");
	await(help_is_last);
	is(ended(), 0, "--count ends it");
	start("--interval", "1h");
	await(help_is_last);
	type("\003");
	is(ended(), 128 + SIGINT, "control-C ends it");
}

static void another_segment(void)
{
	struct shmlimit_options options = { .struct_size = sizeof(options), .slots = 16 };
	struct shmlimit *other;

	start("--interval", "20ms");
	await(by_denial);
	shmlimit_destroy(unit_name);
	await(is_gone);
	ok(has(0, unit_name), "a segment that is gone is waited for");
	if (shmlimit_create(unit_name, &options, &other) != 0)
		bail("create");
	unit_rule(other, "other", 1, 1, SECOND);
	await(is_anew);
	ok(has(0, "16 slots"), "a segment that is created again is shown");
	type("q");
	is(ended(), 0, "q ends it");
	shmlimit_close(other);
}

int main(void)
{
	if (access("/dev/ptmx", R_OK | W_OK) != 0)
		return tap_skip_all("no pseudo-terminals");
	signal(SIGALRM, give_up);
	alarm(SECONDS_MAX);
	set_up();
	keys_are_obeyed();
	long_names_are_cut();
	changes_are_asked_for();
	rule_is_chosen_by_option();
	signals_end_it();
	another_segment();
	shmlimit_close(l);
	return tap_done();
}
