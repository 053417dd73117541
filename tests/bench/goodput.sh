# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # variables of run; the tasks' shells expand
# How much of its time a run spends in steps while its ranks are killed.

goodput_kills=3 goodput_every=30 goodput_needs=100 goodput_goal=90
test -z "$smoke" || goodput_kills=1 goodput_every=5 goodput_needs=15

goodput_missing()
{
	if ! grep -Eq '^HAVE_(ONEDNN|BLAS) = yes' "$build/config.mak"; then
		echo 'configure found no engine for ddp-train'
	elif ! grep -q '^HAVE_MPI = yes' "$build/config.mak"; then
		echo 'configure found no MPI'
	fi
}

# goodput_run STEPS [OPTION...]: a run, whose attempts share a log
goodput_run()
{
	goodput_steps=$1
	shift
	rm -rf run
	mkdir -m 777 run
	"$sandbox" exec --dir "$dir/cluster" timeout -k 5 600 \
		salloc -Q -N2 --ntasks-per-node=2 --gres=gpu:2 srun --ddp "$@" \
		sh -c 'exec ./ddp-train --data text --deterministic \
			--global-batch 16 --steps "$0" --log run/log \
			--checkpoint run/saved --checkpoint-every 50 \
			--resume' "$goodput_steps" \
		>out 2>err </dev/null
}

# goodput_kill: kill a rank drawn at random each time it is due; kills has a line
# for each that was
goodput_kill()
{
	# shellcheck disable=SC2034 # so many times
	for kill in $(seq "$goodput_kills"); do
		sleep "$goodput_every"
		"$sandbox" exec --dir "$dir/cluster" --root sh -c \
			'pid=$(pgrep -x ddp-train | shuf -n 1) &&
				kill -KILL $pid && echo $pid' >>kills
	done
}

# goodput_state FILE: the losses and norms in the log, and the last checkpoint
goodput_state()
{
	sed 's/,"skipped".*//' run/log >"$1"
	cat "run/saved/step-$goodput_steps"/shard-* >>"$1" ||
		die "a run has not saved at its end"
}

goodput()
{
	why=$(goodput_missing)
	if test -n "$why"; then
		left_out goodput "$why"
		return
	fi
	test -d "$dir/root" || install_build
	make -s -C "$build" obj/bin/ddp-train >&2 ||
		die "cannot build ddp-train in $build"
	cp "$build/obj/bin/ddp-train" . || exit 1
	chmod 755 ddp-train
	cat "$train_text"/* >text
	chmod 644 text
	cluster --nodes 2 --gpus 2 --cpus 2
	goodput_run 200 || die "a run has failed: $(cat err)"
	steps=$(sed -n 's/.*"seconds":\([0-9.e+-]*\),.*/\1/p' run/log | awk \
		-v needs="$goodput_needs" 'NR == 1 { first = $1 }
		END { print int(needs * (NR - 1) / ($1 - first)) }')
	goodput_run "$steps" || die "a run has failed: $(cat err)"
	goodput_state wanted
	: >kills
	goodput_kill &
	begin=$(date +%s%N)
	goodput_run "$steps" --ddp-restarts="$goodput_kills" ||
		die "the run with kills has failed: $(cat err)"
	end=$(date +%s%N)
	wait
	attempts=$(($(grep -c '^slurm-ddp: restart' err) + 1))
	goodput_state got
	tail -n 1 run/log | sed 's/.*"seconds":\([0-9.e+-]*\),.*/\1/' | awk \
		-v took=$(((end - begin) / 1000000)) -v attempts="$attempts" \
		-v goal="$goodput_goal" -v kills="$(wc -l <kills)" \
		-v of="$goodput_kills" \
		-v same="$(cmp -s wanted got && echo the same || echo OTHERS)" '
		{ printf "goodput: %.1f %% of %.1f s in steps that stay " \
			"(goal: %d %%), %d of %d kills struck, %d attempts, " \
			"%s bits as without kills\n", $1 * 1e5 / took,
			took / 1e3, goal, kills, of, attempts, same }'
}
