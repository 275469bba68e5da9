/*
 * ngx_http_shmlimit_variables: what became of a request, for logs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "ngx_http_shmlimit.h"


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


static ngx_http_variable_t  ngx_http_shmlimit_vars[] = {

    { ngx_string("shmlimit_status"), NULL,
      ngx_http_shmlimit_status_variable, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("shmlimit_remaining"), NULL,
      ngx_http_shmlimit_remaining_variable, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
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
