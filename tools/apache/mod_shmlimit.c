/*
 * mod_shmlimit: limits requests by a segment of shmlimit.
 *
 * It decides when the configuration of a request is known and before any module
 * is asked to authenticate, once for each request of a client: not again after
 * internal redirects, and not for subrequests. A place in a limit of a HOLD rule is
 * left when the request ends, and what the request used is charged when it is logged.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "ap_expr.h"
#include "ap_mpm.h"
#include "apr_ring.h"
#include "apr_atomic.h"
#include "apr_portable.h"
#include "apr_strings.h"
#include "apr_thread_mutex.h"
#include "http_config.h"
#include "http_core.h"
#include "http_log.h"
#include "http_protocol.h"
#include "http_request.h"
#include "httpd.h"
#include "mpm_common.h"

#include "words.h"

module AP_MODULE_DECLARE_DATA shmlimit_module;

/* A gate for each segment that the configuration names. */
struct gate {
    const char *segment;
    apr_array_header_t *words;     /* chars of its spec, before those of limits */
    server_rec *server;            /* that named it first */
    int has_backend;
    struct shmlimit_gate *handle;  /* the child's; NULL: out of memory */
};

/* A line of the configuration, and the limit that is on it. */
typedef struct {
    size_t offset;                 /* in the limit_words of its server */
    const char *file;
    int line;
} shmlimit_line;

/* What a server, or a virtual host, says. */
struct scope {
    server_rec *server;            /* NULL: nothing yet */
    struct gate *gate;             /* in a virtual host NULL: that of the server */
    apr_array_header_t *limit_words; /* chars of the spec */
    apr_array_header_t *lines;     /* of shmlimit_line: one for each limit */
    uint32_t limits;
    uint32_t first;                /* how many limits there are before these in the gate's spec */
    size_t offset;                 /* where they begin there */
};

/* Made each time that the configuration is read. */
static apr_array_header_t *gates;  /* of struct gate * */
static apr_array_header_t *scopes; /* of struct scope *: those that have a directive */

/* A limit of a section. */
typedef struct {
    uint32_t limit;                /* its place among those of its scope */
    const char *rule;
    ap_expr_info_t *key;
    ap_expr_info_t *rate;          /* of each request; NULL: the rule's own */
    ap_expr_info_t *share;         /* of each request; NULL: the limit's */
    apr_uint32_t *share_logged;    /* the second in which a value was last; 0: none was */
    ap_expr_info_t *charge;        /* what it used; NULL: the cost is known before */
    const char *charge_text;       /* as it is written */
    apr_uint32_t *charge_logged;   /* the second in which a value was last; 0: none was */
    uint64_t scale;                /* tokens of a unit of it */
} shmlimit_limit;

typedef struct {
    apr_array_header_t *limits;    /* of shmlimit_limit; NULL if there are none here */
    struct scope *scope;           /* whose limits these are */
    int places;                    /* one may be of places */
    int off;                       /* there are to be none here */
} shmlimit_dir_conf;

/* What became of the request, for logs and for what serves it; notes stay with it, variables go to CGI. */
static void note(request_rec *r, const struct shmlimit_gate_answer *answer)
{
    const char *status = words_outcome(answer);

    if (status == NULL)
        return;
    apr_table_setn(r->notes, "shmlimit-status", status);
    apr_table_setn(r->subprocess_env, "SHMLIMIT_STATUS", status);
    if (answer->remaining != UINT64_MAX) {
        const char *remaining = apr_psprintf(r->pool, "%" APR_UINT64_T_FMT,
                                             (apr_uint64_t)answer->remaining);

        apr_table_setn(r->notes, "shmlimit-remaining", remaining);
        apr_table_setn(r->subprocess_env, "SHMLIMIT_REMAINING", remaining);
    }
}

/* What a request keeps until it ends. */
struct kept {
    apr_table_t *fields;           /* of the response; NULL: there are none */
    struct places *places;         /* NULL: it holds nothing */
};

/* The filter that adds the fields to the response. */
static ap_filter_rec_t *fields_filter;

/* The fields, until the response begins. */
static apr_table_t *make_fields(apr_pool_t *pool, const struct shmlimit_gate_answer *answer)
{
    apr_table_t *fields;

    if (answer->field_count == 0)
        return NULL;
    fields = apr_table_make(pool, (int)answer->field_count);
    for (uint32_t i = 0; i < answer->field_count; i++)
        apr_table_addn(fields, answer->fields[i].name,
                       apr_pstrmemdup(pool, answer->fields[i].value, answer->fields[i].value_length));
    return fields;
}

/* After internal redirects it is that of the original request. NULL: the request was not limited. */
static struct kept *kept_of(const request_rec *r)
{
    while (r->prev != NULL)
        r = r->prev;
    return ap_get_module_config(r->request_config, &shmlimit_module);
}

