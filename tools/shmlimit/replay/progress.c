/*
 * progress.c: a bar on a terminal, on standard error, and nothing elsewhere.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <unistd.h>

#include "replay.h"

#define BAR 40

static int shown;

void progress_show(uint64_t done, uint64_t size, uint64_t lines)
{
	int part;

	if (!isatty(STDERR_FILENO))
		return;
	shown = 1;
	if (size == 0) {
		fprintf(stderr, "\r%" PRIu64 " lines", lines);
		return;
	}
	part = done < size ? (int)((double)done / (double)size * BAR) : BAR;
	fprintf(stderr, "\r[%.*s%*s] %3d %%  %" PRIu64 " lines", part, "########################################",
	        BAR - part, "", part * 100 / BAR, lines);
}

void progress_clear(void)
{
	if (shown)
		fputs("\r\033[K", stderr);
	shown = 0;
}
