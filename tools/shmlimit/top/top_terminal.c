/*
 * top_terminal.c: what a terminal can do. WHY a file of its own: <term.h> makes macros of common
 * words, and so comes last.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <unistd.h>

#include "top.h"

#include <ncurses.h>
#include <term.h>

int top_terminal_paints(void)
{
	int error, paints;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || setupterm(NULL, STDOUT_FILENO, &error) != OK)
		return 0;
	paints = cursor_address != NULL && clear_screen != NULL;
	del_curterm(cur_term);
	return paints;
}
