# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # see run
# Which rank failed first where PyTorch's own @record writes the error file, and the
# other ranks fail because of it: with a supervisor, and without.

cluster --nodes 2 --gpus 2 --cpus 8

cat >record.py <<'END'
import torch
import torch.distributed
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    for batch in range(5):
        if rank == 2 and batch == 3:
            raise ValueError("bad batch")
        torch.distributed.all_reduce(torch.ones(1))

main()
END
python=/usr/bin/python3
if ! "$python" -c 'import torch' 2>why; then
	skip 'PyTorch' 'python3-torch is not installed'
else
	# Debian 13's PyTorch has no libuv, and asks for it all the same. Now and
	# then Debian's aborts Python's end, which is then how the rank ended.
	for try in 1 2 3 4; do
		call login env USE_LIBUV=0 srun --ddp -N2 --gres=gpu:2 \
			"$python" record.py
		test "$status" -eq 134 && grep -q \
			'terminate called without an active exception' err ||
			break
		echo "# try $try: PyTorch aborted its own end"
	done
	grep -q '^slurm-ddp: rank 2 failed first on n2 (GPU 0, pid [0-9]*) after [0-9.]* s: exit code 1: ValueError: bad batch$' err &&
		grep -q '^slurm-ddp: 3 other ranks ended because' err &&
		test "$(grep -c 'failed first' err)" = 1 && test "$status" = 1
	result $? 'the rank whose script raised is named, once'
	sed 's/raise ValueError.*/__import__("os")._exit(0)/' record.py \
		>leaves.py
	call login env USE_LIBUV=0 srun --ddp -N2 --gres=gpu:2 \
		"$python" leaves.py
	grep '^slurm-ddp: ' err >why
	grep -qE '^slurm-ddp: rank ([013]) failed first' why &&
		grep -qE '^slurm-ddp: rank 2 had ended with exit code 0, [0-9.]* s before; did rank [013] wait for it\?$' why
	result $? 'a rank that left the others with exit code 0 is named, too'
	call login env USE_LIBUV=0 srun --ddp --ddp-supervise=off -N2 \
		--gres=gpu:2 "$python" record.py
	sed -n 's/^slurm-ddp: \(.*\), at \([^ ]*\): \(.*\)/\2 \1 \3/p' err |
		sort | sed 's/^[^ ]* //' >why
	test "$(head -n 1 why)" = \
		'rank 2 failed first on n2 ValueError: bad batch'
	result $? 'the rank whose script raised was the first by the time'
fi