static int unset_field(void *r, const char *name, const char *value)
{
    (void)value;
    apr_table_unset(((request_rec *)r)->headers_out, name);
    apr_table_unset(((request_rec *)r)->err_headers_out, name);
    return 1;
}

/*
 * WHY NOT at once, in the table of headers: mod_cache would store them with the
 * response, and serve one client's fields to all others. This filter runs after the
 * cache's filters, whether they store the response or serve it.
 */
static apr_status_t add_fields(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    request_rec *r = f->r;

    ap_remove_output_filter(f);
    /* What a backend or an application says of limits of its own would stand beside these, and clients read either. */
    apr_table_do(unset_field, r, f->ctx, NULL);
    r->err_headers_out = apr_table_overlay(r->pool, r->err_headers_out, f->ctx);
    return ap_pass_brigade(f->next, brigade);
}

/* For responses and for error responses. */
static void insert_filter(request_rec *r)
{
    struct kept *kept = r->main == NULL ? kept_of(r) : NULL;

    if (kept != NULL && kept->fields != NULL)
        ap_add_output_filter_handle(fields_filter, kept->fields, r, r->connection);
}

/* An expression's text, or NULL. */
static const char *value_of(request_rec *r, const char *rule, const char *what, const ap_expr_info_t *expression)
{
    const char *wrong = NULL;
    const char *text = ap_expr_str_exec(r, expression, &wrong);

    if (wrong == NULL)
        return text;
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "%s of rule %s: %s", what, rule, wrong);
    return NULL;
}

/* Once a minute in each child, whichever thread comes first. */
static int may_log(apr_uint32_t *logged)
{
    apr_uint32_t now = (apr_uint32_t)apr_time_sec(apr_time_now()), before = apr_atomic_read32(logged);

    return (before == 0 || now - before >= 60) && apr_atomic_cas32(logged, now, before) == before;
}

/* The share of the request; 0: it has none, and the limit's decides. */
static uint32_t share_of(request_rec *r, const shmlimit_limit *limit)
{
    const char *text = limit->share != NULL ? value_of(r, limit->rule, "share", limit->share) : NULL;
    int wrong;
    uint32_t share;

    if (text == NULL)
        return 0;
    share = words_share(text, strlen(text), &wrong);
    if (wrong && may_log(limit->share_logged))
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "rule \"%s\": \"%s\" is no share: the limit's own decides",
                      limit->rule, text);
    return share;
}

/* Fill the keys that are not empty, and of which limits they are. Returns how many, or -1. */
static int find_keys(request_rec *r, const shmlimit_dir_conf *conf, struct shmlimit_gate_key *keys,
                     const shmlimit_limit **from)
{
    int n = 0;

    for (int i = 0; i < conf->limits->nelts; i++) {
        const shmlimit_limit *limit = &APR_ARRAY_IDX(conf->limits, i, shmlimit_limit);
        const char *text = value_of(r, limit->rule, "key", limit->key), *rate = NULL;

        if (text != NULL && text[0] == '\0')
            continue;
        if (limit->rate != NULL)
            rate = value_of(r, limit->rule, "rate", limit->rate);
        if (text == NULL || (limit->rate != NULL && rate == NULL))
            return -1;
        from[n] = limit;
        keys[n++] = (struct shmlimit_gate_key){ .limit = conf->scope->first + limit->limit, .bytes = text,
                                                .length = (uint32_t)strlen(text), .rate = rate,
                                                .rate_length = rate != NULL ? (uint32_t)strlen(rate) : 0,
                                                .share = share_of(r, limit) };
    }
    return n;
}

/* The places that a request holds, and what it has paid. */
struct places {
    APR_RING_ENTRY(places) link;
    struct shmlimit_gate *gate;
    struct shmlimit_gate_held held; /* of no place: it is not in the ring */
    int n;
    struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
    const shmlimit_limit *limits[SHMLIMIT_REQUESTS_MAX];
};

/*
 * A child with threads that is ended by SIGTERM does not destroy the pools of its requests, so their places are in a ring. It may
 * wait for its threads until it is killed, so places are left when it begins to end. NULL: it has no threads. Then it
 * destroys the one request's pool, perhaps in a signal handler, which must not lock.
 */
static apr_thread_mutex_t *ring_lock;
APR_RING_HEAD(ring, places);
static struct ring ring;

static void leave(struct places *places)
{
    if (ring_lock != NULL)
        APR_RING_REMOVE(places, link);
    (void)shmlimit_gate_leave(places->gate, places->keys, (size_t)places->n, &places->held);
}

