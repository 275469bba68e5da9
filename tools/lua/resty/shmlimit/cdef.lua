-- What resty.shmlimit calls of libshmlimit and libshmlimit-gate, for LuaJIT's FFI. tools/lua/tests/cdef compares each member and
-- each function with the headers.
--
-- SPDX-License-Identifier: BSD-2-Clause
local ffi = require "ffi"

-- A module that is loaded again in the same Lua state must not define a structure again.
if pcall(ffi.typeof, "struct shmlimit_gate_held") then
	return
end

ffi.cdef [[
struct shmlimit;
struct shmlimit_options {
	uint32_t struct_size, mode;
	uint64_t slots;
	uint32_t rules, rules_max, on_full, clock, gid, owner, store_keys, flags;
	uint64_t slots_max;
	uint64_t reserved[2];
};
struct shmlimit_rule {
	uint32_t struct_size, algorithm, mode, flags;
	uint64_t capacity, refill, period_ns, max_wait_ns, warmup_ns;
	uint32_t cold_factor_milli, credit;
	uint64_t set_unix_ns, mark, refused_unix_ns;
	uint32_t law, least;
	char zone[40];
	uint64_t zone_offsets[2];
};
struct shmlimit_limit {
	uint32_t struct_size, flags;
	uint64_t capacity, refill, period_ns, max_wait_ns;
};
struct shmlimit_result {
	uint64_t limit, remaining, wait_ns, retry_after_ns, reset_after_ns, granted;
};
struct shmlimit_count_request {
	uint32_t struct_size, flags;
	int64_t n, bound;
	uint64_t ttl_ns;
};
struct shmlimit_count {
	uint32_t struct_size, reserved32;
	int64_t count, applied;
	uint64_t ttl_ns;
};
struct shmlimit_place {
	uint32_t struct_size, index;
	uint64_t value;
	uint32_t flags;
	int32_t bind_error;
};
struct shmlimit_info {
	uint32_t struct_size, layout_version;
	uint64_t size, slots;
	uint32_t rules, rules_used, on_full, clock, enabled, mode, uid, gid;
	uint64_t created_unix_ns;
	uint32_t rules_max, store_keys;
	uint64_t old_slots, slots_max, undecided_passed, undecided_refused;
	uint64_t slots_asked, unregistered;
};
struct shmlimit_request {
	int32_t rule;
	uint32_t share;
	const void *key;
	size_t key_len;
	uint64_t cost;
	const struct shmlimit_limit *limit;
	struct shmlimit_place *place;
};
struct shmlimit_problem {
	uint64_t offset;
	char text[120];
};
int shmlimit_open(const char *name, uint32_t flags, const struct shmlimit_options *options, struct shmlimit **out);
void shmlimit_close(struct shmlimit *limiter);
int shmlimit_destroy(const char *name);
int shmlimit_gone(struct shmlimit *limiter);
int shmlimit_info(struct shmlimit *limiter, struct shmlimit_info *out);
int shmlimit_rule_set(struct shmlimit *limiter, const char *rule_name, const struct shmlimit_rule *rule);
int shmlimit_rule_ensure(struct shmlimit *limiter, const char *rule_name, const struct shmlimit_rule *rule);
int shmlimit_rule_find(struct shmlimit *limiter, const char *rule_name);
int shmlimit_rule_remove(struct shmlimit *limiter, const char *rule_name);
int shmlimit_rule_parse(const char *text, struct shmlimit_rule *rule, struct shmlimit_problem *wrong);
int shmlimit_rate_from_double(double rate, uint64_t per_ns, uint64_t *refill, uint64_t *period_ns);
int shmlimit_limit_parse(const char *text, struct shmlimit_limit *limit, struct shmlimit_problem *wrong);
int shmlimit_take(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
	struct shmlimit_result *r);
int shmlimit_peek(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
	struct shmlimit_result *r);
int shmlimit_reserve(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t cost,
	uint64_t max_wait_ns, struct shmlimit_result *r);
int shmlimit_charge(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
	struct shmlimit_result *r);
int shmlimit_refund(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t tokens,
	struct shmlimit_result *r);
int shmlimit_decide(struct shmlimit *limiter, uint32_t verb, const struct shmlimit_request *request,
	struct shmlimit_result *r);
int shmlimit_take_all(struct shmlimit *limiter, const struct shmlimit_request *requests, size_t n, size_t *failed,
	struct shmlimit_result *results);
int shmlimit_count(struct shmlimit *limiter, int rule, const void *key, size_t key_len,
	const struct shmlimit_count_request *request, struct shmlimit_count *out);
int shmlimit_enter(struct shmlimit *limiter, int rule, const void *key, size_t key_len, struct shmlimit_place *place,
	struct shmlimit_result *r);
int shmlimit_renew(struct shmlimit *limiter, int rule, const void *key, size_t key_len, struct shmlimit_place *place);
int shmlimit_leave(struct shmlimit *limiter, int rule, const void *key, size_t key_len, const struct shmlimit_place *place);
int shmlimit_pause(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t for_ns);
int shmlimit_paused(struct shmlimit *limiter, int rule, const void *key, size_t key_len, uint64_t *left_ns);
int shmlimit_reset(struct shmlimit *limiter, int rule, const void *key, size_t key_len);
int shmlimit_key_ip_text(const char *text, int nth, unsigned prefix_v4, unsigned prefix_v6, void *key, size_t key_size);
const char *shmlimit_strerror(int error);

struct shmlimit_gate;
struct shmlimit_gate_pending;
struct shmlimit_gate_wrong {
	uint32_t struct_size, offset, length;
	char text[180];
};
struct shmlimit_gate_key {
	uint32_t limit, length;
	const void *bytes;
	uint64_t cost;
	const char *rate;
	uint32_t rate_length, share;
	const struct shmlimit_limit *parsed;
};
struct shmlimit_gate_field {
	const char *name, *value;
	uint32_t name_length, value_length;
};
struct shmlimit_gate_answer {
	uint32_t struct_size, buffer_size;
	char *buffer;
	uint32_t outcome, status;
	int32_t error;
	uint32_t denied_by;
	uint64_t remaining, retry_after_ns;
	uint32_t field_count, reserved32;
	struct shmlimit_gate_field fields[36];
};
struct shmlimit_gate_place {
	uint32_t key;
	int32_t rule;
	struct shmlimit_place place;
};
struct shmlimit_gate_bill {
	uint32_t key, reserved32;
	uint64_t paid;
};
struct shmlimit_gate_held {
	uint32_t struct_size, count;
	uint64_t segment;
	struct shmlimit_gate_place places[16];
	uint32_t bill_count, reserved32;
	struct shmlimit_gate_bill bills[16];
};
int shmlimit_gate_open(const char *spec, struct shmlimit_gate **out);
void shmlimit_gate_close(struct shmlimit_gate *gate);
int shmlimit_gate_check(const char *spec, struct shmlimit_gate_wrong *wrong);
size_t shmlimit_gate_limits(const struct shmlimit_gate *gate);
int shmlimit_gate_forwarded(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n, const char *peer,
	size_t length, const char *field, const char *advice);
int shmlimit_gate_attach(struct shmlimit_gate *gate);
int shmlimit_gate_ask(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
	struct shmlimit_gate_answer *out);
int shmlimit_gate_enter(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
	struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held);
int shmlimit_gate_leave(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
	struct shmlimit_gate_held *held);
int shmlimit_gate_settle(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n, const uint64_t *used,
	struct shmlimit_gate_held *held);
int shmlimit_gate_begin(struct shmlimit_gate *gate, const struct shmlimit_gate_key *keys, size_t n,
	struct shmlimit_gate_answer *out, struct shmlimit_gate_held *held, struct shmlimit_gate_pending **pending);
int shmlimit_gate_poll(struct shmlimit_gate *gate, struct shmlimit_gate_pending *pending, struct shmlimit_gate_answer *out,
	struct shmlimit_gate_held *held);
void shmlimit_gate_cancel(struct shmlimit_gate *gate, struct shmlimit_gate_pending *pending, struct shmlimit_gate_held *held);
]]
