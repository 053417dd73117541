# SPDX-License-Identifier: BSD-3-Clause
"""A small network on images as MNIST's, which are made up: trained by
DistributedDataParallel, saved by rank 0 after each epoch."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Images(Dataset):
    """Ten pictures of 28 x 28 pixels, each many times under other noise."""

    def __init__(self, count):
        draw = torch.Generator().manual_seed(0)
        pictures = torch.randn(10, 1, 28, 28, generator=draw)
        self.labels = torch.arange(count) % 10
        self.images = pictures[self.labels] + torch.randn(
            count, 1, 28, 28, generator=draw)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index], index


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 5, stride=2)
        self.head = nn.Linear(8 * 12 * 12, 10)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).flatten(1))


def train_epoch(model, loader, optimizer, device):
    total, seen = 0.0, []
    for images, labels, indices in loader:
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        seen += indices.tolist()
    return total / len(loader), seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--checkpoint", default="mnist.pt")
    args = parser.parse_args()

    local_rank = int(os.environ["LOCAL_RANK"])
    gpu = torch.cuda.is_available()
    device = torch.device(f"cuda:{local_rank}" if gpu else "cpu")
    dist.init_process_group("nccl" if gpu else "gloo")
    rank = dist.get_rank()

    torch.manual_seed(rank)  # DDP makes all ranks begin with rank 0's
    model = DistributedDataParallel(Net().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = Images(400)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        loss, seen = train_epoch(model, loader, optimizer, device)
        print("epoch", epoch, "rank", rank, "loss", f"{loss:.4f}",
              "samples", *seen)
        if rank == 0:
            torch.save({"epoch": epoch, "loss": loss,
                        "model": model.module.state_dict()}, args.checkpoint)
            print("saved", args.checkpoint, "after epoch", epoch)

    dist.barrier()  # nobody reads the file before rank 0 has written it
    saved = torch.load(args.checkpoint, map_location=device)
    same = all(torch.equal(saved["model"][name], tensor)
               for name, tensor in model.module.state_dict().items())
    print("rank", rank, "has" if same else "has not",
          "what was saved after epoch", saved["epoch"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
