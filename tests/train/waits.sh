# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # variables of run; inner shells expand
# Waits for a rank that does not come: it is named in time, and all ranks end.
# Progress is counted, waits are not.

# begin_ranks N READY COMMAND...: in the background, until READY, a command,
# succeeds; rank R has written its pid into pid.R, and counts its progress in
# beats.R
begin_ranks()
{
	begin_n=$1 begin_ready=$2
	shift 2
	rm -f pid.* beats.*
	: >why
	: >out			# not that of the ranks before
	timeout 120 mpirun -n "$begin_n" sh -c '
		rank=$OMPI_COMM_WORLD_RANK
		DDP_HEARTBEAT_FILE=$PWD/beats.$rank
		export DDP_HEARTBEAT_FILE
		echo $$ >pid.$rank
		exec "$@"' - "$@" >out 2>err </dev/null &
	run=$!
	reaches "$run" "$begin_ready"
}

trains()
{
	grep -q '^step' out
}

# maps: whether rank 0 has the memory that ranks share
maps()
{
	grep -q memfd:ddp-train "/proc/$(cat pid.0)/maps"
}

# sleeps: whether rank 0 has stopped itself
sleeps()
{
	grep -q '^State:.*stopped' "/proc/$(cat pid.0)/status"
}

# named NAME RANK SECONDS: stop RANK; another one names it, and in time
named()
{
	kill -STOP "$(cat "pid.$2")"
	begin=$(date +%s%N)
	wait "$run"
	status=$?
	took=$((($(date +%s%N) - begin) / 1000000))
	echo "status $status after $took ms" >why
	host=$(uname -n)
	test "$status" -eq 1 &&
		test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
		grep -q "^ddp-train: rank [^$2] on $host: waited [0-9]* s $(
			)for rank $2 on $host, which did not answer: .* $(
			)--timeout$" err
	result $? "$1"
	echo "after $took ms" >why
	test "$took" -le $((($3 + 5) * 1000))
	in_time $? "all ranks have ended 5 s after the time-out of $3 s"
}

# beats RANK
beats()
{
	od -An -tu8 -N8 "beats.$1" | tr -d ' '
}

# has_beaten RANK BEATS: whether it has made more progress than this
has_beaten()
{
	test "$(beats "$1")" -gt "$2"
}

# used RANK: the hundredths of a second of CPUs that it has used
used()
{
	sed 's/.*) //' "/proc/$(cat "pid.$1")/stat" |
		awk '{ print $12 + $13 }'
}

has_used()
{
	test "$(used "$1")" -ge "$2"
}

# polls RANK N: wait until RANK has used N hundredths more. A step takes less
# than one, so that a rank whose others are stopped polls then.
polls()
{
	reaches "$run" has_used "$1" $(($(used "$1") + $2))
}

# A fake memfd_create(): the rank that makes the shared memory stops there.
cat >fake_memfd.c <<'END_OF_C'
#include <signal.h>

int memfd_create(const char *name, unsigned int flags)
{
	(void)name;
	(void)flags;
	raise(SIGSTOP);
	return -1;
}
END_OF_C

waits_begin()
{
	if ! cc -shared -fPIC -o fake_memfd.so fake_memfd.c >why 2>&1; then
		skip 'a rank that stops before the first step' 'no cc'
		return
	fi
	begin_ranks 3 sleeps env LD_PRELOAD="$PWD/fake_memfd.so" "$train" \
		--timeout 2
	named 'a rank that stops before the first step' 0 2
}

# All are stopped for longer than the time-out, as by scontrol suspend, one of
# them while it waits. That one goes on first, and waits again for less.
waits_pause()
{
	begin_ranks 3 trains "$train" --steps 1000000000 --timeout 15
	kill -STOP "$(cat pid.1)" "$(cat pid.2)"
	polls 0 5
	kill -STOP "$(cat pid.0)"
	sleep 16
	kill -CONT "$(cat pid.0)"
	polls 0 5
	kill -CONT "$(cat pid.1)" "$(cat pid.2)"
	before=$(beats 0)
	sleep 5
	reaches "$run" has_beaten 0 "$before"
	kill -0 "$run"
	result $? 'ranks that were stopped and go on train on'
	kill "$run"
	wait "$run"
}

waits_beats()
{
	begin_ranks 2 trains "$train" --steps 50
	wait "$run"
	# A step is one; so are a broadcast, a hash of few parameters, and what
	# ranks tell each other over PMIx before they meet.
	wanted=53
	! grep -q '^HAVE_PMIX = no' "$build/config.mak" || wanted=52
	equal 'progress is counted' "$wanted $wanted" "$(beats 0) $(beats 1)"
	begin_ranks 2 trains "$train" --steps 1000000000 --timeout 0
	kill -STOP "$(cat pid.1)"
	polls 0 20
	before=$(beats 0)
	polls 0 20
	equal 'waiting is none' "$before" "$(beats 0)"
	kill "$run"
	wait "$run"
}

test_waits()
{
	needs_worlds 'waits for a rank' || return 0
	begin_ranks 3 trains env OMPI_MCA_mpi_abort_delay=2 "$train" \
		--steps 1000000000 --timeout 2
	named 'only one rank names the one that is stopped' 1 4
	begin_ranks 3 trains "$train" --steps 1000000000 --timeout 2
	named 'a rank that is stopped is named by another one' 1 2
	begin_ranks 2 trains "$train" --data "$text" --preset 10M --batch 1 \
		--context 64 --steps 1000000000 --timeout 3
	named 'rank 0, which is stopped in a step' 0 3
	program allreduce
	begin_ranks 4 maps "$program" mpi plain 0011 1000000 1 2
	named 'a rank whose messages others need' 2 2
	waits_begin
	waits_pause
	waits_beats
}