/* The request has ended, in whatever way. */
static apr_status_t leave_places(void *data)
{
    struct places *places = data;

    if (ring_lock != NULL)
        apr_thread_mutex_lock(ring_lock);
    if (places->held.count > 0)
        leave(places);
    if (ring_lock != NULL)
        apr_thread_mutex_unlock(ring_lock);
    return APR_SUCCESS;
}

/* The child ends, and cuts its requests off. */
static void shmlimit_child_stopping(apr_pool_t *pool, int graceful)
{
    if (ring_lock == NULL || graceful)
        return;
    apr_thread_mutex_lock(ring_lock);
    while (!APR_RING_EMPTY(&ring, places, link))
        leave(APR_RING_FIRST(&ring));
    apr_thread_mutex_unlock(ring_lock);
}

/* The bytes of the keys are in the request's pool. */
static struct places *keep_places(request_rec *r, struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys,
                                  const shmlimit_limit **from, int n, const struct shmlimit_gate_held *held)
{
    struct places *places = apr_palloc(r->pool, sizeof(*places));

    places->gate = gate;
    places->held = *held;
    places->n = n;
    memcpy(places->keys, keys, (size_t)n * sizeof(keys[0]));
    memcpy(places->limits, from, (size_t)n * sizeof(from[0]));
    if (held->count == 0)
        return places;
    if (ring_lock != NULL) {
        apr_thread_mutex_lock(ring_lock);
        APR_RING_INSERT_TAIL(&ring, places, places, link);
        apr_thread_mutex_unlock(ring_lock);
    }
    apr_pool_cleanup_register(r->pool, places, leave_places, apr_pool_cleanup_null);
    return places;
}

/* What the request has used of a limit, or SHMLIMIT_GATE_NOT_KNOWN. */
static uint64_t used_of(request_rec *r, const shmlimit_limit *limit)
{
    const char *text = limit->charge != NULL ? value_of(r, limit->rule, "charge", limit->charge) : NULL;
    uint64_t used = text != NULL ? words_used(text, strlen(text), limit->scale) : SHMLIMIT_GATE_NOT_KNOWN;

    if (used == SHMLIMIT_GATE_NOT_KNOWN && text != NULL && text[0] != '\0' && strcmp(text, "-") != 0 &&
        may_log(limit->charge_logged))
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "rule %s: \"%s\": \"%s\" is no number of tokens: the estimate stays",
                      limit->rule, limit->charge_text, text);
    return used;
}

/* Of a client that has gone, too. */
static int shmlimit_log_transaction(request_rec *r)
{
    struct kept *kept = kept_of(r);
    struct places *places = kept != NULL ? kept->places : NULL;
    uint64_t used[SHMLIMIT_REQUESTS_MAX];

    if (places == NULL || places->held.bill_count == 0)
        return DECLINED;
    for (int i = 0; i < places->n; i++)
        used[i] = used_of(r, places->limits[i]);
    (void)shmlimit_gate_settle(places->gate, places->keys, (size_t)places->n, used, &places->held);
    return DECLINED;
}

/* A delay one level below a denial, as by nginx's module; which levels are written, LogLevel says. */
static void log_answer(request_rec *r, const shmlimit_limit *const *from, const struct shmlimit_gate_answer *answer)
{
    int delayed;
    const char *event = words_event(answer, &delayed);

    if (event != NULL)
        ap_log_rerror(APLOG_MARK, delayed ? APLOG_WARNING : APLOG_ERR, 0, r, "%s by rule \"%s\"", event,
                      from[answer->denied_by]->rule);
}

/* mod_remoteip leaves the proxy's address in r->connection, and the client's is r->useragent_ip. */
static void check_forwarded(request_rec *r, struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, int n)
{
    const char *peer = r->connection->client_ip;

    if (peer == NULL || strcmp(peer, r->useragent_ip) != 0 ||
        shmlimit_gate_forwarded(gate, keys, (size_t)n, peer, strlen(peer), NULL, NULL) != 1)
        return;
    for (const char *const *field = words_forwarded; *field != NULL; field++)
        if (apr_table_get(r->headers_in, *field) != NULL) {
            (void)shmlimit_gate_forwarded(gate, keys, (size_t)n, peer, strlen(peer), *field,
                                          "mod_remoteip's RemoteIPInternalProxy names proxies");
            return;
        }
}

