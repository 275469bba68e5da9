# awk -f abi.awk -f tools/header.awk HEADER...: a C program that prints what programs built with the headers rely on, a line
# each: functions as they are declared, without the names of their arguments; sizes of structures and offset, size and type
# of their members; values of constants.
#
# SPDX-License-Identifier: BSD-2-Clause

function type_of(argument) {
	if (argument !~ /[(]/ && argument ~ /[a-z0-9_] +\**[a-z0-9_]+(\[[^]]*\])?$/ && argument !~ /^(struct|const) [a-z0-9_]+$/) {
		match(argument, /[a-z0-9_]+(\[[^]]*\])?$/)
		name = substr(argument, RSTART)
		sub(/^[a-z0-9_]+/, "", name)
		argument = substr(argument, 1, RSTART - 1) name
		sub(/ $/, "", argument)
	}
	return argument
}

# Without names: those of a callback's own arguments stay.
function signature(l,    at, n, c, depth, argument, s) {
	at = index(l, "(")
	s = substr(l, 1, at)
	l = substr(l, at + 1)
	for (depth = n = 0; (c = substr(l, ++n, 1)) != "" && depth >= 0;) {
		depth += (c == "(") - (c == ")")
		if (depth < 0 || depth == 0 && c == ",") {
			sub(/^ /, "", argument)
			s = s (s ~ /\($/ ? "" : ", ") type_of(argument)
			argument = ""
		} else
			argument = argument c
	}
	return s ")"
}

END {
	if (failed)
		exit 1
	print "#include <stdio.h>"
	print "#define NUMBER(x) printf(\"%s %lld\\n\", #x, (long long)(x))"
	print "#define STRUCT(s) printf(\"%s %zu\\n\", #s, sizeof(s))"
	print "#define MEMBER(s, m, t) printf(\"\\t%zu %zu %s\\n\", offsetof(s, m), sizeof(((s *)0)->m), t)"
	for (i = 1; i <= headers; i++)
		print "#include \"" includes[i] "\""
	print "int main(void)\n{"
	for (i = 1; i <= items; i++) {
		t = item_thing[i]
		l = item_name[i]
		if (thing_kind[t] == "functions")
			print "\tputs(\"" signature(l) "\");"
		else if (thing_kind[t] == "struct") {
			if (t != item_thing[i - 1])
				print "\tSTRUCT(" thing_name[t] ");"
			match(l, /\(\*[a-z0-9_]+\)/)
			if (RSTART > 0)
				print "\tMEMBER(" thing_name[t] ", " substr(l, RSTART + 2, RLENGTH - 3) ", \"" l "\");"
			else {
				match(l, /[a-z0-9_]+(\[[^]]*\])?(, *[a-z0-9_]+(\[[^]]*\])?)*$/)
				type = substr(l, 1, RSTART - 1)
				n = split(substr(l, RSTART), names, /, */)
				for (k = 1; k <= n; k++) {
					member = names[k]
					sub(/\[.*/, "", member)
					print "\tMEMBER(" thing_name[t] ", " member ", \"" type names[k] "\");"
				}
			}
		} else if (l !~ /^SHMLIMIT_VERSION /) {
			sub(/ .*/, "", l)
			print "\tNUMBER(" l ");"
		}
	}
	print "}"
}
