# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034 # for world

for layout in even uneven hostfile heterogeneous two; do
	world $layout python3 jax_allgather.py
done
options=--ddp-gpus=own
world even python3 jax_allgather.py
