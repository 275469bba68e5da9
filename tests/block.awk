# block.awk: prints an example of a page, whose name is `page`. In Markdown these are fenced blocks and indented ones, in
# mdoc literal displays. The language is what the fence has, "plain", "indented" or "mdoc".
#
# From the environment come $language and $text: the first example of that language that has the text. With $list each
# example is a line: the language, a tab, and the block with \1 for each end of a line.
#
# SPDX-License-Identifier: BSD-2-Clause

function begin(kind) {
	inside = kind
	block = ""
}
function end(kind) {
	kind = inside
	inside = ""
	if (ENVIRON["list"]) {
		gsub(/\n/, "\1", block)
		print kind "\t" block
	} else if (kind == ENVIRON["language"] && index(block, ENVIRON["text"])) {
		printf "%s", block
		exit
	}
}

page !~ /\.md$/ {
	if (/^\.Bd -literal/)
		begin("mdoc")
	else if (/^\.Ed/ && inside)
		end()
	else if (/^\.Dl /) {
		begin("mdoc")
		block = substr($0, 5) "\n"
		end()
	} else if (inside) {
		gsub(/\\&/, "")
		gsub(/\\e/, "\\")
		block = block $0 "\n"
	}
	next
}
inside == "indented" && !/^    / { end() }
/^```/ && inside { end(); before = "```"; next }
/^```/ { begin(length($0) > 3 ? substr($0, 4) : "plain"); next }
/^    / && !inside && before == "" { begin("indented") }
inside { block = block (inside == "indented" ? substr($0, 5) : $0) "\n" }
{ before = $0 }
END { if (inside) end() }
