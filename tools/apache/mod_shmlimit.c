/*
 * mod_shmlimit: limits requests by a segment of shmlimit.
 *
 * It decides when the configuration of a request is known and before anybody
 * is asked to authenticate, once for each request of a client: not again after
 * internal redirects, and not for subrequests.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "ap_expr.h"
#include "apr_strings.h"
#include "http_config.h"
#include "http_core.h"
#include "http_log.h"
#include "http_protocol.h"
#include "http_request.h"
#include "httpd.h"

#include "attachment.h"

module AP_MODULE_DECLARE_DATA shmlimit_module;

/* Parallel to the limits: what their keys are made of. */
typedef struct {
    apr_array_header_t *limits;     /* of struct limit; NULL if there are none here */
    apr_array_header_t *keys;       /* of ap_expr_info_t * */
} shmlimit_dir_conf;

/* One segment for the whole server: made anew each time that the configuration is read. */
static struct attachment_options segment;
static apr_array_header_t *rules;   /* of const char *: each name once */

/* The child's; NULL where no segment is named. */
static struct attachment *attachment;

/* What became of the request, for logs and for what serves it; notes stay with it, variables go to CGI. */
static void note(request_rec *r, const char *status, const struct verdict *verdict)
{
    apr_table_setn(r->notes, "shmlimit-status", status);
    apr_table_setn(r->subprocess_env, "SHMLIMIT_STATUS", status);
    if (verdict->remaining != UINT64_MAX) {
        const char *remaining = apr_psprintf(r->pool, "%" APR_UINT64_T_FMT, (apr_uint64_t)verdict->remaining);

        apr_table_setn(r->notes, "shmlimit-remaining", remaining);
        apr_table_setn(r->subprocess_env, "SHMLIMIT_REMAINING", remaining);
    }
}

/* The filter that adds the fields to the response. */
static ap_filter_rec_t *fields_filter;

/* Keep what the client is to be told until the response begins. */
static void keep_fields(request_rec *r, const struct verdict *verdict)
{
    apr_array_header_t *told;

    if (verdict->told_count == 0)
        return;
    told = apr_array_make(r->pool, (int)verdict->told_count, sizeof(verdict->told[0]));
    for (size_t i = 0; i < verdict->told_count; i++)
        APR_ARRAY_PUSH(told, struct shmlimit_fields) = verdict->told[i];
    ap_set_module_config(r->request_config, &shmlimit_module, told);
}

/*
 * WHY NOT at once, in the table of headers: mod_cache would store them with the
 * response, and serve one client's fields to all others. This filter runs after the
 * cache's filters, whether they store the response or serve it.
 */
static apr_status_t add_fields(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    const apr_array_header_t *told = f->ctx;
    apr_table_t *headers = f->r->err_headers_out;

    ap_remove_output_filter(f);
    for (int i = 0; i < told->nelts; i++) {
        const struct shmlimit_fields *fields = &APR_ARRAY_IDX(told, i, struct shmlimit_fields);

        apr_table_add(headers, "RateLimit-Policy", fields->policy);
        apr_table_add(headers, "RateLimit", fields->limit);
        if (fields->retry_after[0] != '\0')
            apr_table_add(headers, "Retry-After", fields->retry_after);
    }
    return ap_pass_brigade(f->next, brigade);
}

/* For responses and for error responses. After internal redirects the fields are those of the original request. */
static void insert_filter(request_rec *r)
{
    const request_rec *original = r;
    apr_array_header_t *told;

    if (r->main != NULL)
        return;
    while (original->prev != NULL)
        original = original->prev;
    told = ap_get_module_config(original->request_config, &shmlimit_module);
    if (told != NULL)
        ap_add_output_filter_handle(fields_filter, told, r, r->connection);
}

