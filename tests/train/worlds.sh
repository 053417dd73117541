# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables and functions of run
# Worlds of several ranks on this machine: the same losses as one rank, and
# with --deterministic the same bits.

# ranks N COMMAND...: by mpirun, or without it where N is 1
ranks()
{
	ranks_n=$1
	shift
	if test "$ranks_n" -eq 1; then
		call timeout 120 "$@"
	else
		call timeout -k 5 120 mpirun -n "$ranks_n" "$@"
	fi
}

# losses LOG: the losses in a log
losses()
{
	sed -n 's/^.*"loss":\([^,]*\),.*$/\1/p' "$1"
}

# close FILE FILE COUNT TOLERANCE: both have COUNT numbers, and these are close
close()
{
	paste "$1" "$2" | awk -v count="$3" -v most="$4" '
		NF != 2 { bad = 1 }
		{ d = ($1 - $2) / $1; d = d < 0 ? -d : d }
		d > worst { worst = d }
		END { print "worst relative difference " worst " of " NR
			exit bad || worst > most || NR != count }' >why
}

# against_one N ARGUMENTS: the same global batch on N ranks and on one
against_one()
{
	n=$1
	shift
	ranks 1 "$train" --backend self "$@" --steps 50 --log one.log
	losses one.log >one.losses
	ranks "$n" "$train" "$@" --steps 50 --log many.log
	losses many.log >many.losses
	close one.losses many.losses 50 1e-6
	result $? "$n ranks lose as one with the same global batch: $*"
}

needs_worlds()
{
	if test "$has_mpi" = no; then
		skip "$1" 'ddp-train was built without MPI'
	elif ! command -v mpirun >/dev/null; then
		skip "$1" 'no mpirun on PATH'
	else
		return 0
	fi
	return 1
}

test_worlds()
{
	needs_worlds 'worlds of several ranks' || return 0
	for n in 2 3 4; do
		against_one "$n" --batch 2 --global-batch 24
		against_one "$n" --batch 2 --global-batch 24 --lr 0.5 --seed 5
	done
	small="--data $text --context 32 --global-batch 12 --lr 1e-3"
	# shellcheck disable=SC2086 # several arguments
	against_one 2 $small --batch 3
	# shellcheck disable=SC2086
	against_one 3 $small --batch 2 --overlap off --bucket-mib 0.1
	# shellcheck disable=SC2086
	against_one 4 $small --batch 1 --optimizer sgd --momentum 0.9
	ranks 4 "$train" --steps 3
	equal 'four ranks train' 0 "$status"
	equal 'rank 0 alone prints the table and the steps' '0123 3' \
		"$(sed -n '2,5p' out | cut -c1-4 | tr -d ' \n') $(
			grep -c '^ [1-3]/3 ' out)"
	# shellcheck disable=SC2016 # each rank's own shell expands these
	ranks 2 sh -c 'RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=2 \
		exec "$0" --backend mpi --steps 1' "$train"
	equal 'takes RANK and WORLD_SIZE that are the backend'\''s' 0 "$status"
}

# same NAME LOG: the losses, norms and evaluations of its 8 steps are those of
# reference.log, bit by bit
same()
{
	sed 's/"seconds".*//' reference.log >wanted
	sed 's/"seconds".*//' "$2" >had
	test "$(wc -l <had)" -eq 10 && test "$(grep -c eval_loss had)" -eq 2 &&
		diff wanted had >why
	result $? "$1"
}

test_deterministic()
{
	needs_worlds 'deterministic worlds' || return 0
	set -- --data "$text" --layers 2 --heads 2 --width 48 --context 32 \
		--deterministic --global-batch 8 --steps 8 --lr 3e-3 \
		--eval-every 4
	ranks 1 "$train" "$@" --log reference.log --backend self
	equal 'one rank trains deterministically' 0 "$status"
	for n in 1 2 4 8; do
		ranks "$n" "$train" "$@" --log log --backend mpi
		same "$n ranks have the bits of one" log
	done
	for more in '--bucket-mib 0.05' '--bucket-mib 1000 --overlap off' \
		'--overlap off'; do
		# shellcheck disable=SC2086 # several arguments
		ranks 2 "$train" "$@" $more --log log
		same "two ranks with $more have the bits of one" log
	done
	ranks 2 "$train" "$@" --granule 2 --log two.log
	ranks 1 "$train" "$@" --granule 2 --log log
	mv two.log reference.log
	same 'granules of two: one rank has the bits of two' log
}

# refused NAME STATUS WORDS N COMMAND...: N ranks end with STATUS and print
# nothing but one sentence that contains WORDS
refused()
{
	refused_name=$1 refused_want=$2 refused_words=$3
	shift 3
	ranks "$@"
	test "$status" -eq "$refused_want" && ! test -s out &&
		test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
		grep '^ddp-train: ' err | grep -qF -- "$refused_words"
	result $? "$refused_name"
}

# corrupt.py RANK PLACE COMMAND...: a run of two ranks whose log is a pipe with
# room for one line, so that rank 0 waits in its second line, after the second
# update. Then write, through RANK, at PLACE (0 to 1) of the shared memory:
# gradients of rank 0, its parameters, gradients of rank 1, its parameters. Then
# empty the pipe.
cat >corrupt.py <<'END'
import fcntl, os, re, struct, subprocess, sys, termios, time
rank, place, log = sys.argv[1], float(sys.argv[2]), os.path.abspath("corrupt")
pipe = os.open(log, os.O_RDWR | os.O_NONBLOCK)
page = os.sysconf("SC_PAGESIZE")
fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, page)
os.write(pipe, b"x" * (page - 400))

