# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# What every Slurm must do, the newest too, in a minute and without PMIx: a step
# ends, one fails and is explained, and one starts again. Then the same where srun
# has threads before the plugin is loaded, as the newest has anyway.

cluster --nodes 2 --cpus 2

make -s -C "$build" obj/tests/fakes/idle_threads.so >made 2>&1 || {
	cat made >&2
	exit 1
}
cp "$build/obj/tests/fakes/idle_threads.so" .
threads="LD_PRELOAD=$scratch/idle_threads.so"

# When all four ranks have begun, rank 3 fails as often as FAILS says.
cat >fail <<'END'
#!/bin/sh
attempt=${RESTART_COUNT-0}
touch "begun/$attempt.$RANK"
test "$attempt" -lt "$FAILS" || exit 0
until test "$(ls begun | grep -c "^$attempt\.")" = 4; do
	sleep 0.02
done
test "$RANK" != 3 || exit 7
exec sleep 1000
END
chmod 755 fail

# failing FAILS CMD...: CMD with that program at its end; ours is what the
# supervisor has said, without the numbers that vary
failing()
{
	rm -rf begun
	mkdir -m 777 begun
	fails=$1
	shift
	call login env "FAILS=$fails" "$@" ./fail
	sed -n 's/(pid [0-9]*)/(pid P)/; s/ after [0-9.]* s/ after T/
		/^slurm-ddp: /p' err >ours
}

named='slurm-ddp: rank 3 failed first on n2 (pid P) after T: exit code 7
slurm-ddp: 3 other ranks ended because of it'
for srun in srun "env $threads IDLE_THREADS=2 srun"; do
	where=${srun%srun}
	where=${where:+, where srun has threads}
	# shellcheck disable=SC2086 # words
	name="srun --ddp gives four tasks their ranks$where" \
		world 'n1 n1 n2 n2' $srun --ddp -N2 --ntasks-per-node=2
	# shellcheck disable=SC2086 # words
	failing 1 $srun --ddp -N2 --ntasks-per-node=2
	equal "the code of a rank that fails is srun's$where" 7 "$status"
	equal "a rank that fails is named with its node and code$where" \
		"$named" "$(cat ours)"
	# shellcheck disable=SC2086 # words
	failing 1 salloc -Q -N2 --ntasks-per-node=2 $srun --ddp --ddp-restarts=1
	equal "a step that failed once starts again, and ends with 0$where" \
		"0 $named
slurm-ddp: restart 1 of 1: on the same nodes" "$status $(cat ours)"
done

# A user interrupts a check. srun runs it by an srun of its own.
mkdir -m 755 check_bin
printf '#!/bin/sh\ntouch checking\nexec sleep 60\n' >check_bin/ddp-bench
chmod 755 check_bin/ddp-bench
call login env "PATH=$scratch/check_bin:$PATH" salloc -Q -N1 sh -c '
	env "$@" srun --ddp --ddp-check echo begun &
	until test -e checking; do sleep 0.1; done
	kill $!
	wait $!
	echo $?' sh "$threads" IDLE_THREADS=2
equal 'a signal ends a check where srun has threads, and nothing is started' \
	'1 0 1' "$(tail -n 1 out) $(grep -c begun out) \
$(grep -c -- '--ddp-check: signal 15 (Terminated) came' err)"

call login env "$threads" IDLE_THREADS=deaf srun --ddp -N2 --ntasks-per-node=2 \
	"$show"
test "$status" -eq 0 && right 'n1 n1 n2 n2'
result $? 'a thread that cannot be asked to block signals keeps no step from running'
equal 'the step that nobody watches for that thread is told of, once' 1 \
	"$(grep -c 'srun: slurm-ddp: nobody watches this step' err)"

# From Slurm 26.05 on an srun need not wait for its step, where a slurmstepd of the
# job manages its steps.
if "$sandbox" exec --dir "$dir/cluster" srun --help | grep -q -e --async; then
	cluster --nodes 2 --cpus 2 --slurm PrologFlags=contain \
		--slurm SlurmctldParameters=enable_stepmgr
	batch -N2 --ntasks-per-node=2 <<-'END'
	#!/bin/sh
	srun --ddp --async --mpi=none sh -c 'echo $RANK >async.$RANK'
	until test -s async.0 && test -s async.1 && test -s async.2 &&
		test -s async.3; do sleep 0.1; done
	srun --ddp --async --ddp-report=report.json true
	END
	equal 'a step that srun does not wait for has its ranks' '0 1 2 3' \
		"$(cat async.* | sort | paste -sd' ')"
	equal 'nothing is wrong with it, and a report is refused' "srun: error: \
slurm-ddp: --ddp-report: needs the supervisor; leave out --async" \
		"$(grep slurm-ddp err)"
else
	skip 'srun --async' 'this Slurm has no srun --async'
fi
