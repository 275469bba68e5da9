#!/bin/sh
# completion: bash offers what the command takes: all of it, and nothing else.
#
# SPDX-License-Identifier: BSD-2-Clause
. "${0%/*}/../tap.sh"
need bash
cd "$TMP" || exit

cat >complete.bash <<'BASH'
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_shmlimit shmlimit
printf '%s\n' "${COMPREPLY[@]}"
BASH
# offered WORD...: for the last word, what is offered, sorted.
offered() { bash --norc complete.bash "$SOURCE/tools/shmlimit/completion.bash" "$@" 2>"$TMP/.err" | sort | tr '\n' ' '; }

segment=$SEGMENT.s
shmlimit create "$segment" --slots 16
shmlimit rule set "$segment" login --capacity 1 --rate 1/s
shmlimit rule set "$segment" logout --capacity 1 --rate 1/s
shmlimit rule set "$segment" mail --capacity 1 --rate 1/s

commands=$(shmlimit --help | sed -n 's/^  \([a-z ]*[a-z]\) *[A-Z]*.*/\1/p' | sed 's/   *.*//; s/ /_/g')
is "$(offered shmlimit '')" "$( (printf '%s\n' $commands | sed 's/_.*//'; printf '%s\n' --help --version --owner) | sort -u | tr '\n' ' ')" \
	"each command is offered"
is "$(offered shmlimit re)" "$(printf '%s\n' $commands | grep '^re' | sort | tr '\n' ' ')" "of those that begin so"
is "$(offered shmlimit help rep)" "replay " "help completes commands"
is "$(offered shmlimit rule '')" "export list remove set show " "help completes the subcommands of rule"
for c in $commands; do
	words=$(echo "$c" | tr _ ' ')
	is "$(offered shmlimit $words --)" \
		"$(shmlimit $words --help | sed -n 's/^  \(-., \)*\(--[a-z-]*\).*/\2/p' | sort | tr '\n' ' ')" \
		"$words: each option is offered"
	is "$(cat .err)" "" "$words: without a complaint"
done

is "$(offered shmlimit take "$SEGMENT")" "$segment " "a segment is offered where one is wanted"
is "$(offered shmlimit take "$segment" lo)" "login logout " "rules are offered after the segment"
is "$(offered shmlimit take --cost 2 --json "$segment" m)" "mail " "behind options and their values, too"
shmlimit create "$SEGMENT.a b" --slots 16
shmlimit rule set "$SEGMENT.a b" page --capacity 1 --rate 1/s
is "$(offered shmlimit take "$SEGMENT.a\\ b" '')" "page " "of a segment whose name has to be quoted, too"
is "$(offered shmlimit rule show "$segment" '')" "login logout mail " "as for commands of two words"
is "$(offered shmlimit inspect "$segment" --rule lo)" "login logout " "rules are offered as the value of an option"
is "$(offered shmlimit inspect "$segment" --rule = lo)" "login logout " "however it is given"
is "$(offered shmlimit stat -i 2 "$segment" --rule lo)" "login logout " "the value of a letter is no operand"
is "$(offered shmlimit take "$segment" login '')" " " "a key is nobody's to guess"
is "$(offered shmlimit take "$segment" login key lo)" "login logout " "behind a key of take, a rule of another limit is offered"
is "$(offered shmlimit peek "$segment" login key '')" " " "behind the last operand nothing is offered"
is "$(offered shmlimit none --)" " " "nothing is offered for a command that does not exist"
: >access.log
: >access.log.1
is "$(offered shmlimit replay acc)" "access.log access.log.1 " "files are offered where they are wanted"
is "$(offered shmlimit replay access.log acc)" "access.log access.log.1 " "any number of them"
is "$(offered shmlimit metrics --all --output acc)" "access.log access.log.1 " "files are offered as the value of an option"
like " $(offered shmlimit create x --group ro)" " root " "groups are offered"
like " $(offered shmlimit --owner ro)" " root " "users are offered"
like " $(offered shmlimit --owner = ro)" " root " "users are offered behind an equals sign"
is "$(offered shmlimit --owner root rule '')" "export list remove set show " "a command is completed behind --owner USER"
is "$(offered shmlimit --owner = root take "$segment" lo)" "login logout " "its operands are completed behind --owner=USER"

