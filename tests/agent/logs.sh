# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# The files of --ddp-logs, and what is said of ranks whose program does not start.

mkdir logs

# next: the folder of the next step
next()
{
	mkdir "logs/$((job + 1)).3"
	echo "logs/$((job + 1)).3"
}

# refused: why the ranks of the last step did not start, as the agent tells it
refused()
{
	heard END | sed "s:$scratch/::; s/; give a folder .*//" | paste -sd' '
}

fake
folder=$(next)
echo old >"$folder/rank-000000.err"
run 1 --ddp-logs="$scratch/logs" sh -c 'printf "one\ntwo" >&2'
equal 'a log goes on behind what it has, and ends with the last bytes' 'old
one
two' "$(cat "$folder/rank-000000.err")"
equal 'what goes to a log is printed, too, with a label' '[0 n1] one
[0 n1] two' "$(cat err)"
order QUIT

fake
folder=$(next)
ln -s "$scratch/precious" "$folder/rank-000000.out"
: >precious
run 1 --ddp-logs="$scratch/logs" echo overwritten
equal 'no log is written through a link' '' "$(cat precious)"
equal 'the agent tells why the program of a rank was not started' \
	"n1|0|256|--ddp-logs: cannot write $folder/rank-000000.out: it is a link" \
	"$(refused)"
order QUIT

if test "$(id -u)" = 0; then
	fake
	folder=$(next)
	chown 12345 "$folder"
	run 1 --ddp-logs="$scratch/logs" echo lost
	equal 'no log is written to the folder of another user' \
		"n1|0|256|--ddp-logs: cannot write $folder: it is another user's" \
		"$(refused)"
	order QUIT
else
	skip 'no log is written to the folder of another user' \
		'only root can make one'
fi
finish 'steps with logs'
