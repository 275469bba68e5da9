/*
 * ngx_http_shmlimit_fields: the header fields of responses.
 *
 * WHY NOT before the response is made: a response that a filter replaces, such as
 * 412, loses what was added before. And what an upstream says of limits of its
 * own comes later: it would stand beside these, and clients read either.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "ngx_http_shmlimit.h"


static ngx_http_output_header_filter_pt  ngx_http_shmlimit_next_filter;


/* All values are copied to the request's pool in one piece. */
ngx_int_t
ngx_http_shmlimit_keep_fields(ngx_http_request_t *r,
    ngx_http_shmlimit_ctx_t *ctx, struct shmlimit_gate_answer *answer)
{
    size_t                       len;
    u_char                      *p;
    uint32_t                     i;
    ngx_table_elt_t             *h;
    struct shmlimit_gate_field  *field;

    if (answer->field_count == 0) {
        return NGX_OK;
    }

    len = answer->field_count * sizeof(ngx_table_elt_t);

    for (i = 0; i < answer->field_count; i++) {
        len += answer->fields[i].value_length;
    }

    h = ngx_palloc(r->pool, len);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ctx->fields = h;
    ctx->nfields = answer->field_count;
    p = (u_char *) &h[answer->field_count];

    for (i = 0; i < answer->field_count; i++, h++) {
        field = &answer->fields[i];

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


static ngx_uint_t
ngx_http_shmlimit_has_field(ngx_http_shmlimit_ctx_t *ctx, ngx_str_t *name)
{
    ngx_uint_t  i;

    for (i = 0; i < ctx->nfields; i++) {
        if (ctx->fields[i].key.len == name->len
            && ngx_strncasecmp(ctx->fields[i].key.data, name->data, name->len)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* Leave out what an upstream says under the same names. */
static void
ngx_http_shmlimit_replace(ngx_http_request_t *r, ngx_http_shmlimit_ctx_t *ctx)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    for (part = &r->headers_out.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (ngx_http_shmlimit_has_field(ctx, &h[i].key)) {
                h[i].hash = 0;
            }
        }
    }
}


static ngx_int_t
ngx_http_shmlimit_header_filter(ngx_http_request_t *r)
{
    ngx_uint_t                i;
    ngx_table_elt_t          *h;
    ngx_http_shmlimit_ctx_t  *ctx;

    ctx = r == r->main ? ngx_http_shmlimit_get_ctx(r) : NULL;

    if (ctx == NULL || ctx->nfields == 0) {
        return ngx_http_shmlimit_next_filter(r);
    }

    if (r->upstream != NULL) {
        ngx_http_shmlimit_replace(r, ctx);
    }

    for (i = 0; i < ctx->nfields; i++) {
        h = ngx_list_push(&r->headers_out.headers);
        if (h == NULL) {
            return NGX_ERROR;
        }

        *h = ctx->fields[i];
    }

    return ngx_http_shmlimit_next_filter(r);
}


/*
 * In a worker, when all filters are there. WHY NOT in the postconfiguration: the
 * module may come before those whose filters are the last.
 */
void
ngx_http_shmlimit_init_fields(void)
{
    if (ngx_http_top_header_filter != ngx_http_shmlimit_header_filter) {
        ngx_http_shmlimit_next_filter = ngx_http_top_header_filter;
        ngx_http_top_header_filter = ngx_http_shmlimit_header_filter;
    }
}
