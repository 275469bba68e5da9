# awk -f man3.awk -f header.awk HEADER... PAGE.3.in: the manual page of public headers. What they say about their functions,
# structures and constants replaces these lines of PAGE.3.in: @name, @synopsis, @intro (of the first header) and @reference.
#
# A header has comments before what they describe, up to an empty line, or at the end of the line. In them, `x` is an
# argument or member, an empty line begins a paragraph, and lines that begin with a tab are shown as they are, or as a list
# if two spaces or more part a word from its text. "---- Title ----" begins a section; one without functions ends with the
# next structure.
#
# SPDX-License-Identifier: BSD-2-Clause

# Text as mdoc text lines, a sentence on each, of 78 columns at most.
function escaped(s) {
	gsub(/\\/, "\\e", s)
	gsub(/\^/, "\\(ha", s)
	gsub(/~/, "\\(ti", s)
	while (match(s, /(^|[^A-Za-z0-9\\])-[0-9A-Z]/))
		s = substr(s, 1, RSTART + RLENGTH - 3) "\\-" substr(s, RSTART + RLENGTH - 1)
	while (match(s, /`[^`]*`/))
		s = substr(s, 1, RSTART - 1) "\\fI" substr(s, RSTART + 1, RLENGTH - 2) "\\fP" substr(s, RSTART + RLENGTH)
	while (match(s, /[A-Za-z0-9_]*[A-Za-z0-9]\(/))
		s = substr(s, 1, RSTART - 1) "\\fB" substr(s, RSTART, RLENGTH - 1) "\\fP\001" substr(s, RSTART + RLENGTH)
	gsub(/\001/, "(", s)
	return s
}

function line(s) {
	print (s ~ /^[.']/ ? "\\&" : "") s
}

function filled(s,    words, n, i, now) {
	n = split(s, words, / +/)
	now = words[1]
	for (i = 2; i <= n; i++) {
		if (now ~ /[^ ][.?!]\)?$/ && words[i] ~ /^[^a-z]/ || length(now) + 1 + length(words[i]) > 78) {
			line(now)
			now = words[i]
		} else
			now = now " " words[i]
	}
	if (now != "")
		line(now)
}

# A comment at the end of a line, as sentences.
function sentence(s) {
	if (s ~ /^[a-z]+([ ,;:-]|$)/)
		s = toupper(substr(s, 1, 1)) substr(s, 2)
	return s (s == "" || s ~ /[.?!]$/ ? "" : ".")
}

function quoted(s) {
	s = escaped(s)
	gsub(/"/, "\\(dq", s)
	return "\"" s "\""
}

# Lines that began with a tab.
function block(lines,    l, n, i, at, longest, list) {
	n = split(lines, l, "\n")
	for (i = 1; i <= n; i++) {
		at = match(l[i], /[^ ]  +[^ ]/)
		if (l[i] !~ /^ / && at > longest)
			longest = at
		list += l[i] ~ /^ / || at > 0
	}
	if (list < n) {
		print ".Bd -literal -offset indent"
		for (i = 1; i <= n; i++)
			line(escaped(l[i]))
		print ".Ed"
		return
	}
	print ".Bl -tag -width " (longest > 12 ? "Ds" : substr("xxxxxxxxxxxx", 1, longest))
	for (i = 1; i <= n; i++) {
		if (l[i] !~ /^ /) {
			text = l[i]
			at = match(text, /  +/)
			print ".It Li " quoted(substr(text, 1, at - 1))
			text = substr(text, at)
			sub(/^ +/, "", text)
		} else {
			sub(/^ +/, "", l[i])
			text = text " " l[i]
		}
		if (i == n || l[i + 1] !~ /^ /)
			filled(escaped(sentence(text)))
	}
	print ".El"
}

# The paragraphs of a comment. `begun`: text can follow what was printed.
function paragraphs(s, begun,    l, n, i, text, tabbed) {
	n = split(s, l, "\n")
	l[n + 1] = ""
	for (i = 1; i <= n + 1; i++) {
		if (l[i] !~ /^\t/ && tabbed != "") {
			block(tabbed)
			begun = 0
			tabbed = ""
		}
		if (l[i] !~ /^[^\t]/ && text != "") {
			if (!begun)
				print ".Pp"
			filled(escaped(text))
			begun = 0
			text = ""
		}
		if (l[i] ~ /^\t/)
			tabbed = tabbed (tabbed == "" ? "" : "\n") substr(l[i], 2)
		else if (l[i] != "")
			text = text (text == "" ? "" : " ") l[i]
	}
}

function names(    i, last) {
	for (i = 1; i <= items; i++)
		if (thing_kind[item_thing[i]] == "functions") {
			if (last != "")
				print ".Nm " last " ,"
			last = function_name(item_name[i])
		}
	print ".Nm " last
	print ".Nd " description
}

function synopsis(    i, l, at, n, depth, c, argument) {
	for (i = 1; i <= headers; i++)
		print ".In " includes[i]
	for (i = 1; i <= items; i++) {
		if (thing_kind[item_thing[i]] != "functions")
			continue
		l = item_name[i]
		at = index(l, function_name(l) "(")
		c = substr(l, 1, at - 1)
		sub(/ $/, "", c)
		print ".Ft " (c ~ / / ? "\"" c "\"" : c)
		print ".Fo " function_name(l)
		l = substr(l, at + length(function_name(l)) + 1)
		argument = ""
		for (depth = n = 0; (c = substr(l, ++n, 1)) != "" && depth >= 0;) {
			depth += (c == "(") - (c == ")")
			if (depth < 0 || depth == 0 && c == ",") {
				sub(/^ /, "", argument)
				print ".Fa \"" argument "\""
				argument = ""
			} else
				argument = argument c
		}
		print ".Fc"
	}
}

function items_of(t,    i) {
	for (i = 1; i <= items && item_thing[i] != t; i++)
		;
	return i
}

# The items of a thing, as a list.
function members(t, begun,    i, l, n, at, only) {
	i = items_of(t)
	only = thing_kind[t] == "constants" && item_thing[i + 1] != t && item_text[i] == ""
	if (!only)
		paragraphs(thing_doc[t], begun)
	print ".Bl -tag -width Ds"
	for (; item_thing[i] == t; i++) {
		l = item_name[i]
		if (thing_kind[t] != "struct") {
			at = index(l " ", " ")
			gsub(/ = /, " ", l)
			print ".It Dv " substr(l, 1, at - 1) (length(l) > at ? " No = " quoted(substr(l, at + 1)) : "")
		} else if (match(l, /\(\*[a-z_]+\)/))
			print ".It Vt " quoted(l)
		else {
			match(l, /[a-z0-9_]+(\[[^\]]*\])?(, *[a-z0-9_]+(\[[^\]]*\])?)*$/)
			at = substr(l, RSTART)
			gsub(/, */, " , ", at)
			n = substr(l, 1, RSTART - 1)
			print ".It Vt " (n ~ /\*$/ ? "\"" n "\" Ns" : n) " Fa " at
		}
		if (only)
			paragraphs(thing_doc[t], 1)
		else if (item_text[i] ~ /\n/)
			paragraphs(item_text[i], 1)
		else if (item_text[i] != "")
			filled(escaped(sentence(item_text[i])))
		else if (l ~ / reserved/)
			print "Zero."
	}
	print ".El"
}

function functions(t,    i) {
	i = items_of(t)
	printf ".It Fn " function_name(item_name[i])
	while (item_thing[++i] == t)
		printf " , Fn " function_name(item_name[i])
	print ""
	paragraphs(thing_doc[t], 1)
}

# The things of a section; those of no section by their kind.
function part(of, kinds,    t, open) {
	for (t = 1; t <= things; t++) {
		if (thing_section[t] != of || of == 0 && index(kinds, thing_kind[t]) == 0)
			continue
		if (thing_kind[t] != "constants" && !open) {
			print ".Bl -tag -width Ds"
			open = 1
		} else if (thing_kind[t] == "constants" && open) {
			print ".El"
			open = 0
		}
		if (thing_kind[t] == "functions")
			functions(t)
		else if (thing_kind[t] == "constants")
			members(t, 0)
		else {
			print ".It Vt " thing_name[t]
			if (thing_kind[t] == "handle")
				paragraphs(thing_doc[t], 1)
			else
				members(t, 1)
		}
	}
	if (open)
		print ".El"
}

function reference(    s) {
	part(0, "functions")
	for (s = 1; s <= sections; s++) {
		print ".Ss " section_title[s]
		paragraphs(section_text[s], 1)
		part(s)
	}
	print ".Ss Structures"
	part(0, "struct handle")
	print ".Ss Constants"
	part(0, "constants enum")
}

FILENAME ~ /\.in$/ && /^@/ {
	if ($0 == "@name")
		names()
	else if ($0 == "@synopsis")
		synopsis()
	else if ($0 == "@intro")
		paragraphs(intro, 1)
	else if ($0 == "@reference")
		reference()
	else
		fail("unknown line: " $0)
	next
}
FILENAME ~ /\.in$/ { print; next }
