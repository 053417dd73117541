# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run, which sources this
# What the themes share: programs that break, steps with one of them, and what
# must be true when such a step has ended. Times are in ms.

plain='-N3 --ntasks-per-node=2 --gres=gpu:2'
python=/usr/bin/python3
text=/usr/share/common-licenses/GPL-3

# programs: compile those that are needed; $have lists what can break, or of these
# what FAULTS_PROGRAMS does; $has_mpi is 0 if PyTorch loads MPI
programs()
{
	have='sh'
	cc=$(sed -n 's/^CC = //p' "$build/config.mak")
	${cc:-cc} -std=c11 -shared -fPIC -o clock.so "$here/clock.c" || exit 1
	train=$(find "$dir/root" -name ddp-train -perm -u+x)
	if test -n "$train" && grep -q '^#define HAVE_MPI' "$build/config.h"; then
		# shellcheck disable=SC2046 # several options
		${cc:-cc} -std=c11 -shared -fPIC $(sed -n \
			's/^\(MPI\|PMIX\)_CFLAGS = //p' "$build/config.mak") \
			-o fault.so "$here/fault.c" -ldl -pthread || exit 1
		make -s -C "$build" obj/tests/boot/job >make.out 2>&1 || {
			cat make.out >&2
			exit 1
		}
		cp "$build/obj/tests/boot/job" .
		have="$have train job"
	fi
	! "$python" -c 'import torch' 2>why || have="$have torch"
	"$python" -c 'import torch
exit("/libmpi" not in open("/proc/self/maps").read())' 2>why
	has_mpi=$?
	test -z "${FAULTS_PROGRAMS-}" || have=$FAULTS_PROGRAMS
}

# root CMD...: on the login node
root()
{
	"$sandbox" exec --dir "$dir/cluster" --root "$@"
}

# ended LIMIT NAME: the last step ended so many ms after the fault, and what it had
# left was gone 2 s after that
ended()
{
	if ! test -s fault.end; then
		echo 'nothing has broken' >why
		result 1 "$2: the step ends in time"
		return
	fi
	late_by=$((ended - $(cat fault.end) / 1000000))
	echo "$1 $late_by" >>lates
	# shellcheck disable=SC2086 # several words
	{
		in_goal "$late_by" "$1" $plain && in_goal "$left_ms" 2000 $plain
	} >why
	in_time $? "$2: the step ends in time"
}

# watch: write into fault.end when the process ended whose pid a rank wrote into
# the file fault before it broke. It may take a while to end; if it only stops or
# sleeps, that is at once.
watch()
{
	touch watching
	# shellcheck disable=SC2016 # for the inner shell
	root sh -c 'until test -s fault; do
			test -e watching || exit
			sleep 0.05
		done
		test "$0" = STOP || test "$0" = sleep ||
			tail --pid="$(cat fault)" -s 0.02 -f /dev/null
		date +%s%N >fault.end' "$how" &
}

# begin_fault: what is about to break is broken from outside
begin_fault()
{
	date +%s%N >fault.end
}

# tidy: end what a step before has left, so that the next one is not to blame
tidy()
{
	if test -n "$(jobs)" || test -s left.out; then
		root scancel -u ddp
		root pkill -KILL -u 61000
		find_left -delete >why
		: >left.out
	fi
	settle
}

# find_left [ACTION]: files of the user's in /dev/shm of any node and in the
# folders for temporary files; slurmstepd's is not the plugin's to remove.
find_left()
{
	# shellcheck disable=SC2016 # for the inner shell; $1 may be nothing
	root sh -c 'for pid in $(pgrep -x munged); do
			find "/proc/$pid/root/dev/shm" -user 61000 $1
		done
		find "$0/tmp" "$0/home" -mindepth 1 -user 61000 \
			! -path "*/spmix_appdir_*" $1' "$dir/cluster" "${1-}"
}

# left: print what is left of the user's: processes and files, after a minute if
# need be; $left_ms is how long that took to go
left()
{
	left_ms=$(now)
	wait_until nothing_left
	left_ms=$(($(now) - left_ms))
	cat left.out
}
nothing_left()
{
	root ps -U 61000 -o pid=,stat=,args= >left.out
	find_left >>left.out
	! test -s left.out
}

