# header.awk: reads public headers for the awk program that is given with it: man3.awk, or abi.awk of tests/build. What the
# headers declare becomes a list of things, in order: functions, constants, structures, enumerations and handles. Each has
# the comment before it, and its items: a function, constant or member each, with the comment at the end of its line. A
# thing ends with an empty line.
#
# SPDX-License-Identifier: BSD-2-Clause

function begin_thing(kind) {
	things++
	if (kind == "functions")
		has_functions[section] = 1
	else if (kind ~ /struct|handle/ && !has_functions[section])
		section = 0
	thing_kind[things] = kind
	thing_doc[things] = doc
	thing_section[things] = section
	doc = ""
}

function begin_section(title, text) {
	sections++
	section = sections
	section_title[section] = title
	section_text[section] = text
}

# The comment that stands before something.
function read_comment(text,    title) {
	if (!seen_intro) {
		seen_intro = 1
		sub(/\n\nSPDX.*/, "", text)
		title = text
		sub(/\n.*/, "", title)
		sub(/^[^\n]*\n+/, "", text)
		sub(/^[a-z_]+: /, "", title)
		sub(/\.$/, "", title)
		if (headers == 1) {
			description = title
			intro = text
		} else
			begin_section("The header " header, toupper(substr(title, 1, 1)) substr(title, 2) ".\n\n" text)
		return
	}
	if (text ~ /^---- /) {
		title = text
		sub(/\n.*/, "", title)
		sub(/^---- /, "", title)
		sub(/ -+$/, "", title)
		sub(/^[^\n]*\n*/, "", text)
		begin_section(title, text)
		return
	}
	doc = text
}

function fail(text) {
	print FILENAME ":" FNR ": " text >"/dev/stderr"
	exit failed = 1
}

function add_item(name, text) {
	if (thing_kind[things] == "functions" && name !~ /[ *]shmlimit_[a-z0-9_]+\(/)
		fail("neither a function nor anything else that a header has: " name)
	items++
	item_thing[items] = things
	item_name[items] = name
	item_text[items] = text
}

# A declaration's comment at its end, and the declaration without it.
function inner(s) {
	if (!match(s, /\/\*.*\*\//))
		return ""
	s = substr(s, RSTART + 2, RLENGTH - 4)
	gsub(/[ \t\n]+/, " ", s)
	gsub(/^ | $/, "", s)
	return s
}

function outer(s) {
	sub(/\/\*.*\*\//, "", s)
	gsub(/[ \t\n]+/, " ", s)
	gsub(/^ | $/, "", s)
	return s
}

FNR == 1 {
	if (in_comment || partial != "")
		fail("the header before this one ends within a declaration")
	header = FILENAME
	sub(/.*\//, "", header)
	includes[++headers] = header
	seen_intro = section = 0
	doc = kind = ""
}

# Comments, and whatever goes on in the next line.
in_comment {
	l = $0
	ends = sub(/ *\*\/.*/, "", l)
	sub(/^[ \t]*\* ?/, "", l)
	if (!(ends && l ~ /^[ \t]*$/))
		comment = comment (comment == "" ? "" : "\n") l
	if (ends) {
		in_comment = 0
		read_comment(comment)
	}
	next
}
partial != "" {
	l = $0
	sub(/^[ \t]*(\* )?/, "", l)
	$0 = partial " " l
	partial = ""
}
/^\t?\/\*$/ { comment = ""; in_comment = 1; next }
/^\t?\/\*.*\*\/$/ { read_comment(inner($0)); next }
/\/\*/ && !/\*\// { partial = $0; next }

/^#if.*__cplusplus/ { skipping = 1 }
skipping { skipping = !/^#endif/; next }
/^#(if|include|endif)/ || /^#define [A-Z_]+_H$/ { next }

/^$/ { doc = ""; if (kind == "constants" || kind == "functions") kind = ""; next }

/^#define / {
	if (kind != "constants" || doc != "")
		begin_thing("constants")
	kind = "constants"
	l = outer($0)
	sub(/^#define /, "", l)
	add_item(l, inner($0))
	next
}
/^(struct|enum) [a-z_]+;$/ {
	begin_thing("handle")
	thing_name[things] = substr($0, 1, length($0) - 1)
	next
}
/^(struct|enum) [a-z_]+ *\{$/ {
	begin_thing($1)
	kind = $1
	thing_name[things] = $1 " " $2
	next
}
/^};/ { kind = doc = ""; next }
kind == "struct" || kind == "enum" {
	l = outer($0)
	if (kind == "struct" && l !~ /;$/) { partial = $0; next }
	sub(/[;,]$/, "", l)
	text = inner($0)
	if (doc != "") {
		text = doc (text == "" ? "" : "\n" text)
		doc = ""
	}
	add_item(l, text)
	next
}
{
	if ($0 !~ /;$/) { partial = $0; next }
	if (kind != "functions" || doc != "")
		begin_thing("functions")
	kind = "functions"
	add_item(outer($0), "")
}

END {
	if (!failed && (in_comment || partial != ""))
		fail("the header ends within a declaration")
}

function function_name(declaration) {
	match(declaration, /shmlimit_[a-z0-9_]*\(/)
	return substr(declaration, RSTART, RLENGTH - 1)
}
