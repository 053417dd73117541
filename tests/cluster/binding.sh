# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2016 # see run; the tasks' shells expand
# Slurm's own binding options, with --ddp on top of each: the step stays within
# what the same step without --ddp gets, and does what the user asked for.

if test "$(nproc --all)" -lt 2 || test "$(nproc)" -lt 2; then
	skip 'tasks on CPUs of their own' 'fewer than 2 CPUs'
	return
fi

# Options of steps, a line each: for GPUs, for CPUs, for the size, and values of
# --ddp-gpus.
gpus='--gres=gpu:2
--gpus-per-task=1
--gres=gpu:2 --gpu-bind=single:1
--gres=gpu:2 --gpu-bind=map_gpu:1,0
--gres=gpu:2 --gpu-bind=mask_gpu:2,1
--gres=gpu:2 --gpu-bind=mask_gpu:3,3
--gres=gpu:2 --gpu-bind=none
--gres=gpu:2 --gpu-bind=closest'
echo "$gpus" | while read -r gpu; do
	echo "$gpu||-n2|all own share"
	for cpu in none cores threads map_cpu:1,0 mask_cpu:2,1 rank verbose; do
		echo "$gpu|$cpu|-n2|all"
	done
	# Some versions refuse the last at once, others would wait for ever.
	for size in '-n2 -O -c2' '-n1 -c2' '-n2 -c4 --immediate'; do
		echo "$gpu||$size|all"
	done
	echo "$gpu||-n3 -O|all share"
	for cpu in none mask_cpu:3,1; do
		echo "$gpu|$cpu|-n2 -O -c2|all"
	done
	for size in --exclusive --overlap; do
		echo "$gpu||-n2 $size|own"
	done
done >table

# Runs each line of its input, whose first word is a number: once plain, and
# once with each value of --ddp-gpus.
cat >drive <<'END'
#!/bin/sh
each()
{
	to=$1
	shift
	srun -K1 "$@" >"$to.out" 2>"$to.err" </dev/null
	echo $? >"$to.status"
}
while IFS='|' read -r number gpu cpu size policies; do
	set -f -- $gpu ${cpu:+--cpu-bind=$cpu} $size
	each "$number.plain" "$@" ./see
	for policy in $policies; do
		each "$number.$policy" --ddp --ddp-gpus=$policy "$@" ./see
	done
done
END

# name_all FILE: let tasks of a plain step see both GPUs, as they may, where
# Slurm does not name them
name_all()
{
	sed -i 's/^\(\([^ ]* \)\{4\}\)- /\10,1 /' "$1"
}

# crowded PLAIN: whether its ranks are more than the GPUs that they see
crowded()
{
	test "$(wc -l <"$1.out")" -gt "$(cut -d' ' -f5 "$1.out" | tr , '\n' |
		grep '[0-9]' | sort -u | wc -l)" &&
		grep -q '^[^ ]* [^ ]* [^ ]* [^ ]* [0-9]' "$1.out"
}

# as_ddp DDP: it is refused for that, in one sentence
as_ddp()
{
	test "$(cat "$1.status")" -eq 1 && ! test -s "$1.out" &&
		test "$(grep -c slurm-ddp "$1.err")" = 1 &&
		grep -q 'slurm-ddp: .* ranks have [12] GPUs.*; ask for' "$1.err"
}

# as_slurm PLAIN DDP: it failed as it does without --ddp, in Slurm's words
as_slurm()
{
	for file in "$1.err" "$2.err"; do
		# Which reason Slurm names is sometimes chance, and whether it
		# waits for the step before.
		sed '/ step creation .* disabled, retrying/d
			s/StepId=[0-9.]*//; s/step [0-9.]*//
			s/\(Unable to create.*\):.*/\1/' "$file" |
			sort -u >"$file.sorted"
	done
	diff "$1.err.sorted" "$2.err.sorted" >"$scratch/why" &&
		test "$(cat "$2.status")" -ne 0
}