# step PROGRAM WHEN HOW RANK [OPTION...]: run a step of 2 ranks a node, on 3 nodes
# (PyTorch, whose start is slow: on 2), in which that rank breaks; its end is in
# $ended
step()
{
	rm -f fault fault.part fault.end log
	program=$1 file=$scratch/fault
	fault="$2 $3 $4 $file"
	how=$3
	shift 4
	tidy
	watch
	case $how in
	oom) set -- --mem=600 "$@" ;;
	esac
	case $program in
	torch) set -- srun --ddp -N2 --gres=gpu:2 "$@" ;;
	*) set -- srun --ddp -N3 --gres=gpu:2 "$@" ;;
	esac
	# shellcheck disable=SC2086 # several words
	case $program in
	sh) call bounded 60 "$@" "$here/rank.sh" $fault ;;
	torch) call bounded 60 env USE_LIBUV=0 "$@" "$python" -u \
		"$here/rank.py" $fault ;;
	train) call bounded 60 env FAULT="$fault" FAULT_LOG="$scratch/log" "$@" \
		--export="ALL,LD_PRELOAD=$scratch/fault.so" "$train" \
		--data $text --steps 100000 --batch 1 --log log ;;
	job) call bounded 60 env FAULT="$fault" "$@" \
		--export="ALL,LD_PRELOAD=$scratch/fault.so" ./job create \
		sleep=100 barrier many=1000000 ;;
	esac
	ended=$(now)
	rm -f watching
	wait
}

# begin_step PROGRAM ...: the same in the background, until all ranks are there
begin_step()
{
	rm -f err step.end
	{
		step "$@"
		echo "$status $ended" >step.end
	} &
	step_pid=$!
	until test "$(grep -c '^rank ' err 2>>why)" = 6 || test -e step.end
	do
		sleep 0.05
	done
}

# end_step: wait for its end
end_step()
{
	wait "$step_pid"
	read -r status ended <step.end
}

# of NODE COMM: the pids of such processes there
of()
{
	# shellcheck disable=SC2016 # for the inner shell
	admin "$1" sh -c 'pgrep --ns $$ --nslist uts -x "$0"' "$2"
}

# kill_on NODE COMM: with SIGKILL
kill_on()
{
	begin_fault
	# shellcheck disable=SC2046 # several numbers
	root kill -KILL $(of "$1" "$2")
}

# ready NODE: wait until it can run a step again
ready()
{
	test -n "$(of "$1" slurmd)" || admin "$1" slurmd
	root scontrol update nodename="$1" state=resume 2>>why
	wait_until is_idle "$1"
}
is_idle() { test "$(root sinfo -hN -n "$1" -o %t)" = idle; }

# says LINE CODE LIMIT: whether srun's code is this, its first line of ours this
# regular expression, before any of Slurm's, and the only one that names a culprit;
# the step may take $limit ms to end
culprit='^slurm-ddp: (rank .* failed first|node .* was lost first|no rank has made progress)'
says()
{
	limit=$3
	grep -nE "$culprit|^(srun: |slurmstepd)" err | head -n 30
	echo "code $status, wanted $2 and: $1"
	echo "$status" | grep -qxE "$2" &&
		grep -E '^(slurm-ddp|srun|slurmstepd)' err | head -n 1 |
			grep -qE "^slurm-ddp: $1\$" &&
		test "$(grep -cE "$culprit" err)" = 1
}

# ended_early RANK PROGRAM WHEN: whether the step that this rank has left with exit
# code 0 names it and fails. Slurm's mpi/pmix kills the step of a rank that ends
# without its farewell, and over gloo the others fail, at first those that have
# reached rank 0. Elsewhere they wait.
ended_early()
{
	case $2:$3:$1 in
	sh:* | *:start:* | torch:init:[!0])
		hangs "$1" "$2" "$3" 'ended before the others'
		return ;;
	esac
	limit=10000
	echo "code $status" && grep '^slurm-ddp: ' err
	test "$status" -ne 0 &&
		test "$(grep -c "^slurm-ddp: rank $1 had ended with exit code 0[ ,]" err)" = 1
}

# combinations: lines as in ranks.sh, of all that a rank can break by: each way,
# at each point, in each program, for rank 0 and another. The points are fault.c's.
# Nobody can tell one that sleeps from the others where these sleep, too: as rank 0
# of PyTorch does while it waits for all to connect. When SIGTERM ends rank 0 in
# MPI_Init, the others fail there, as in a step that a user cancels: slurm-ddp(7)
# says that nobody may be named.
combinations()
{
	for program in $have; do
		points='start init after collective step' more=
		case $program in
		sh) points='start step' more=sleep ;;
		train) points='start join meet init after collective step' ;;
		job) points='start join after meet step' ;;
		torch) more='error sleep' ;;
		esac
		for point in $points; do
			for way in KILL SEGV TERM STOP exit0 exit3 limit oom \
				$more
			do
				case $program:$point:$way in
				torch:start:sleep | torch:init:sleep) continue ;;
				esac
				test "$program $point $way" = 'train meet TERM' ||
					echo "$program $point $way 0"
				echo "$program $point $way 3"
			done
		done
	done
}