/* Waits until a request that is pending is to be asked about again. Returns 1 earlier: its client is gone. */
static int wait_for_turn(request_rec *r, uint64_t ns)
{
    /* Of HTTP/2 a stream has no socket: one that is reset is `aborted`, which is looked at ten times a second. */
    const uint64_t most_ns = r->connection->master != NULL && ns > 100000000 ? 100000000 : ns;
    const struct timespec time = { .tv_sec = (time_t)(most_ns / 1000000000), .tv_nsec = (long)(most_ns % 1000000000) };
    struct pollfd client = { .fd = -1, .events = POLLRDHUP };

    if (r->connection->master == NULL)
        (void)apr_os_sock_get(&client.fd, ap_get_conn_socket(r->connection));
    return ppoll(&client, 1, &time, NULL) > 0 || r->connection->aborted;
}

static int shmlimit_header_parser(request_rec *r)
{
    const shmlimit_dir_conf *conf = ap_get_module_config(r->per_dir_config, &shmlimit_module);
    struct shmlimit_gate_key keys[SHMLIMIT_REQUESTS_MAX];
    const shmlimit_limit *from[SHMLIMIT_REQUESTS_MAX];
    struct shmlimit_gate_held held;
    struct shmlimit_gate_answer answer;
    struct shmlimit_gate_pending *pending;
    struct shmlimit_gate *gate;
    struct kept *kept;
    char buffer[SHMLIMIT_GATE_BUFFER];
    int n, answered;

    if (conf->limits == NULL || !ap_is_initial_req(r))
        return DECLINED;
    gate = conf->scope->gate->handle;
    if (gate == NULL)
        return DECLINED;
    n = find_keys(r, conf, keys, from);
    if (n < 0)
        return HTTP_INTERNAL_SERVER_ERROR;
    check_forwarded(r, gate, keys, n);
    answer.struct_size = sizeof(answer);
    answer.buffer = buffer;
    answer.buffer_size = sizeof(buffer);
    held.struct_size = sizeof(held);
    /* A backend's answer wakes the thread that waits for it; one that polled would sleep too long. */
    answered = conf->scope->gate->has_backend ? -EAGAIN
                                              : shmlimit_gate_begin(gate, keys, (size_t)n, &answer, &held, &pending);
    while (answered == SHMLIMIT_GATE_PENDING) {
        if (wait_for_turn(r, answer.retry_after_ns)) {
            shmlimit_gate_cancel(gate, pending, &held);
            (void)shmlimit_gate_leave(gate, keys, (size_t)n, &held);
            return HTTP_REQUEST_TIME_OUT;
        }
        answered = shmlimit_gate_poll(gate, pending, &answer, &held);
    }
    if (answered == -EAGAIN)
        answered = shmlimit_gate_enter(gate, keys, (size_t)n, &answer, &held);
    if (answered < 0)
        return HTTP_INTERNAL_SERVER_ERROR;
    kept = apr_pcalloc(r->pool, sizeof(*kept));
    if (held.count > 0 || held.bill_count > 0)
        kept->places = keep_places(r, gate, keys, from, n, &held);
    kept->fields = make_fields(r->pool, &answer);
    ap_set_module_config(r->request_config, &shmlimit_module, kept);
    note(r, &answer);
    log_answer(r, from, &answer);
    return answered == SHMLIMIT_DENIED ? (int)answer.status : DECLINED;
}

static void *create_scope(apr_pool_t *pool, server_rec *server)
{
    (void)server;
    return apr_pcalloc(pool, sizeof(struct scope));
}

/* That of the server whose configuration is read. */
static struct scope *scope_of(const cmd_parms *cmd)
{
    struct scope *scope = ap_get_module_config(cmd->server->module_config, &shmlimit_module);

    if (scope->server == NULL) {
        scope->server = cmd->server;
        scope->limit_words = apr_array_make(cmd->pool, 256, 1);
        scope->lines = apr_array_make(cmd->pool, 8, sizeof(shmlimit_line));
        APR_ARRAY_PUSH(scopes, struct scope *) = scope;
    }
    return scope;
}

static void *create_dir_conf(apr_pool_t *pool, char *dir)
{
    return apr_pcalloc(pool, sizeof(shmlimit_dir_conf));
}

/* A section inherits the limits of those around it only if it has none, and is not off. */
static void *merge_dir_conf(apr_pool_t *pool, void *base, void *add)
{
    const shmlimit_dir_conf *inner = add;

    return inner->limits != NULL || inner->off ? add : base;
}

/* Add a word to the spec. */
static void add_word(apr_array_header_t *words, const char *word)
{
    size_t n = words_write(NULL, word);
    char *last = NULL;

    for (size_t i = 0; i < n; i++)
        last = apr_array_push(words);
    words_write(last - (n - 1), word);
}

/* httpd sends a status that it does not know as a 500. */
static const char *check_status(const char *word)
{
    int status = strncmp(word, "status=", 7) == 0 ? atoi(word + 7) : HTTP_INTERNAL_SERVER_ERROR;

    if (status == HTTP_INTERNAL_SERVER_ERROR ||
        ap_index_of_response(status) != ap_index_of_response(HTTP_INTERNAL_SERVER_ERROR))
        return NULL;
    return "is no status that httpd knows";
}

