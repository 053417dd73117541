# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # variables of run; the shells expand
# What the shells complete, typed on a terminal: all that --help has, and for
# Slurm's commands what another completion offers, too.

# ask LINE WORD...: the words that a line's end must be completed to
ask()
{
	echo "$1" >>lines
	shift
	printf '%s\n' "$@" | sort | paste -sd' ' >>wanted
}

# ask_all COMMAND OPTIONS [WORD]: all of --help WORD whose names begin with
# OPTIONS, and the words of those that list them, as all|own
ask_all()
{
	call "$1" --help ${3:+"$3"}
	sed -n 's/^ \{2,6\}\(-[a-z], \)\{0,1\}--/--/p' out |
		grep -e "^$2" |
		sed 's/  .*//; s/^\(--[^ ]*=[^ ]*\) .*/\1/' >options
	sed 's/[ =].*//' options >names
	# shellcheck disable=SC2046 # words
	ask "$1 $2" $(cat names)
	grep '|' options | sed 's/|[A-Z][A-Z]*//' | tr -s ' =[]' ' ' >choices
	while read -r option words; do
		# shellcheck disable=SC2046
		ask "$1 $option=" $(echo "$words" | tr '|' ' ')
	done <choices
}

export PATH="$build/obj/bin:$PATH"
: >lines
: >wanted
for tool in ddp-info ddp-bench ddp-train; do
	test ! -x "$build/obj/bin/$tool" || ask_all "$tool" -- all
done
if test -x "$build/obj/bin/ddp-info"; then
	mkdir nodes
	touch nodes/a.xml nodes/b.xml
	ask 'ddp-info --nodes n1 --topology nodes/' nodes/a.xml nodes/b.xml
	ask 'ddp-info --ddp-gpus o' off own
	ask 'ddp-info --nodes ' ''
fi
if test -x "$build/obj/bin/ddp-bench"; then
	ask 'ddp-bench -d ' int8 uint8 int32 uint32 int64 uint64 half float \
		double bfloat16
	ask 'ddp-bench -o p' prod
fi
test ! -x "$build/obj/bin/ddp-train" || ask 'ddp-train --help=' all
if has PLUGIN && command -v srun >/dev/null; then
	export SLURM_CONF="$scratch/slurm.conf"
	printf '%s\n' ClusterName=test SlurmctldHost=localhost \
		"PlugStackConfig=$scratch/plugstack.conf" >slurm.conf
	echo "required $build/obj/plugin/spank_ddp.so" >plugstack.conf
	# Slurm's own completion, which comes with any of its commands, knows
	# one option.
	mkdir -p own/completions own/zsh
	cat >own/completions/squeue <<-'END'
	_own() { COMPREPLY=($(compgen -W '--own=' -- "$2")); }
	complete -o nospace -F _own squeue srun sbatch salloc
	END
	cp own/completions/squeue own/completions/sbatch
	printf '%s\n' '#compdef sbatch srun squeue' '_arguments --own=:value:' \
		>own/zsh/_slurm
	ask 'sbatch --o' --own
	ask_all srun --ddp
	sort -u names >wanted.options
	sed -n '/^\.SH OPTIONS/,/^\.SH TASKS/p' "$top/plugin/slurm-ddp.7" |
		awk '/^\.TP/ { tag = 2 } tag-- == 1' |
		sed 's/\\f.//g; s/\\-/-/g' | options >had.options
	check 'slurm-ddp.7 has the options of srun --help' \
		diff wanted.options had.options
	ask 'squeue --' --own
	ask 'salloc --' --ddp --ddp-port --ddp-gpus --ddp-cpus --ddp-order --ddp-env \
		--ddp-supervise --ddp-report --ddp-grace --ddp-logs --ddp-show \
		--ddp-signal --ddp-restarts --ddp-spares --ddp-watchdog \
		--ddp-check --own
	ask 'srun --ddp=explain,' explain,dry-run \
		explain,torchrun explain,srun explain,on explain,off \
		explain,help
	ask 'srun -N2 --ddp-gpus s' share
else
	skip 'the options of srun' 'there is no srun, or no plugin'
fi

cat >bash.setup <<END
BASH_COMPLETION_USER_DIR=$scratch/own
. /usr/share/bash-completion/bash_completion
. $top/contrib/completions/slurm-ddp
bind 'set completion-query-items 0'
write_line() { printf '%s\n' "\$READLINE_LINE" >line.new; mv line.new line; }
bind '"\\e*": insert-completions'
bind -x '"\\ep": write_line'
END
cat >zsh.setup <<END
fpath=($top/contrib/completions $scratch/own/zsh \$fpath)
autoload -Uz compinit && compinit -u -D
zstyle ':completion:all:*' completer _all_matches _complete
zstyle ':completion:all:*' insert true
write_line() { print -r -- "\$BUFFER" >line.new; mv line.new line; }
zle -C all complete-word _generic
zle -N write_line
bindkey '\\e*' all
bindkey '\\ep' write_line
bindkey '^U' kill-whole-line
END
for shell in bash zsh; do
	if ! command -v "$shell" >/dev/null ||
		test ! -f /usr/share/bash-completion/bash_completion; then
		skip "completions in $shell" \
			'there is no zsh, or no bash-completion'
		continue
	fi
	/usr/bin/python3 "$here/type.py" "$shell" "$scratch/$shell.setup" \
		<lines >had 2>err
	: >out
	paste -d: lines wanted >want.lines
	paste -d: lines had >had.lines
	check "$shell completes what --help has" diff want.lines had.lines
done
