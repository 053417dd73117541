# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Nodes that never begin their tasks.

# A node n2 that never begins, where scontrol tells of slurmds. That of n1 answers,
# and that of n2 answers as often as the argument says.
cat >slurmd.py <<'END'
import select, socket, sys
nodes = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
often = [1 << 30, int(sys.argv[1])]
def close_some():
    for node in [node for node in nodes if often[nodes.index(node)] == 0]:
        often[nodes.index(node)] = -1
        node.close()

print("NodeList=n[1-2]")
for number, node in enumerate(nodes):
    print("NodeName=n%d NodeAddr=127.0.0.1 Port=%d" %
          (number + 1, node.getsockname()[1]))
close_some()
print("SlurmdPort = 1", flush=True)
while True:
    close_some()
    open_ones = [node for node in nodes if node.fileno() >= 0]
    for node in select.select(open_ones, [], [])[0]:
        node.accept()[0].close()
        often[nodes.index(node)] -= 1
END

# slurmds FOLDER TIMES: in it scontrol tells of these
slurmds()
{
	mkdir "$1"
	cp srun "$1"
	"$python" slurmd.py "$2" >"$1/slurmds" &
	slurmd="$slurmd $!"
	for _ in $(seq 600); do
		! grep -q SlurmdPort "$1/slurmds" || break
		sleep 0.1
	done
	echo '#!/bin/sh' >"$1/scancel"
	printf '#!/bin/sh\necho "$@" >>%s/asked\ncat %s/slurmds\n' \
		"$scratch/$1" "$scratch/$1" >"$1/scontrol"
	chmod 755 "$1/scancel" "$1/scontrol"
}

# never FOLDER: n2 does not begin within 20 s, and the step does not end for it
never()
{
	"$1/srun" 2 n1:0-0:w20000,e0=0,done srun:launch,w20500 2>"$1/err"
	equal "$2" "0 ${3-}" "$? $(cat "$1/err")"
}

# ended NAME: waits until none of the processes in the folder's pids is left
ended()
{
	for _ in $(seq 600); do
		ps -o pid= -p "$(tr ' ' , <"$1/pids")" || return 0
		sleep 0.1
	done
	return 1
}

lost='slurm-ddp: node n2 was lost first, after T: srun could not start tasks there, as its slurmd does not answer'
slurmds gone 0
gone/srun 2 n1:0-0:K,done srun:launch,w60000 2>gone/err
status=$?
sed 's/ after [0-9.]* s/ after T/' gone/err >why
equal 'a node whose slurmd is gone is lost' "1 $lost $(others '1 other rank')" \
	"$status $(paste -sd' ' why)"
slurmds restarted 2
never restarted 'a slurmd that is restarted is no lost node'
check 'Slurm is asked where the restarted slurmd listens' test -s restarted/asked

# No slurmd answers: it may be this host that reaches none.
slurmds none 0
sed -i 's/\(NodeName=n1 .* Port=\).*/\11/' none/slurmds
never none 'a node is not lost soon where no slurmd at all answers'
none/srun 2 n1:0-0:K,done srun:launch,w60000 2>none/err
sed 's/ after [0-9.]* s/ after T/' none/err >none/said
check 'a node is lost after half a minute where no slurmd answers' grep -qxF "$lost" none/said

# scontrol fails; hangs; kills who has asked
slurmds failing 0
rm failing/slurmds
never failing 'where scontrol fails no node is lost'
equal 'an scontrol that fails is asked three times' 3 \
	"$(grep -c 'show step' failing/asked)"
for how in hung killed; do
	slurmds $how 0
	cat >$how/scontrol <<END
#!/bin/sh
sleep 1000 &
echo \$\$ \$! >$scratch/$how/pids
test $how = hung || kill -KILL \$PPID
wait
END
	never $how "where scontrol is $how no node is lost"
	check "an scontrol that is $how is ended, with what it has started" \
		ended $how
done

slurmds both 1000000
both/srun 2 n1:0-0:w70000,e0=0,done srun:launch,w70500 2>both/err
equal 'a node that takes a minute to begin is told of once, and waited for' \
	'0 slurm-ddp: no ddp-agent has come from node n2 within 60 s, though its slurmd answers: a prolog or an image takes long, slurmstepd has died, or the node is not watched' \
	"$? $(cat both/err)"
gives_up='srun: error: timeout waiting for task launch started 1 of 2 tasks'
both/srun 2 n1:0-0:w600,e0=0,done "srun:launch,w300,p$gives_up/,all" \
	2>both/err
equal 'where a rank never began, the code is not 0' "1 $gives_up" \
	"$? $(grep -v 'no ddp-agent has come' both/err)"

other='srun: error: timeout waiting for task launch started 0 of 4 tasks'
both/srun 2 n1:0-0:w600,e0=0,done "srun:launch,w300,p$other/,w500,x0" 2>both/err
equal 'where another srun gave up, the code stays' "0 $other" "$? $(cat both/err)"

# munged is dead, so that scancel waits
mkdir mute
cp srun mute
cat >mute/scancel <<END
#!/bin/sh
sleep 1000 &
echo \$\$ \$! >$scratch/mute/pids
wait
END
chmod 755 mute/scancel
mute/srun 2 n1:0-1:w100,e0=3,K,done srun:hang 2>mute/err
equal 'a scancel that hangs does not hold up the end of a step' 3 $?
check 'a scancel that hangs is ended, with what it has started' ended mute
