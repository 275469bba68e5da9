/*
 * ngx_http_shmlimit_module: limits requests by a segment of shmlimit.
 *
 * As limit_req does, it decides in the preaccess phase, once for each request
 * of a client: not again after internal redirects, and not for subrequests. As
 * with limit_conn, a place in a limit of a HOLD rule is left when the request ends.
 * A request that needs the host's agent is suspended, as limit_req delays one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "words.h"


typedef struct {
    ngx_str_t                    segment;     /* its name; NULL if not set */
    ngx_array_t                  gate_words;  /* of char: the spec's words */
    ngx_array_t                  limit_words; /* of char: those of limits */
    ngx_uint_t                   limits;
    struct shmlimit_gate        *gate;        /* NULL if no segment is set */
} ngx_http_shmlimit_main_conf_t;


typedef struct {
    ngx_http_complex_value_t     key;
    uint32_t                     limit;       /* its place in the spec */
} ngx_http_shmlimit_limit_t;


typedef struct {
    ngx_array_t                 *limits;      /* NULL if not set */
} ngx_http_shmlimit_conf_t;


/* The places that a request holds. */
typedef struct {
    struct shmlimit_gate        *gate;
    struct shmlimit_gate_held    held;
    ngx_uint_t                   n;
    struct shmlimit_gate_key     keys[1];     /* n of them */
} ngx_http_shmlimit_places_t;


typedef struct {
    ngx_queue_t                    queue;     /* if it has places */
    const char                    *status;
    uint64_t                       remaining;
    ngx_http_shmlimit_places_t    *places;    /* NULL if it holds none */
    struct shmlimit_gate_pending  *pending;   /* NULL if it is decided */
} ngx_http_shmlimit_ctx_t;


static ngx_int_t ngx_http_shmlimit_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_shmlimit_poll(ngx_http_request_t *r,
    ngx_http_shmlimit_ctx_t *ctx);
static ngx_int_t ngx_http_shmlimit_answer(ngx_http_request_t *r,
    ngx_http_shmlimit_ctx_t *ctx, ngx_int_t answered,
    struct shmlimit_gate_answer *answer);
static ngx_int_t ngx_http_shmlimit_suspend(ngx_http_request_t *r,
    uint64_t poll_ns);
static void ngx_http_shmlimit_resume(ngx_http_request_t *r);
static ngx_int_t ngx_http_shmlimit_keep_places(ngx_http_request_t *r,
    ngx_http_shmlimit_ctx_t *ctx, struct shmlimit_gate *gate,
    struct shmlimit_gate_key *keys, ngx_uint_t n,
    struct shmlimit_gate_held *held);
static ngx_int_t ngx_http_shmlimit_add_headers(ngx_http_request_t *r,
    struct shmlimit_gate_answer *answer);
