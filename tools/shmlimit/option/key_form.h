/*
 * key_form.h: which key an address is that was typed as text. Servers with prefix= do not use the
 * text, but the key that shmlimit_key_ip() makes, so a command that took the text as it stands
 * would change a key that no request has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef KEY_FORM_H
#define KEY_FORM_H

#include "address.h"
#include "key_option.h"

struct key_forms {
	size_t count;
	int known; /* the rule's users have these; 0: they have one of these, and it is not known which */
	struct key key[2];
};

/*
 * The forms in which a rule's users have a key: one, unless it is an address that was typed as
 * text. Of that the forms that have taken tokens now are what they have; else the form in which the
 * rule, or the segment, has other addresses, where it stores keys. Where there is no trace, the
 * text is the first form, and the net of the default prefix the second. The rule may be -1: none
 * yet.
 */
void key_forms(struct shmlimit *limiter, int rule, const struct key *given, struct key_forms *forms);

/*
 * What stored keys show of how users store addresses: as text, and the longest prefix of each
 * family, or -1.
 */
struct key_traces {
	int text, v4, v6;
};

/* Those of the keys of all rules but one, which may be -1. */
struct key_traces key_traces_of_others(struct shmlimit *limiter, int rule);
/*
 * The net of the address with the longest prefix that has taken tokens now. Returns whether there
 * is one.
 */
int key_find_net(struct shmlimit *limiter, int rule, const struct address *address, struct key *net);

/*
 * For a command that acts on one key: replaces *key by the form that users have, or says which one
 * it takes.
 */
void key_choose(struct shmlimit *limiter, int rule, struct key *key);

#endif