/* Add options to the spec. Returns what is wrong. */
static const char *add_words(cmd_parms *cmd, apr_array_header_t *words, int argc, char *const argv[],
                             const char *(*check)(const char *word, struct shmlimit_gate_wrong *wrong))
{
    struct shmlimit_gate_wrong wrong;

    for (int i = 0; i < argc; i++) {
        const char *text = check(argv[i], &wrong);

        if (text == NULL)
            text = check_status(argv[i]);
        if (text != NULL)
            return apr_psprintf(cmd->pool, "%s: \"%s\" %s", cmd->cmd->name, argv[i], text);
        add_word(words, argv[i]);
    }
    return NULL;
}

/* The virtual hosts of a site, for HTTP and HTTPS, may name one segment: with the same options. */
static const char *share_gate(cmd_parms *cmd, struct scope *scope, struct gate *named)
{
    for (int i = 0; i < gates->nelts && scope->gate == NULL; i++) {
        struct gate *gate = APR_ARRAY_IDX(gates, i, struct gate *);

        if (strcmp(gate->segment, named->segment) != 0)
            continue;
        if (gate->words->nelts != named->words->nelts ||
            memcmp(gate->words->elts, named->words->elts, (size_t)named->words->nelts) != 0)
            return apr_psprintf(cmd->pool, "ShmlimitSegment: \"%s\" has other options in another place", named->segment);
        scope->gate = gate;
    }
    if (scope->gate == NULL) {
        scope->gate = named;
        APR_ARRAY_PUSH(gates, struct gate *) = named;
    }
    return NULL;
}

static const char *set_segment(cmd_parms *cmd, void *conf, int argc, char *const argv[])
{
    const char *wrong = ap_check_cmd_context(cmd, NOT_IN_DIR_CONTEXT);
    struct scope *scope = scope_of(cmd);
    struct gate *gate;

    if (wrong != NULL)
        return wrong;
    if (argc < 1)
        return "ShmlimitSegment: needs a name";
    if (scope->gate != NULL)
        return "ShmlimitSegment: one is set already, and a server or virtual host has one segment";
    wrong = words_check_segment(argv[0]);
    if (wrong != NULL)
        return apr_psprintf(cmd->pool, "ShmlimitSegment: \"%s\" %s", argv[0], wrong);
    gate = apr_pcalloc(cmd->pool, sizeof(*gate));
    gate->segment = argv[0];
    gate->server = cmd->server;
    gate->words = apr_array_make(cmd->pool, 256, 1);
    add_word(gate->words, apr_pstrcat(cmd->pool, "segment=", argv[0], NULL));
    wrong = add_words(cmd, gate->words, argc - 1, argv + 1, words_check_gate);
    for (int i = 1; i < argc; i++)
        gate->has_backend |= strncmp(argv[i], "backend=", 8) == 0;
    return wrong != NULL ? wrong : share_gate(cmd, scope, gate);
}

/* The expression in "NAME=EXPRESSION". Returns what is wrong. */
static const char *read_expression(cmd_parms *cmd, const char *word, ap_expr_info_t **expression)
{
    const char *wrong = NULL;

    if (*expression != NULL)
        return apr_psprintf(cmd->pool, "ShmlimitRule: \"%s\" is duplicate", word);
    *expression = ap_expr_parse_cmd(cmd, strchr(word, '=') + 1, AP_EXPR_FLAG_STRING_RESULT, &wrong, NULL);
    return wrong != NULL ? apr_psprintf(cmd->pool, "ShmlimitRule: \"%s\": %s", word, wrong) : NULL;
}

/* Check what the words of a limit say together. Returns what is wrong. */
static const char *check_words(cmd_parms *cmd, int argc, char *const argv[], const shmlimit_limit *limit)
{
    int charged = limit->charge != NULL;

    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];

        if (!charged && (strncmp(word, "estimate=", 9) == 0 || strncmp(word, "charge_max=", 11) == 0))
            return apr_psprintf(cmd->pool, "ShmlimitRule: \"%s\" needs charge=%%{...}", word);
        if (charged && strncmp(word, "cost=", 5) == 0)
            return apr_psprintf(cmd->pool, "ShmlimitRule: \"%s\" beside charge=: write estimate= for what a request takes "
                                "before its charge", word);
        if (limit->rate != NULL && strncmp(word, "algorithm=", 10) == 0 && strcmp(word + 10, "gcra") != 0)
            return apr_psprintf(cmd->pool, "ShmlimitRule: \"%s\" cannot be used with a rate= that has an expression: leave it "
                                "out, or write the rate as text in its own <Location>", word);
    }
    return !charged && limit->scale != 0 ? "ShmlimitRule: charge_scale= needs charge=%{...}" : NULL;
}