static ngx_int_t ngx_http_shmlimit_status_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_shmlimit_remaining_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static void *ngx_http_shmlimit_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_shmlimit_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_shmlimit_create_conf(ngx_conf_t *cf);
static char *ngx_http_shmlimit_merge_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_shmlimit_segment(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_shmlimit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_shmlimit_add_variables(ngx_conf_t *cf);
static ngx_int_t ngx_http_shmlimit_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_shmlimit_init_process(ngx_cycle_t *cycle);
static void ngx_http_shmlimit_exit_process(ngx_cycle_t *cycle);


/* Requests of this worker that have places. */
static ngx_queue_t  ngx_http_shmlimit_queue;


static ngx_command_t  ngx_http_shmlimit_commands[] = {

    { ngx_string("shmlimit_segment"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_shmlimit_segment,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("shmlimit"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_2MORE,
      ngx_http_shmlimit,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_shmlimit_module_ctx = {
    ngx_http_shmlimit_add_variables,       /* preconfiguration */
    ngx_http_shmlimit_init,                /* postconfiguration */

    ngx_http_shmlimit_create_main_conf,    /* create main configuration */
    ngx_http_shmlimit_init_main_conf,      /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_shmlimit_create_conf,         /* create location configuration */
    ngx_http_shmlimit_merge_conf           /* merge location configuration */
};


ngx_module_t  ngx_http_shmlimit_module = {
    NGX_MODULE_V1,
    &ngx_http_shmlimit_module_ctx,         /* module context */
    ngx_http_shmlimit_commands,            /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_shmlimit_init_process,        /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_shmlimit_exit_process,        /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_variable_t  ngx_http_shmlimit_vars[] = {

    { ngx_string("shmlimit_status"), NULL,
      ngx_http_shmlimit_status_variable, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("shmlimit_remaining"), NULL,
      ngx_http_shmlimit_remaining_variable, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


/* The request has ended, in whatever way. This also marks the context in the request's pool. */
static void
ngx_http_shmlimit_cleanup(void *data)
{
    ngx_http_shmlimit_ctx_t     *ctx = data;
    ngx_http_shmlimit_places_t  *places = ctx->places;

    if (places == NULL) {
        return;
    }

    if (ctx->pending != NULL) {
        shmlimit_gate_cancel(places->gate, ctx->pending, &places->held);
        ctx->pending = NULL;
    }

    (void) shmlimit_gate_leave(places->gate, places->keys, places->n,
                               &places->held);

    ngx_queue_remove(&ctx->queue);
    ctx->places = NULL;
}


/* Internal redirects clear a module's context; the pool's list of what to clean up outlives them. */
static ngx_http_shmlimit_ctx_t *
ngx_http_shmlimit_get_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_shmlimit_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_shmlimit_module);

    if (ctx != NULL || !(r->internal || r->filter_finalize || r != r->main)) {
        return ctx;
    }

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_shmlimit_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


static ngx_http_shmlimit_ctx_t *
ngx_http_shmlimit_add_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_shmlimit_ctx_t));
    if (cln == NULL) {
        return NULL;
    }

    ngx_memzero(cln->data, sizeof(ngx_http_shmlimit_ctx_t));
    cln->handler = ngx_http_shmlimit_cleanup;
    ngx_http_set_ctx(r, cln->data, ngx_http_shmlimit_module);

    return cln->data;
}


static ngx_int_t
ngx_http_shmlimit_handler(ngx_http_request_t *r)
{
    int                             answered;
    char                            buffer[SHMLIMIT_GATE_BUFFER];
    ngx_str_t                       text;
    ngx_uint_t                      i, n;
    ngx_http_shmlimit_ctx_t        *ctx;
    ngx_http_shmlimit_conf_t       *conf;
    ngx_http_shmlimit_limit_t      *limits;
    struct shmlimit_gate_key        keys[SHMLIMIT_REQUESTS_MAX];
    struct shmlimit_gate_held       held;
    struct shmlimit_gate_answer     answer;
    struct shmlimit_gate_pending   *pending;
    ngx_http_shmlimit_main_conf_t  *main_conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_shmlimit_module);
    main_conf = ngx_http_get_module_main_conf(r, ngx_http_shmlimit_module);

    if (conf->limits == NULL || main_conf->gate == NULL || r != r->main) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_shmlimit_get_ctx(r);
    if (ctx != NULL) {
        return ctx->pending != NULL ? ngx_http_shmlimit_poll(r, ctx)
                                    : NGX_DECLINED;
    }

    limits = conf->limits->elts;

    for (i = 0, n = 0; i < conf->limits->nelts; i++) {

        if (ngx_http_complex_value(r, &limits[i].key, &text) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (text.len == 0) {
            continue;
        }

        keys[n].limit = limits[i].limit;
        keys[n].bytes = text.data;
        keys[n].length = text.len;
        keys[n].cost = 0;
        n++;
    }

    if (n == 0) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_shmlimit_add_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    answer.struct_size = sizeof(struct shmlimit_gate_answer);
    answer.buffer = buffer;
    answer.buffer_size = sizeof(buffer);

    held.struct_size = sizeof(struct shmlimit_gate_held);

    answered = shmlimit_gate_begin(main_conf->gate, keys, n, &answer, &held,
                                   &pending);

    if (answered == -EAGAIN) {
        answered = shmlimit_gate_enter(main_conf->gate, keys, n, &answer,
                                       &held);
    }

    if (answered < 0) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if ((held.count > 0 || answered == SHMLIMIT_GATE_PENDING)
        && ngx_http_shmlimit_keep_places(r, ctx, main_conf->gate, keys, n,
                                         &held)
           != NGX_OK)
    {
        if (answered == SHMLIMIT_GATE_PENDING) {
            shmlimit_gate_cancel(main_conf->gate, pending, &held);
        }

        (void) shmlimit_gate_leave(main_conf->gate, keys, n, &held);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (answered == SHMLIMIT_GATE_PENDING) {
        ctx->pending = pending;
        return ngx_http_shmlimit_suspend(r, answer.retry_after_ns);
    }

    return ngx_http_shmlimit_answer(r, ctx, answered, &answer);
}


static ngx_int_t
ngx_http_shmlimit_poll(ngx_http_request_t *r, ngx_http_shmlimit_ctx_t *ctx)
{
    int                          answered;
    char                         buffer[SHMLIMIT_GATE_BUFFER];
    struct shmlimit_gate_answer  answer;

    answer.struct_size = sizeof(struct shmlimit_gate_answer);
    answer.buffer = buffer;
    answer.buffer_size = sizeof(buffer);

    answered = shmlimit_gate_poll(ctx->places->gate, ctx->pending, &answer,
                                  &ctx->places->held);

    if (answered == SHMLIMIT_GATE_PENDING) {
        return ngx_http_shmlimit_suspend(r, answer.retry_after_ns);
    }

    ctx->pending = NULL;

    if (answered == -EAGAIN) {
        answered = shmlimit_gate_enter(ctx->places->gate, ctx->places->keys,
                                       ctx->places->n, &answer,
                                       &ctx->places->held);
    }

    if (answered < 0) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_shmlimit_answer(r, ctx, answered, &answer);
}


static ngx_int_t
ngx_http_shmlimit_answer(ngx_http_request_t *r, ngx_http_shmlimit_ctx_t *ctx,
    ngx_int_t answered, struct shmlimit_gate_answer *answer)
{
    ctx->status = words_outcome(answer);
    ctx->remaining = answer->remaining;

    if (ngx_http_shmlimit_add_headers(r, answer) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return answered == SHMLIMIT_DENIED ? (ngx_int_t) answer->status
                                       : NGX_DECLINED;
}


/* The worker goes on with other requests; a client that closes its connection ends this one. */
static ngx_int_t
ngx_http_shmlimit_suspend(ngx_http_request_t *r, uint64_t poll_ns)
{
    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_shmlimit_resume;

    r->connection->write->delayed = 1;
    ngx_add_timer(r->connection->write,
                  (ngx_msec_t) (poll_ns / 1000000 + 1));

    return NGX_AGAIN;
}


static void
ngx_http_shmlimit_resume(ngx_http_request_t *r)
{
    ngx_event_t  *wev = r->connection->write;

    if (wev->delayed) {

        if (ngx_handle_write_event(wev, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }

        return;
    }

    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


/* The keys are copied, since a variable's value may be in a buffer of the connection. */
static ngx_int_t
ngx_http_shmlimit_keep_places(ngx_http_request_t *r,
    ngx_http_shmlimit_ctx_t *ctx, struct shmlimit_gate *gate,
    struct shmlimit_gate_key *keys, ngx_uint_t n,
    struct shmlimit_gate_held *held)
{
    size_t                       len;
    u_char                      *p;
    ngx_uint_t                   i;
    ngx_http_shmlimit_places_t  *places;

    len = sizeof(ngx_http_shmlimit_places_t)
          + n * sizeof(struct shmlimit_gate_key);
    for (i = 0; i < n; i++) {
        len += keys[i].length;
    }

    places = ngx_palloc(r->pool, len);
    if (places == NULL) {
        return NGX_ERROR;
    }

    places->gate = gate;
    places->held = *held;
    places->n = n;
    p = (u_char *) &places->keys[n];

    for (i = 0; i < n; i++) {
        places->keys[i] = keys[i];
        places->keys[i].bytes = p;
        p = ngx_cpymem(p, keys[i].bytes, keys[i].length);
    }

    ctx->places = places;
    ngx_queue_insert_tail(&ngx_http_shmlimit_queue, &ctx->queue);

    return NGX_OK;
}


/* All values are copied to the request's pool in one piece. */
static ngx_int_t
ngx_http_shmlimit_add_headers(ngx_http_request_t *r,
    struct shmlimit_gate_answer *answer)
{
    size_t                       len;
    u_char                      *p;
    uint32_t                     i;
    ngx_table_elt_t             *h;
    struct shmlimit_gate_field  *field;

    for (i = 0, len = 0; i < answer->field_count; i++) {
        len += answer->fields[i].value_length;
    }

    if (len == 0) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < answer->field_count; i++) {
        field = &answer->fields[i];

        h = ngx_list_push(&r->headers_out.headers);
        if (h == NULL) {
            return NGX_ERROR;
        }

        ngx_memzero(h, sizeof(ngx_table_elt_t));

        h->hash = 1;
        h->key.len = field->name_length;
        h->key.data = (u_char *) field->name;
        h->value.len = field->value_length;
        h->value.data = p;

        p = ngx_cpymem(p, field->value, field->value_length);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_shmlimit_status_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_shmlimit_ctx_t  *ctx;

    ctx = ngx_http_shmlimit_get_ctx(r->main);

    if (ctx == NULL || ctx->status == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = ngx_strlen(ctx->status);
    v->data = (u_char *) ctx->status;

    return NGX_OK;
}


static ngx_int_t
ngx_http_shmlimit_remaining_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                   *p;
    ngx_http_shmlimit_ctx_t  *ctx;

    ctx = ngx_http_shmlimit_get_ctx(r->main);

    if (ctx == NULL || ctx->remaining == UINT64_MAX) {
        v->not_found = 1;
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = ngx_sprintf(p, "%uL", ctx->remaining) - p;
    v->data = p;

    return NGX_OK;
}


static void *
ngx_http_shmlimit_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_shmlimit_main_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_shmlimit_main_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&conf->gate_words, cf->pool, 256, 1) != NGX_OK
        || ngx_array_init(&conf->limit_words, cf->pool, 256, 1) != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


static void
ngx_http_shmlimit_close(void *data)
{
    shmlimit_gate_close(data);
}


/* The gate is made here, where its environment is the master's; workers open the segment. */
static char *
ngx_http_shmlimit_init_main_conf(ngx_conf_t *cf, void *conf)
{
    u_char                         *spec, *p;
    ngx_pool_cleanup_t             *cln;
    struct shmlimit_gate_wrong      wrong;
    ngx_http_shmlimit_main_conf_t  *main_conf = conf;

    if (main_conf->segment.data == NULL) {

        if (main_conf->limits == 0) {
            return NGX_CONF_OK;
        }

        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"shmlimit\" needs a \"shmlimit_segment\"");
        return NGX_CONF_ERROR;
    }

    spec = ngx_pnalloc(cf->temp_pool, main_conf->gate_words.nelts
                                      + main_conf->limit_words.nelts + 1);
    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (spec == NULL || cln == NULL) {
        return NGX_CONF_ERROR;
    }

    p = ngx_cpymem(spec, main_conf->gate_words.elts,
                   main_conf->gate_words.nelts);
    p = ngx_cpymem(p, main_conf->limit_words.elts,
                   main_conf->limit_words.nelts);
    *p = '\0';

    wrong.struct_size = sizeof(struct shmlimit_gate_wrong);
    wrong.text[0] = '\0';

    if (shmlimit_gate_check((char *) spec, &wrong) != 0
        || shmlimit_gate_open((char *) spec, &main_conf->gate) != 0)
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "shmlimit: %s", wrong.text);
        return NGX_CONF_ERROR;
    }

    cln->handler = ngx_http_shmlimit_close;
    cln->data = main_conf->gate;

    return NGX_CONF_OK;
}


static void *
ngx_http_shmlimit_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_shmlimit_conf_t));
}


/* As of limit_req: a level inherits the limits of the one above only if it has none. */
static char *
ngx_http_shmlimit_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_shmlimit_conf_t  *prev = parent;
    ngx_http_shmlimit_conf_t  *conf = child;

    if (conf->limits == NULL) {
        *conf = *prev;
    }

    return NGX_CONF_OK;
}


/* Add a word to the spec. */
static ngx_int_t
ngx_http_shmlimit_add_word(ngx_array_t *words, const char *word)
{
    char  *p;

    p = ngx_array_push_n(words, words_write(NULL, word));
    if (p == NULL) {
        return NGX_ERROR;
    }

    words_write(p, word);

    return NGX_OK;
}


/* Add "NAME=VALUE". */
static ngx_int_t
ngx_http_shmlimit_add_pair(ngx_conf_t *cf, ngx_array_t *words,
    const char *name, ngx_str_t *value)
{
    u_char  *word;

    word = ngx_pnalloc(cf->temp_pool, ngx_strlen(name) + value->len + 2);
    if (word == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(word, "%s=%V%Z", name, value);

    return ngx_http_shmlimit_add_word(words, (char *) word);
}


static char *
ngx_http_shmlimit_wrong(ngx_conf_t *cf, ngx_str_t *value, const char *wrong)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" %s", value, wrong);

    return NGX_CONF_ERROR;
}


