# completion.bash: bash completes the arguments of shmlimit, by what its own
# --help says: a command or an option that is new is known here. zsh and fish
# run this file as a program: completion.bash WORD... prints, a line each, what
# the last word could be.
#
# SPDX-License-Identifier: BSD-2-Clause

# The lines of standard input that begin with $1. WHY NOT compgen -W: it expands what
# it is given, and a segment's name can be any text.
_shmlimit_offer()
{
	local line

	while IFS= read -r line; do
		[[ $line == "$1"* ]] && COMPREPLY+=("${_shmlimit_prefix-$(printf %q "$line")}${_shmlimit_prefix+$line}")
	done
}

_shmlimit_commands()
{
	"$1" --help | sed -n 's/^  \([a-z][a-z]*\).*/\1/p' | uniq
}

# What may stand where --help has the word $2; $1 begins it, $3 is the command, $4 the segment, $5 the line of help.
_shmlimit_offer_for()
{
	case $2 in
	NAME) _shmlimit_offer "$1" < <("$3" list 2>/dev/null | sed '1d; s/  .*//') ;;
	RULE) [[ -z $4 ]] || _shmlimit_offer "$1" < <("$3" rule list -- "$4" 2>/dev/null | sed '1d; s/ .*//') ;;
	FILE*)
		[[ -v _shmlimit_prefix ]] && COMPREPLY=(:files) && return
		compopt -o filenames 2>/dev/null       # bash quotes these itself
		mapfile -t COMPREPLY < <(compgen -f -- "$1")
		;;
	COMMAND*) _shmlimit_offer "$1" < <(_shmlimit_commands "$3") ;;
	G) _shmlimit_offer "$1" < <(compgen -g) ;;
	*'|'*) _shmlimit_offer "$1" < <(tr 'A-Z|' 'a-z\n' <<<"$2") ;;
	MODE | WHAT | WHICH)
		_shmlimit_offer "$1" < <(grep -oE '([a-z-]+( \([a-z]+\))?, )*[a-z-]+ or [a-z-]+' <<<"$5" |
			sed 's/ ([a-z]*)//g; s/, /\n/g; s/ or /\n/g')
		;;
	esac
}

_shmlimit()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} at=2 name= help line value word
	local -a command=("${COMP_WORDS[1]}") operands

	COMPREPLY=()
	if [[ ${COMP_WORDS[1]} == --owner ]] && ((COMP_CWORD > 1)); then
		[[ ${COMP_WORDS[2]} == = ]] && COMP_WORDS=("${COMP_WORDS[@]:0:2}" "${COMP_WORDS[@]:3}") && ((COMP_CWORD--))
		if ((COMP_CWORD <= 2)); then
			[[ $cur == = ]] && cur=
			_shmlimit_offer "$cur" < <(compgen -u)
			return
		fi
		COMP_WORDS=("$1" "${COMP_WORDS[@]:3}")
		((COMP_CWORD -= 2))
		command=("${COMP_WORDS[1]}")
	fi
	if ((COMP_CWORD == 1)); then
		_shmlimit_offer "$cur" < <(_shmlimit_commands "$1"; "$1" --help | sed -n 's/^  -., \(--[a-z]*\).*/\1/p')
		return
	fi
	if [[ ${command[0]} == rule || ${command[0]} == global ]]; then
		if ((COMP_CWORD == 2)); then
			_shmlimit_offer "$cur" < <("$1" "${command[0]}" --help | sed -n "s/^  ${command[0]} \([a-z]*\).*/\1/p")
			return
		fi
		command+=("${COMP_WORDS[2]}")
		at=3
	fi
	help=$("$1" "${command[@]}" --help 2>/dev/null) || return
	read -ra operands < <(sed -n "1s/^usage: shmlimit ${command[*]} *\(.*\)\[options\]$/\1/p" <<<"$help")

	# bash takes --rule=login for three words.
	[[ $cur == = ]] && cur= && prev=${COMP_WORDS[COMP_CWORD - 1]}
	[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}

	# The operands before: the first is the segment's name; the values of options are none.
	for ((; at < COMP_CWORD; at++)); do
		word=${COMP_WORDS[at]}
		if [[ $word == -[^-]* || $word == --?* ]]; then
			grep -qE "^  ((-., )?$word|$word, --[a-z-]+) [A-Z]" <<<"$help" && ((at++))
			[[ ${COMP_WORDS[at]} == = ]] && ((at++))
		elif [[ $word != -- ]]; then
			[[ -z $name ]] && name=${word//\\/}
			[[ ${operands[0]} == *...] ]] || operands=("${operands[@]:1}")
		fi
	done
	if [[ $prev == --?* ]] && line=$(grep -E "^  (-., )?$prev [A-Z]" <<<"$help"); then
		value=${line#*"$prev "}
		_shmlimit_offer_for "$cur" "${value%% *}" "$1" "$name" "$line"
	elif [[ $cur == -* ]]; then
		_shmlimit_offer "$cur" < <(sed -n 's/^  \(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p' <<<"$help")
	elif ((${#operands[@]} > 0)); then
		value=${operands[0]#[}
		_shmlimit_offer_for "$cur" "${value%]}" "$1" "$name" ''
	fi
}

# Other shells quote the words themselves, and take --rule=login for one.
_shmlimit_words()
{
	local last=${!#}

	_shmlimit_prefix=
	COMP_WORDS=("$@")
	if [[ $last == --*=* ]]; then
		_shmlimit_prefix=${last%%=*}=
		COMP_WORDS=("${@:1:$#-1}" "${last%%=*}" = "${last#*=}")
	fi
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	_shmlimit "$1"
	((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	_shmlimit_words "$@"
else
	complete -F _shmlimit shmlimit
fi
