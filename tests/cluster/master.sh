# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# The master's address and port, used as frameworks use them: rank 0 listens,
# the others connect. For what is refused see refusals.

# A program for tasks: rank 0 listens on MASTER_PORT, writes so into the fifo
# "said", waits for the lock on "gate", and then tells each other rank which
# step it is. Ranks that hear of another step, or of none, fail.
cat >meet <<'END'
#!/usr/bin/perl
use strict;
use Fcntl ':flock';
use Socket;
my $me = "$ENV{SLURM_JOB_ID}.$ENV{SLURM_STEP_ID}";
my $port = $ENV{MASTER_PORT};
socket(my $s, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
if ($ENV{RANK} == 0) {
	setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1);
	bind($s, sockaddr_in($port, INADDR_ANY)) && listen($s, 64)
		or die "$me: port $port: $!\n";
	open(my $said, '>', 'said') or die "said: $!";
	syswrite($said, "$ENV{MASTER_ADDR} $port $me\n");
	open(my $gate, '<', 'gate') or die "gate: $!";
	flock($gate, LOCK_SH) or die "gate: $!";
	for (2 .. $ENV{WORLD_SIZE}) {
		accept(my $c, $s) or die "accept: $!";
		syswrite($c, "$me\n");
		close $c;	# first, and so leaves a TIME_WAIT
	}
	exit;
}
my $at = sockaddr_in($port, scalar gethostbyname($ENV{MASTER_ADDR}));
for (1 .. 1000) {
	last if connect($s, $at);
	close $s;
	select undef, undef, undef, 0.05;
	socket($s, PF_INET, SOCK_STREAM, 0);
}
chomp(my $heard = <$s>);
die "$me heard '$heard' at $ENV{MASTER_ADDR}:$port\n" if $heard ne $me;
syswrite(STDOUT, "met\n");
END
chmod 755 meet
: >gate

# all_at_once JOBS STEPS: run so many jobs with so many steps in each. All rank
# 0 listen before the first goes on; "listening" then has what they listen on.
# So many steps can take longer than a minute, which login would leave them.
all_at_once()
{
	# shellcheck disable=SC2034 # of login
	patience=200
	steps=$2 total=$(($1 * $2))
	rm -f said met.* err.*
	mkfifo said
	chmod 666 said
	exec 8<>said 9<gate
	flock 9
	for job in $(seq "$1"); do
		{ login salloc -Q -N2 --ntasks-per-node="$steps" sh -c '
			for step in $(seq "$0"); do
				srun --overlap --ddp -N2 -n2 ./meet ||
					echo failed >said &
			done
			wait' "$steps" >"met.$job" 2>"err.$job" ||
			yes failed | head -n "$steps" >said; } 8<&- 9<&- &
	done
	lines=0
	while test $lines -lt $total; do
		read -r line <&8
		echo "$line"
		lines=$((lines + 1))
	done >listening
	exec 9<&-
	wait
	exec 8<&-
	cat met.* >out
	cat err.* >err
	# shellcheck disable=SC2034
	patience=20
}

# distinct HOW: whether all at once listened on ports of their own, and met
distinct()
{
	equal "$total steps at once, $1: each has met its own master" \
		"$total $total" "$(grep -c n1 listening) $(grep -c met out)"
	equal "$total steps at once, $1: each is on a port of its own" \
		"$total" \
		"$(cut -d' ' -f1,2 listening | sort -u | wc -l)"
	! unquiet >why
	result $? "$total steps at once, $1: nothing is said"
}

# Slurm itself gives up what is not answered in 10 s.
cluster --nodes 2 --gpus 2 --cpus 128 --slurm MessageTimeout=60
all_at_once 1 50
distinct 'in one job'
all_at_once 3 5
distinct 'in three jobs'
check 'the ports are in the range that is the default' awk '
	$2 < 21000 || $2 > 28999 { exit 1 }' listening
plugstack optional port-range=30000-30063
all_at_once 2 3
check 'the ports are in the range of plugstack.conf' awk '
	$2 < 30000 || $2 > 30063 { exit 1 }' listening
