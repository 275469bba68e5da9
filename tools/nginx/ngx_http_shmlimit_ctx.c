/*
 * ngx_http_shmlimit_ctx: what a request keeps until it ends. As with limit_conn,
 * a place in a limit of a HOLD rule is left then.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "ngx_http_shmlimit.h"


/* Requests of this worker that hold something. */
static ngx_queue_t  ngx_http_shmlimit_queue = {
    &ngx_http_shmlimit_queue, &ngx_http_shmlimit_queue
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
ngx_http_shmlimit_ctx_t *
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
            ngx_http_set_ctx(r->main, cln->data, ngx_http_shmlimit_module);
            return cln->data;
        }
    }

    return NULL;
}


ngx_http_shmlimit_ctx_t *
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


/* The keys are copied, since a variable's value may be in a buffer of the connection. */
ngx_int_t
ngx_http_shmlimit_keep_places(ngx_http_request_t *r,
    ngx_http_shmlimit_ctx_t *ctx, struct shmlimit_gate_key *keys,
    ngx_http_shmlimit_limit_t **limits, ngx_uint_t n,
    struct shmlimit_gate_held *held)
{
    size_t                          len;
    u_char                         *p;
    ngx_uint_t                      i;
    ngx_http_shmlimit_places_t     *places;
    ngx_http_shmlimit_main_conf_t  *main_conf;

    main_conf = ngx_http_get_module_main_conf(r, ngx_http_shmlimit_module);

    len = sizeof(ngx_http_shmlimit_places_t)
          + n * sizeof(struct shmlimit_gate_key);
    for (i = 0; i < n; i++) {
        len += keys[i].length + keys[i].rate_length;
    }

    places = ngx_palloc(r->pool, len);
    if (places == NULL) {
        return NGX_ERROR;
    }

    places->gate = main_conf->gate;
    places->held = *held;
    places->charges_sent = 0;
    places->n = n;
    p = (u_char *) &places->keys[n];

    for (i = 0; i < n; i++) {
        places->limits[i] = limits[i];
        places->charges_sent |= limits[i]->sent != NGX_HTTP_SHMLIMIT_NOT_SENT;
        places->keys[i] = keys[i];
        places->keys[i].bytes = p;
        p = ngx_cpymem(p, keys[i].bytes, keys[i].length);
        places->keys[i].rate = (char *) p;
        p = ngx_cpymem(p, keys[i].rate, keys[i].rate_length);
    }

    ctx->places = places;
    ngx_queue_insert_tail(&ngx_http_shmlimit_queue, &ctx->queue);

    return NGX_OK;
}


/* A fast shutdown (SIGTERM) destroys no pools of requests, so it would let their places stay until the rule's period ends. */
void
ngx_http_shmlimit_leave_all(ngx_cycle_t *cycle)
{
    ngx_queue_t  *q;

    while (!ngx_queue_empty(&ngx_http_shmlimit_queue)) {
        q = ngx_queue_head(&ngx_http_shmlimit_queue);
        ngx_http_shmlimit_cleanup(ngx_queue_data(q, ngx_http_shmlimit_ctx_t,
                                                 queue));
    }
}
