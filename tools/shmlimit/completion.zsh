#compdef shmlimit
# completion.zsh: zsh completes the arguments of shmlimit by what bash's file says.
#
# SPDX-License-Identifier: BSD-2-Clause

local -a offers

offers=("${(@f)$(bash /usr/share/bash-completion/completions/shmlimit "${(@Q)words[1,CURRENT]}" 2>/dev/null)}")
if [[ $offers[1] == :files ]]; then
	_files
elif [[ -n $offers[1] ]]; then
	compadd -- "${offers[@]}"
fi
