# SPDX-License-Identifier: BSD-3-Clause
"""Training that saves when it is told to, and goes on from there the next
time; see pytorch_requeue.sbatch. Its arguments are the number of steps, the
file to save in, and after how many steps that is done in any case."""
import os
import signal
import sys

SAVED, HOPELESS = 75, 65  # exit codes, as pytorch_requeue.sbatch has them

# Before anything that takes time: until then the signal would end the rank.
# A handler would interrupt what is going on, at which some libraries fail. So
# the signal is blocked, and stays pending.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


class Samples(torch.utils.data.Dataset):
    """Put your own in its place. Processes of the data loader call it."""

    def __len__(self):
        return 100000

    def __getitem__(self, index):
        torch.manual_seed(index)
        return torch.randn(256)


def save(path, state):
    """Write a new file and rename it: path is never there in part."""
    with open(path + ".new", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def batches(step, size):
    """All batches of this rank, for ever, after those of the steps so far."""
    data = Samples()
    sampler = torch.utils.data.DistributedSampler(data, drop_last=True)
    epoch, done = divmod(step, len(sampler) // size)
    while True:
        sampler.set_epoch(epoch)
        rest = torch.utils.data.Subset(data, list(sampler)[done * size:])
        yield from torch.utils.data.DataLoader(
            rest, size, drop_last=True,
            num_workers=max(1, len(os.sched_getaffinity(0)) - 1))
        epoch, done = epoch + 1, 0


def train(steps, path, every):
    gpu = torch.cuda.is_available()
    device = torch.device("cpu")
    if gpu:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(256, 2048), torch.nn.ReLU(),
              torch.nn.Linear(2048, 256)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    if os.path.exists(path):
        # Tensors and whole numbers alone: the file cannot run code, and PyTorch
        # 1.13, too, can read it so.
        state = torch.load(path, map_location=device, weights_only=True)
        model.module.load_state_dict(state["model"])
        # What the file does not have, such as lr, is as it is given above.
        saved = state["optimizer"]
        optimizer.load_state_dict({**optimizer.state_dict(),
                                   "state": saved.get("state", saved)})
        step = state["step"]
    rank = dist.get_rank()
    if rank == 0:
        print(f"from step {step}", flush=True)
    if step >= steps:
        return 0

    for x in batches(step, 16):
        x = x.to(device)
        loss = torch.nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        # All stop after the same step, though the signal reaches them one by
        # one; and all must know of a loss that is not a number.
        told = signal.SIGUSR1 in signal.sigpending()
        news = torch.tensor([told, not loss.isfinite()], dtype=torch.float,
                            device=device)
        dist.all_reduce(news, op=dist.ReduceOp.MAX)
        if news[1]:
            return HOPELESS
        last = news[0] or step == steps
        if rank == 0 and (last or step % every == 0):
            save(path, {"model": model.module.state_dict(),
                        "optimizer": optimizer.state_dict()["state"],
                        "step": step})
        if last:
            break
    if rank == 0:
        print(f"saved at step {step}, loss {loss.item():.6f}", flush=True)
    dist.barrier()  # nobody ends while another still saves
    return 0 if step == steps else SAVED


if __name__ == "__main__":
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    code = train(int(sys.argv[1]) if len(sys.argv) > 1 else 100000,
                 sys.argv[2] if len(sys.argv) > 2 else "checkpoint.pt",
                 int(sys.argv[3]) if len(sys.argv) > 3 else 1000)
    dist.destroy_process_group()
    sys.exit(code)
