# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# The job under Slurm, on two nodes: who is where, what goes wrong, how it ends.

if test -n "$why"; then
	skip 'libddp on two nodes' "$why"
	return 0
fi
program job || exit 1
cluster --nodes 2 --cpus 8

# two [OPTION...] CMD...: a step of two nodes with two ranks each
two()
{
	login srun --mpi=pmix -N2 --ntasks-per-node=2 "$@"
}

# world NAME: the lines of show are those of a world that Slurm says is there. Its
# mpi/pmix can say of a node at the end that another has ended before.
world()
{
	sort -n out | awk '
	{ host[NR - 1] = $9; row[NR - 1] = $0; rank[NR - 1] = $7; at[NR - 1] = $8 }
	END {
		for (r = 0; r < NR; r++) {
			h = host[r]
			if (!(h in node))
				node[h] = 0 + nodes++
			local[r] = 0 + count[h]++
			place[r] = h "/" 0 + node[h] "/" local[r]
			map = map " " place[r]
		}
		for (r = 0; r < NR; r++) {
			want = r " " NR " " local[r] " " count[host[r]] " " \
				0 + node[host[r]] " " nodes " " r " " local[r] \
				" " host[r] map
			if (row[r] != want) {
				print "have " row[r] ", want " want
				bad = 1
			}
		}
		exit bad || !NR
	}' >why && test "$status" -eq 0 && ! grep -qv \
		'mpi/pmix.* pmixp_read_buf: .*: Connection reset by peer (104)$' err
	result $? "$1"
}

# shows NAME RANKS OPTION...: a step of so many ranks that know their places
shows()
{
	shows_name=$1 shows_ranks=$2
	shift 2
	call login "$@" ./job create show gather destroy
	world "$shows_name"
	equal "$shows_name: the number of ranks" \
		"$shows_ranks" "$(grep -c / out)"
}

# lines WANTED NAME: what the last step's ranks said, when, and how long they had
# waited for it. WANTED has "at once" or "after 2 s" for when: 2 s that were waited may
# have been followed by 2 s of asking who is missing.
lines()
{
	sed 's/ after [0-9.]*/ AT/; s/waited [2-9][0-9.]* s/waited/' out |
		sort >had
	printf '%s\n' "$1" | sed 's/ at once/ AT/; s/ after 2 s/ AT/
		s/waited 2 s/waited/' | sort >wanted
	diff wanted had >why
	result $? "$2"
	# By the words before it each time is that of one wanted line.
	printf '%s\n' "$1" | sed -n 's/^\(.*\) at once.*/0 \1/p
		s/^\(.*\) after 2 s.*/2000 \1/p' >when.wanted
	sed -n 's/^\(.*\) after \([0-9]*\)\.\([0-9]\).*/\2\300 \1/p' out >when.had
	awk '{ at = $1; sub(/^[0-9]* /, "") }
		NR == FNR { min[$0] = at; next }
		at < min[$0] { bad = 1; print "too early:", $0, at }
		{ late = at - (min[$0] ? 4000 : 0) }
		late > worst { worst = late }
		END { print int(worst) >"when.worst"; exit bad }' \
		when.wanted when.had >why
	result $? "$2: nobody gives up before 2 s"
	in_goal "$(cat when.worst)" 700 -N2 --ntasks-per-node=2 >why
	in_time $? "$2: nobody waits too long"
}

shows 'block' 5 srun --mpi=pmix -N2 -n5
shows 'cyclic' 5 srun --mpi=pmix -N2 -n5 -m cyclic
shows 'plane' 6 srun --mpi=pmix -N2 -n6 -m plane=2
# A younger rank could ask a node that still starts its tasks, and is not heard.
# shellcheck disable=SC2016 # for the tasks' shells
call two sh -c 'begin=$(date +%s%N)
	./job create barrier && echo $((($(date +%s%N) - begin) / 1000000))'
check 'no rank exchanges anything before it is 0.3 s old' awk '
	{ print; bad = bad || $1 < 290 }
	END { exit bad || NR != 4 }' out
printf 'n2\nn1\nn2\n' >hosts
shows 'arbitrary, where rank 0 is on n2' 3 env SLURM_HOSTFILE="$scratch/hosts" \
	srun --mpi=pmix -n3 -m arbitrary
shows 'a step of the second node alone' 2 salloc -Q -N2 --ntasks-per-node=2 \
	srun --mpi=pmix -w n2 -N1 -n2
shows 'a step of one task' 1 srun --mpi=pmix -n1
shows 'srun --ddp' 4 srun --ddp -N2 --gres=gpu:2
# Slurm 22.05 cannot connect its servers where n2 comes first: no collective.
set -- salloc -Q -N2 --ntasks-per-node=2 srun --mpi=pmix
call login "$@" -w n1 -n2 ./job create show gather : \
	-w n2 -n1 ./job create show gather