/* Fill the limits whose keys are not empty, and the keys. Returns how many, or -1. */
static int find_keys(request_rec *r, const shmlimit_dir_conf *conf, struct limit *asked, struct limit_key *keys)
{
    int n = 0;

    for (int i = 0; i < conf->limits->nelts; i++) {
        const struct limit *limit = &APR_ARRAY_IDX(conf->limits, i, struct limit);
        const char *wrong = NULL;
        const char *text = ap_expr_str_exec(r, APR_ARRAY_IDX(conf->keys, i, ap_expr_info_t *), &wrong);

        if (wrong != NULL) {
            ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "key of rule %s: %s",
                          APR_ARRAY_IDX(rules, limit->rule, const char *), wrong);
            return -1;
        }
        if (limit_key(limit, text, strlen(text), &keys[n]))
            asked[n++] = *limit;
    }
    return n;
}

static int shmlimit_header_parser(request_rec *r)
{
    const shmlimit_dir_conf *conf = ap_get_module_config(r->per_dir_config, &shmlimit_module);
    struct limit asked[SHMLIMIT_REQUESTS_MAX];
    struct limit_key keys[SHMLIMIT_REQUESTS_MAX];
    struct verdict verdict;
    int n;

    if (conf->limits == NULL || attachment == NULL || !ap_is_initial_req(r))
        return DECLINED;
    n = find_keys(r, conf, asked, keys);
    if (n < 0)
        return HTTP_INTERNAL_SERVER_ERROR;
    if (n == 0)
        return DECLINED;
    attachment_ask(attachment, asked, keys, (size_t)n, &verdict);
    if (verdict.answer < 0) {
        note(r, "FAILED", &verdict);
        return segment.fail_open ? DECLINED : HTTP_SERVICE_UNAVAILABLE;
    }
    keep_fields(r, &verdict);
    if (verdict.answer == SHMLIMIT_DENIED) {
        note(r, "REJECTED", &verdict);
        return asked[verdict.denied_by].status;
    }
    note(r, verdict.dry_failed ? "FAILED" : verdict.dry_denied ? "REJECTED_DRY_RUN" : "PASSED", &verdict);
    return DECLINED;
}

static void *create_dir_conf(apr_pool_t *pool, char *dir)
{
    return apr_pcalloc(pool, sizeof(shmlimit_dir_conf));
}

/* A section inherits the limits of those around it only if it has none. */
static void *merge_dir_conf(apr_pool_t *pool, void *base, void *add)
{
    const shmlimit_dir_conf *inner = add;

    return inner->limits != NULL ? add : base;
}

static const char *set_segment(cmd_parms *cmd, void *conf, int argc, char *const argv[])
{
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    if (wrong != NULL)
        return wrong;
    if (argc < 1)
        return "ShmlimitSegment: needs a name";
    if (segment.segment != NULL)
        return "ShmlimitSegment: one is set already, and a server has one segment";
    wrong = attachment_name(argv[0]);
    if (wrong != NULL)
        return apr_psprintf(cmd->pool, "ShmlimitSegment: \"%s\" %s", argv[0], wrong);
    segment.segment = argv[0];
    for (int i = 1; i < argc; i++) {
        wrong = attachment_option(&segment, argv[i]);
        if (wrong != NULL)
            return apr_psprintf(cmd->pool, "ShmlimitSegment: \"%s\" %s", argv[i], wrong);
    }
    return NULL;
}

/* The index of a rule's name, which is added if it is not there yet. */
static size_t rule_index(const char *name)
{
    int i;

    for (i = 0; i < rules->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(rules, i, const char *), name) == 0)
            return (size_t)i;
    APR_ARRAY_PUSH(rules, const char *) = name;
    return (size_t)i;
}

