/*
 * ngx_http_shmlimit_module: limits requests by a segment of shmlimit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "ngx_http_shmlimit.h"


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

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_LOG_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_shmlimit_log_handler;

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

    main_conf = ngx_http_cycle_get_module_main_conf(cycle,
                                                    ngx_http_shmlimit_module);

    if (main_conf == NULL || main_conf->gate == NULL
        || (ngx_process != NGX_PROCESS_WORKER
            && ngx_process != NGX_PROCESS_SINGLE))
    {
        return NGX_OK;
    }

    ngx_http_shmlimit_init_fields();
    ngx_http_shmlimit_init_charge(main_conf);
    shmlimit_gate_report(main_conf->gate, ngx_http_shmlimit_log, cycle);
    (void) shmlimit_gate_attach(main_conf->gate);

    return NGX_OK;
}


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
    ngx_http_shmlimit_leave_all,           /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};
