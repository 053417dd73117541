# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2034 # variables of run and cluster.sh
# What the rows share: the layouts in which a program has to find one world.

# Many ranks that import a framework at once take their time.
patience=80

# words FILE: print the last words of the first rank that failed, or all
words()
{
	awk '{ rank = $1; sub(/^[0-9]+: /, "") }
		/^Traceback/ && first == "" { first = rank }
		rank == first { text[n++] = $0 }
		END { for (i = n > 18 ? n - 18 : 0; i < n; i++) print text[i] }' "$1"
}

# one_world HOSTS FILE: whether the ranks' lines in FILE.out, which report.py
# prints, are those of one world, whose ranks 0, 1, ... run on these hosts, each
# with a GPU of its own
one_world()
{
	sed -n 's/^[0-9]*: rank //p' "$2.out" | sort -n | awk -v hosts="$1" '
	BEGIN { size = split(hosts, host) }
	{
		had = had "had " $0 "\n"
		bad = bad || $0 != NR - 1 " " size " " size * (size - 1) / 2 \
			" " host[NR] " " $5 || seen[$4, $5]++
	}
	END {
		if (!bad && NR == size)
			exit 0
		printf "wanted RANK %d %d HOST GPU, ranks on %s\n%s", size,
			size * (size - 1) / 2, hosts, had
		exit 1
	}' >why && return
	words "$2.err" >>why
	return 1
}

# world LAYOUT COMMAND...: as a user starts it in the layout, it makes one world
world()
{
	layout=$1
	shift
	rm -f -- *.out *.err
	case $layout in
	even)
		hosts='n1 n1 n2 n2'
		call login srun -l --ddp -N2 --gres=gpu:2 "$@" ;;
	uneven)
		hosts='n1 n1 n2'
		call login srun -l --ddp -N2 -n3 --gres=gpu:2 "$@" ;;
	hostfile)
		hosts='n2 n1 n1 n2'
		printf '%s\n' $hosts >hostfile
		call login env SLURM_HOSTFILE=hostfile \
			srun -l --ddp -n4 --gres=gpu:2 "$@" ;;
	heterogeneous)
		hosts='n2 n1 n1'
		call login srun -l --ddp -w n2 -n1 --gres=gpu:2 "$@" : \
			-w n1 -n2 --gres=gpu:2 "$@" ;;
	two)
		hosts='n1 n2'
		call login salloc -Q -N2 -n4 --gres=gpu:2 sh -c '
			for step in first second; do
				srun -l --overlap --ddp -N2 -n2 --gres=gpu:1 \
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
	result $? "$layout: $*"
}
