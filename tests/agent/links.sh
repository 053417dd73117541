# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2046,SC2154,SC2016 # see run; numbers; the tasks' shells expand
# How the agent finds its supervisor, and what it does when that or slurmstepd is
# gone.

fake shy
begin 2 sh -c 'test $RANK = 1 || exit 3; read line <"$S/go"'
started END 1
go
wait "$step"
equal 'the agent comes again when it is put out, and then tells all ends' \
	'3 n1|0|768||| n1|1|0|||' \
	"$(grep -c ' SHY ' "$fake/log") $(heard END | paste -sd' ')"
# The fake may be late to see an attempt, but it has seen the one before when
# another begins: so the time from one to the next but one has a whole pause.
awk '/ (SHY|HELLO) / { at[++count] = $1 }
	count > 2 && at[count] - at[count - 2] < least {
		least = at[count] - at[count - 2]
	}
	END { print least; exit !(count == 4 && least >= 0.4) }' \
	least=99 "$fake/log" >why
result $? 'the agent pauses between two attempts to reach its supervisor'
finish 'a step whose supervisor was shy'

told=none
run 2 sh -c 'exit 0'
equal 'an address that is none is said in one sentence, and the ranks run' \
	'0 0 slurm-ddp: on n1: srun'\''s supervisor at 127.0.0.1 port none cannot be reached (srun tells no such address)' \
	"$(cut -d' ' -f2 told.log | paste -sd' ') $(sed 's/, so it.*//' err)"

# The plugin of srun's host may be older than that of the node, or newer.
fake
for told in "${told%%:*}:${told##*:}" "${told%%:*}:0:${told##*:}" \
	"${told%%:*}:2:${told##*:}"; do
	run 2 sh -c 'exit 0'
	equal "a supervisor of another version is left alone: ${told%:*}" \
		"0 0 (its slurm-ddp is of another version than this node's), so it does not watch this node; install one version on all nodes and on srun's host, or use --ddp-supervise=off" \
		"$(cut -d' ' -f2 told.log | paste -sd' ') $(sed 's/.* reached //' err)"
done

# asked: squeue has been asked, and has answered
cat >bin/squeue <<'END'
#!/bin/sh
cat "$S/says"
echo "$*" >"$S/asked.new"
mv "$S/asked.new" "$S/asked"
END
chmod 755 bin/squeue

# no_squeue: nobody asks any more
no_squeue()
{
	! grep -lx squeue $(members "$job" | sed 's:.*:/proc/&/comm:')
}

# forsaken SAYS: a step whose supervisor closes its connection, and whose job
# squeue then shows so
forsaken()
{
	fake
	rm -f asked
	echo "$1" >says
	begin 2 sh -c 'trap "" TERM; until test -e "$S/there"; do sleep 0.05; done'
	started RANK 2
	order DROP
	wait_until test -e asked
}

forsaken '1  RUNNING   1 '
wait "$step"
equal 'ranks whose supervisor is gone are killed' '9 9' \
	"$(cut -d' ' -f2 told.log | paste -sd' ')"
equal 'Slurm is asked for the job before' \
	"-ah -tall -j $job -O JobID:20,State:20,BatchFlag:20" "$(cat asked)"
finish 'a step whose supervisor was gone'
forsaken '1  COMPLETING   0 '
wait "$step"
equal 'ranks are killed if the job ends that salloc had made' '9 9' \
	"$(cut -d' ' -f2 told.log | paste -sd' ')"
order QUIT
forsaken '1  COMPLETING   1 '
# The agent has read the answer when the process that asked is gone.
wait_until no_squeue
: >there
wait "$step"
equal 'ranks of a batch job that Slurm ends are left to Slurm' '0 0' \
	"$(cut -d' ' -f2 told.log | paste -sd' ')"
finish 'a step of a batch job that Slurm ends'

# What a rank has left behind is Slurm's business where all has ended well.
fake
run 1 sh -c 'sleep 300 >/dev/null 2>&1 & echo $! >"$S/child"'
started CLOSED 1
child=$(cat child)
check 'a child that a rank leaves lives on when all ranks have ended well' \
	is_state "$child" DRS
kill "$child"
finish 'a step whose rank left a child'

fake
begin 2 sh -c 'trap "" TERM; : >"$S/there"; sleep 300'
wait_until test -e there
started RANK 2
kill -KILL "$step"
started DONE 1
equal 'when slurmstepd is gone the agent says so, and kills its ranks' \
	'1 n1|0|9||| n1|1|9|||' \
	"$(grep -c ' ORPHANED ' "$fake/log") $(logged END | paste -sd' ')"
