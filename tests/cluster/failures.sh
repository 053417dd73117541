# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# Which rank failed first, and why, where its program writes an error file as
# PyTorch's @record does: without a supervisor, and with one.

cluster --nodes 2 --gpus 2 --cpus 8

# A program for tasks: rank 2 fails, and the others when it is gone. It ends as
# the variable HOW says: by an error, without one, by a signal, or well; or, if
# that is a number, by an error, so many seconds after the others.
cat >fails <<'END'
#!/bin/sh
fail()
{
	test -z "$TORCHELASTIC_ERROR_FILE" ||
		echo "{\"message\": {\"message\": \"$1\"}}" \
			>"$TORCHELASTIC_ERROR_FILE"
	exit 3
}
echo $$ >"$1/.$SLURM_PROCID"	# not there before it can be read
mv "$1/.$SLURM_PROCID" "$1/$SLURM_PROCID"
until test "$(ls "$1" | wc -l)" -ge "$SLURM_NTASKS"; do sleep 0.02; done
if test "$SLURM_PROCID" = 2; then
	case $HOW in
	error) fail 'ValueError: bad batch' ;;
	silent) exit 3 ;;
	signal) kill -KILL $$ ;;
	well) exit 0 ;;
	*)	trap '' TERM
		(fail 'ValueError: bad batch')
		: >"$1/told"
		sleep "$HOW"
		exit 3 ;;
	esac
fi
while kill -0 "$(cat "$1/2")" 2>/dev/null && ! test -e "$1/told"; do
	sleep 0.02
done
# Nodes' clocks are compared over a network that is busy, too.
test ! -e "$1/told" || sleep 0.3
fail 'RuntimeError: connection closed by peer'
END
chmod 755 fails

# try_fails HOW SRUN...: run it, with a folder of its own
try_fails()
{
	rm -rf met
	mkdir -m 777 met
	how=$1
	shift
	call login env HOW="$how" "$@" "$scratch/fails" "$scratch/met"
}

# left: print what is left of agents and error files; nothing if nothing is
left()
{
	settle
	"$sandbox" exec --dir "$dir/cluster" ps -C ddp-agent -o pid=,args= |
		grep -v '<defunct>'
	rank_files
}

# names RANK NODE ERROR: whether err has one line that does so
names()
{
	grep '^slurm-ddp: ' err >why
	name_line="rank $1 failed first on $2, at [0-9:]{8}\.[0-9]{3}: $3"
	test "$(wc -l <why)" = 1 && grep -qE "^slurm-ddp: $name_line\$" why
}

# Ranks 0 to 3 share a node, so that no line comes from another.
set -- srun --ddp --ddp-supervise=off -N1 -n4 --overcommit
repeat=20
while test "$repeat" -gt 0; do
	try_fails error "$@"
	test "$status" -ne 0 || break
	names 2 n1 'ValueError: bad batch' || break
	repeat=$((repeat - 1))
done
result "$repeat" 'the first of 4 ranks that fail is named 20 times'
for how in silent signal; do
	try_fails "$how" "$@"
	! grep '^slurm-ddp: ' err >why && test "$status" -ne 0
	result $? "no rank is named where the first fails with $how"
done
try_fails well "$@"
names '[013]' n1 'RuntimeError: connection closed by peer'
result $? 'a rank that has ended well before has not failed'
try_fails error env TORCHELASTIC_ERROR_FILE="$scratch/mine" "$@"
! grep '^slurm-ddp: ' err >why && test -s mine
result $? "a user's own file stays, and is not read"
try_fails error srun --ddp --ddp-supervise=off -N2 --ntasks-per-node=2
grep -q '^slurm-ddp: rank 2 failed first on n2, .*: ValueError: bad batch$' err
result $? 'a rank of the second node is named by its number in the step'

# A rank that has raised an error may end later than those that miss it. On a
# machine that is too busy its end may come too late: it still ran then.
for _ in 1 2 3; do
	try_fails 0.9 srun --ddp -N2 --ntasks-per-node=2
	grep '^slurm-ddp: rank .* failed first' err >why
	grep -q 'which still ran' err || break
done
# shellcheck disable=SC2034 # of result
! grep -q 'which still ran' err || late=' # LATE'
grep -qE '^slurm-ddp: rank 2 failed first on n2 .*: exit code 3: ValueError: bad batch$' why &&
	test "$(wc -l <why) $status" = '1 3'