world 'a heterogeneous step'
call login "$@" -w n2 -n2 ./job create show : -w n1 -n1 ./job create show
world 'a heterogeneous step whose rank 0 is on n2'

call login srun -N2 -n2 --mpi=none ./job create
lines "$(for r in 0 0; do echo "$r create: ARGUMENT at once: this is one of 2 \
tasks (SLURM_STEP_NUM_TASKS), which cannot find each other without PMIx: \
start it with srun --mpi=pmix or srun --ddp"; done)" \
	'several tasks without PMIx are refused'
# Since PMIx 5 a process keeps what its server has answered, as with this gds.
for keeps in '' ,PMIX_MCA_gds=hash; do
	call two --export=ALL$keeps ./job create many=60 threads=20 \
		gather=65536 gather=1 barrier destroy create many=30 destroy
	equal "all-gathers of all sizes, threads, two jobs in turn$keeps" '0 ' \
		"$status $(cat out err)"
done
# What another rank's record must not pass for.
forged()
{
	call two ./job create=20000 gather gather !1:gather \
		@1:forge="$1" gather destroy
	lines "$(for r in 0 2 3; do echo "$r gather: $2"; done)" \
		"a record of the wrong $1 is an error, and the next is right"
}
forged rank "PMIX at once: PMIx returned rank 2's record as rank 1's"
forged round "PMIX at once: PMIx returned rank 1's record of exchange 1 in \
exchange 3"
forged session "PEER at once: rank 1 is in job 2 of its process, this rank in \
job 1: create as many jobs on all ranks"
forged version "PEER at once: rank 1 writes records of version 2, this rank of \
1: use the same libddp on all ranks"
forged damage "PMIX at once: rank 1's record was damaged on its way through PMIx"
call login srun --ddp -N2 --gres=gpu:2 ./job create=20000 gather !1:gather \
	@1:forge=round @1:sleep=5000
check 'under srun --ddp one fails after the agents could tell who was first' awk '
	{ print; bad = bad || !/after (0\.[3-9]|[1-9])/ }
	END { exit bad || NR == 0 }' out
call two ./job create !3:gather=300 @3:gather=299 gather
lines '0 gather=300: PEER at once: rank 3 on n2 has given 299 bytes, this rank 300: give as many on all ranks
1 gather=300: PEER at once: rank 3 on n2 has given 299 bytes, this rank 300: give as many on all ranks
2 gather=300: PEER at once: rank 3 on n2 has given 299 bytes, this rank 300: give as many on all ranks
3 gather=299: PEER at once: rank 0 has given 300 bytes where at most 299 are expected' \
	'records of different sizes are an error'

call two ./job create child gather destroy
equal 'a child of fork has no job, and its parent has one still' '0 ' \
	"$status $(cat out err)"
# shellcheck disable=SC2046 # lists of words
cc -shared -fPIC $(sed -n 's/^PMIX_CFLAGS = //p' "$build/config.mak") \
	"$here/slow_commit.c" -o slow.so || exit 1
call two --export=ALL,LD_PRELOAD="$scratch/slow.so" ./job create=2000 barrier
lines "$(for r in 0 1 2 3; do
	echo "$r barrier: PMIX after 2 s: this node's PMIx server did not" \
		'take the record in time'
done)" 'a server that does not answer holds nobody up'

# late RANKS ARGUMENT HOW TEXT: what these say of a deadline of 2 s
late()
{
	for rank in $1; do
		echo "$rank $2: TIMEOUT $3: waited 2 s$4"
	done
}
stalled=', although every rank has published its record: one of them, or PMIx, '
stalled="${stalled}has stalled after that, and PMIx does not say which"
call two ./job create=2000 !3:barrier @3:sleep=7000
lines "$(late '0 1 2' barrier 'after 2 s' ' for rank 3 on n2')" \
	'who has never come is named'
for keeps in '' ,PMIX_MCA_gds=hash; do
	call two --export=ALL$keeps ./job create=2000 many=4 barrier \
		!0,1:gather !0,1:barrier @0,1:sleep=7000
	lines "$(late 2 barrier 'at once' ' for ranks 0-1 on n1'
		late 2 gather 'after 2 s' ' for ranks 0-1 on n1'
		late 3 barrier 'at once' ' for ranks 0-1 on n1'
		late 3 gather 'after 2 s' ' for ranks 0-1 on n1')" \
		"so is who came earlier, and the job has ended$keeps"