# choices WANT SET... : what is offered for the last word is this, and each is taken.
choices() {
	want=$1
	shift
	is "$(offered shmlimit "$@" '')" "$want" "$*: these are offered"
	for choice in $want; do
		[ "$1" = create ] && set -- create "$SEGMENT.$choice" --slots=16 "$4"
		run shmlimit "$@" "$choice"
		is "$rc $err" "0 " "$* $choice: and taken"
	done
}
choices "allow deny evict " create "$SEGMENT.x" --slots=16 --on-full
choices "coarse precise " create "$SEGMENT.x" --slots=16 --clock
choices "block dry-run enforce off " rule set "$segment" mail --mode
choices "no yes " rule set "$segment" mail --next-pays
is "$(offered shmlimit rule set "$segment" new --algorithm '')" "counter funnel gcra hold lease warmup window " "algorithms are offered"
is "$(offered shmlimit create x --mode '')" " " "permissions are not"

# zsh and fish: as bash, of which they ask.
is "$(bash "$SOURCE/tools/shmlimit/completion.bash" shmlimit take "$SEGMENT.a b" '')" page "run as a program, bash's file takes words as they are"
is "$(bash "$SOURCE/tools/shmlimit/completion.bash" shmlimit take "$SEGMENT.a ")" "$SEGMENT.a b" "run as a program, bash's file quotes nothing"
sed "s|/usr/share/bash-completion/completions/shmlimit|$SOURCE/tools/shmlimit/completion.bash|" \
	"$SOURCE/tools/shmlimit/completion.zsh" >_shmlimit
cat >complete.zsh <<'ZSH'
compadd() { shift; print -l -- "$@" }
_files() { print files }
words=("$@")
CURRENT=$#
complete() { source ./_shmlimit }
complete
ZSH
sed "s|/usr/share/bash-completion/completions/shmlimit|$SOURCE/tools/shmlimit/completion.bash|" \
	"$SOURCE/tools/shmlimit/completion.fish" >shmlimit.fish
zsh_offered() { zsh -f complete.zsh "$@" | sort | tr '\n' ' '; }
# fish completes a line of text.
fish_offered() { HOME=$TMP fish --no-config -c 'source shmlimit.fish; complete -C "$argv"' -- "$*" | sort | tr '\n' ' '; }
for shell in zsh fish; do
	command -v $shell >/dev/null || continue
	is "$(${shell}_offered shmlimit re)" "$(offered shmlimit re)" "$shell offers commands"
	is "$(${shell}_offered shmlimit rule se)" "set " "$shell offers the second word"
	is "$(${shell}_offered shmlimit take "$segment" lo)" "login logout " "$shell offers rules"
	is "$(${shell}_offered shmlimit stat "$segment" --c)" "--count " "$shell offers options"
	is "$(${shell}_offered shmlimit inspect "$segment" --rule lo)" "login logout " "$shell offers the value of an option"
	is "$(${shell}_offered shmlimit inspect "$segment" --rule=lo)" "--rule=login --rule=logout " \
		"$shell offers it behind an equals sign"
	is "$(${shell}_offered shmlimit none --)" "" "$shell offers nothing for a command that there is not"
done
if command -v zsh >/dev/null; then
	is "$(zsh_offered shmlimit replay acc)" "files " "zsh offers files"
	is "$(zsh_offered shmlimit take "$SEGMENT.a\\ b" '')" "page " "zsh takes the quotes off"
fi
if command -v fish >/dev/null; then
	is "$(fish_offered shmlimit replay acc)" "access.log access.log.1 " "fish offers files"
	is "$(fish_offered shmlimit take "$SEGMENT.a\\ b" pa)" "page " "fish takes the quotes off"
fi

# A name is only text, whatever it looks like.
shmlimit create "$SEGMENT.\$(touch ran)" --slots 16
is "$(offered shmlimit take "$SEGMENT.\$")" "$SEGMENT.\\\$\\(touch\\ ran\\) " "a segment's name is offered quoted"
offered shmlimit take "$SEGMENT.\$(touch ran)" '' >/dev/null
is "$(ls ran 2>&1)" "$(ls none 2>&1 | sed s/none/ran/)" "a segment's name is not run by the shell"

done_testing
