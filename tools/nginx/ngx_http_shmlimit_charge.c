/*
 * ngx_http_shmlimit_charge: what a request used. It is settled when the request is
 * logged. What is sent is charged while it is sent, too, so that clients with long
 * downloads are limited before those end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "ngx_http_shmlimit.h"
#include "words.h"


/* Seconds in which a limit logs one value that cannot be charged. */
#define NGX_HTTP_SHMLIMIT_LOG_EVERY  60


static ngx_http_output_body_filter_pt  ngx_http_shmlimit_next_filter;


/*
 * As the variables say it in the log.
 *
 * WHY NOT by the variables: their values are kept, so the log would have what was
 * sent when they were first read.
 */
static uint64_t
ngx_http_shmlimit_sent(ngx_http_request_t *r, ngx_http_shmlimit_limit_t *limit)
{
    off_t     sent;
    uint64_t  tokens;

    sent = r->connection->sent;

    if (limit->sent == NGX_HTTP_SHMLIMIT_BODY_BYTES_SENT) {
        sent = ngx_max(sent - (off_t) r->header_size, 0);
    }

    if (__builtin_mul_overflow((uint64_t) sent, limit->scale, &tokens)) {
        return SHMLIMIT_GATE_NOT_KNOWN;
    }

    return tokens;
}


/* What the request has used of a limit, or SHMLIMIT_GATE_NOT_KNOWN. */
static uint64_t
ngx_http_shmlimit_used(ngx_http_request_t *r, ngx_http_shmlimit_limit_t *limit)
{
    time_t     now;
    uint64_t   used;
    ngx_str_t  text, shown;

    if (limit->sent != NGX_HTTP_SHMLIMIT_NOT_SENT) {
        return ngx_http_shmlimit_sent(r, limit);
    }

    if (limit->charge == NULL
        || ngx_http_complex_value(r, limit->charge, &text) != NGX_OK)
    {
        return SHMLIMIT_GATE_NOT_KNOWN;
    }

    used = words_used((char *) text.data, text.len, limit->scale);

    if (used == SHMLIMIT_GATE_NOT_KNOWN && text.len > 0
        && !(text.len == 1 && text.data[0] == '-'))
    {
        now = ngx_time();

        if (limit->charge_logged == 0
            || now - limit->charge_logged >= NGX_HTTP_SHMLIMIT_LOG_EVERY)
        {
            limit->charge_logged = now;

            /* WHY a copy: others read the variable too. */
            shown.len = text.len;
            shown.data = ngx_pstrdup(r->pool, &text);
            if (shown.data == NULL) {
                return used;
            }

            ngx_http_shmlimit_printable(shown.data, shown.len);
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "shmlimit: \"%V\": \"%V\" is no number of tokens: "
                          "the estimate stays", &limit->charge_text, &shown);
        }
    }

    return used;
}


/* Of a client that has gone, too. */
ngx_int_t
ngx_http_shmlimit_log_handler(ngx_http_request_t *r)
{
    uint64_t                     used[SHMLIMIT_REQUESTS_MAX];
    ngx_uint_t                   i;
    ngx_http_shmlimit_ctx_t     *ctx;
    ngx_http_shmlimit_places_t  *places;

    if (r != r->main) {
        return NGX_OK;
    }

    ctx = ngx_http_shmlimit_get_ctx(r);

    if (ctx == NULL || ctx->places == NULL
        || ctx->places->held.bill_count == 0)
    {
        return NGX_OK;
    }

    places = ctx->places;

    for (i = 0; i < places->n; i++) {
        used[i] = ngx_http_shmlimit_used(r, places->limits[i]);
    }

    (void) shmlimit_gate_settle(places->gate, places->keys, places->n, used,
                                &places->held);

    return NGX_OK;
}


static ngx_int_t
ngx_http_shmlimit_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    uint64_t                     used[SHMLIMIT_REQUESTS_MAX];
    ngx_int_t                    rc;
    ngx_uint_t                   i;
    ngx_http_shmlimit_ctx_t     *ctx;
    ngx_http_shmlimit_limit_t   *limit;
    ngx_http_shmlimit_places_t  *places;

    rc = ngx_http_shmlimit_next_filter(r, in);

    /* The header filter has set it again, if an internal redirect cleared it. */
    r = r->main;
    ctx = ngx_http_get_module_ctx(r, ngx_http_shmlimit_module);

    if (ctx == NULL || ctx->places == NULL || !ctx->places->charges_sent) {
        return rc;
    }

    places = ctx->places;

    for (i = 0; i < places->n; i++) {
        limit = places->limits[i];
        used[i] = limit->sent != NGX_HTTP_SHMLIMIT_NOT_SENT
                  ? ngx_http_shmlimit_sent(r, limit) : SHMLIMIT_GATE_NOT_KNOWN;
    }

    (void) shmlimit_gate_charge(places->gate, places->keys, places->n, used,
                                &places->held);

    return rc;
}


/* In a worker, and only where a limit needs it: others pay nothing for it. */
void
ngx_http_shmlimit_init_charge(ngx_http_shmlimit_main_conf_t *main_conf)
{
    if (main_conf->charges_sent
        && ngx_http_top_body_filter != ngx_http_shmlimit_body_filter)
    {
        ngx_http_shmlimit_next_filter = ngx_http_top_body_filter;
        ngx_http_top_body_filter = ngx_http_shmlimit_body_filter;
    }
}