static int has_word(int argc, char *const argv[], const char *name)
{
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], name, strlen(name)) == 0)
            return 1;
    return 0;
}

/* Is the rate one of places, or is there none? */
static int may_have_places(int argc, char *const argv[])
{
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "rate=", 5) == 0)
            return words_has_places(argv[i] + 5);
    return 1;
}

/*
 * Read the words that are this module's own, such as "rate=%{reqenv:RATE}", and replace them by what the spec has. There is
 * room for two more words. Returns what is wrong.
 */
static const char *read_own_words(cmd_parms *cmd, int *argc, char *argv[], shmlimit_limit *limit)
{
    const char *wrong = NULL;
    int n = 0, has_places = 0;

    for (int i = 0; i < *argc && wrong == NULL; i++) {
        char *word = argv[i], *end;

        has_places |= strncmp(word, "rate=", 5) == 0 && words_has_places(word + 5);

        if (strncmp(word, "rate=", 5) == 0 && strstr(word, "%{") != NULL) {
            wrong = read_expression(cmd, word, &limit->rate);
        } else if (strncmp(word, "share=", 6) == 0 && strstr(word, "%{") != NULL) {
            wrong = read_expression(cmd, word, &limit->share);
        } else if (strncmp(word, "charge=", 7) == 0) {
            wrong = read_expression(cmd, word, &limit->charge);
            limit->charge_text = word;
        } else if (strncmp(word, "charge_scale=", 13) == 0) {
            if (limit->scale != 0)
                return apr_psprintf(cmd->pool, "ShmlimitRule: \"%s\" is duplicate", word);
            limit->scale = (uint64_t)apr_strtoi64(word + 13, &end, 10);
            if (word[13] < '0' || word[13] > '9' || *end != '\0' || limit->scale < 1 || limit->scale > 1000000000)
                return apr_psprintf(cmd->pool, "ShmlimitRule: \"%s\" must be charge_scale=N, 1 to 1000000000", word);
        } else {
            argv[n++] = word;
        }
    }
    if (wrong == NULL)
        wrong = check_words(cmd, n, argv, limit);
    if (limit->scale == 0)
        limit->scale = 1;
    if (limit->share != NULL && !has_word(n, argv, "share="))
        argv[n++] = apr_pstrdup(cmd->pool, "share=1"); /* of requests without one */
    if (limit->rate != NULL && !has_places && !has_word(n, argv, "algorithm="))
        argv[n++] = apr_pstrdup(cmd->pool, "algorithm=gcra"); /* in place of rate= */
    if (limit->charge != NULL && !has_word(n, argv, "estimate="))
        argv[n++] = apr_pstrdup(cmd->pool, "estimate=1"); /* in place of charge= */
    *argc = n;
    return wrong;
}

/*
 * A key without an expression is one for all clients. The names that Apache has for what differs between them are
 * in capitals.
 */
static int is_variable(const char *key)
{
    static const char *const names[] = { "REMOTE_ADDR", "REMOTE_HOST", "REMOTE_USER", "REQUEST_URI", "REQUEST_METHOD",
                                         "HTTP_HOST", "SERVER_NAME", "USER_AGENT", "HTTP_USER_AGENT", "QUERY_STRING",
                                         "CONN_REMOTE_ADDR", "CLIENT_IP", NULL };

    for (int i = 0; names[i] != NULL; i++)
        if (ap_cstr_casecmp(key, names[i]) == 0)
            return 1;
    return 0;
}

