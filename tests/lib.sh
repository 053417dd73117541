# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2034 # the caller has scratch, status and python
# For tests in sh, which print TAP. The caller sets scratch to a directory,
# sources this file, and calls plan last.

tap_count=0 tap_failed=0 late=

# result STATUS NAME: reports a test. If it failed, shows what the last call
# printed. tests/gpu has another one, which calls tap_result.
result()
{
	tap_result "$@"
}

tap_result()
{
	tap_count=$((tap_count + 1))
	if test "$1" -eq 0; then
		echo "ok $tap_count - $2"
		return
	fi
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_count - $2$late"
	for stream in why out err; do
		sed "s/^/# $stream: /" "$scratch/$stream" 2>/dev/null |
			head -n 20
	done
}

# in_time STATUS NAME: a test about lateness alone. The runner tries it again on a
# quiet machine before it counts as failed; a wrong value is never lateness.
in_time()
{
	in_time_late=$late
	late=' # LATE'
	result "$1" "$2"
	late=$in_time_late
}

# check NAME COMMAND...: a test that passes if COMMAND succeeds
check()
{
	check_name=$1
	shift
	"$@" >"$scratch/why" 2>&1
	result $? "$check_name"
}

# equal NAME WANTED HAD: a test that passes if both texts are the same
equal()
{
	printf 'wanted: %s\nhad:    %s\n' "$2" "$3" >"$scratch/why"
	test "$2" = "$3"
	result $? "$1"
}

# skip NAME REASON: reports a test that cannot run here
skip()
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

# call COMMAND...: puts its output into $scratch/out and $scratch/err, and its
# exit code into $status. Of one that its limit ended after a minute, what tests
# find tells of lateness alone; a watchdog's code is the same, but comes sooner.
call()
{
	: >"$scratch/why"
	late=
	"$@" >"$scratch/out" 2>"$scratch/err" </dev/null
	status=$?
	case $status in
	124 | 137)
		test "$(find "$scratch/why" -newermt '-59 seconds')" ||
			late=' # LATE' ;;
	139)
		# Debian 12's mpirun can fall in PMIx_server_finalize after
		# MPI_Abort, when all ranks have ended: 5 times of 120.
		! grep -q '(PMIx_server_finalize' "$scratch/err" ||
			status=$(sed -n '/^with errorcode/{s/[^0-9]//gp;q}' \
				"$scratch/err")
		status=${status:-139} ;;
	esac
}

# make_tokens: a token file of 9000 squares modulo 300, to its output
make_tokens()
{
	"$python" -c 'import array, struct, sys
tokens = array.array("H", (i * i % 300 for i in range(9000)))
sys.stdout.buffer.write(struct.pack("<3I", 20240520, 1, len(tokens)))
sys.stdout.buffer.write(bytes(1024 - 12) + tokens.tobytes())'
}

# themes LEVEL: those that tests/themes has for it
themes()
{
	sed -n "s,^$1/\\([^ ]*\\) .*,\\1,p" "$top/tests/themes"
}

# wait_until COMMAND...: until it succeeds, for a minute at most; fails then. A command
# may need much of a CPU, and so it comes again soon once, and then seldom.
wait_until()
{
	wait_end=$(($(date +%s) + 60)) wait_pause=0.05
	until "$@"; do
		test "$(date +%s)" -lt "$wait_end" || return
		sleep "$wait_pause"
		wait_pause=0.2
	done
}

# has_torch: whether $python has it
has_torch()
{
	"$python" -c 'import importlib.util, sys
for name in "numpy", "torch":
    if not importlib.util.find_spec(name):
        sys.exit(1)' 2>/dev/null
}

# plan: the number of tests; exits with 1 if one of them failed
plan()
{
	echo "1..$tap_count"
	test "$tap_failed" -eq 0
	exit
}
