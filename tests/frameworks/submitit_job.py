# SPDX-License-Identifier: BSD-3-Clause
"""submitit: a job that is submitted from a Python program, and whose ranks may
set the variables once more, as programs do that run without --ddp, too."""
import os
import sys

import submitit


def train(export):
    import fake_cuda
    import torch
    import torch.distributed as dist

    from report import report

    if export:
        submitit.helpers.TorchDistributedEnvironment().export(
            set_cuda_visible_devices=False, overwrite=True)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    total = torch.tensor(rank)
    dist.all_reduce(total)
    report(rank, dist.get_world_size(), total, fake_cuda.current)
    dist.destroy_process_group()


executor = submitit.AutoExecutor("submitted", cluster="slurm")
executor.update_parameters(nodes=2, tasks_per_node=2, gpus_per_node=2,
                           slurm_additional_parameters={"ddp": True})
job = executor.submit(train, sys.argv[1:] == ["--export"])
job.results()
for task in range(4):
    print(job.task(task).stdout())
