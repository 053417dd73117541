# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh

world even python3 ignite_parallel.py
world uneven python3 timm_init.py
world hostfile python3 mmengine_init.py pytorch
world hostfile python3 mmengine_init.py slurm
world hostfile python3 mpi4py_world.py
