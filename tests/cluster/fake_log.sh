# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # the caller has fake
# What a fake supervisor (fake_supervisor.py) whose folder is $fake has heard, and
# orders for it.

# order WORDS: an order for the fake, which may have ended: so nothing waits for a
# reader of the pipe
order()
{
	echo "$*" 1<>"$fake/orders"
}

# log_has KIND COUNT: whether the log has so many lines of a kind
log_has()
{
	test "$(grep -c " $1 " "$fake/log")" -ge "$2"
}

# started KIND COUNT: wait until it has
started()
{
	wait_until log_has "$@"
}

# logged KIND: the lines of a kind, without their times, sorted
logged()
{
	sed -n "s/^[0-9.]* $1 //p" "$fake/log" | sort
}

# An agent that leaves just when a PING comes resets its connection.
agents_have_left()
{
	left_count=$(grep -cE ' (CLOSED|BROKEN) ' "$fake/log")
	test "$left_count" -ge 1 &&
		test "$left_count" -ge "$(grep -c ' HELLO ' "$fake/log")"
}

# heard KIND: the same, once the agents have left: the step may end before the
# fake has read all
heard()
{
	wait_until agents_have_left
	logged "$1"
}

# took FROM TO: the ms from the first line with one to the last with the other
took()
{
	awk -v from="$1" -v to="$2" '
		index($0, from) && !begin { begin = $1 }
		index($0, to) { end = $1 }
		END { print begin && end ? int(1000 * (end - begin)) : 600000 }' \
		"$fake/log"
}