result $? 'the first error counts, not the first end'
try_fails 9 srun --ddp -N2 --ntasks-per-node=2
cp err why
grep -qE '^slurm-ddp: (rank [013] failed first|3 of 4 ranks failed) .*: RuntimeError: conn' err &&
	grep -qE '^slurm-ddp: rank 2, which still ran, had an error [0-9.]+ s before: ValueError: bad batch$' err
result $? 'the error of a rank that does not end is told'

# What it has forked and not yet renamed has its name for a moment.
call login srun --ddp -N1 -n2 sh -c 'test "$SLURM_PROCID" = 1 || {
	until uids=$(ps -C ddp-agent -o uid=) &&
		test "$(echo "$uids" | wc -l)" = 1
	do
		sleep 0.1
	done
	echo "$uids"; }'
equal 'there is one agent, of the user' 61000 "$(tr -d ' ' <out)"
call login srun --ddp -N2 -n4 sh -c \
	'test "$SLURM_PROCID" != 0 || scancel -s KILL "$SLURM_JOB_ID"; sleep 60'
equal 'nothing is left of all these steps, nor of one that is killed' '' \
	"$(left)"
for off in --ddp=off \
	'--ddp --ddp-supervise=off --ddp-gpus=off --ddp-cpus=off'; do
	# shellcheck disable=SC2086 # several words
	call login srun $off -N1 -n1 \
		sh -c 'env; ps -C ddp-agent -o uid= || :'
	! grep -E '^TORCHELASTIC|^ *61000' out >why && test "$status" -eq 0
	result $? "no error file and no agent with $off"
done

# The agent begins when the program of its first task does, which a prolog holds
# up here, and then kills: what has failed before that is the first all the same.
cat >prolog <<'END'
#!/bin/sh
test "$SLURM_PROCID" = 2 || exit 0
until test -e failed && ! kill -0 "$(cat failed)"; do sleep 0.05; done
kill -KILL $PPID
END
chmod 755 prolog
call login srun --ddp -N2 --gres=gpu:2 --task-prolog="$scratch/prolog" sh -c '
	test "$SLURM_PROCID" = 3 || exec sleep 30
	echo $$ >failing && mv failing failed && exit 5'
grep -q '^slurm-ddp: rank 3 failed first on n2 .*: exit code 5$' err &&
	test "$(grep -c 'failed first' err)" = 1 && test "$status" = 5
result $? 'a rank that fails before the agent begins is the first'

# The tasks of n1 begin later, and srun ends the step before they do. When it
# starts again, all begin at once, and end well.
cat >prolog <<'END'
#!/bin/sh
test "$SLURMD_NODENAME" = n2 || test -e again || {
	: >"waits.$SLURM_PROCID"
	sleep 60
}
END
cat >late <<'END'
#!/bin/sh
echo "$SLURM_PROCID" >>ran
test ! -e again || exit 0
test "$SLURM_PROCID" = 2 || exec sleep 30
until test -e waits.0 && test -e waits.1 && grep -q 3 ran; do sleep 0.02; done
echo why >&2
: >again
kill -KILL $$
END
chmod 755 late
for how in --ddp-report=late.json --error=%t.err; do
	rm -f again ran waits.*
	call login srun --ddp -N2 --gres=gpu:2 "$how" \
		--task-prolog="$scratch/prolog" "$scratch/late"
	cp err why
	# Any process that lacked memory may have its guess in between.
	grep -q '^slurm-ddp: rank 2 failed first on n2 .* killed by signal 9' err &&
		grep -qx 'slurm-ddp: rank 2: | why' err && test "$status" = 137
	result $? "a rank that fails before other tasks begin is named: $how"
	equal "the tasks of the other node do not begin: $how" '2 3' \
		"$(sort ran | paste -sd' ')"
done
rm -f again ran waits.*
call login salloc -Q -N2 --ntasks-per-node=2 --gres=gpu:2 srun --ddp \
	--ddp-restarts=1 --task-prolog="$scratch/prolog" "$scratch/late"
equal 'a step whose tasks begin late starts again' '0 0 1 2 2 3 3' \
	"$status $(sort ran | paste -sd' ')"