def unread():
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"1234"))[0]

def find():
    for pid in subprocess.run(["pgrep", "-x", "ddp-train"],
                              capture_output=True).stdout.split():
        base = f"/proc/{int(pid)}"
        try:
            environ = open(base + "/environ", "rb").read()
            command = open(base + "/cmdline", "rb").read()
        except OSError:
            continue
        if b"OMPI_COMM_WORLD_RANK=%s\0" % rank.encode() in environ and \
           log.encode() in command:
            return base

def overwrite(base):
    spans = [re.match("([0-9a-f]+)-([0-9a-f]+) rw-s", line)
             for line in open(base + "/maps") if "/memfd:ddp-train" in line]
    begin, end = (int(x, 16) for x in spans[0].groups())
    with open(base + "/mem", "r+b", buffering=0) as memory:
        memory.seek(begin + int((end - begin) * place) & ~63)
        memory.write(struct.pack("16f", *[1.0] * 16))

run = subprocess.Popen(["timeout", "60", *sys.argv[3:], "--log", log])
while unread() == page - 400 and run.poll() is None:
    time.sleep(.02)
time.sleep(.3)
overwrite(find())
while run.poll() is None:
    try:
        os.read(pipe, page)
    except BlockingIOError:
        time.sleep(.02)
sys.exit(run.returncode)
END

# corruption NAME STEP RANK PLACE ARGUMENTS...
corruption()
{
	corruption_name=$1 corruption_step=$2 corruption_rank=$3
	corruption_place=$4
	shift 4
	rm -f corrupt
	mkfifo corrupt
	call timeout 80 "$python" corrupt.py "$corruption_rank" \
		"$corruption_place" mpirun -n 2 "$train" --data "$text" \
		--batch 2 "$@"
	test "$status" -eq 1 &&
		test "$(grep -c '^ddp-train: ' err)" -eq 1 &&
		grep -q "the parameters of rank 1 on [^ ]* are not those of$(
			) rank 0 on [^ ]* after step $corruption_step;" err
	result $? "$corruption_name"
}

test_corruption()
{
	needs_worlds 'parameters that are not the same' || return 0
	corruption 'parameters that differ on a rank end all, by name' '[24]' \
		1 0.9 --steps 100 --check-every 2
	corruption 'those that the last update left are compared too' 2 \
		0 0.4 --steps 2 --check-every 1000000
}

test_trouble()
{
	needs_worlds 'worlds in trouble' || return 0
	while IFS='|' read -r name want words n arguments; do
		# shellcheck disable=SC2086 # several arguments in one field
		refused "$name" "$want" "$words" $n "$train" $arguments
	done <<-END
	all ranks' bad option is one sentence|2|--steps 'x'|3|--steps x
	all ranks' missing data is one sentence|2|--data none|3|--data none
	a batch that the ranks do not divide|2|--global-batch|3|--data $text --batch 1 --global-batch 8
	a deterministic world of three|2|power of two|3|--data $text --deterministic --global-batch 8
	more ranks than granules|2|--global-batch|4|--data $text --deterministic --global-batch 2
	END
	refused "one rank's missing data names the rank" 2 'rank 1 on' \
		3 "$top/tests/by_rank" "$train" --data "$text" // --data none
	refused "one rank's bad option names the rank" 2 'rank 1 on' \
		2 "$top/tests/by_rank" "$train" // --bogus
	echo 'of another run' >kept
	refused 'another option on a rank is named' 1 '--steps 5' \
		2 "$top/tests/by_rank" "$train" --log kept // --steps 5
	equal 'the log stays as it was if options differ' \
		'of another run' "$(cat kept)"
	refused "rank 0's unwritable log ends all" 2 '--log .' \
		2 "$train" --log .
	ranks 2 "$train" --log /dev/full
	test "$status" -eq 1 && test "$(grep -c '^ddp-train: ' err)" -eq 1
	result $? 'a disk that fills ends all'
	refused "refuses a WORLD_SIZE that is not the backend's" 1 \
		'sees a world of 2' \
		1 env WORLD_SIZE=4 mpirun -n 2 "$train"
	refused 'refuses a world of one for four' 1 'sees a world of 1' \
		1 env WORLD_SIZE=4 RANK=0 mpirun -n 1 "$train"
	refused "refuses a RANK that is not the backend's" 1 'rank 1 on' \
		1 env RANK=0 mpirun -n 2 "$train"
	refused 'names a rank without its variables' 1 'rank 1 on' \
		2 "$top/tests/by_rank" env "$train" // RANK=missing "$train"
	refused 'refuses a world that no MPI launcher started' 1 \
		'no MPI launcher' 1 env WORLD_SIZE=2 "$train"
	ranks 2 "$train" --data "$text" --lr 1e30 --clip 0 --steps 20
	test "$status" -eq 65 &&
		grep -q 'no longer a number at step [0-9]*, first on rank 0 on' \
			err && test "$(grep -c '^ddp-train: ' err)" -eq 1
	result $? 'a loss that diverges ends all, with step and rank'
	ranks 2 "$train" --data "$text" --lr 1e4 --clip 0 --steps 30
	test "$status" -eq 65 &&
		grep '^ddp-train: ' err | grep -qx "ddp-train: the$(
			) gradient is no longer a number at step [0-9]*;$(
			) choose a smaller --lr"
	result $? 'a gradient that diverges ends all, and is no one rank'\''s'
}
