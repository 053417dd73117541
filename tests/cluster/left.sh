# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# What ranks leave when they end: output that nobody has taken yet, and processes
# that stay. It arrives, whoever is slow, stopped or killed.

cluster --nodes 2 --gpus 2 --cpus 4

# FOLDER FD [LINE]: prints on FD until nobody takes it any more, so that all on
# the way to srun is full when it ends: numbered lines, or LINE again and again.
# What it has printed is FOLDER/RANK, too. It waits for FOLDER/begin before.
cat >fills <<'PYTHON'
#!/usr/bin/python3
import fcntl, os, struct, sys, termios, time

folder, fd, line = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
rank = os.environ["SLURM_PROCID"]
copy = open("%s/%s" % (folder, rank), "xb", buffering=0)


def is_taken():
    """Whether a quarter of a pipe is free, or becomes so in half a second."""
    for _ in range(50):
        unread = fcntl.ioctl(fd, termios.FIONREAD, bytes(4))
        if struct.unpack("i", unread)[0] < 49152:
            return True
        time.sleep(0.01)
    return False


def put(text):
    assert os.write(fd, text) == len(text)
    copy.write(text)


while not os.path.exists(folder + "/begin"):
    time.sleep(0.02)
number = 0
while is_taken():
    numbers = range(number, number + 100)
    put(b"".join(line.replace(b";", b"\n") if line else
                 b"%d\n" % (i % 10) for i in numbers))
    number += 100
put(b"last words of rank %s\n" % rank.encode())
open("%s/%s.ended" % (folder, rank), "x").close()
PYTHON
chmod 755 fills

# Ranks that close their streams, and processes that stay
call login srun --ddp -N1 -n2 sh -c 'echo a >&2; exec 2>&-; sleep 0.2; echo b'
equal 'a rank that closes its standard error goes on' '0 a a b b' \
	"$status $(cat err out | paste -sd' ')"
call login srun --ddp -N1 -n2 --ddp-logs=logs sh -c '
	(sleep 50; echo late) &
	printf "not whole"'
equal 'a process that outlives its rank is not waited for' \
	'0 [0 n1] not whole,[1 n1] not whole' \
	"$status $(sort out | paste -sd,)"
rm -rf logs
for how in --ddp-supervise=on --ddp-show=0; do
	login srun --ddp "$how" -N1 -n1 sh -c 'seq 1 400000 >&2' 2>&1 |
		{ sleep 3; sed 's/^\[0 n1\] //'; } >lines
	seq 1 400000 | cmp - lines >why
	result $? "a slow reader gets all of it: srun --ddp $how"
done
# Ranks end when all on the way to srun is full. What they have left must wait for
# srun, as long as Slurm itself lets it.

# within WORDS COMMAND...: wait until COMMAND succeeds, for a minute at most
within()
{
	within_words=$1
	shift
	for _ in $(seq 600); do
		"$@" && return
		sleep 0.1
	done
	echo "# it did not happen in a minute: $within_words"
	return 1
}

# root CMD...: on the login node, as root
root()
{
	"$sandbox" exec --dir "$dir/cluster" --root "$@"
}

# begin COUNT OPTION...: start a step of so many tasks that print until nobody
# takes it; its output goes to $to, its status then to "ended"
begin()
{
	count=$1
	shift
	rm -rf full logs ended
	mkdir -m 777 full
	{
		login srun --ddp --ddp-logs=logs --ntasks="$count" "$@" sh -c \
			"'$scratch/fills' full $fd '$line' && $then"
		echo $? >ended
	} >"$to" 2>err &
	within 'all tasks have begun' begun
}

begun()
{
	test "$(find full -type f | wc -l)" = "$count"
}

# fill: wait until the tasks have printed all they can, and have ended
fill()
{
	touch full/begin
	within 'all tasks have printed' printed
	gone 'fills full'
}

printed()
{
	test "$(find full -name '*.ended' | wc -l)" = "$count"
}

# gone WORDS: wait until no process on the cluster has WORDS in its command line
gone()
{
	# shellcheck disable=SC2016 # for the inner shell
	root sh -c 'for _ in $(seq 600); do
			pgrep -f "$0" >/dev/null || exit 0
			sleep 0.1
		done
		echo "# still there after a minute: $0"
		exit 1' "[${1%"${1#?}"}]${1#?}"
}

# srun, and its supervisor, which would end a step whose srun does not.
stop_srun()
{
	root pkill -STOP -x 'srun|ddp-sup.*'
}