static const char *add_rule(cmd_parms *cmd, void *dir_conf, int argc, char *const argv[])
{
    shmlimit_dir_conf *conf = dir_conf;
    struct limit limit = LIMIT_DEFAULT;
    const char *wrong = NULL;
    ap_expr_info_t *key;

    if (argc < 2)
        return "ShmlimitRule: needs a rule's name and a key";
    wrong = limit_rule_name(argv[0]);
    if (wrong != NULL)
        return apr_psprintf(cmd->pool, "ShmlimitRule: \"%s\" %s", argv[0], wrong);
    if (argv[1][0] == '\0')
        return "ShmlimitRule: the key is empty, so no request would be limited";
    if (conf->limits == NULL) {
        conf->limits = apr_array_make(cmd->pool, 2, sizeof(struct limit));
        conf->keys = apr_array_make(cmd->pool, 2, sizeof(ap_expr_info_t *));
    }
    if (conf->limits->nelts == SHMLIMIT_REQUESTS_MAX)
        return "ShmlimitRule: more than 16 for one request";
    key = ap_expr_parse_cmd(cmd, argv[1], AP_EXPR_FLAG_STRING_RESULT, &wrong, NULL);
    if (wrong != NULL)
        return apr_psprintf(cmd->pool, "ShmlimitRule: key \"%s\": %s", argv[1], wrong);
    for (int i = 2; i < argc; i++) {
        wrong = limit_option(&limit, argv[i]);
        if (wrong != NULL)
            return apr_psprintf(cmd->pool, "ShmlimitRule: \"%s\" %s", argv[i], wrong);
    }
    /* What it does not know it sends as a 500. */
    if (ap_index_of_response(limit.status) == ap_index_of_response(HTTP_INTERNAL_SERVER_ERROR) &&
        limit.status != HTTP_INTERNAL_SERVER_ERROR)
        return apr_psprintf(cmd->pool, "ShmlimitRule: \"status=%d\" is no status that httpd knows", limit.status);
    limit.rule = rule_index(argv[0]);
    APR_ARRAY_PUSH(conf->limits, struct limit) = limit;
    APR_ARRAY_PUSH(conf->keys, ap_expr_info_t *) = key;
    return NULL;
}

static int shmlimit_pre_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temp)
{
    memset(&segment, 0, sizeof(segment));
    rules = apr_array_make(pool, 4, sizeof(const char *));
    return OK;
}

static int shmlimit_check_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temp, server_rec *server)
{
    if (rules->nelts > 0 && segment.segment == NULL) {
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_EMERG, 0, NULL, "ShmlimitRule needs a ShmlimitSegment");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}

static void log_line(void *server, int bad, const char *text)
{
    ap_log_error(APLOG_MARK, bad ? APLOG_ERR : APLOG_WARNING, 0, server, "%s", text);
}

/* After the fork: the handle is the child's own. It goes with the child, whose threads may use it to the end. */
static void shmlimit_child_init(apr_pool_t *pool, server_rec *server)
{
    struct attachment_options options = segment;

    if (segment.segment == NULL)
        return;
    options.rules = (const char *const *)rules->elts;
    options.rule_count = (size_t)rules->nelts;
    options.log = log_line;
    options.context = server;
    attachment = attachment_new(&options);
    if (attachment == NULL)
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server, "out of memory: requests pass without a limit");
}

static void register_hooks(apr_pool_t *pool)
{
    ap_hook_pre_config(shmlimit_pre_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(shmlimit_check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(shmlimit_child_init, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_header_parser(shmlimit_header_parser, NULL, NULL, APR_HOOK_LAST);
    ap_hook_insert_filter(insert_filter, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_error_filter(insert_filter, NULL, NULL, APR_HOOK_MIDDLE);
    /* Behind all that makes or stores content, before the header is written. */
    fields_filter = ap_register_output_filter("SHMLIMIT_FIELDS", add_fields, NULL,
                                              (ap_filter_type)(AP_FTYPE_PROTOCOL - 1));
}

static const command_rec commands[] = {
    AP_INIT_TAKE_ARGV("ShmlimitSegment", set_segment, NULL, RSRC_CONF,
                      "the segment's name, and fail=open or fail=closed, owner=USER, engine=URL, deadline=Nms, share=N"),
    AP_INIT_TAKE_ARGV("ShmlimitRule", add_rule, NULL, RSRC_CONF | ACCESS_CONF,
                      "a rule's name, a key, and cost=N, prefix=V4,V6, status=N, dry_run"),
    { .name = NULL }
};

AP_DECLARE_MODULE(shmlimit) = {
    STANDARD20_MODULE_STUFF,
    .create_dir_config = create_dir_conf,
    .merge_dir_config = merge_dir_conf,
    .cmds = commands,
    .register_hooks = register_hooks,
};
