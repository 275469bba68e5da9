#!/bin/sh
# gem: the gem is built and installed with the libraries that a user has installed, and its signatures name what
# there is.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
. "$SOURCE/tools/ruby/tests/ruby.inc"

need make gcc gem
export GEM_HOME="$TMP/gems" HOME="$TMP" LD_LIBRARY_PATH="$BUILD"
unset RUBYLIB MAKEFLAGS MFLAGS MAKELEVEL

run sh -c 'cd "$1" && shift && exec gem build "$@"' gem "$SOURCE/tools/ruby" shmlimit.gemspec -o "$TMP/shmlimit.gem"
is "$rc $(printf '%s\n' "$err" | grep -v -e '^$' -e homepage -e 'for help$')" "0 " "the gem is built, without a warning but that it has no homepage"
# What a user has installed elsewhere would be found.
if [ ! -e /usr/include/shmlimit_gate.h ] && [ ! -e /usr/local/include/shmlimit_gate.h ]; then
	run gem install --local --no-document "$TMP/shmlimit.gem"
	[ "$rc" -ne 0 ] && printf '%s %s\n' "$out" "$err" | grep -q 'libshmlimit-gate is not installed'
	ok $? "without the library it is not installed, and says what is missing"
fi
run gem install --local --no-document "$TMP/shmlimit.gem" -- --with-shmlimit-include="$SOURCE/include" --with-shmlimit-lib="$BUILD"
is "$rc" 0 "the gem is installed"
[ "$rc" -eq 0 ] || diag "$out" "$err" "$(cat "$GEM_HOME"/extensions/*/*/*/mkmf.log "$GEM_HOME"/extensions/*/*/*/gem_make.out 2>/dev/null)"
is "$(cat "$GEM_HOME"/extensions/*/*/shmlimit-*/gem_make.out | grep -i warning)" "" "its extension compiles without a warning"

cat >"$TMP/ask.rb" <<'END_OF_RUBY'
require "shmlimit"

store = Shmlimit::Store.new(ENV.fetch("SEGMENT"), slots: 64)
gate = Shmlimit::Gate.new("segment=#{ENV.fetch('SEGMENT')} create=yes rule=client rate=1/h")
p [store.increment("k"), store.increment("k"), gate.allow?("k"), gate.allow?("k"), Shmlimit::VERSION == Shmlimit::LIBRARY_VERSION]
END_OF_RUBY
run ruby -w "$TMP/ask.rb"
is "$out$err" "[1, 2, true, false, true]" "the installed gem decides, and has its library's version"

# sig/shmlimit.rbs: "class NAME" and the methods within it, as Ruby has them.
cat >"$TMP/signatures.rb" <<'END_OF_RUBY'
require "shmlimit"

names = [Shmlimit, Shmlimit::Limiter, Shmlimit::Gate, Shmlimit::Store, Shmlimit::Middleware, Shmlimit::Result, Shmlimit::Count,
         Shmlimit::Answer, Shmlimit::Place, Shmlimit::Limit, Shmlimit::Error, Shmlimit::OverLimit,
         Shmlimit::GlobalCounts]
common = Object.methods + Module.instance_methods
names.each do |type|
  puts type.singleton_methods(false).map { |name| "#{type}.#{name}" } if type.singleton_class.instance_methods(false).any? && !(type < Struct)
  own = type.instance_methods(false).reject { |name| name.end_with?("=") || name.start_with?("_") || name == :inspect }
  puts own.map { |name| "#{type}##{name}" }
  puts "#{type}#initialize" if type.private_instance_methods(false).include?(:initialize)
end
END_OF_RUBY
ruby "$TMP/signatures.rb" | sort -u >"$TMP/there"
awk '/^  *(class|module|interface) |^module / { name = $2; depth = /^module/ ? "" : "Shmlimit::" }
	/^  end/ { name = "Shmlimit"; depth = "" }
	/^ *interface/ { skip = 1 } /^  end/ { skip = 0 } skip { next }
	/^ *def self\./ { sub(/.*def self\./, ""); sub(/:.*/, ""); print depth name "." $0; next }
	/^ *def / { sub(/.*def /, ""); sub(/: .*/, ""); print depth name "#" $0 }
	/^ *attr_/ { sub(/:$/, "", $2); print depth name "#" $2 }' "$SOURCE/tools/ruby/sig/shmlimit.rbs" | sort -u >"$TMP/signed"
[ "$(wc -l <"$TMP/signed")" -gt 40 ]
ok $? "there are signatures"
is "$(diff "$TMP/there" "$TMP/signed")" "" "the signatures name each public method, and no other"
done_testing
