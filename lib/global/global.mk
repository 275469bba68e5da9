# global.mk: the library for many hosts. Only it has a network, hiredis and TLS. The command and the gate have it within them
# where it is here, and do without it where it is not.
#
# SPDX-License-Identifier: BSD-2-Clause

need_global := $(call packages,global) redis-tools openssl

global_rooms := redis host agent api
room_flags += $(addprefix -Ilib/global/,$(global_rooms))
global_obj := $(foreach r,$(global_rooms),$(call obj,lib/global/$(r)))
global_libs := $(if $(BUNDLE),-l:libhiredis.a -l:libssl.a -l:libcrypto.a -ldl -pthread,-lhiredis -lssl -lcrypto)
global_so := $(O)/libshmlimit-global.so.$(VERSION)
global_a := $(O)/libshmlimit-global.a
# What is linked with it has no other reason to name it: each reference to it is a weak one. WHY NOT -u with the shared
# library: ld wants that symbol defined in the program then.
global_used := $(if $(SHARED),-Wl$(comma)--no-as-needed $(global_so),-Wl$(comma)-u$(comma)shmlimit_global_open $(global_a))

library_names += libshmlimit-global
title_libshmlimit-global := one rate limit for many hosts, through Redis or Valkey
requires_libshmlimit-global := shmlimit
private_libshmlimit-global := hiredis libssl
man3 += $(O)/man/shmlimit_global.3

built_global := $(global_a) $(global_so)
lib: $(built_global)
copies := $(addprefix $(O)/lib/base/,sized.o hash.o holder.o)
# It copies structures in and out, hashes and asks whether a process is dead as libshmlimit does, by copies of the same files.
$(global_a): $(global_obj) $(copies)
$(global_so): $(global_obj) $(copies) $(lib_so) lib/global/shmlimit_global.map
$(global_so): private own_libs := $(stay_loaded) $(global_libs)

# In a group of the core they are linked with what they are about, besides.
$(O)/tests/global/%.t: $(O)/tests/global/%.o $(global_obj) $(lib_obj)
	$(CC) $(all_ldflags) -o $@ $^ $(global_libs) -pthread
$(O)/tests/thread/global.t: $(O)/tests/thread/global.o $(global_obj) $(lib_obj)
	$(CC) $(all_ldflags) -o $@ $^ $(global_libs) -pthread
# What waits for an agent sleeps and wakes under the scheduler too.
$(O)/tests/schedule/mailbox.t: test_wrap := -Wl,--wrap=syscall,--wrap=clock_gettime,--wrap=getpid
$(O)/tests/schedule/mailbox.t: $(O)/points/lib/global/host/mailbox.o
# It runs a simulation, where that can be built.
$(O)/tests/global/shares.t: | $(if $(call lacking,demo bench)$(SAN),,$(O)/bench/shares)
$(O)/fuzz/url: $(O)/lib/global/redis/errors.o $(O)/lib/global/redis/url.o
$(O)/fuzz/mailbox: $(O)/lib/global/host/mailbox.o
