# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2086 # variables of run; several words in one
# Launchers of PyTorch and Accelerate: one world of all nodes.

cat >run.sh <<'END'
#!/bin/sh
exec "$@"
END
chmod 755 run.sh

# Accelerate counts devices, of which there are none here.
for command in torchrun 'torchrun --rdzv-backend=c10d' \
	'python3 -m torch.distributed.launch --use-env' \
	'accelerate launch --multi_gpu --num_processes=2'; do
	world even $command pytorch_ddp.py
done
world even bash -c 'cd . && exec python3 -u -m torch.distributed.run \
	--nnodes=2 --nproc-per-node=2 pytorch_ddp.py'
world even accelerate launch --cpu accelerate_loop.py
call login srun --ddp -N2 --gres=gpu:2 accelerate launch accelerate_loop.py
test "$status" -ne 0 && ! test -s out &&
	grep -q 'accelerate launch finds no GPU here' err
result $? 'accelerate launch, which finds no GPU'
world two torchrun pytorch_ddp.py
call login srun -l --ddp=torchrun -N2 --gres=gpu:2 ./run.sh torchrun \
	pytorch_ddp.py
mv out step.out
mv err step.err
one_world 'n1 n1 n2 n2' step && test "$status" -eq 0
result $? 'torchrun in a script, by --ddp=torchrun'

# The usual script for several nodes
cat >usual.sh <<'END'
#!/bin/bash
torchrun --nnodes=2 --nproc_per_node=2 --rdzv_backend=c10d \
	--rdzv_endpoint=$MASTER_ADDR:29400 pytorch_ddp.py
END
chmod 755 usual.sh
call login srun -l --ddp -N2 --gres=gpu:2 ./usual.sh
mv out step.out
mv err step.err
one_world 'n1 n1 n2 n2' step && test "$status" -eq 0 &&
	! grep -q 'node_rank' step.err
result $? 'torchrun in a script, which says --nnodes'

# Among several tasks a node they stop, and say what they need.
for command in torchrun 'accelerate launch --multi_gpu --num_processes=2'; do
	call login srun --ddp -N2 --gres=gpu:2 ./run.sh $command pytorch_ddp.py
	test "$status" -ne 0 && ! grep -q '^rank' out &&
		grep -q 'ValueError.*torchrun-needs-srun---ddp=torchrun' err
	result $? "$command in a script, without --ddp=torchrun"
done

# A worker that fails once is started again, with all others.
cat >once.py <<'END'
import os
import signal
import sys

if not os.path.exists("failed"):
    if os.environ["RANK"] != "3":
        signal.pause()
    open("failed", "w").close()
    sys.exit(1)
exec(compile(open("pytorch_ddp.py").read(), "pytorch_ddp.py", "exec"))
END
world even torchrun --rdzv-backend=c10d --max-restarts=1 once.py
