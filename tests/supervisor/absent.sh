# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Nodes that never begin their tasks.

# A node n2 that never begins, where scontrol tells of slurmds, and the slurmd
# of n1 alone answers. In the folder hung, the first scontrol does not answer; in
# the folder killed, it kills who has asked, and the others fail.
cat >slurmd.py <<'END'
import socket
listener = socket.create_server(("127.0.0.1", 0))
print("NodeList=n[1-2]")
print("NodeName=n1 NodeAddr=127.0.0.1 Port=%d" % listener.getsockname()[1])
print("NodeName=n2 NodeAddr=127.0.0.1 Port=1")
print("SlurmdPort = 1", flush=True)
while True:
    listener.accept()[0].close()
END
"$python" slurmd.py >slurmds &
slurmd=$!
for _ in $(seq 600); do
	! grep -q SlurmdPort slurmds || break
	sleep 0.1
done
for how in hung killed; do
	mkdir $how
	cp srun $how
	echo '#!/bin/sh' >$how/scancel
	cat >$how/scontrol <<END
#!/bin/sh
echo "\$@" >>$scratch/$how/asked
if test "\$(wc -l <$scratch/$how/asked)" = 1; then
	sleep 1000 &
	echo \$\$ \$! >$scratch/$how/pids
	test $how = hung || kill -KILL \$PPID
	wait
fi
test $how = killed || cat $scratch/slurmds
END
	chmod 755 $how/scancel $how/scontrol
done

# ended NAME: waits until none of the processes in the folder's pids is left
ended()
{
	for _ in $(seq 600); do
		ps -o pid= -p "$(tr ' ' , <"$1/pids")" || return 0
		sleep 0.1
	done
	return 1
}

hung/srun 2 n1:0-0:K,done srun:launch,w60000 2>hung/err
status=$?
sed 's/ after [0-9.]* s/ after T/' hung/err >why
test "$status $(paste -sd' ' why)" = "1 slurm-ddp: node n2 was lost first, \
after T: srun could not start tasks there, as its slurmd does not answer \
$(others '1 other rank')"
result $? 'an scontrol that hangs does not hide a node whose slurmd is gone'
check 'an scontrol that hangs is ended, with what it has started' ended hung
killed/srun 2 n1:0-0:w19000,e0=0,done srun:launch,w19500 2>killed/err
equal 'an scontrol that fails is asked three times' '0 3' \
	"$? $(grep -c 'show step' killed/asked)"
check 'the processes of an scontrol whose asker was killed are ended' \
	ended killed

# slurmctld answers, and so do both slurmds
mkdir both
cp srun both
echo '#!/bin/sh' >both/scancel
sed 's/NodeName=n2 .*//; s/NodeName=n1 .*/&\n&/; s/n1 /n2 /' slurmds >slurmds.both
printf '#!/bin/sh\ncat %s\n' "$scratch/slurmds.both" >both/scontrol
chmod 755 both/scancel both/scontrol
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
