# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# The scripts that people start from, unchanged under srun --ddp: each prints
# what its author would expect.

python=/usr/bin/python3
cp "$top"/tests/cluster/scripts/*.py .
chmod 644 -- *.py

# starts ARGUMENT...: srun --ddp of a script that imports torch, which takes
# its time. Debian 13's PyTorch has no libuv, and asks for it all the same.
# Ranks that one task starts share its output: where Python writes each word by
# itself, their lines mix.
starts()
{
	call bounded 300 env -u PYTHONUNBUFFERED USE_LIBUV=0 srun --ddp "$@"
}

cluster --nodes 2 --gpus 8 --cpus 8

# With -u, Python writes each word by itself.
call login srun --ddp -N2 --gres=gpu:8 $python -u hello.py
port=$(sed -n 's/.* MASTER_PORT: \([0-9]*\) .*/\1/p' out | sort -u)
for rank in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	node=$((rank / 8))
	echo "|| MASTER_ADDR: n1 || MASTER_PORT: $port || WORLD_SIZE: 16" \
		"|| RANK: $rank || LOCAL_WORLD_SIZE: 8" \
		"|| LOCAL_RANK: $((rank % 8)) || NODE_RANK: $node" \
		"|| on n$((node + 1)) ||"
done | sort >wanted
sort out >had
check '16 ranks say who they are, each in a whole line' \
	diff wanted had

# whole FILE...: whether each line is of one letter only
whole()
{
	! cat -- "$@" | tr -s a-p | grep -nvm 3 '^.$'
}

cat >letters.py <<'END'
import os, sys
letter = "abcdefghijklmnop"[int(os.environ["RANK"])]
for line in range(20):
    print(letter, letter * (int(sys.argv[1]) - 2), letter, sep="")
END
call login srun --ddp -N2 --gres=gpu:8 $python -u letters.py 1023
equal '16 ranks print lines of 1023 letters' '320 1023' \
	"$(awk '{ n[length]++ } END { for (l in n) print n[l], l }' out)"
check 'the lines of 16 ranks stay whole' whole out
call login srun --ddp -o letters.%t -N2 --gres=gpu:8 $python letters.py 5000
check 'a line of any length does in a file of its rank' whole letters.*[0-9]
equal 'there are 16 files of ranks, each with all lines' 16 \
	"$(wc -l letters.*[0-9] | grep -c '^ *20 letters')"

if ! $python -c 'import torch.distributed' 2>/dev/null; then
	skip 'scripts for PyTorch' "no torch for $python"
	return
fi
cluster --nodes 2 --gpus 2

# dealt: whether every sample was seen once an epoch, in another order
dealt()
{
	awk '$1 == "epoch" {
		for (i = 6; i <= NF; i++)
			seen[$2, $i]++
		all += NF - 5
		$2 = ""
		if (order[$0]++)
			bad = "the same samples in two epochs"
	}
	END {
		for (epoch = 0; epoch < 3; epoch++)
			for (sample = 0; sample < 400; sample++)
				if (seen[epoch, sample] != 1)
					bad = "sample " sample " in epoch " epoch
		if (all != 3 * 400)
			bad = all " samples"
		print bad
		exit bad != ""
	}' samples
}

starts -N2 --gres=gpu:2 $python mnist.py
sed 's/loss [0-9.]* //' out >samples
equal 'the MNIST script: every rank trains, rank 0 alone saves' \
	'0 3 saved, 12 trained, 4 the same' "$status $(
	grep -c '^saved mnist.pt after epoch [012]$' out) saved, $(
	grep -c '^epoch [012] rank [0-3] ' out) trained, $(
	grep -cx 'rank [0-3] has what was saved after epoch 2' out) the same"
check 'set_epoch: every sample once an epoch, in another order' dealt
check 'the loss of the MNIST script falls' awk '$1 == "epoch" { loss[$2] += $6 }
	END { exit !(0 < loss[2] && loss[2] < loss[0]) }' out

