/*
 * reply: one request in, one response out.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gate.h"
#include "reply.h"

/*
 * A worker closes the connection after a number of replies, so that clients
 * that keep theirs alive meet the other workers too. Like Apache's
 * MaxKeepAliveRequests, but counted over all connections of the worker, which
 * takes no memory for each.
 */
#define REPLIES_A_CLOSE 1000

struct page {
	unsigned status;
	char text[32];
};

struct field {
	const char *name;
	const char *value;
};

static struct page page_for[] = {
	[GATE_ALLOWED] = { MHD_HTTP_OK, "allowed\n" },
	[GATE_DENIED] = { MHD_HTTP_TOO_MANY_REQUESTS, "denied\n" },
	[GATE_UNLIMITED] = { MHD_HTTP_OK, "allowed, without a limit\n" },
	[GATE_OUT_OF_ORDER] = { MHD_HTTP_SERVICE_UNAVAILABLE, "the limiter is out of order\n" },
};
static struct page wrong_method = { MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD only\n" };
static struct page long_name = { MHD_HTTP_BAD_REQUEST, "the client's name is too long\n" };

/* Queue the page with the fields, up to one without a name. Out of memory: the connection is closed. */
static enum MHD_Result send_page(struct MHD_Connection *connection, struct page *page, const struct field *field)
{
	static unsigned long replies;
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(page->text), page->text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result done = MHD_YES;
	char worker[16];

	if (response == NULL)
		return MHD_NO;
	snprintf(worker, sizeof(worker), "%d", (int)getpid());
	done &= MHD_add_response_header(response, "Worker", worker);
	for (; field->name != NULL; field++)
		done &= MHD_add_response_header(response, field->name, field->value);
	if (++replies % REPLIES_A_CLOSE == 0)
		done &= MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (done == MHD_YES)
		done = MHD_queue_response(connection, page->status, response);
	MHD_destroy_response(response);
	return done;
}

/* Point *key at the client's name, written to `peer` where the query has none. Returns its length. */
static size_t find_client(struct MHD_Connection *connection, char peer[INET_ADDRSTRLEN], const char **key)
{
	const struct sockaddr_in *address;
	size_t len = 0;

	MHD_lookup_connection_value_n(connection, MHD_GET_ARGUMENT_KIND, "client", strlen("client"), key, &len);
	if (len > 0)
		return len;
	address = (const void *)MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
	inet_ntop(AF_INET, &address->sin_addr, peer, INET_ADDRSTRLEN);
	*key = peer;
	return strlen(peer);
}

enum MHD_Result reply_to_request(void *gate, struct MHD_Connection *connection, const char *url, const char *method,
                                 const char *version, const char *body, size_t *body_len, void **state)
{
	const struct gate *limit = gate;
	struct field field[4] = { { NULL, NULL } };
	struct shmlimit_result left;
	enum gate_answer answer;
	struct shmlimit_fields fields;
	char peer[INET_ADDRSTRLEN];
	const char *key;
	size_t key_len;

	(void)url, (void)version, (void)body;
	/* Called first with the header, then with each part of a body, last at the end: only an answer that waits for
	   the end keeps the connection alive. */
	if (*state == NULL || *body_len > 0) {
		*state = gate;
		*body_len = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		field[0] = (struct field){ MHD_HTTP_HEADER_ALLOW, "GET, HEAD" };
		return send_page(connection, &wrong_method, field);
	}
	key_len = find_client(connection, peer, &key);
	/* Asked here, because an error of the limiter would pass a gate that fails open. */
	if (key_len > SHMLIMIT_KEY_MAX)
		return send_page(connection, &long_name, field);

	answer = gate_ask(gate, key, key_len, &left);
	if (answer == GATE_ALLOWED || answer == GATE_DENIED) {
		gate_fields(limit, answer, &left, &fields);
		field[0] = (struct field){ "RateLimit-Policy", fields.policy };
		field[1] = (struct field){ "RateLimit", fields.limit };
	}
	if (answer == GATE_DENIED)
		field[2] = (struct field){ MHD_HTTP_HEADER_RETRY_AFTER, fields.retry_after };
	return send_page(connection, &page_for[answer], field);
}
