/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives all ranks the parameters of rank 0. */
#include "collective.h"
#include "ddp.h"
#include "model.h"
#include "step/trainer.h"

/*
 * Rounds fp32 values, in the device's memory, to what operators read. It rounds
 * as the last update did, so that a run that goes on has the same.
 */
static void write_copy(struct trainer *trainer, struct range values,
		       const float *from)
{
	struct device *device = &trainer->device;

	device->table->round(device, &(struct op_round){
		.count = values.end - values.begin, .param = from,
		.copy = value_at(device->type, trainer->param, values.begin),
		.state = trainer->state,
		.rounding = trainer_find_rounding(trainer, values.begin) });
}

void trainer_share_parameters(struct trainer *trainer)
{
	struct buckets *buckets = &trainer->buckets;

	for (int i = 0; i < buckets->count; i++) {
		const struct bucket *bucket = &buckets->list[i];

		if (trainer->param != trainer->master &&
		    bucket->own.begin < bucket->own.end)
			write_copy(trainer, bucket->own,
				   trainer_find_master(trainer, bucket,
						       bucket->own.begin));
		if (buckets->sharded)
			trainer_start_gather(trainer, i);
	}
	if (buckets->sharded)
		trainer_wait_for_gathers(trainer);
}

/* Broadcasts fp32 values of the buffer, from `offset` on. */
static void broadcast_piece(struct trainer *trainer, size_t offset,
			    size_t count)
{
	struct collective *collective = trainer->collective;
	struct device *device = &trainer->device;
	uint64_t ticket;

	device->table->record(device, 0, QUEUE_COMPUTE);
	ticket = collective->table->start(collective, BROADCAST, offset, count,
					  DEVICE_FP32, 0);
	collective->table->wait(collective, ticket, QUEUE_COMPUTE);
	ddp_heartbeat();
}

void trainer_keep_values(struct trainer *trainer, float *to, bool whole,
			 struct range values, const float *from)
{
	const struct buckets *buckets = &trainer->buckets;
	struct device *device = &trainer->device;

	for (int i = buckets_find(buckets, values.begin);
	     i < buckets->count && buckets->list[i].begin < values.end; i++) {
		const struct bucket *bucket = &buckets->list[i];
		struct range own = buckets_intersect(values, bucket->own);

		if (own.begin < own.end)
			device->table->copy(device, QUEUE_COMPUTE, to +
					    (whole ? own.begin :
					     bucket_find_kept(bucket,
							      own.begin)),
					    from + own.begin - values.begin,
					    (own.end - own.begin) *
					    sizeof(*from));
	}
}

/* Goes through the gradient's memory if the master is not in the buffer. */
void trainer_broadcast_parameters(struct trainer *trainer, const float *first)
{
	struct device *device = &trainer->device;
	size_t count = trainer->model->param_count;
	size_t most = buckets_find_largest(&trainer->buckets) *
		      device_type_bytes(trainer->options->grad_dtype) /
		      sizeof(float);
	bool shared = trainer->master == trainer->param;

	for (size_t begin = 0; begin < count; begin += most) {
		size_t length = count - begin < most ? count - begin : most;
		struct range values = { begin, begin + length };
		float *at = shared ? trainer->master + begin : trainer->grad;

		if (trainer->collective->rank == 0)
			device->table->copy(device, QUEUE_COMPUTE, at,
					    first + begin,
					    length * sizeof(*first));
		broadcast_piece(trainer, shared ?
				trainer_count_values(trainer) + begin : 0,
				length);
		if (shared)
			continue;
		trainer_keep_values(trainer, trainer->master, false, values,
				    at);
		write_copy(trainer, values, at);
	}
	if (!shared)
		device->table->zero(device, trainer->grad,
				    most * sizeof(float));
}
