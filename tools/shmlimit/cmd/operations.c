/*
 * operations.c: shmlimit peek, charge, refund, reserve and acquire: they differ in the call that
 * they make.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"
#include "decision.h"

static int run_peek(const struct call *call)
{
	return decision_run(call, SHMLIMIT_OPEN_READ_ONLY, SHMLIMIT_PEEK);
}

static int run_charge(const struct call *call)
{
	return decision_run(call, 0, SHMLIMIT_CHARGE);
}

static int run_refund(const struct call *call)
{
	return decision_run(call, 0, SHMLIMIT_REFUND);
}

static int run_reserve(const struct call *call)
{
	return decision_run(call, 0, SHMLIMIT_RESERVE);
}

static int run_acquire(const struct call *call)
{
	return decision_run(call, 0, SHMLIMIT_ACQUIRE);
}

#define OPERANDS "NAME RULE KEY"

const struct command command_peek = {
	.name = "peek",
	.operands = OPERANDS,
	.purpose = "show what take would answer, without taking",
	.options = decision_options,
	.run = run_peek,
};

const struct command command_charge = {
	.name = "charge",
	.operands = OPERANDS,
	.purpose = "take tokens for something that has already happened",
	.details = "Missing tokens become debt, up to the rule's max-wait. Exit 1 if only a part could be taken.\n",
	.options = charge_options,
	.run = run_charge,
};

const struct command command_refund = {
	.name = "refund",
	.operands = OPERANDS,
	.purpose = "give back tokens that were taken and not used",
	.options = refund_options,
	.run = run_refund,
};

const struct command command_reserve = {
	.name = "reserve",
	.operands = OPERANDS,
	.purpose = "take tokens in advance, and print how long to wait",
	.details = "Exit 0 if allowed, 1 if the wait would be too long. Does not wait; acquire does.\n",
	.options = reservation_options,
	.run = run_reserve,
};

const struct command command_acquire = {
	.name = "acquire",
	.operands = OPERANDS,
	.purpose = "wait for tokens and take them: shmlimit acquire ... && send",
	.details = "Exit 0 once tokens are taken, 1 at once if the wait is too long.\n",
	.options = reservation_options,
	.run = run_acquire,
};