static const char *add_rule(cmd_parms *cmd, void *dir_conf, int argc, char *const argv[])
{
    shmlimit_dir_conf *conf = dir_conf;
    struct scope *scope = scope_of(cmd);
    shmlimit_limit limit = { .limit = scope->limits };
    const char *wrong = NULL;
    char **words;

    if (conf->off)
        return "ShmlimitRule: is off here, and cannot limit beside that";
    if (argc > 0 && strcmp(argv[0], "off") == 0) {
        if (argc > 1 || conf->limits != NULL)
            return "ShmlimitRule: off must stand alone";
        conf->off = 1;
        return NULL;
    }
    if (argc < 2)
        return "ShmlimitRule: needs a rule's name and a key";
    wrong = words_check_rule(argv[0]);
    if (wrong != NULL)
        return apr_psprintf(cmd->pool, "ShmlimitRule: \"%s\" %s", argv[0], wrong);
    if (argv[1][0] == '\0')
        return "ShmlimitRule: the key is empty, so no request would be limited";
    if (is_variable(argv[1]))
        return apr_psprintf(cmd->pool, "ShmlimitRule: the key \"%s\" is the name of a variable, and one key for all clients: "
                            "write %%{%s}", argv[1], argv[1]);
    if (conf->limits == NULL)
        conf->limits = apr_array_make(cmd->pool, 2, sizeof(shmlimit_limit));
    conf->scope = scope;
    if (conf->limits->nelts == SHMLIMIT_REQUESTS_MAX)
        return "ShmlimitRule: more than 16 for one request";
    limit.rule = argv[0];
    limit.key = ap_expr_parse_cmd(cmd, argv[1], AP_EXPR_FLAG_STRING_RESULT, &wrong, NULL);
    if (wrong != NULL)
        return apr_psprintf(cmd->pool, "ShmlimitRule: key \"%s\": %s", argv[1], wrong);
    limit.charge_logged = apr_pcalloc(cmd->pool, sizeof(*limit.charge_logged));
    limit.share_logged = apr_pcalloc(cmd->pool, sizeof(*limit.share_logged));
    words = apr_palloc(cmd->pool, ((apr_size_t)argc + 2) * sizeof(argv[0]));
    memcpy(words, argv, (apr_size_t)argc * sizeof(argv[0]));
    argc -= 2;
    wrong = read_own_words(cmd, &argc, words + 2, &limit);
    if (wrong != NULL)
        return wrong;
    if (!conf->places && has_word(argc, words + 2, "share="))
        return "ShmlimitRule: a share= needs a limit of places before it here, such as \"rate=64 at once\"";
    APR_ARRAY_PUSH(scope->lines, shmlimit_line) = (shmlimit_line){ .offset = (size_t)scope->limit_words->nelts,
                                                                   .file = cmd->directive->filename,
                                                                   .line = cmd->directive->line_num };
    add_word(scope->limit_words, apr_pstrcat(cmd->pool, "rule=", argv[0], NULL));
    wrong = add_words(cmd, scope->limit_words, argc, words + 2, words_check_limit);
    if (wrong != NULL)
        return wrong;
    /* A rule without a rate may be one that was made elsewhere. */
    conf->places |= !has_word(argc, words + 2, "algorithm=") && may_have_places(argc, words + 2);
    scope->limits++;
    APR_ARRAY_PUSH(conf->limits, shmlimit_limit) = limit;
    return NULL;
}

static int shmlimit_pre_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temp)
{
    gates = apr_array_make(pool, 1, sizeof(struct gate *));
    scopes = apr_array_make(pool, 4, sizeof(struct scope *));
    return OK;
}

/* A virtual host without a segment of its own has that of the server. Returns 0: there is none for some limit. */
static int find_gates(void)
{
    struct gate *all = NULL;

    for (int i = 0; i < scopes->nelts; i++)
        if (!APR_ARRAY_IDX(scopes, i, struct scope *)->server->is_virtual)
            all = APR_ARRAY_IDX(scopes, i, struct scope *)->gate;
    for (int i = 0; i < scopes->nelts; i++) {
        struct scope *scope = APR_ARRAY_IDX(scopes, i, struct scope *);

        if (scope->gate == NULL)
            scope->gate = all;
        if (scope->gate == NULL && scope->limits > 0)
            return 0;
    }
    return 1;
}

/* The spec: a string in the pool. */
static const char *make_spec(apr_pool_t *pool, const struct gate *gate)
{
    const char *spec = apr_pstrmemdup(pool, gate->words->elts, (apr_size_t)gate->words->nelts);
    uint32_t limits = 0;

    for (int i = 0; i < scopes->nelts; i++) {
        struct scope *scope = APR_ARRAY_IDX(scopes, i, struct scope *);

        if (scope->gate != gate)
            continue;
        scope->first = limits;
        scope->offset = strlen(spec);
        limits += scope->limits;
        spec = apr_pstrcat(pool, spec, apr_pstrmemdup(pool, scope->limit_words->elts, (apr_size_t)scope->limit_words->nelts),
                           NULL);
    }
    return spec;
}

/* The line of the limit at `offset` of the gate's spec, or NULL. */
static const shmlimit_line *line_at(const struct gate *gate, size_t offset)
{
    const shmlimit_line *found = NULL;

    for (int i = 0; i < scopes->nelts; i++) {
        const struct scope *scope = APR_ARRAY_IDX(scopes, i, struct scope *);

        for (int j = 0; scope->gate == gate && j < scope->lines->nelts; j++) {
            const shmlimit_line *line = &APR_ARRAY_IDX(scope->lines, j, shmlimit_line);

            if (offset >= scope->offset + line->offset)
                found = line;
        }
    }
    return found;
}

