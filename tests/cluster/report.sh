# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# contrib/report/ddp-report, which a site sends: all of its parts, and nothing
# that tells whose cluster it is. What nvidia-smi tells is a fake's.

mkdir fakes
cat >fakes/nvidia-smi <<'END'
#!/bin/sh
echo '0, Fake A100, GPU-01234567-89ab-cdef-0123-456789abcdef'
echo 'seen from 10.77.0.12 and fe80::250:56ff:fe9a:1 by 00:50:56:9a:12:34'
echo "for $(id -un)@$(hostname) at 0000:1b:00.0"
echo "slurmstepd-$(hostname): error: *** STEP 1.6 ON $(hostname) CANCELLED ***"
END
chmod 755 fakes/nvidia-smi
cp "$top/contrib/report/ddp-report" .
cluster --nodes 2 --gpus 2 --slurm ClusterName=secretary

call login env PATH="$PWD/fakes:$PATH" salloc -Q --ddp -N2 --gres=gpu:2 \
	--cpus-per-gpu=1 "$PWD/ddp-report"
equal 'a report ends well, and asks to be read' \
	'0 ddp-report: read what it has written before you send it' \
	"$status $(cat err)"
equal 'a report has each part' "versions;Slurm;Slurm's settings;$(
	)the nodes as Slurm has them;the nodes themselves;placement, and why;$(
	)what the ranks got;the check before a step;the doctor;$(
	)an all-reduce over NCCL;end" "$(sed -n 's/^== //p' out | paste -sd';')"
grep -nwE 'n[12]|n\[1-2\]|secretary|ddp@|uid 61000|10\.77\.0\.[0-9]+' out >why ||
	grep -nE 'GPU-0123|fe80|00:50:56' out >why
test ! -s why
result $? 'no name, address or UUID is in it'
equal 'an option that has the name of the user stays' 5 \
	"$(grep -c '^\$ srun .*--ddp' out)"
equal 'words take their places' \
	"0, Fake A100, GPU-uuid;seen from address and address by address;$(
	)for user@node1 at 0000:1b:00.0" "$(sed -n 's/^0: //p' out |
	grep -A2 -m1 '^0, Fake' | paste -sd';')"
equal 'a rank is found on each node' '0 node1;1 node1;2 node2;3 node2' "$(
	sed -n '/^== placement/,/^exit/s/^ *\([0-3]\)  *\(node[12]\) .*/\1 \2/p' \
	out | sort | paste -sd';')"

# A large cluster, of which fakes of Slurm's programs tell: nodes of several names
# that are not in the job, names that are words of Slurm too, and a site's groups.
mkdir large
printf '%s\n' 'optional spank_ddp.so allow=astro,@chem partition=fat:interface=ib1' \
	>large/plugstack.conf
cat >large/scontrol <<END
#!/bin/sh
case \$* in
*'show nodes') cat <<-TEXT
	NodeName=gpu01 Arch=x86_64 NodeAddr=10.1.0.1 NodeHostName=ip-10-1-0-1
	NodeName=gpu02 Arch=x86_64 NodeAddr=10.1.0.2 NodeHostName=ip-10-1-0-2
	NodeName=big-7 Arch=x86_64 NodeAddr=big-7.example.org NodeHostName=big-7
	TEXT
	;;
*hostnames*) printf 'gpu01\ngpu02\n' ;;
*'show config') echo 'ClusterName             = secretary'
	echo "PlugStackConfig = $PWD/large/plugstack.conf" ;;
*partitions) printf 'PartitionName=gpu A=b\nPartitionName=fat A=b\n' ;;
*job*) echo 'JobId=4711 Account=hush QOS=normal Reservation=(null)' ;;
esac
END
cat >large/srun <<'END'
#!/bin/sh
cat <<-TEXT
gpu[01-02],big-[6-7] of partition gpu and fat, allowed: astro, @chem, by hush
Gres=gpu:a100:4 at 0000:1b:00.0, 10.1.0.1 10.1.0.2,10.1.0.3:29500. FE80::1
srun: error: gpu02: task 1: ip-10-1-0-2 lost big-7 and big-7.example.org.
00:1A:2B:3C:4D:5E on ib1; QOS=normal of secretary
TEXT
END
printf '#!/bin/sh\n' >large/ddp-info
chmod 755 large/*
call env PATH="$PWD/large:$PATH" SLURM_JOB_ID=4711 SLURM_NNODES=2 \
	SLURM_JOB_NODELIST='gpu[01-02]' ./ddp-report
sed -n '/^== what the ranks got/,/^exit/p' out | sed '1,2d;$d' >told
cat >wanted <<'END'
node[01-02],node[6-7] of partition gpu and partition, allowed: site, @site, by account
Gres=gpu:a100:4 at 0000:1b:00.0, node node,address. address
srun: error: node2: task 1: node lost node3 and node.
address on ib1; QOS=normal of cluster
END
check "names of a large cluster are replaced, and Slurm's words are not" \
	diff wanted told

call login "$PWD/ddp-report"
equal 'outside of a job it says how to begin' \
	"2 ddp-report: this is no job of Slurm: start it by $(
	)\"salloc --ddp -N1 --gres=gpu:2 --cpus-per-gpu=4 $(
	)$PWD/ddp-report >report.txt\"" "$status $(cat err)"
call login "$PWD/ddp-report" --to file
equal 'a report takes no options' 2 "$status"
