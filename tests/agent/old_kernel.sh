# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154,SC2016 # see run; the tasks' shells expand
# The agent on Linux 4.18, by its system calls, does the same as on a new kernel.

cc=$(sed -n 's/^CC = //p' "$build/config.mak")
${cc:-cc} -o old_kernel "$top/tests/fakes/old_kernel.c" || exit 1
if ! ./old_kernel 424 true 2>why; then
	skip 'an old kernel' "$(cat why)"
	return
fi
as='./old_kernel 424'
# shellcheck source=tests/agent/ends.sh
. "$here/ends.sh"
# shellcheck source=tests/agent/orders.sh
. "$here/orders.sh"

# The first thread of a rank ends before another, and is a zombie then.
cat >threads.c <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *go_on(void *nothing)
{
	char byte;

	(void)nothing;
	exit(read(STDIN_FILENO, &byte, 1) == 1 ? 3 : 4);
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, go_on, NULL) == 0)
		pthread_exit(NULL);
	return 1;
}
END
${cc:-cc} -pthread -o threads threads.c || exit 1
fake
begin 1 sh -c 'exec ./threads <"$S/go"'
exec 3>go
started RANK 1
wait_until is_state "$(rank_pid 0)" Z
order PING
started PONG 1
before=$(clock)
echo >&3
exec 3>&-
wait "$step"
echo "before $before, told $(at 0)" >why
test "$(at 0)" -gt "$before" && test "$(logged END)" = 'n1|0|768|||'
result $? 'a rank has not ended while one of its threads runs'
finish 'a step whose rank ended its first thread'

# All calls from getrandom's number on fail there.
if test "$(uname -m)" = x86_64; then
	fake
	as='./old_kernel 318'
	# The agent of ranks that end well waits for a slow supervisor for 0.8 s.
	begin 1 sh -c 'read line <"$S/go"'
	started RANK 1
	go
	wait "$step"
	equal 'an agent before Linux 3.17 proves that it is the right one' \
		'n1' "$(heard DONE)"
	finish 'a step before Linux 3.17'
else
	skip 'a kernel before Linux 3.17' 'it has other numbers here'
fi
as=
