# completion.fish: fish completes the arguments of shmlimit by what bash's file says.
#
# SPDX-License-Identifier: BSD-2-Clause

function __shmlimit_offers
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l offers (bash /usr/share/bash-completion/completions/shmlimit $words "$current" 2>/dev/null)

    if test "$offers[1]" = :files
        __fish_complete_path (string replace -r '^--[a-z-]+=' '' -- "$current")
    else
        printf '%s\n' $offers
    end
end

complete -c shmlimit -f -a '(__shmlimit_offers)'
