#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A rank that is a shell: rank.sh WHEN HOW RANK FILE, as fault.c has them. WHEN
# is start, step (after 0.5 s), told (when FILE.go is there) or none. A rank that
# does not break prints a line, ignores SIGTERM, and ends well after
# $FAULT_SECONDS, or waits for ever for one that sleeps; $FAULT_FOLLOWER is one that
# fails 0.1 s after the first, and $FAULT_STOPPED one that stops before.
when=$1 how=$2 rank=$3 file=$4

# shellcheck disable=SC3045 # dash and bash have ulimit -v
act()
{
	echo $$ >"$file.part"
	mv "$file.part" "$file"
	case $how in
	exit*) exit "${how#exit}" ;;
	sleep) exec sleep 1000 ;;
	limit) ulimit -v 100000; exec /usr/bin/python3 -c 'bytearray(1 << 30)' ;;
	oom) exec /usr/bin/python3 -c \
		'a = [bytearray(b"x" * (1 << 20)) for _ in range(9999)]' ;;
	*) kill -s "$how" $$ ;;
	esac
}

if test "$SLURM_PROCID" = "$rank"; then
	case $when in start) act ;; esac
	echo "rank $SLURM_PROCID" >&2
	sleep 0.5
	case $when in
	step) act ;;
	told)	until test -e "$file.go"; do sleep 0.05; done
		act ;;
	esac
else
	trap '' TERM
	echo "rank $SLURM_PROCID" >&2
fi
test "$SLURM_PROCID" != "${FAULT_STOPPED-}" || kill -STOP $$
if test "$SLURM_PROCID" = "${FAULT_FOLLOWER-}"; then
	until test -e "$file"; do sleep 0.01; done
	sleep 0.1
	exit 7
fi
if test "$how" = sleep; then
	mkfifo "$file.$SLURM_PROCID" 2>/dev/null
	read -r _ <>"$file.$SLURM_PROCID"
fi
sleep "${FAULT_SECONDS:-60}"
