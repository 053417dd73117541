# SPDX-License-Identifier: BSD-3-Clause
"""Lightning's Trainer, with the two numbers that its users give."""
import fake_cuda
import lightning
import torch

from report import report


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1, bias=False)

    def training_step(self, batch, index):
        return self.layer(batch).sum()

    def on_train_end(self):
        total = self.all_gather(torch.tensor(self.global_rank)).sum()
        torch.cuda.set_device(self.local_rank)
        report(self.global_rank, self.trainer.world_size, total,
               fake_cuda.current)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


trainer = lightning.Trainer(devices=2, num_nodes=2, max_steps=1, logger=False,
                            enable_checkpointing=False)
trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(8, 1)))