/* Log what is wrong with the spec at `offset`, with the line of that limit. */
static void log_wrong(int level, const struct gate *gate, size_t offset, const char *text)
{
    const shmlimit_line *line = line_at(gate, offset);

    if (line != NULL)
        ap_log_error(APLOG_MARK, APLOG_STARTUP | level, 0, NULL, "ShmlimitRule: %s, line %d of %s", text, line->line,
                     line->file);
    else
        ap_log_error(APLOG_MARK, APLOG_STARTUP | level, 0, NULL, "ShmlimitRule: %s", text);
}

static void differs(void *gate, size_t offset, const char *text)
{
    log_wrong(APLOG_WARNING, gate, offset, text);
}

static int shmlimit_check_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temp, server_rec *server)
{
    if (!find_gates()) {
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_EMERG, 0, NULL, "ShmlimitRule needs a ShmlimitSegment");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    for (int i = 0; i < gates->nelts; i++) {
        struct gate *gate = APR_ARRAY_IDX(gates, i, struct gate *);
        struct shmlimit_gate_wrong wrong = { .struct_size = sizeof(wrong) };
        const char *spec = make_spec(temp, gate);

        if (shmlimit_gate_check(spec, &wrong) != 0) {
            /* The text follows the word that is wrong, or is about a whole limit. */
            log_wrong(APLOG_EMERG, gate, wrong.offset,
                      wrong.length == 0 ? wrong.text
                                        : apr_psprintf(temp, "\"%.*s\" %s", (int)wrong.length, spec + wrong.offset, wrong.text));
            return HTTP_INTERNAL_SERVER_ERROR;
        }
        /* WHY NOT on each start: a child's user can truncate its segment, which would kill the parent. */
        if (ap_state_query(AP_SQ_RUN_MODE) == AP_SQ_RM_CONFIG_TEST)
            (void)shmlimit_gate_compare(spec, differs, gate);
    }
    return OK;
}

static void log_line(void *server, int bad, const char *text)
{
    ap_log_error(APLOG_MARK, bad ? APLOG_ERR : APLOG_WARNING, 0, server, "%s", text);
}

/* After the fork. The gate goes with the child, whose threads may use it to the end. */
static void shmlimit_child_init(apr_pool_t *pool, server_rec *server)
{
    int threads = 0;

    if (gates->nelts == 0)
        return;
    (void)ap_mpm_query(AP_MPMQ_IS_THREADED, &threads);
    APR_RING_INIT(&ring, places, link);
    if (threads != AP_MPMQ_NOT_SUPPORTED)
        (void)apr_thread_mutex_create(&ring_lock, APR_THREAD_MUTEX_DEFAULT, server->process->pool);
    for (int i = 0; i < gates->nelts; i++) {
        struct gate *gate = APR_ARRAY_IDX(gates, i, struct gate *);

        if (shmlimit_gate_open(make_spec(pool, gate), &gate->handle) != 0) {
            ap_log_error(APLOG_MARK, APLOG_EMERG, 0, gate->server, "out of memory: requests pass without a limit");
            continue;
        }
        shmlimit_gate_report(gate->handle, log_line, gate->server);
        (void)shmlimit_gate_attach(gate->handle);
    }
}

static void register_hooks(apr_pool_t *pool)
{
    ap_hook_pre_config(shmlimit_pre_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(shmlimit_check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(shmlimit_child_init, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_stopping(shmlimit_child_stopping, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_header_parser(shmlimit_header_parser, NULL, NULL, APR_HOOK_LAST);
    ap_hook_log_transaction(shmlimit_log_transaction, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_filter(insert_filter, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_error_filter(insert_filter, NULL, NULL, APR_HOOK_MIDDLE);
    /* Behind all that makes or stores content, before the header is written. */
    fields_filter = ap_register_output_filter("SHMLIMIT_FIELDS", add_fields, NULL,
                                              (ap_filter_type)(AP_FTYPE_PROTOCOL - 1));
}

static const command_rec commands[] = {
    AP_INIT_TAKE_ARGV("ShmlimitSegment", set_segment, NULL, RSRC_CONF,
                      "the segment's name, and options: fail=open, create=yes, owner=USER, backend=URL ..."),
    AP_INIT_TAKE_ARGV("ShmlimitRule", add_rule, NULL, RSRC_CONF | ACCESS_CONF,
                      "a rule's name, a key, and options: cost=N, prefix=V4,V6, status=N, dry_run, rate=RATE ..."),
    { .name = NULL }
};

AP_DECLARE_MODULE(shmlimit) = {
    STANDARD20_MODULE_STUFF,
    .create_dir_config = create_dir_conf,
    .create_server_config = create_scope,
    .merge_dir_config = merge_dir_conf,
    .cmds = commands,
    .register_hooks = register_hooks,
};
