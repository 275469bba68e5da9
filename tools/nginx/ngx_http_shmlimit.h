/*
 * ngx_http_shmlimit: what the files of the module share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _NGX_HTTP_SHMLIMIT_H_INCLUDED_
#define _NGX_HTTP_SHMLIMIT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "shmlimit_gate.h"


typedef struct {
    ngx_str_t                    segment;     /* its name; NULL if not set */
    ngx_array_t                  gate_words;  /* of char: the spec's words */
    ngx_array_t                  limit_words; /* of char: those of limits */
    ngx_uint_t                   limits;
    ngx_array_t                  lines;       /* where each limit is written */
    struct shmlimit_gate        *gate;        /* NULL if no segment is set */
    ngx_uint_t                   charges_sent; /* a limit charges what is sent */
} ngx_http_shmlimit_main_conf_t;


/* What a limit charges that the module counts itself, while it is sent. */
typedef enum {
    NGX_HTTP_SHMLIMIT_NOT_SENT = 0,           /* something else, or nothing */
    NGX_HTTP_SHMLIMIT_BYTES_SENT,
    NGX_HTTP_SHMLIMIT_BODY_BYTES_SENT
} ngx_http_shmlimit_sent_e;


/* A line of the configuration, and the limit that is on it. */
typedef struct {
    size_t                       offset;      /* in limit_words */
    ngx_str_t                    file;
    ngx_uint_t                   line;
} ngx_http_shmlimit_line_t;


typedef struct {
    ngx_str_t                    rule;
    ngx_http_complex_value_t     key;
    ngx_http_complex_value_t    *rate;        /* NULL if it is the rule's own */
    ngx_http_complex_value_t    *share;       /* NULL if it is the spec's */
    time_t                       share_logged; /* when a value was last */
    ngx_http_complex_value_t    *charge;      /* NULL if the cost is known before */
    ngx_str_t                    charge_text; /* as it is written */
    time_t                       charge_logged; /* when a value was last */
    ngx_http_shmlimit_sent_e     sent;        /* which variable charge is */
    ngx_uint_t                   scale;       /* tokens of a unit of it; 0 if not set */
    uint32_t                     limit;       /* its place in the spec */
} ngx_http_shmlimit_limit_t;


typedef struct {
    ngx_array_t                 *limits;      /* NULL if not set */
    ngx_uint_t                   places;      /* one may be of places */
    ngx_uint_t                   off;         /* there are to be none here */
    ngx_uint_t                   log_level;   /* of a request that is denied */
} ngx_http_shmlimit_conf_t;


/* What a request holds: places, and bills to settle. */
typedef struct {
    struct shmlimit_gate        *gate;
    struct shmlimit_gate_held    held;
    ngx_uint_t                   charges_sent; /* a limit charges what is sent */
    ngx_uint_t                   n;
    ngx_http_shmlimit_limit_t   *limits[SHMLIMIT_REQUESTS_MAX];
    struct shmlimit_gate_key     keys[1];     /* n of them */
} ngx_http_shmlimit_places_t;


typedef struct {
    ngx_queue_t                    queue;     /* if it holds something */
    const char                    *status;
    uint64_t                       remaining;
    ngx_table_elt_t               *fields;    /* of the response */
    ngx_uint_t                     nfields;
    ngx_http_shmlimit_places_t    *places;    /* NULL if it holds nothing */
    struct shmlimit_gate_pending  *pending;   /* NULL if it is decided */
} ngx_http_shmlimit_ctx_t;


extern ngx_module_t   ngx_http_shmlimit_module;


/* conf: the directives, of which the gate's spec is made. */

extern ngx_command_t  ngx_http_shmlimit_commands[];

u_char *ngx_http_shmlimit_printable(u_char *text, size_t len);
void *ngx_http_shmlimit_create_main_conf(ngx_conf_t *cf);
char *ngx_http_shmlimit_init_main_conf(ngx_conf_t *cf, void *conf);
void *ngx_http_shmlimit_create_conf(ngx_conf_t *cf);
char *ngx_http_shmlimit_merge_conf(ngx_conf_t *cf, void *parent, void *child);


/* fields: the header fields of responses. */

ngx_int_t ngx_http_shmlimit_keep_fields(ngx_http_request_t *r,
    ngx_http_shmlimit_ctx_t *ctx, struct shmlimit_gate_answer *answer);
void ngx_http_shmlimit_init_fields(void);


/* handler: a request in the preaccess phase. */

ngx_int_t ngx_http_shmlimit_handler(ngx_http_request_t *r);


/* charge: what a request used, while its response is sent and in the log phase. */

ngx_int_t ngx_http_shmlimit_log_handler(ngx_http_request_t *r);
void ngx_http_shmlimit_init_charge(ngx_http_shmlimit_main_conf_t *main_conf);


/* ctx: what a request keeps until it ends. */

ngx_http_shmlimit_ctx_t *ngx_http_shmlimit_get_ctx(ngx_http_request_t *r);
ngx_http_shmlimit_ctx_t *ngx_http_shmlimit_add_ctx(ngx_http_request_t *r);
ngx_int_t ngx_http_shmlimit_keep_places(ngx_http_request_t *r,
    ngx_http_shmlimit_ctx_t *ctx, struct shmlimit_gate_key *keys,
    ngx_http_shmlimit_limit_t **limits, ngx_uint_t n,
    struct shmlimit_gate_held *held);
void ngx_http_shmlimit_leave_all(ngx_cycle_t *cycle);


/* variables: $shmlimit_status and $shmlimit_remaining. */

ngx_int_t ngx_http_shmlimit_add_variables(ngx_conf_t *cf);


#endif /* _NGX_HTTP_SHMLIMIT_H_INCLUDED_ */
