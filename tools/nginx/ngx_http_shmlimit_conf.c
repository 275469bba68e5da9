/*
 * ngx_http_shmlimit_conf: the directives. Their words become the spec of one gate.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "ngx_http_shmlimit.h"
#include "words.h"


void *
ngx_http_shmlimit_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_shmlimit_main_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_shmlimit_main_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&conf->gate_words, cf->pool, 256, 1) != NGX_OK
        || ngx_array_init(&conf->limit_words, cf->pool, 256, 1) != NGX_OK
        || ngx_array_init(&conf->lines, cf->pool, 8,
                          sizeof(ngx_http_shmlimit_line_t))
           != NGX_OK)
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


/*
 * Text that goes to a log or terminal, and may be anyone's, has no byte that
 * these act on.
 */
u_char *
ngx_http_shmlimit_printable(u_char *text, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            text[i] = '?';
        }
    }

    return text;
}


/* Log what is wrong with the spec at `offset`, with the line of that limit. */
static void
ngx_http_shmlimit_log(ngx_conf_t *cf, ngx_http_shmlimit_main_conf_t *main_conf,
    ngx_uint_t level, size_t offset, const char *text)
{
    ngx_uint_t                 i;
    ngx_http_shmlimit_line_t  *line;

    line = main_conf->lines.elts;

    for (i = main_conf->lines.nelts; i > 0; i--) {
        if (offset >= main_conf->gate_words.nelts + line[i - 1].offset) {
            ngx_log_error(level, cf->log, 0, "shmlimit: %s in %V:%ui", text,
                          &line[i - 1].file, line[i - 1].line);
            return;
        }
    }

    ngx_log_error(level, cf->log, 0, "shmlimit: %s", text);
}


/* The text follows the word that is wrong, or is about a whole limit. */
static void
ngx_http_shmlimit_log_wrong(ngx_conf_t *cf,
    ngx_http_shmlimit_main_conf_t *main_conf, u_char *spec,
    struct shmlimit_gate_wrong *wrong)
{
    u_char  text[sizeof(wrong->text) + 128], *p;

    p = text;

    if (wrong->length > 0) {
        p = ngx_snprintf(p, 127, "\"%*s\" ", (size_t) wrong->length,
                         spec + wrong->offset);
        ngx_http_shmlimit_printable(text, (size_t) (p - text));
    }

    ngx_cpystrn(p, (u_char *) wrong->text, sizeof(wrong->text));

    ngx_http_shmlimit_log(cf, main_conf, NGX_LOG_EMERG, wrong->offset,
                          (char *) text);
}


typedef struct {
    ngx_conf_t                     *cf;
    ngx_http_shmlimit_main_conf_t  *main_conf;
} ngx_http_shmlimit_compare_t;


static void
ngx_http_shmlimit_differs(void *data, size_t offset, const char *text)
{
    ngx_http_shmlimit_compare_t  *compare = data;

    ngx_http_shmlimit_log(compare->cf, compare->main_conf, NGX_LOG_WARN,
                          offset, text);
}


/* The gate is made here, where its environment is the master's; workers open the segment. */
char *
ngx_http_shmlimit_init_main_conf(ngx_conf_t *cf, void *conf)
{
    u_char                         *spec, *p;
    ngx_pool_cleanup_t             *cln;
    struct shmlimit_gate_wrong      wrong;
    ngx_http_shmlimit_compare_t     compare;
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
    wrong.offset = 0;
    wrong.length = 0;

    if (shmlimit_gate_check((char *) spec, &wrong) != 0
        || shmlimit_gate_open((char *) spec, &main_conf->gate) != 0)
    {
        ngx_http_shmlimit_log_wrong(cf, main_conf, spec, &wrong);
        return NGX_CONF_ERROR;
    }

    /*
     * WHY NOT on each start: a worker's user can truncate its segment, which
     * would kill the master.
     */
    if (ngx_test_config) {
        compare.cf = cf;
        compare.main_conf = main_conf;

        (void) shmlimit_gate_compare((char *) spec, ngx_http_shmlimit_differs,
                                     &compare);
    }

    cln->handler = ngx_http_shmlimit_close;
    cln->data = main_conf->gate;

    return NGX_CONF_OK;
}


