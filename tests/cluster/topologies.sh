# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2034,SC2016 # see run; the tasks' shells expand
# Nodes that differ, that show no GPUs, or that a wrong file describes; and many
# steps on them at once.

if test "$(nproc --all)" -lt 2 || test "$(nproc)" -lt 2; then
	skip 'tasks on CPUs of their own' 'fewer than 2 CPUs'
	return
fi

pair nvidia 0 81 1 01 10de:2330
topology bare <<END
package
numa 0 0 1 1 1 0
numa 1 1 1 1 1 0
END
column=5

# refuses_topology NODE FILE WORDS OPTIONS: the ranks of that node print one line
# with the words, and nothing runs there. (login ends what waits for ever.)
refuses_topology()
{
	node=$1 file=$2 words=$3
	shift 3
	call login srun --ddp "$@" sh -c 'echo ran on $(uname -n)'
	# Where srun ends the others first, their status is its own.
	equal "$file: $words" "fails 1 0" "$(test "$status" -eq 0 ||
		echo fails) $(grep -c slurm-ddp err) $(grep -c "on $node" out)"
	check "$file: one sentence says $words" grep -q \
		"^slurm-ddp: rank [0-9] on $node: .*$words" err
}

# %n is the node; a plain step shows which CPUs its tasks get.
cluster --nodes 2 --gpus 2 --cpus 2
call login srun -N2 --ntasks-per-node=2 --gres=gpu:2 "$see"
# shellcheck disable=SC2046 # four words
set -- $(sort -n out | cut -d' ' -f4)
pair node.n1 "$1" 81 "$2" 01 10de:2330
pair node.n2 "$3" 01 "$4" 81 10de:2330
plugstack optional "topology=$scratch/node.%n.xml"
places "$1 1,0 0 81,$2 1,0 1 01,$3 0,1 0 01,$4 0,1 1 81" -N2 --gres=gpu:2
rm node.n2.xml
for word in optional required; do
	plugstack $word "topology=$scratch/node.%n.xml"
	refuses_topology n2 node.n2.xml 'No such file' -N2 --gres=gpu:2
done

# hostile: files that are no topologies, given as one
hostile()
{
	: >empty.xml
	echo '<topology version="2.0">' >cut.xml
	head -c 100000 /dev/urandom >noise.xml
	mkdir -p folder.xml
	mkfifo fifo.xml
	cp nvidia.xml closed.xml
	chmod 600 closed.xml
	{
		echo '<?xml version="1.0"?><!DOCTYPE t ['
		echo '<!ENTITY a "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa">'
		echo '<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
		sed 1,2d nvidia.xml | sed 's/one/\&b;/'
	} >bomb.xml
	sed 's/version="2.0"/version="9.0"/' nvidia.xml >newer.xml
	pair foreign 1000 81 1001 01 10de:2330
	while IFS='|' read -r file words; do
		plugstack optional "topology=$scratch/$file.xml"
		refuses_topology n1 "$file.xml" "$words" -w n1 --gres=gpu:2
	done <<-END
	missing|No such file
	empty|cannot read
	cut|cannot read
	newer|cannot read
	noise|is not text
	folder|is not a regular file
	fifo|is not a regular file
	closed|Permission denied
	bomb|declares entities
	foreign|none that this topology has
	END
}
hostile
equal 'all nodes stay up after hostile topologies' \
	'' "$(login sinfo -hN -t drain,down,fail)"
plugstack optional "topology=$scratch/bare.xml"
call login srun --ddp=explain -w n1 --gres=gpu:2 "$see"
equal 'a node that shows no GPUs: devices, and the reason' '0,1 0 0,1 1 1' \
	"$(sort -n out | cut -d' ' -f5,9 | paste -sd' ') $(
	grep -c 'no PCI device here: locality unknown' err)"
plugstack optional
call login srun --ddp -N2 --gres=gpu:2 "$see"
equal 'this machine, as hwloc finds it, runs a step' '0 4' \
	"$status $(grep -c ' 0$' out)"

# Many steps at once: no task waits for ever
hold -N2 --exclusive
call bounded 300 sh -c 'for step in $(seq 20); do
		timeout 240 srun --jobid=$0 --overlap --ddp -N1 -n2 true &&
			echo ended &
	done; wait' "$job"
equal '20 steps of 2 tasks at once all end' 20 \
	"$(grep -c ended out)"
release
