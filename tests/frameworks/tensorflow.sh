# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2034 # for world

for layout in hostfile two; do
	options='--ddp-env=tf --ddp-gpus=own'
	world $layout python3 tensorflow_workers.py
done