void *
ngx_http_shmlimit_create_conf(ngx_conf_t *cf)
{
    ngx_http_shmlimit_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_shmlimit_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->log_level = NGX_CONF_UNSET_UINT;

    return conf;
}


/* Like limit_req's: a level inherits the limits of the one above only if it has none, and is not off. */
char *
ngx_http_shmlimit_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_shmlimit_conf_t  *prev = parent;
    ngx_http_shmlimit_conf_t  *conf = child;

    if (conf->limits == NULL && !conf->off) {
        conf->limits = prev->limits;
        conf->off = prev->off;
    }

    ngx_conf_merge_uint_value(conf->log_level, prev->log_level, NGX_LOG_ERR);

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


/* The configuration is refused: nothing else reads the value any more. */
static char *
ngx_http_shmlimit_wrong(ngx_conf_t *cf, ngx_str_t *value, const char *wrong)
{
    ngx_http_shmlimit_printable(value->data, value->len);
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


/* The value of "NAME=VALUE", which each request has of its own. */
static char *
ngx_http_shmlimit_complex(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    ngx_http_complex_value_t **complex)
{
    ngx_str_t                          text;
    ngx_http_compile_complex_value_t   ccv;

    if (*complex != NULL) {
        return ngx_http_shmlimit_wrong(cf, value, "is duplicate");
    }

    *complex = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
    if (*complex == NULL) {
        return NGX_CONF_ERROR;
    }

    text.data = value->data + name;
    text.len = value->len - name;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));
    ccv.cf = cf;
    ccv.value = &text;
    ccv.complex_value = *complex;

    return ngx_http_compile_complex_value(&ccv) == NGX_OK ? NGX_CONF_OK
                                                          : NGX_CONF_ERROR;
}


static ngx_http_shmlimit_sent_e
ngx_http_shmlimit_which_sent(const char *charge)
{
    if (ngx_strcmp(charge, "$bytes_sent") == 0
        || ngx_strcmp(charge, "${bytes_sent}") == 0)
    {
        return NGX_HTTP_SHMLIMIT_BYTES_SENT;
    }

    if (ngx_strcmp(charge, "$body_bytes_sent") == 0
        || ngx_strcmp(charge, "${body_bytes_sent}") == 0)
    {
        return NGX_HTTP_SHMLIMIT_BODY_BYTES_SENT;
    }

    return NGX_HTTP_SHMLIMIT_NOT_SENT;
}


/* What the words of one limit say together. */
typedef struct {
    ngx_uint_t  estimate;
    ngx_uint_t  cost;
    ngx_uint_t  charge_max;
    ngx_str_t  *algorithm;      /* NULL if none is set, as are all here */
    ngx_str_t  *rate;           /* with variables */
    ngx_str_t  *constant;       /* the other */
    ngx_uint_t  places;         /* which is "20 at once" */
    ngx_str_t  *share;          /* with variables */
    ngx_uint_t  shares;         /* there is another */
} ngx_http_shmlimit_words_t;


static char *
ngx_http_shmlimit_charge(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_shmlimit_limit_t *limit)
{
    if (ngx_http_script_variables_count(value) == 0) {
        return ngx_http_shmlimit_wrong(cf, value, "must be charge=$variable");
    }

    limit->sent = ngx_http_shmlimit_which_sent((char *) value->data + 7);
    limit->charge_text = *value;

    return ngx_http_shmlimit_complex(cf, value, 7, &limit->charge);
}


static char *
ngx_http_shmlimit_charge_scale(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_shmlimit_limit_t *limit)
{
    ngx_int_t  scale;

    if (limit->scale != 0) {
        return ngx_http_shmlimit_wrong(cf, value, "is duplicate");
    }

    scale = ngx_atoi(value->data + 13, value->len - 13);

    if (scale < 1 || scale > 1000000000) {
        return ngx_http_shmlimit_wrong(cf, value,
                                   "must be charge_scale=N, 1 to 1000000000");
    }

    limit->scale = scale;

    return NGX_CONF_OK;
}


/*
 * Take a word that is this module's own out of the list: "charge=$used", and
 * "charge_scale=N"; and of the others make what the spec has.
 */