go_on()
{
	root pkill -CONT -x 'srun|ddp-sup.*'
	within 'the step has ended' test -s ended
}

# kept FILE: whether FILE has just what the ranks have printed, with their labels.
# slurmstepd itself cuts lines of several ranks, and mixes them, when much is on
# its way at their end: of these, each byte is counted.
kept()
{
	for rank in $(seq 0 $((count - 1))); do
		sed "s/^/[$rank n$((rank * nodes / count + 1))] /" "full/$rank"
	done >wanted
	wc -c wanted "$1" >why
	test "$count" -gt 1 || cmp wanted "$1" >>why || return 1
	/usr/bin/python3 -c 'import collections, sys
a, b = (collections.Counter(open(name, "rb").read()) for name in sys.argv[1:])
sys.exit(a != b)' wanted "$1"
}

# logged_all STREAM: whether the ranks' logs have it, too
logged_all()
{
	for rank in $(seq 0 $((count - 1))); do
		cmp "full/$rank" "$(echo logs/*/rank-00000"$rank.$1")" \
			>why 2>&1 || return 1
	done
}

# A reader that takes nothing until the ranks have ended, and for a second more.
fd=1 then=true nodes=2
mkfifo pipe
for line in '' ';'; do
	name="lines${line:+ of one byte}"
	{
		until test -e full/go; do sleep 0.05; done
		cat
	} <pipe >got &
	reader=$!
	to=pipe
	begin 8 -N2
	fill
	sleep 1
	touch full/go
	wait $reader
	within 'the step has ended' test -s ended
	kept got && test "$(cat ended)" = 0
	result $? "a slow reader gets all $name that 8 ranks leave at their end"
	logged_all out
	result $? "the logs of 8 ranks have all $name"
done

line='' to=got
begin 8 -N2
stop_srun
fill
sleep 3
wait_until logged_all out
result $? 'logs are whole when the ranks have ended, though srun is stopped'
go_on
kept got && test "$(cat ended)" = 0
result $? 'srun that was stopped for 3 s gets all that 8 ranks leave at their end'

# The same on standard error, and the rank fails.
fd=2 then='exit 3' nodes=1
begin 1 -N1
stop_srun
fill
sleep 3
go_on
grep '^\[' err >lines
kept lines
result $? 'srun that was stopped for 3 s gets all that a failed rank leaves'
logged_all err
result $? 'the log of a failed rank is whole'
equal "the verdict has the rank's last words, though srun was stopped" \
	'3 last words of rank 0' \
	"$(cat ended) $(sed -n 's/^slurm-ddp: rank 0: | //p' err | tail -n 1)"

# Somebody kills the agent or the tee then.
fd=1 then=true
for name in ddp-agent ddp-tee; do
	begin 1 -N1
	stop_srun
	fill
	admin n1 pkill -KILL -x "$name"
	sleep 0.5
	go_on
	kept got && test "$(cat ended)" = 0 && logged_all out
	result $? "$name is killed when the ranks have ended: nothing is lost"
done

# srun never reads again.
begin 2 -N1
stop_srun
fill
wait_until logged_all out
login scancel --user=ddp
gone slurmstepd
in_time $? 'a step whose srun never reads again ends by scancel'
logged_all out
result $? 'logs are whole, though srun never reads again'
go_on

# What outlives its rank can write for ever.
for how in --ddp-supervise=on --ddp-show=0; do
	call login srun --ddp "$how" -N1 -n1 sh -c '
		setsid yes >&2 &
		echo first'
	equal "a process that prints for ever after its rank is not waited for: \
$how" '0 first' "$status $(sed 's/^\[0 n1\] //' out)"
done
# The agent that is killed has handed the stream over by then.
call login srun --ddp --ddp-logs=logs.left -N1 -n1 sh -c '
	sleep 100 &
	echo first
	timeout 60 sh -c "until grep -qs first logs.left/*/*; do sleep 0.1; done"
	pkill -KILL -x ddp-agent
	echo last'
equal 'a process that outlives its rank is not waited for, without ddp-agent' \
	'0 [0 n1] first [0 n1] last' "$status $(paste -sd' ' out)"

settle
equal 'nothing is left of all these steps' '' \
	"$("$sandbox" exec --dir "$dir/cluster" ps -C ddp-tee,ddp-agent \
		-o pid=,args= | grep -v '<defunct>')"
