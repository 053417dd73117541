# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2034,SC2016,SC2086 # see run; other shells expand;
# several words
# What the rows share: the layouts in which a program has to find one world.

# Many ranks that import a framework at once take their time.
patience=80

# words FILE: print the last words of the first rank that failed
words()
{
	awk '{ rank = /^[0-9]+: / ? $1 : ""; sub(/^[0-9]+: /, "") }
		/^Traceback/ && !found++ { first = rank }
		found && rank == first { text[n++] = $0 }
		END { for (i = n > 18 ? n - 18 : 0; i < n; i++) print text[i] }' "$1"
}

# one_world HOSTS FILE: whether the ranks' lines in FILE.out, which report.py
# prints, are those of one world, whose ranks 0, 1, ... run on these hosts, each
# with GPUs of its own
one_world()
{
	sed -n 's/^\([0-9]*: \)\{0,1\}rank //p' "$2.out" | sort -n | awk -v hosts="$1" '
	BEGIN { size = split(hosts, host) }
	{
		had = had "had " $0 "\n"
		bad = bad || $0 != NR - 1 " " size " " size * (size - 1) / 2 \
			" " host[NR] " " $5
		for (n = split($5, gpu, ","); n > 0; n--)
			bad = bad || seen[$4, gpu[n]]++
	}
	END {
		if (!bad && NR == size)
			exit 0
		printf "wanted RANK %d %d HOST GPUS, ranks on %s\n%s", size,
			size * (size - 1) / 2, hosts, had
		exit 1
	}' >why && return
	words "$2.err" >>why
	return 1
}

# world LAYOUT COMMAND...: as a user starts it in the layout, with $options for
# srun, it makes one world. In the layout "itself" it calls Slurm itself.
export options=
world()
{
	layout=$1
	shift
	rm -f -- *.out *.err
	case $layout in
	even)
		hosts='n1 n1 n2 n2'
		call login srun -l --ddp $options -N2 --gres=gpu:2 "$@" ;;
	uneven)
		hosts='n1 n1 n2'
		call login srun -l --ddp $options -N2 -n3 --gres=gpu:2 "$@" ;;
	hostfile)
		hosts='n2 n1 n1 n2'
		echo "$hosts" | tr ' ' '\n' >hostfile
		call login env SLURM_HOSTFILE=hostfile \
			srun -l --ddp $options -n4 --gres=gpu:2 "$@" ;;
	heterogeneous)
		hosts='n2 n1 n1'
		call login srun -l --ddp $options -w n2 -n1 --gres=gpu:2 "$@" : \
			$options -w n1 -n2 --gres=gpu:2 "$@" ;;
	itself)
		hosts='n1 n1 n2 n2'
		call login "$@" ;;
	two)
		hosts='n1 n2'
		call login salloc -Q -N2 -n4 --gres=gpu:2 sh -c '
			for step in first second; do
				srun -l --overlap --ddp $options -N2 -n2 --gres=gpu:1 \
					"$@" >$step.out 2>$step.err &
			done
			wait' sh "$@" ;;
	esac
	if test "$layout" = two; then
		one_world "$hosts" first && one_world "$hosts" second
	else
		ln out step.out
		ln err step.err
		one_world "$hosts" step
	fi && test "$status" -eq 0
	result $? "$layout: ${options:+$options }$*"
	options=
}