# spawns NODES GPUS ARGUMENT...: one task a node, which starts its own ranks
spawns()
{
	starts -N "$1" --ntasks-per-node=1 -c "$2" --gres=gpu:"$2" bash -c \
		"$python"' spawn.py -n "$0" -g "$1" -nr "$NODE_RANK" "${@:2}"' \
		"$@"
}

spawns 2 2
cat >wanted <<END
rank 0 of 4, GPU 0 of node 0 on n1
rank 1 of 4, GPU 1 of node 0 on n1
rank 2 of 4, GPU 0 of node 1 on n2
rank 3 of 4, GPU 1 of node 1 on n2
END
equal 'mp.spawn: nodes x gpus ranks make one world' "0 $(cat wanted)" \
	"$status $(sed 's/: mean loss .*//' out | sort)"
check 'the ranks of mp.spawn train together' awk '{ loss[$NF]++ }
	END { for (l in loss) exit !(loss[l] == 4 && l < 0.01); exit 1 }' out
spawns 2 1 --fail 1
case $status in
1 | 143) check 'an exception in a spawned rank ends the step, and is shown' \
	grep -qx 'ValueError: rank 1 finds no data' err ;;
*) equal 'an exception in a spawned rank ends the step' '1 or 143' "$status" ;;
esac

starts -N2 -n2 --gres=gpu:2 $python amp.py 8
sort out >unbroken
starts -N2 -n2 --gres=gpu:2 $python amp.py 8 amp-4.pt
sort out >resumed
grep '^step [5-8] ' unbroken >wanted
equal 'mixed precision: 8 steps on each of 2 ranks, in bfloat16' 16 \
	"$(grep -c '^step [1-8] rank [01] torch.bfloat16 loss ' unbroken)"
check 'resumed from its checkpoint, it has the losses of the unbroken run' \
	diff wanted resumed

# Without GPUs, DataParallel is no more than the module itself, in one process
# with all its threads: its copies and threads for each GPU, which make it slow
# there, are not seen here. So the speeds are only shown. (Threads that wait
# actively would make it ten times as slow where CPUs are shared.)
export OMP_WAIT_POLICY=passive
starts -N1 -n1 -c2 --gres=gpu:2 $python parallel.py
mv out one
starts -N1 --gres=gpu:2 $python parallel.py
unset OMP_WAIT_POLICY
check 'DDP has the losses of DataParallel on the whole batch' awk '
	$2 == "step" { loss[$1, $3] = $5; steps[$1]++ }
	END {
		for (step = 1; step <= 12; step++) {
			d = loss["DDP", step] - loss["DataParallel", step]
			if (d * d > 0.0002 ^ 2 || steps["DDP"] != 12 ||
			    steps["DataParallel"] != 12)
				exit 1
		}
	}' one out
awk -F': ' '/samples a second/ { print "# " $0; speed[NR > FNR] = $2 }
	END { if (speed[0] > 0)
		printf "# DDP is %.2f times as fast\n", speed[1] / speed[0] }
	' one out

# torchrun makes its store as the defaults say, and does not read USE_LIBUV.
if ! $python -c 'from torch.distributed import TCPStore
TCPStore("localhost", 0, is_master=True, wait_for_workers=False)' >why 2>&1; then
	skip 'torchrun: the elastic script' 'torchrun cannot make its store here'
	return
fi
# Debian 12's torchrun needs --redirects and --tee.
starts -N2 --ntasks-per-node=1 -c2 --gres=gpu:2 bash -c "$python"' \
	-m torch.distributed.run --nnodes=2 --nproc_per_node=2 \
	--redirects=1 --tee=1 --rdzv_id=7 --rdzv_backend=c10d \
	--rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" elastic.py'
equal 'torchrun: the elastic script makes one world, two workers a node' \
	'0 rank 0 of 4 rank 1 of 4 rank 2 of 4 rank 3 of 4 0 n1 0 n2 1 n1 1 n2' \
	"$status $(grep -o 'rank [0-3] of 4' out | sort | paste -sd' ') $(
	sed -n 's/.* worker \([01]\) on \(n[12]\) done$/\1 \2/p' out | sort |
		paste -sd' ')"
