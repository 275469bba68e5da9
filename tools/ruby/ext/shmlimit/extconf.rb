# frozen_string_literal: true

# SPDX-License-Identifier: BSD-2-Clause
require "mkmf"

dir_config("shmlimit")
pkg_config("shmlimit-gate")
# A gem from tools/bundles.mk has the libraries' sources, which are built where no library is installed.
sources = File.expand_path("../../sources", __dir__)
if !find_executable("pkg-config") || !system("pkg-config --exists shmlimit-gate", err: File::NULL)
  if with_config("shmlimit-include").nil? && File.exist?("#{sources}/Makefile") &&
     system("make -s -C #{sources} SHARED=1 BUNDLE=1 lib >&2")
    find_header("shmlimit_gate.h", "#{sources}/include")
    $LDFLAGS << " -L#{sources}/build -Wl,-rpath,#{sources}/build"
  end
end
found = have_header("shmlimit_gate.h") && have_library("shmlimit", "shmlimit_take") &&
        have_library("shmlimit-gate", "shmlimit_gate_open")
unless found
  abort "libshmlimit-gate is not installed: run `make && sudo make install` in shmlimit's sources, or name its folders: " \
        "--with-shmlimit-include=DIR --with-shmlimit-lib=DIR"
end
have_func("rb_ext_ractor_safe", "ruby/ruby.h")
append_cflags(["-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-fvisibility=hidden"])
# Ruby never unloads it; a process that has Ruby loaded as a plug-in may.
append_ldflags("-Wl,-z,nodelete")
create_makefile("shmlimit/native")
