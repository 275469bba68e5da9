/*
 * ngx_http_shmlimit_module: limits requests by a segment of shmlimit.
 *
 * As limit_req does, it decides in the preaccess phase, once for each request
 * of a client: not again after internal redirects, and not for subrequests.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "attachment.h"


typedef struct {
    struct attachment_options    attachment;
    ngx_array_t                  rules;       /* of const char *: each name once */
} ngx_http_shmlimit_main_conf_t;


/* Parallel to the limits: what their keys are made of. */
typedef struct {
    ngx_array_t                 *limits;      /* of struct limit; NULL if not set */
    ngx_array_t                 *keys;        /* of ngx_http_complex_value_t */
} ngx_http_shmlimit_conf_t;


typedef enum {
    NGX_HTTP_SHMLIMIT_PASSED = 0,
    NGX_HTTP_SHMLIMIT_REJECTED,
    NGX_HTTP_SHMLIMIT_REJECTED_DRY_RUN,
    NGX_HTTP_SHMLIMIT_FAILED
} ngx_http_shmlimit_status_e;


typedef struct {
    ngx_http_shmlimit_status_e   status;
    uint64_t                     remaining;
} ngx_http_shmlimit_ctx_t;


static ngx_int_t ngx_http_shmlimit_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_shmlimit_tell(ngx_http_request_t *r,
    struct verdict *verdict);
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


static ngx_str_t  ngx_http_shmlimit_status[] = {
    ngx_string("PASSED"),
    ngx_string("REJECTED"),
    ngx_string("REJECTED_DRY_RUN"),
    ngx_string("FAILED")
};


/* The worker's; NULL where no segment is named. */
static struct attachment  *ngx_http_shmlimit_attachment;


/* Marks the context in the request's pool: it does nothing. */
static void
ngx_http_shmlimit_cleanup(void *data)
{
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

    cln->handler = ngx_http_shmlimit_cleanup;
    ngx_http_set_ctx(r, cln->data, ngx_http_shmlimit_module);

    return cln->data;
}


