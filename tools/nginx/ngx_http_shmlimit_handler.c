/*
 * ngx_http_shmlimit_handler: a request in the preaccess phase.
 *
 * As limit_req does, it is decided once for each request of a client: not again
 * after internal redirects, and not for subrequests. A request that needs the
 * host's agent is suspended, as limit_req delays one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "ngx_http_shmlimit.h"
#include "words.h"


/* As limit_req does: what was only delayed is one level lower. */
static void
ngx_http_shmlimit_log(ngx_http_request_t *r,
    ngx_http_shmlimit_limit_t **limits, struct shmlimit_gate_answer *answer)
{
    int                        delayed;
    ngx_uint_t                 level;
    const char                *event;
    ngx_http_shmlimit_conf_t  *conf;

    event = words_event(answer, &delayed);
    if (event == NULL) {
        return;
    }

    conf = ngx_http_get_module_loc_conf(r, ngx_http_shmlimit_module);
    level = ngx_min(conf->log_level + delayed, NGX_LOG_INFO);

    ngx_log_error(level, r->connection->log, 0, "%s by rule \"%V\"", event,
                  &limits[answer->denied_by]->rule);
}


static ngx_int_t
ngx_http_shmlimit_answer(ngx_http_request_t *r, ngx_http_shmlimit_ctx_t *ctx,
    ngx_http_shmlimit_limit_t **limits, ngx_int_t answered,
    struct shmlimit_gate_answer *answer)
{
    ngx_http_shmlimit_log(r, limits, answer);

    ctx->status = words_outcome(answer);
    ctx->remaining = answer->remaining;

    if (ngx_http_shmlimit_keep_fields(r, ctx, answer) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return answered == SHMLIMIT_DENIED ? (ngx_int_t) answer->status
                                       : NGX_DECLINED;
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

    return ngx_http_shmlimit_answer(r, ctx, ctx->places->limits, answered,
                                    &answer);
}


/* Has the realip module put the client's address in the place of the proxy's? */
static ngx_uint_t
ngx_http_shmlimit_is_real(ngx_http_request_t *r)
{
    ngx_str_t                   *addr = &r->connection->addr_text;
    ngx_http_variable_value_t   *v;
    static ngx_str_t             name = ngx_string("realip_remote_addr");

    v = ngx_http_get_variable(r, &name, ngx_hash_key(name.data, name.len));

    return v != NULL && !v->not_found
           && (v->len != addr->len
               || ngx_memcmp(v->data, addr->data, addr->len) != 0);
}


static const char *
ngx_http_shmlimit_forwarded_field(ngx_http_request_t *r)
{
    size_t                len;
    ngx_uint_t            i, n;
    ngx_list_part_t      *part;
    ngx_table_elt_t      *header;

    for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
        header = part->elts;

        for (i = 0; i < part->nelts; i++) {
            for (n = 0; words_forwarded[n] != NULL; n++) {
                len = ngx_strlen(words_forwarded[n]);

                if (header[i].key.len == len && header[i].value.len > 0
                    && ngx_strncasecmp(header[i].key.data,
                                       (u_char *) words_forwarded[n], len)
                       == 0)
                {
                    return words_forwarded[n];
                }
            }
        }
    }

    return NULL;
}


static void
ngx_http_shmlimit_check_forwarded(ngx_http_request_t *r,
    struct shmlimit_gate *gate, struct shmlimit_gate_key *keys, ngx_uint_t n)
{
    ngx_str_t   *addr = &r->connection->addr_text;
    const char  *field;

    if (shmlimit_gate_forwarded(gate, keys, n, (char *) addr->data, addr->len,
                                NULL, NULL)
        != 1)
    {
        return;
    }

    field = ngx_http_shmlimit_forwarded_field(r);

    if (field != NULL && !ngx_http_shmlimit_is_real(r)) {
        (void) shmlimit_gate_forwarded(gate, keys, n, (char *) addr->data,
                                       addr->len, field,
                                       "set_real_ip_from names proxies");
    }
}


