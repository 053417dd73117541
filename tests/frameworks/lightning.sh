# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh

world even python3 lightning_trainer.py
world hostfile python3 lightning_fabric.py