static char *
ngx_http_shmlimit_own_word(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_shmlimit_limit_t *limit, ngx_http_shmlimit_words_t *words)
{
    char  *rc;

    rc = NGX_CONF_OK;

    if (ngx_strncmp(value->data, "rate=", 5) == 0
        && ngx_http_script_variables_count(value) > 0)
    {
        rc = ngx_http_shmlimit_complex(cf, value, 5, &limit->rate);
        words->rate = value;

    } else if (ngx_strncmp(value->data, "rate=", 5) == 0) {
        words->constant = value;
        words->places = words_has_places((char *) value->data + 5);

    } else if (ngx_strncmp(value->data, "share=", 6) == 0
               && ngx_http_script_variables_count(value) > 0)
    {
        rc = ngx_http_shmlimit_complex(cf, value, 6, &limit->share);
        words->share = value;

    } else if (ngx_strncmp(value->data, "share=", 6) == 0) {
        words->shares = 1;

    } else if (ngx_strncmp(value->data, "charge=", 7) == 0) {
        rc = ngx_http_shmlimit_charge(cf, value, limit);
        value->len = 0;

    } else if (ngx_strncmp(value->data, "charge_scale=", 13) == 0) {
        rc = ngx_http_shmlimit_charge_scale(cf, value, limit);
        value->len = 0;

    } else if (ngx_strncmp(value->data, "estimate=", 9) == 0) {
        words->estimate = 1;

    } else if (ngx_strncmp(value->data, "cost=", 5) == 0) {
        words->cost = 1;

    } else if (ngx_strncmp(value->data, "charge_max=", 11) == 0) {
        words->charge_max = 1;

    } else if (ngx_strncmp(value->data, "algorithm=", 10) == 0) {
        words->algorithm = value;
    }

    return rc;
}


/*
 * Check what the words say together. A limit of each request is GCRA's: where
 * that is not written, the word of the rate becomes it, unless another rate has
 * places. In the place of a share of each request stands that of requests
 * without one.
 */
static char *
ngx_http_shmlimit_check_words(ngx_conf_t *cf,
    ngx_http_shmlimit_limit_t *limit, ngx_http_shmlimit_words_t *words)
{
    if (limit->charge == NULL
        && (words->estimate || words->charge_max || limit->scale != 0))
    {
        return "needs charge=$variable beside estimate=, charge_max= and "
               "charge_scale=";
    }

    if (limit->charge != NULL && words->cost) {
        return "has cost= beside charge=: write estimate= for what a request "
               "takes before its charge";
    }

    if (words->share != NULL && words->shares) {
        words->share->len = 0;

    } else if (words->share != NULL) {
        ngx_str_set(words->share, "share=1");
    }

    if (words->rate == NULL) {
        return NGX_CONF_OK;
    }

    if (words->places) {
        words->rate->len = 0;

    } else if (words->algorithm == NULL) {
        ngx_str_set(words->rate, "algorithm=gcra");

    } else if (ngx_strcmp(words->algorithm->data, "algorithm=gcra") == 0) {
        words->rate->len = 0;

    } else {
        return ngx_http_shmlimit_wrong(cf, words->algorithm,
                  "cannot be used with a rate= that has variables: leave it "
                  "out, or write the rate as text in its own location");
    }

    return NGX_CONF_OK;
}


/*
 * The name of a variable without its "$" would be one key for all clients.
 * Those that later lines define are not known yet.
 */
