/*
 * shared: what outlives requests. See php_shmlimit.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "php_shmlimit.h"

static void unref(struct shared *item)
{
	if (--item->refs == 0)
		item->destroy(item);
}

/* The table's own reference. */
static void drop(zval *entry)
{
	struct shared *item = Z_PTR_P(entry);

	item->kept = false;
	unref(item);
}

void shared_table_begin(HashTable *table)
{
	zend_hash_init(table, 8, NULL, drop, 1);
}

void shared_table_end(HashTable *table)
{
	zend_hash_destroy(table);
}

struct shared *shared_find(HashTable *table, const zend_string *name)
{
	struct shared *item = zend_hash_find_ptr(table, (zend_string *)name);

	if (item != NULL)
		item->refs++;
	return item;
}

static int is_unused(zval *entry)
{
	return ((struct shared *)Z_PTR_P(entry))->refs == 1 ? ZEND_HASH_APPLY_REMOVE : ZEND_HASH_APPLY_KEEP;
}

void shared_add(HashTable *table, const zend_string *name, struct shared *item)
{
	zend_string *copy;

	item->refs = 1;
	if (zend_hash_num_elements(table) >= SHARED_MAX)
		zend_hash_apply(table, is_unused);
	item->kept = zend_hash_num_elements(table) < SHARED_MAX;
	if (!item->kept)
		return;
	item->refs++;
	copy = zend_string_init(ZSTR_VAL(name), ZSTR_LEN(name), 1);
	zend_hash_update_ptr(table, copy, item);
	zend_string_release(copy);
}

void shared_forget(HashTable *table, const zend_string *name)
{
	zend_hash_del(table, (zend_string *)name);
}

void shared_release(struct shared *item)
{
	unref(item);
}