# within PLAIN DDP BOUND POLICY: what must be true of the step when it is
# compared with the plain one. BOUND: the user has given the CPUs. What the
# plain tasks see shows whether Slurm has cut the view for each task.
cat >within.awk <<'AWK'
function fail(text)
{
	print "rank " $1 ": " text
	bad = 1
}
function cpus_of(list, set, part, range, n, i, c)
{
	split("", set)
	n = split(list, part, ",")
	for (i = 1; i <= n; i++) {
		if (split(part[i], range, "-") == 1)
			range[2] = range[1]
		for (c = range[1]; c <= range[2]; c++)
			set[c] = 1
	}
	return n
}
FNR == NR {
	cpus[$1] = $4
	cuda[$1] = $5
	if (ranks++ && $5 != some)
		cut = 1
	some = $5
	n = $5 == "-" ? 0 : split($5, list, ",")
	for (i = 1; i <= n; i++)
		all += !(list[i] in gpus) && ++gpus[list[i]]
	next
}
!lines++ {
	apart = all && (cut || ranks > all || (policy == "own" && ranks > 1))
}
{
	if ($12 != "0")
		fail("ddp-info: " $12)
	if (bound && $4 != cpus[$1])
		fail("CPUs " $4 " in place of " cpus[$1])
	cpus_of(cpus[$1], before)
	if (!cpus_of($4, now))
		fail("no CPU")
	count = 0
	for (c in now) {
		count++
		if (!(c in before))
			fail("CPU " c " is not in " cpus[$1])
	}
	if ($8 != count)
		fail("OMP_NUM_THREADS=" $8 " on " count " CPUs")
	n = $5 == "-" ? 0 : split($5, list, ",")
	had = cuda[$1] == "-" ? 0 : split(cuda[$1], was, ",")
	split("", seen)
	split("", could)
	for (i = 1; i <= had; i++)
		could[was[i]] = 1
	for (i = 1; i <= n; i++)
		if (!(list[i] in could) || seen[list[i]]++)
			fail("sees " $5 " of " cuda[$1])
	if (n > had || (had && !n) || (!apart && n != had))
		fail("sees " $5 " in place of " cuda[$1])
	if (!had)
		next
	if ($9 !~ /^[0-9]+$/ || $9 >= n) {
		fail("device " $9 " of " $5)
		next
	}
	mine = list[$9 + 1]
	if (taken[mine]++ && all >= ranks)
		fail("GPU " mine " is another rank's as well")
	if ($10 != (mine == 0 ? "0000:01:00.0" : "0000:81:00.0"))
		fail("GPU " mine " is not at " $10)
	if ($9 != (apart ? 0 : $3))
		fail("device " $9)
	if (!apart && first != "" && $5 != first)
		fail("sees " $5 " and not " first)
	first = $5
	if ($7 != "PCI_BUS_ID")
		fail("CUDA_DEVICE_ORDER=" $7)
}
END {
	$1 = "*"
	if (lines != ranks)
		fail(lines " ranks of " ranks)
	if (said != (apart ? 1 : 0))
		fail(said " lines said")
	exit bad
}
AWK
within()
{
	awk -v bound="$3" -v policy="$4" \
		-v said="$(grep -c '^slurm-ddp: .* LOCAL_RANK is not a device' \
			"$2.err")" \
		-f within.awk "$1.out" "$2.out" >"$scratch/why" &&
		test "$(cat "$2.status")" -eq 0
}

# compare: each line of the table, when all steps have run
compare()
{
	while IFS='|' read -r number gpu cpu size policies; do
		bound=1
		test -n "$cpu" && test "$cpu" != verbose || bound=0
		plain=$number.plain
		for policy in $policies; do
			ddp=$number.$policy
			what="--ddp-gpus=$policy $gpu $size"
			what="$what${cpu:+ --cpu-bind=$cpu}"
			cp "$ddp.out" "$scratch/out"
			cp "$ddp.err" "$scratch/err"
			case $gpu in *none) name_all "$plain.out" ;; esac
			if test "$(cat "$plain.status")" -ne 0; then
				as_slurm "$plain" "$ddp"
				result $? "Slurm refuses $what"
				refused=$((refused + 1))
				continue
			fi
			accepted=$((accepted + 1))
			if test "$policy" != share && crowded "$plain"; then
				as_ddp "$ddp"
				result $? "too few GPUs: $what"
				continue
			fi
			within "$plain" "$ddp" "$bound" "$policy"
			result $? "$what"
		done
	done
}

cluster --nodes 1 --gpus 2 --cpus 2
pair nvidia 0 81 1 01 10de:2330
plugstack optional "topology=$scratch/nvidia.xml"
mkdir -m 777 binding
cp see drive binding
nl -s'|' -w1 table >binding/table
cp within.awk binding
cd binding || exit 1
begin=$(date +%s)
# In parts, because no command on the login node may take long. Each has up to
# 60 steps, which need more than a minute of a busy machine.
# shellcheck disable=SC2034 # of login
patience=200
split -l 20 table part.
for part in part.*; do
	login salloc -Q -n2 --gres=gpu:2 sh -c 'sh drive <"$0"' "$part"
done
# shellcheck disable=SC2034
patience=20
accepted=0 refused=0
compare <table
cd "$scratch" || exit 1
equal 'combinations that were compared' \
	"$(cut -d'|' -f4 table | wc -w)" "$((accepted + refused))"
echo "# $accepted accepted and $refused refused by Slurm," \
	"in $(($(date +%s) - begin)) s"