done
call two ./job create=2000 barrier !1:barrier @1:commit @1:sleep=7000
lines "$(late '0 2 3' barrier 'after 2 s' "$stalled")" \
	'who has stalled is not guessed'
call two ./job !2:create=2000 !2:barrier @2:sleep=7000
lines "$(late '0 1 3' barrier 'after 2 s' ' for rank 2 on n2')" \
	'who has not even joined is named'
call two ./job create=2000 !3:barrier @3:sleep=4600 !3:destroy !3:create
grep ' create:' out >spent
check 'a further job after a failed one is refused' test "$(grep -c \
	'PMIX after [0-9.]*: an earlier job .* start the program again' \
	spent)" = 3

# step NAME STATUS WANTED [OPTION...] ./job ARGUMENT...: how it ends, within 5 s
step()
{
	step_name=$1 step_status=$2 step_wanted=$3
	shift 3
	settle
	begin=$(now)
	call two "$@"
	took=$(($(now) - begin))
	case $status in 137 | 143) status=killed ;; esac
	equal "$step_name" "$step_status $step_wanted" \
		"$status $(grep -Ev 'fence of all' out; grep '^job: ' err)"
	in_goal "$took" 5000 -N2 --ntasks-per-node=2 >why
	in_time $? "$step_name: it ends within 5 s"
}
off=--kill-on-bad-exit=0
on=--kill-on-bad-exit=1
step 'a death before a fence ends the step' killed '' $off ./job \
	create !2:sleep=500 !2:barrier @2:kill
for fence in ring tree; do
	call login env SLURM_PMIX_FENCE=$fence srun --mpi=pmix -N2 \
		--ntasks-per-node=2 $off ./job create=3000 barrier \
		@2:sleep=300 @2:kill barrier
	equal "nobody passes a barrier that a dead rank did not call: $fence" \
		'' "$(grep -v ' barrier: ' out)$(test -s out || cat err)"
done
step 'a death after a fence ends the step' killed '' $off ./job \
	create barrier @2:kill sleep=60000
step 'so does _exit, whatever its code' killed '' $off ./job \
	create barrier @2:exit=0 sleep=60000
step 'a death in a fence ends it with --kill-on-bad-exit' killed '' $on ./job \
	create barrier @2:commit @2:sleep=300 @2:kill barrier
step 'and without, if those who notice call ddp_abort' 9 \
	'job: rank 3 on n2: the world has ended' $off ./job create \
	barrier @2:sleep=300 @2:kill barrier @3:abort=9 sleep=60000
call two $off ./job @2:kill create=2000 barrier
lines "$(late '0 1 3' barrier 'after 2 s' ' for rank 2 on n2')" \
	'a death before the job leaves the deadline'
step 'or --kill-on-bad-exit' killed '' $on ./job @2:kill create barrier
settle
begin=$(now)
call login srun --ddp -N2 --gres=gpu:2 ./job @2:kill create barrier
took=$(($(now) - begin))
check 'srun --ddp sets --kill-on-bad-exit: a rank that is killed ends the step' test "$status" -gt 128
in_goal "$took" 5000 -N2 --ntasks-per-node=2 >why
in_time $? 'srun --ddp ends within 5 s of the death of a rank'
step 'a death after ddp_job_destroy ends the step' killed '' $off ./job \
	create barrier destroy @2:kill sleep=60000
step 'to leave the job waits for nobody' 0 '' ./job create barrier \
	@1:destroy !1:sleep=300 destroy

for kill in $off $on; do
	step "ddp_abort with $kill: its line and its code" 7 \
		'job: rank 2 on n2: the world has ended' "$kill" ./job \
		create barrier @2:abort=7 sleep=60000
done

# The program's own MPI
own_mpi()
{
	while read -r order; do
		# shellcheck disable=SC2086 # a list of words
		call two ./job_mpi $order
		equal "$order" '0 ' "$status $(cat out err)"
	done
}

if grep -q '^HAVE_MPI = yes' "$build/config.mak"; then
	program job_mpi || exit 1
	own_mpi <<-END
	mpi_init create gather destroy mpi_finalize
	mpi_init create gather mpi_finalize gather destroy create gather
	END
	call two ./job_mpi pmix_init mpi_init mpi_finalize pmix_finalize
	if test "$status" -eq 0; then
		own_mpi <<-END
		create gather mpi_init gather destroy mpi_finalize
		create gather destroy mpi_init mpi_finalize
		create mpi_init gather destroy create gather destroy mpi_finalize
		END
	else
		call two ./job_mpi create mpi_init mpi_finalize
		check 'MPI_Init fails after ddp_job_create, as after PMIx_Init' \
			test "$status" -ne 0
	fi
else
	skip "a program's own MPI" 'configure found no MPI'
fi