/* The share of this request. Where it has none, which is logged once a minute, the limit's decides. */
static ngx_int_t
ngx_http_shmlimit_share(ngx_http_request_t *r,
    ngx_http_shmlimit_limit_t *limit, uint32_t *share)
{
    int        wrong;
    ngx_str_t  text, shown;

    if (ngx_http_complex_value(r, limit->share, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    *share = words_share((char *) text.data, text.len, &wrong);

    if (wrong && (limit->share_logged == 0
                  || ngx_time() - limit->share_logged >= 60))
    {
        limit->share_logged = ngx_time();

        /* WHY a copy: others read the variable too. */
        shown.len = text.len;
        shown.data = ngx_pstrdup(r->pool, &text);
        if (shown.data == NULL) {
            return NGX_ERROR;
        }

        ngx_http_shmlimit_printable(shown.data, shown.len);
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "shmlimit: rule \"%V\": \"%V\" is no share: the "
                      "limit's own decides", &limit->rule, &shown);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_shmlimit_handler(ngx_http_request_t *r)
{
    int                             answered;
    char                            buffer[SHMLIMIT_GATE_BUFFER];
    ngx_str_t                       text;
    ngx_uint_t                      i, n;
    ngx_http_shmlimit_ctx_t        *ctx;
    ngx_http_shmlimit_conf_t       *conf;
    ngx_http_shmlimit_limit_t      *limits, *kept[SHMLIMIT_REQUESTS_MAX];
    struct shmlimit_gate_key        keys[SHMLIMIT_REQUESTS_MAX];
    struct shmlimit_gate_held       held;
    struct shmlimit_gate_answer     answer;
    struct shmlimit_gate_pending   *pending;
    ngx_http_shmlimit_main_conf_t  *main_conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_shmlimit_module);
    main_conf = ngx_http_get_module_main_conf(r, ngx_http_shmlimit_module);

    if ((conf->limits == NULL && !conf->off) || main_conf->gate == NULL
        || r != r->main)
    {
        return NGX_DECLINED;
    }

    ctx = ngx_http_shmlimit_get_ctx(r);
    if (ctx != NULL) {
        return ctx->pending != NULL ? ngx_http_shmlimit_poll(r, ctx)
                                    : NGX_DECLINED;
    }

    /* Decided: an internal redirect does not limit it after all. */
    if (conf->off) {
        ctx = ngx_http_shmlimit_add_ctx(r);
        if (ctx == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ctx->remaining = UINT64_MAX;
        return NGX_DECLINED;
    }

    limits = conf->limits->elts;

    for (i = 0, n = 0; i < conf->limits->nelts; i++) {

        if (ngx_http_complex_value(r, &limits[i].key, &text) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (text.len == 0) {
            continue;
        }

        kept[n] = &limits[i];
        keys[n].limit = limits[i].limit;
        keys[n].bytes = text.data;
        keys[n].length = text.len;
        keys[n].cost = 0;
        keys[n].rate = NULL;
        keys[n].rate_length = 0;
        keys[n].share = 0;
        keys[n].parsed = NULL;

        if (limits[i].rate != NULL) {

            if (ngx_http_complex_value(r, limits[i].rate, &text) != NGX_OK) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            keys[n].rate = (char *) text.data;
            keys[n].rate_length = text.len;
        }

        if (limits[i].share != NULL
            && ngx_http_shmlimit_share(r, &limits[i], &keys[n].share)
               != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        n++;
    }

    if (n == 0) {
        return NGX_DECLINED;
    }

    ngx_http_shmlimit_check_forwarded(r, main_conf->gate, keys, n);

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

    if ((held.count > 0 || held.bill_count > 0
         || answered == SHMLIMIT_GATE_PENDING)
        && ngx_http_shmlimit_keep_places(r, ctx, keys, kept, n, &held)
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

    return ngx_http_shmlimit_answer(r, ctx, kept, answered, &answer);
}