static ngx_int_t
ngx_http_shmlimit_handler(ngx_http_request_t *r)
{
    ngx_str_t                       text;
    ngx_uint_t                      i, n;
    struct limit                   *limits, asked[SHMLIMIT_REQUESTS_MAX];
    struct verdict                  verdict;
    struct limit_key                keys[SHMLIMIT_REQUESTS_MAX];
    ngx_http_shmlimit_ctx_t        *ctx;
    ngx_http_shmlimit_conf_t       *conf;
    ngx_http_complex_value_t       *values;
    ngx_http_shmlimit_main_conf_t  *main_conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_shmlimit_module);

    if (conf->limits == NULL || ngx_http_shmlimit_attachment == NULL
        || r != r->main || ngx_http_shmlimit_get_ctx(r) != NULL)
    {
        return NGX_DECLINED;
    }

    limits = conf->limits->elts;
    values = conf->keys->elts;

    for (i = 0, n = 0; i < conf->limits->nelts; i++) {

        if (ngx_http_complex_value(r, &values[i], &text) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (limit_key(&limits[i], (char *) text.data, text.len, &keys[n])) {
            asked[n++] = limits[i];
        }
    }

    if (n == 0) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_shmlimit_add_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    attachment_ask(ngx_http_shmlimit_attachment, asked, keys, n, &verdict);

    ctx->remaining = verdict.remaining;

    if (verdict.answer < 0) {
        ctx->status = NGX_HTTP_SHMLIMIT_FAILED;
        main_conf = ngx_http_get_module_main_conf(r, ngx_http_shmlimit_module);

        return main_conf->attachment.fail_open ? NGX_DECLINED
                                               : NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    if (ngx_http_shmlimit_tell(r, &verdict) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (verdict.answer == SHMLIMIT_DENIED) {
        ctx->status = NGX_HTTP_SHMLIMIT_REJECTED;
        return asked[verdict.denied_by].status;
    }

    ctx->status = verdict.dry_failed ? NGX_HTTP_SHMLIMIT_FAILED
                  : verdict.dry_denied ? NGX_HTTP_SHMLIMIT_REJECTED_DRY_RUN
                  : NGX_HTTP_SHMLIMIT_PASSED;

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_shmlimit_add_header(ngx_http_request_t *r, const char *name,
    const char *value)
{
    size_t            len;
    u_char           *copy;
    ngx_table_elt_t  *h;

    len = ngx_strlen(value);

    copy = ngx_pnalloc(r->pool, len);
    if (copy == NULL) {
        return NGX_ERROR;
    }

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.len = ngx_strlen(name);
    h->key.data = (u_char *) name;
    h->value.len = len;
    h->value.data = ngx_cpymem(copy, value, len) - len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_shmlimit_tell(ngx_http_request_t *r, struct verdict *verdict)
{
    size_t                   i;
    struct shmlimit_fields  *fields;

    for (i = 0; i < verdict->told_count; i++) {
        fields = &verdict->told[i];

        if (ngx_http_shmlimit_add_header(r, "RateLimit-Policy", fields->policy)
            != NGX_OK
            || ngx_http_shmlimit_add_header(r, "RateLimit", fields->limit)
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (fields->retry_after[0] != '\0'
            && ngx_http_shmlimit_add_header(r, "Retry-After",
                                            fields->retry_after)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_shmlimit_status_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_shmlimit_ctx_t  *ctx;

    ctx = ngx_http_shmlimit_get_ctx(r->main);

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = ngx_http_shmlimit_status[ctx->status].len;
    v->data = ngx_http_shmlimit_status[ctx->status].data;

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

    if (ngx_array_init(&conf->rules, cf->pool, 4, sizeof(const char *))
        != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


static char *
ngx_http_shmlimit_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_shmlimit_main_conf_t  *main_conf = conf;

    if (main_conf->rules.nelts > 0 && main_conf->attachment.segment == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"shmlimit\" needs a \"shmlimit_segment\"");
        return NGX_CONF_ERROR;
    }

    main_conf->attachment.rules = main_conf->rules.elts;
    main_conf->attachment.rule_count = main_conf->rules.nelts;

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


static char *
ngx_http_shmlimit_segment(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    const char                     *wrong;
    ngx_str_t                      *value;
    ngx_uint_t                      i;
    ngx_http_shmlimit_main_conf_t  *main_conf = conf;

    if (main_conf->attachment.segment != NULL) {
        return "is duplicate";
    }

    value = cf->args->elts;

    wrong = attachment_name((const char *) value[1].data);
    if (wrong != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" %s", &value[1],
                           wrong);
        return NGX_CONF_ERROR;
    }

    main_conf->attachment.segment = (const char *) value[1].data;

    for (i = 2; i < cf->args->nelts; i++) {
        wrong = attachment_option(&main_conf->attachment,
                                  (const char *) value[i].data);
        if (wrong != NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" %s", &value[i],
                               wrong);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* The index of a rule's name, which is added if it is not there yet. */
static ngx_int_t
ngx_http_shmlimit_rule(ngx_conf_t *cf, const char *name)
{
    const char                    **names;
    ngx_uint_t                      i;
    ngx_http_shmlimit_main_conf_t  *main_conf;

    main_conf = ngx_http_conf_get_module_main_conf(cf,
                                                   ngx_http_shmlimit_module);
    names = main_conf->rules.elts;

    for (i = 0; i < main_conf->rules.nelts; i++) {
        if (ngx_strcmp(names[i], name) == 0) {
            return i;
        }
    }

    names = ngx_array_push(&main_conf->rules);
    if (names == NULL) {
        return NGX_ERROR;
    }

    *names = name;

    return i;
}


static char *
ngx_http_shmlimit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_int_t                          rule;
    ngx_str_t                         *value;
    ngx_uint_t                         i;
    const char                        *wrong;
    struct limit                      *slot, limit = LIMIT_DEFAULT;
    ngx_http_shmlimit_conf_t          *loc_conf = conf;
    ngx_http_complex_value_t          *key;
    ngx_http_compile_complex_value_t   ccv;

    if (loc_conf->limits == NULL) {
        loc_conf->limits = ngx_array_create(cf->pool, 2, sizeof(struct limit));
        loc_conf->keys = ngx_array_create(cf->pool, 2,
                                          sizeof(ngx_http_complex_value_t));
        if (loc_conf->limits == NULL || loc_conf->keys == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    if (loc_conf->limits->nelts == SHMLIMIT_REQUESTS_MAX) {
        return "is there more than 16 times";
    }

    key = ngx_array_push(loc_conf->keys);
    if (key == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    if (value[1].len == 0) {
        return "has an empty key, so no request would be limited";
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));
    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = key;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    rule = NGX_ERROR;

    for (i = 2; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "rule=", 5) == 0
            && rule == NGX_ERROR)
        {
            wrong = limit_rule_name((const char *) value[i].data + 5);
            if (wrong != NULL) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" %s",
                                   &value[i], wrong);
                return NGX_CONF_ERROR;
            }

            rule = ngx_http_shmlimit_rule(cf, (char *) value[i].data + 5);
            if (rule == NGX_ERROR) {
                return NGX_CONF_ERROR;
            }

            continue;
        }

        wrong = limit_option(&limit, (const char *) value[i].data);
        if (wrong != NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" %s", &value[i],
                               wrong);
            return NGX_CONF_ERROR;
        }
    }

    if (rule == NGX_ERROR) {
        return "needs one rule=NAME";
    }

    slot = ngx_array_push(loc_conf->limits);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    limit.rule = rule;
    *slot = limit;

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


/* After the fork: the handle is the worker's own, and so is what it logs. */
static ngx_int_t
ngx_http_shmlimit_init_process(ngx_cycle_t *cycle)
{
    struct attachment_options       options;
    ngx_http_shmlimit_main_conf_t  *main_conf;

    main_conf = ngx_http_cycle_get_module_main_conf(cycle,
                                                    ngx_http_shmlimit_module);

    if (main_conf == NULL || main_conf->attachment.segment == NULL
        || (ngx_process != NGX_PROCESS_WORKER
            && ngx_process != NGX_PROCESS_SINGLE))
    {
        return NGX_OK;
    }

    options = main_conf->attachment;
    options.log = ngx_http_shmlimit_log;
    options.context = cycle;

    ngx_http_shmlimit_attachment = attachment_new(&options);

    return ngx_http_shmlimit_attachment == NULL ? NGX_ERROR : NGX_OK;
}


static void
ngx_http_shmlimit_exit_process(ngx_cycle_t *cycle)
{
    attachment_free(ngx_http_shmlimit_attachment);
    ngx_http_shmlimit_attachment = NULL;
}