finish 'a step whose slurmstepd was gone'

# With contain_spank slurmstepd itself keeps a descriptor open that the agent has.
fake
contained=yes
run 1 sh -c 'echo whole'
contained=
cat told.log >why
test "$(cat out)" = whole && test "$(sed 's/.* //' told.log)" -lt 2500
in_time $? 'a process of slurmstepd sees the end of the agent'
fake
contained=yes
begin 1 sh -c ': >"$S/there"; read line <"$S/go"'
contained=
wait_until test -e there
started RANK 1
kill -KILL "$(agent)"
started CLOSED 1
go
wait "$step"
cp told.log why
test "$(sed 's/.* //' told.log)" -lt 2500
in_time $? 'nor does it wait for one that was killed'
finish 'steps whose slurmstepd contains plugins'

# slurmstepd waits for an agent that is slow, but not for one that is dead. An agent
# that is killed leaves files to slurmstepd.
fake
begin 2 sh -c 'test $RANK = 0 || exec sleep 60
	: >"$S/there"; read line <"$S/go"; exit 3'
wait_until test -e there
started RANK 2
kill -STOP "$(agent)"
go
wait_until is_state "$(rank_pid 0)" X
sleep 1
kill -CONT "$(agent)"
wait_until test -s told.log
# It takes 0.2 s anyway.
cat told.log >why
test "$(sed 's/.* //' told.log)" -ge 400
result $? 'slurmstepd says nothing of a failure before the agent has told it'
kill "$(rank_pid 1)"
wait "$step"
finish 'a step whose agent was slow'

# dead WHEN: the agent is killed before a rank fails; after that slurmstepd waits
dead()
{
	fake
	begin 2 --ddp-watchdog=5 sh -c 'echo >"$TORCHELASTIC_ERROR_FILE"
		: >"$DDP_HEARTBEAT_FILE"
		mkdir "/dev/shm/slurm-ddp.$SLURM_JOB_ID.3.$RANK.train"
		test $RANK = 0 || exec sleep 1000
		: >"$S/there"; read line <"$S/go"; exit 3'
	wait_until test -e there
	started RANK 2
	dead=$(agent)
	if test "$1" = before; then
		kill -KILL "$dead"
		wait_until is_state "$dead" X
		go
	else
		kill -STOP "$dead"
		go
		wait_until is_state "$(rank_pid 0)" X
		kill -KILL "$dead"
	fi
	wait_until test -s told.log
	cp told.log why
	test "$(sed 's/.* //' told.log)" -lt 2500
	in_time $? "slurmstepd does not wait for an agent that died $1 a rank failed"
	kill "$(rank_pid 1)"
	test ! -e "$at/stay" || {
		wait_until no_files
		in_time $? 'slurmstepd removes the files itself, though it cannot end'
		rm "$at/stay"
	}
	wait "$step"
	finish "a step whose agent died $1 a rank failed"
}

no_files() { ! find /dev/shm -name "slurm-ddp.$jobs*" | tee why | grep -q .; }

: >"$at/stay"
dead before
# Four, with the fake unlink() of a busy node, take slurmstepd longer.
cat >busy.c <<'END'
#include <fcntl.h>
#include <unistd.h>

int unlink(const char *path)
{
	usleep(500000);
	return unlinkat(AT_FDCWD, path, 0);
}
END
cc -shared -fPIC -o busy.so busy.c && preload=$scratch/busy.so
dead after
preload=

# slurmstepd has a group of root's here that may write to /dev/shm. The user has not.
if test "$(id -u)" = 0; then
	fake
	at=/tmp/slurm-ddp.$jobs.team user=12345 as='unshare -m ./in_team'
	mkdir -m 777 team "$at"
	cp step spank_ddp.so plugstack.conf "$at"
	cat >in_team <<-END
	#!/bin/sh
	mount --bind team /dev/shm && cd $at && exec setpriv --groups 0,4242 "\$@"
	END
	chmod 755 in_team
	begin 1 sh -c 'echo >"$TORCHELASTIC_ERROR_FILE"; : >"$S/there"
		read line <"$S/go"; exit 3'
	wait_until test -e "$at/there"
	chmod 770 team
	chown 0:4242 team
	started RANK 1
	kill -KILL "$(agent)"
	started CLOSED 1
	go
	wait "$step"
	equal 'slurmstepd removes nothing that the user may not remove' 1 \
		"$(find team -name 'slurm-ddp.*' | wc -l)"
	finish 'a step of another user'
	at=$scratch user='' as=''
else
	skip 'slurmstepd removes nothing that the user may not remove' \
		'only root can start a step of another user'
fi
