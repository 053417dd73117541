# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # the variables of run and lib.sh
# Nodes that never begin their tasks.

# A node n2 that never begins, where scontrol tells of slurmds, and the slurmd
# of n1 alone answers. In the folder hung, the first scontrol does not answer; in
# the folder killed, it kills who has asked, and the others fail.
cat >slurmd.py <<'END'
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print("NodeList=n[1-2]")
print("NodeName=n1 NodeAddr=127.0.0.1 Port=%d" % listener.getsockname()[1])
print("NodeName=n2 NodeAddr=127.0.0.1 Port=1")
print("SlurmdPort = 1", flush=True)
time.sleep(600)
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