static ngx_uint_t
ngx_http_shmlimit_is_variable(ngx_conf_t *cf, ngx_str_t *key)
{
    ngx_uint_t                  i;
    ngx_hash_key_t             *known;
    ngx_http_variable_t        *prefix;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    known = cmcf->variables_keys->keys.elts;

    for (i = 0; i < cmcf->variables_keys->keys.nelts; i++) {
        if (known[i].key.len == key->len
            && ngx_strncasecmp(known[i].key.data, key->data, key->len) == 0)
        {
            return 1;
        }
    }

    prefix = cmcf->prefix_variables.elts;

    for (i = 0; i < cmcf->prefix_variables.nelts; i++) {
        if (key->len > prefix[i].name.len
            && ngx_strncasecmp(key->data, prefix[i].name.data,
                               prefix[i].name.len)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}


static char *
ngx_http_shmlimit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                              *together;
    const char                        *text;
    ngx_str_t                         *value, *rule;
    ngx_uint_t                         i;
    ngx_http_shmlimit_conf_t          *loc_conf = conf;
    ngx_http_shmlimit_line_t          *line;
    ngx_http_shmlimit_limit_t         *limit;
    ngx_http_shmlimit_words_t          words;
    struct shmlimit_gate_wrong         wrong;
    ngx_http_shmlimit_main_conf_t     *main_conf;
    ngx_http_compile_complex_value_t   ccv;

    main_conf = ngx_http_conf_get_module_main_conf(cf,
                                                   ngx_http_shmlimit_module);
    value = cf->args->elts;

    if (loc_conf->off) {
        return "is off here, and cannot limit beside that";
    }

    /* A key that is the same for all requests would be one client. */
    if (ngx_strcmp(value[1].data, "off") == 0) {

        if (cf->args->nelts > 2 || loc_conf->limits != NULL) {
            return "off: must stand alone";
        }

        loc_conf->off = 1;

        return NGX_CONF_OK;
    }

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

    if (value[1].len == 0) {
        return "has an empty key, so no request would be limited";
    }

    if (ngx_http_shmlimit_is_variable(cf, &value[1])) {
        return ngx_http_shmlimit_wrong(cf, &value[1],
                        "is the name of a variable, and one key for all "
                        "clients: write it with a $ before it");
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));
    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = &limit->key;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    limit->rate = NULL;
    limit->share = NULL;
    limit->share_logged = 0;
    limit->charge = NULL;
    limit->charge_logged = 0;
    limit->sent = NGX_HTTP_SHMLIMIT_NOT_SENT;
    limit->scale = 0;

    ngx_memzero(&words, sizeof(ngx_http_shmlimit_words_t));

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_shmlimit_own_word(cf, &value[i], limit, &words)
            != NGX_CONF_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    together = ngx_http_shmlimit_check_words(cf, limit, &words);
    if (together != NGX_CONF_OK) {
        return together;
    }

    for (i = 2, rule = NULL; i < cf->args->nelts; i++) {

        if (value[i].len == 0) {
            continue;
        }

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

    if ((words.share != NULL || words.shares) && !loc_conf->places) {
        return "has a share=, which needs a limit of places before it here, "
               "such as rate=\"64 at once\"";
    }

    /* A rule without a rate may be one that was made elsewhere. */
    loc_conf->places |= words.places
                        || (words.constant == NULL && words.rate == NULL
                            && words.algorithm == NULL);

    if (limit->scale == 0) {
        limit->scale = 1;
    }

    line = ngx_array_push(&main_conf->lines);
    if (line == NULL) {
        return NGX_CONF_ERROR;
    }

    line->offset = main_conf->limit_words.nelts;
    line->file = cf->conf_file->file.name;
    line->line = cf->conf_file->line;

    limit->rule.data = rule->data + 5;
    limit->rule.len = rule->len - 5;

    /* The rule's name begins the limit, wherever it stands here. */
    if (ngx_http_shmlimit_add_word(&main_conf->limit_words,
                                   (char *) rule->data)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        if (&value[i] != rule && value[i].len > 0
            && ngx_http_shmlimit_add_word(&main_conf->limit_words,
                                          (char *) value[i].data)
               != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    if (limit->charge != NULL && !words.estimate
        && ngx_http_shmlimit_add_word(&main_conf->limit_words, "estimate=1")
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    /* What nginx counts itself is never wrong. */
    if (limit->sent != NGX_HTTP_SHMLIMIT_NOT_SENT && !words.charge_max
        && ngx_http_shmlimit_add_word(&main_conf->limit_words,
                                      "charge_max=366d")
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    main_conf->charges_sent |= limit->sent != NGX_HTTP_SHMLIMIT_NOT_SENT;
    limit->limit = main_conf->limits++;

    return NGX_CONF_OK;
}


static ngx_conf_enum_t  ngx_http_shmlimit_log_levels[] = {
    { ngx_string("info"), NGX_LOG_INFO },
    { ngx_string("notice"), NGX_LOG_NOTICE },
    { ngx_string("warn"), NGX_LOG_WARN },
    { ngx_string("error"), NGX_LOG_ERR },
    { ngx_null_string, 0 }
};


ngx_command_t  ngx_http_shmlimit_commands[] = {

    { ngx_string("shmlimit_segment"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_shmlimit_segment,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("shmlimit"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_shmlimit,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("shmlimit_log_level"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_shmlimit_conf_t, log_level),
      &ngx_http_shmlimit_log_levels },

      ngx_null_command
};