static char *
ngx_http_shmlimit_segment(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    const char                     *text;
    ngx_str_t                      *value;
    ngx_uint_t                      i;
    struct shmlimit_gate_wrong      wrong;
    ngx_http_shmlimit_main_conf_t  *main_conf = conf;

    if (main_conf->segment.data != NULL) {
        return "is duplicate";
    }

    value = cf->args->elts;

    text = words_check_segment((char *) value[1].data);
    if (text != NULL) {
        return ngx_http_shmlimit_wrong(cf, &value[1], text);
    }

    main_conf->segment = value[1];

    if (ngx_http_shmlimit_add_pair(cf, &main_conf->gate_words, "segment",
                                   &value[1])
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        text = words_check_gate((char *) value[i].data, &wrong);
        if (text != NULL) {
            return ngx_http_shmlimit_wrong(cf, &value[i], text);
        }

        if (ngx_http_shmlimit_add_word(&main_conf->gate_words,
                                       (char *) value[i].data)
            != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_shmlimit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    const char                        *text;
    ngx_str_t                         *value, *rule;
    ngx_uint_t                         i;
    ngx_http_shmlimit_conf_t          *loc_conf = conf;
    ngx_http_shmlimit_limit_t         *limit;
    struct shmlimit_gate_wrong         wrong;
    ngx_http_shmlimit_main_conf_t     *main_conf;
    ngx_http_compile_complex_value_t   ccv;

    main_conf = ngx_http_conf_get_module_main_conf(cf,
                                                   ngx_http_shmlimit_module);

    if (loc_conf->limits == NULL) {
        loc_conf->limits = ngx_array_create(cf->pool, 2,
                                            sizeof(ngx_http_shmlimit_limit_t));
        if (loc_conf->limits == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    if (loc_conf->limits->nelts == SHMLIMIT_REQUESTS_MAX) {
        return "is there more than 16 times";
    }

    limit = ngx_array_push(loc_conf->limits);
    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    if (value[1].len == 0) {
        return "has an empty key, so no request would be limited";
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));
    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = &limit->key;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 2, rule = NULL; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "rule=", 5) == 0 && rule == NULL) {
            rule = &value[i];
            text = words_check_rule((char *) rule->data + 5);

        } else {
            text = words_check_limit((char *) value[i].data, &wrong);
        }

        if (text != NULL) {
            return ngx_http_shmlimit_wrong(cf, &value[i], text);
        }
    }

    if (rule == NULL) {
        return "needs one rule=NAME";
    }

    /* The rule's name begins the limit, wherever it stands here. */
    if (ngx_http_shmlimit_add_word(&main_conf->limit_words,
                                   (char *) rule->data)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (&value[i] != rule
            && ngx_http_shmlimit_add_word(&main_conf->limit_words,
                                          (char *) value[i].data)
               != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    limit->limit = main_conf->limits++;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_shmlimit_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_shmlimit_vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_shmlimit_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_shmlimit_handler;

    return NGX_OK;
}


static void
ngx_http_shmlimit_log(void *context, int bad, const char *text)
{
    ngx_uint_t    level = bad ? NGX_LOG_ERR : NGX_LOG_WARN;
    ngx_cycle_t  *cycle = context;

    ngx_log_error(level, cycle->log, 0, "shmlimit: %s", text);
}


/* After the fork, so that what is wrong is logged by each worker when it begins. */
static ngx_int_t
ngx_http_shmlimit_init_process(ngx_cycle_t *cycle)
{
    ngx_http_shmlimit_main_conf_t  *main_conf;

    ngx_queue_init(&ngx_http_shmlimit_queue);

    main_conf = ngx_http_cycle_get_module_main_conf(cycle,
                                                    ngx_http_shmlimit_module);

    if (main_conf == NULL || main_conf->gate == NULL
        || (ngx_process != NGX_PROCESS_WORKER
            && ngx_process != NGX_PROCESS_SINGLE))
    {
        return NGX_OK;
    }

    shmlimit_gate_report(main_conf->gate, ngx_http_shmlimit_log, cycle);
    (void) shmlimit_gate_attach(main_conf->gate);

    return NGX_OK;
}


/* A fast shutdown (SIGTERM) destroys no pools of requests, so it would let their places stay until the rule's period ends. */
static void
ngx_http_shmlimit_exit_process(ngx_cycle_t *cycle)
{
    ngx_queue_t  *q;

    while (ngx_http_shmlimit_queue.next != NULL
           && !ngx_queue_empty(&ngx_http_shmlimit_queue))
    {
        q = ngx_queue_head(&ngx_http_shmlimit_queue);
        ngx_http_shmlimit_cleanup(ngx_queue_data(q, ngx_http_shmlimit_ctx_t,
                                                 queue));
    }
}
