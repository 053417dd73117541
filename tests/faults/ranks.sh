# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# A rank breaks: each way, at each point, in each program, though not every
# combination. The columns: program, point, way, rank. More of PyTorch's, whose start
# is slow, are in torch.sh.

cases='sh start KILL 0
sh step SEGV 2
sh step TERM 3
sh step exit3 2
sh step oom 2
sh step sleep 3
sh start limit 2
torch after error 2
torch collective SEGV 0
train start TERM 2
train join KILL 3
train meet SEGV 2
train init KILL 0
train after SEGV 2
train collective exit3 3
train step KILL 0
train step oom 2
train step limit 3
job start exit3 2
job join KILL 0
job meet SEGV 3'

echo "$cases" >cases
each_ends

step sh step exit3 2 --export=ALL,FAULT_STOPPED=4
is_told sh step exit3 2 >why 2>&1
result $? 'sh: rank 2 breaks, and rank 4 is stopped'
ended "$limit" 'sh: rank 2 breaks, and rank 4 is stopped'

# On a busy machine srun can hear of a rank before the rank's agent tells of it.
# Here that agent stops until srun has said so, for which slurmstepd waits for it
# for 3 s: the time runs from when it goes on.
for case in 'TERM 3' 'KILL 0'; do
	way=${case% *} rank=${case#* }
	rm -f fault.go
	begin_step sh told "$way" "$rank"
	root kill -STOP "$(of "n$((rank / 2 + 1))" ddp-agent)"
	touch fault.go
	until grep -q "task $rank: " err || test -e step.end; do
		sleep 0.05
	done
	slow=$(of "n$((rank / 2 + 1))" ddp-agent)
	date +%s%N >fault.end
	root kill -CONT "$slow"
	end_step
	{
		words=$(cause sh "$way")
		echo "code $status" && grep '^slurm-ddp: ' err
		left
		test "$status" = "${words##* }" &&
			test "$(grep -cE "$culprit" err)" = 1 &&
			grep -qE "^slurm-ddp: rank $rank failed first on .*: ${words% *}$" err &&
			! test -s left.out
	} >why 2>&1
	result $? "sh: rank $rank breaks: $way, and its agent is slow"
	ended 2000 "sh: rank $rank breaks: $way, and its agent is slow"
done

# Slurm's mpi/pmix kills a step one of whose ranks ends without its farewell.
for case in 'train step' 'job meet'; do
	program=${case% *}
	case " $have " in
	*" $program "*) ;;
	*) skip "$case: exit 0" "$program is not here"
		continue ;;
	esac
	step "$program" "${case#* }" exit0 2
	{
		echo "code $status"
		grep '^slurm-ddp: ' err
		left
		test "$status" -ne 0 &&
			test "$(grep -c '^slurm-ddp: rank 2 had ended with exit code 0[ ,]' err)" = 1 &&
			! test -s left.out
	} >why 2>&1
	result $? "$program: rank 2 ends with exit code 0: ${case#* }"
	ended 2000 "$program: rank 2 ends with exit code 0: ${case#* }"
done

# What must not be left is seen: a process, and files of each kind.
tidy
# shellcheck disable=SC2016 # for the inner shell
"$sandbox" exec --dir "$dir/cluster" --node n2 sh -c '
	setsid sleep 61 <&- >&- 2>&- &
	until pgrep -f "^sleep 61"; do sleep 0.1; done
	touch /dev/shm/planted "$TMPDIR/planted"
	exec "$0" -c "import os, socket
socket.socket(socket.AF_UNIX).bind(os.environ[\"HOME\"] + \"/planted\")"' \
	"$python" >/dev/null 2>why
nothing_left
cat left.out >>why
test "$(grep -c planted why)" = 3 && grep -q ' sleep 61$' why
result $? 'a process, files and a socket that are left are seen'
tidy
left >why
! test -s left.out
result $? 'a process that is left is ended before the next step'