plugstack optional

# The user's MASTER_ADDR is another node than rank 0's, which is n1.
astray='slurm-ddp: MASTER_ADDR=n2, which was exported, is no address of n1,'
call login env MASTER_ADDR=n2 srun --ddp -N2 -n4 true
equal 'a MASTER_ADDR of another node is told, once' '0 1' \
	"$status $(grep -c "^$astray" err)"
call login env MASTER_ADDR=n1 srun --ddp -N2 -n4 true
equal "a MASTER_ADDR of rank 0's node is not told" '0 0' "$status $(wc -l <err)"
call login env MASTER_ADDR=n2 srun --ddp --ddp-watchdog=5 -N2 -n2 sleep 1000
equal 'a MASTER_ADDR of another node is told again when the step hangs' \
	'124 2' \
	"$status $(grep -c "^$astray" err)"
call login env MASTER_ADDR=n2 salloc -Q -N2 -n2 \
	srun --ddp --ddp-check=3 ./meet
grep -q 'not even rank 0' err && ! grep -q 'leave the node out' err &&
	test "$status" = 1
result $? '--ddp-check blames no node for it'

# What a step leaves in TIME_WAIT does not stop the next.
exec 8<>said
for round in first second; do
	call login srun --ddp --ddp-port=20007 -N2 -n2 ./meet
	equal "the $round of two steps with one port meets" '0 met' \
		"$status $(cat out)"
done
exec 8<&-

# A second interface, which has another name on each node: first names resolve
# to the other one, then to this one.
for node in n1 n2; do
	admin $node sh -c "ip link add fast-$node type veth peer name end &&
		ip addr add 10.99.0.${node#n}/24 dev fast-$node &&
		ip link set fast-$node up && ip link set end up"
done
world 'n1 n2' srun --ddp -N2
sed '/^10.77.0.[12] /s/10.77/10.99/' "$dir/cluster/etc/hosts" >hosts.other
for node in n1 n2; do
	admin $node mount --bind "$scratch/hosts.other" /etc/hosts
done
interfaces()
{
	call login srun --ddp -N2 sh -c \
		'echo $(uname -n) $GLOO_SOCKET_IFNAME ${NCCL_SOCKET_IFNAME-unset}'
	sort out | paste -sd,
}
equal 'Gloo is told the interface that leads to the master' \
	'n1 fast-n1 unset,n2 fast-n2 unset' 	"$(interfaces)"
plugstack optional interface=eth0
equal 'interface= sets it for Gloo and NCCL' 'n1 eth0 =eth0,n2 eth0 =eth0' \
	"$(interfaces)"
call login env GLOO_SOCKET_IFNAME=lo NCCL_SOCKET_IFNAME=ib srun --ddp -n1 \
	sh -c 'echo $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME'
equal "interface= does not replace what the user set" 'lo ib' "$(cat out)"

# With ports from Slurm: 20 steps with one task on a node need only 2 each.
cluster --nodes 2 --gpus 2 --cpus 128 --slurm MpiParams=ports=13000-13039
all_at_once 1 20
distinct 'with MpiParams'
check "the ports are Slurm's" \
	awk '$2 < 13000 || $2 > 13039 { exit 1 }' listening
call login srun --ddp -N2 sh -c 'echo $MASTER_PORT $SLURM_STEP_RESV_PORTS'
equal 'the first that the step was given' "$(cut -d' ' -f2 out |
	sed 's/[-,].*//' | sort -u)" "$(cut -d' ' -f1 out | sort -u)"
if ! lacks_pmix 'a heterogeneous step has one port'; then
	call login srun --ddp -w n1 "$show" : -w n2 "$show"
	test "$status" -eq 0 && right 'n1 n2'
	result $? 'a heterogeneous step has one port'
fi
world 'n1 n2' srun --ddp -N2 --ddp-port=20008
check "--ddp-port comes before Slurm's ports" \
	test "$(awk '{ print $16 }' out | uniq)" = 20008