# cause PROGRAM HOW: the words for it, as a regular expression, and the code, of
# which there may be two, as "1|143": Slurm may end a rank that has raised an error
# before that has ended it.
cause()
{
	case $1:$2 in
	*:KILL) echo '(perhaps out of memory, )?killed by signal 9 \(SIGKILL\)' 137 ;;
	*:SEGV) echo 'killed by signal 11 \(SIGSEGV\)' 139 ;;
	*:TERM) echo 'killed by signal 15 \(SIGTERM\)' 143 ;;
	*:oom) echo 'out of memory, killed by signal 9 \(SIGKILL\)' 137 ;;
	torch:limit) echo '(exit code 1|killed by signal 15 \(SIGTERM\)): MemoryError.*' '1|143' ;;
	sh:limit) echo 'exit code 1' 1 ;;
	*:limit) echo 'killed by signal 6 \(SIGABRT\)' 134 ;;
	torch:error) echo '(exit code 1|killed by signal 15 \(SIGTERM\)): ValueError: bad batch' '1|143' ;;
	*:exit*) echo "exit code ${2#exit}" "${2#exit}" ;;
	esac
}

# watchdog PROGRAM: its seconds. Where MPI is loaded CPU time is no progress, and
# PyTorch starts for longer than 5 s.
watchdog()
{
	case $1:$has_mpi in
	torch:0) echo 15 ;;
	*) echo 5 ;;
	esac
}

# wait_ms PROGRAM WHEN: in which the watchdog must have ended a step. The time runs
# when no rank starts any more, for which PyTorch needs some seconds.
wait_ms()
{
	case $1:$2 in
	torch:start | torch:init) echo $(($(watchdog "$1") * 1000 + 10000)) ;;
	*) echo $(($(watchdog "$1") * 1000 + 5000)) ;;
	esac
}

# hangs RANK PROGRAM WHEN WORDS: whether the watchdog has named it so
hangs()
{
	says "no rank has made progress for $(watchdog "$2") s, and so the step ends; rank $1 holds the others up: $4" \
		124 "$(wait_ms "$2" "$3")"
}

# is_told PROGRAM WHEN HOW RANK: whether the last step has named it, and has left
# nothing
is_told()
{
	words=$(cause "$1" "$3")
	node="n$(($4 / 2 + 1)) \\(GPU $(($4 % 2)), pid $(cat fault)\\)"
	case $3 in
	STOP)	hangs "$4" "$1" "$2" stopped &&
			grep -qE "^slurm-ddp: rank $4 on $node: stopped" err ;;
	sleep)	hangs "$4" "$1" "$2" 'waiting elsewhere than the others' &&
			grep -qE "^slurm-ddp: rank $4 on $node: sleeping in " err ;;
	exit0)	ended_early "$4" "$1" "$2" ;;
	*)	says "rank $4 failed first on $node after [0-9.]+ s: ${words% *}" \
			"${words##* }" 2000 ;;
	esac
	told=$?
	left
	test "$told" -eq 0 && ! test -s left.out
}

# breaks PROGRAM WHEN HOW RANK [OPTION...]: whether such a step names the rank and
# ends. What only makes the others wait is found by the watchdog.
breaks()
{
	case $3 in
	STOP | exit0 | sleep) step "$@" --ddp-watchdog="$(watchdog "$1")" ;;
	*) step "$@" ;;
	esac
	is_told "$@" >why 2>&1
}

# ends PROGRAM ...: the same, as a result
ends()
{
	breaks "$@"
	result $? "$1: rank $4 breaks: $2, $3"
	ended "$limit" "$1: rank $4 breaks: $2, $3"
}

# Where a rank is gone, the others abort at once in Open MPI 5, and mpi/pmix has
# Slurm kill the agents: on a machine as busy as this one, before a rank that is
# killed has quite ended.
open_mpi=$(mpirun --version 2>why | sed -n 's/.*(Open MPI) //p;1q')

# each_ends: the same, for each line of the file cases
each_ends()
{
	while read -r program point way rank <&3; do
		case "$open_mpi $program $point $way" in
		[5-9]*' train step KILL')
			skip "$program: $point, $way" \
				'Open MPI 5 aborts too early'
			continue ;;
		esac
		case " $have " in
		*" $program "*) ends "$program" "$point" "$way" "$rank" ;;
		*) skip "$program: $point, $way" "$program is not here" ;;
		esac
	done 3<cases
}
