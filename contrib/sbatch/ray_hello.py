# SPDX-License-Identifier: BSD-3-Clause
"""A task on each node of the Ray cluster that ray_node.sh has started."""
import socket

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

ray.init(logging_level="error")


@ray.remote
def greet():
    return socket.gethostname()


nodes = [node for node in ray.nodes() if node["Alive"]]
hosts = ray.get([greet.options(
    scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], False)
).remote() for node in nodes])
total = ray.cluster_resources()
print(f"{len(nodes)} nodes, {total['CPU']:.0f} CPUs, {total.get('GPU', 0):.0f}"
      f" GPUs: {' '.join(sorted(hosts))}", flush=True)
