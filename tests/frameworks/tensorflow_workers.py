# SPDX-License-Identifier: BSD-3-Clause
"""TensorFlow's MultiWorkerMirroredStrategy, which uses all GPUs in sight."""
import tensorflow as tf

from report import report

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id


@tf.function
def total():
    each = strategy.run(lambda: tf.constant(float(rank)))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, each, axis=None)


report(rank, strategy.num_replicas_in_sync, total().numpy(), 0)
