# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run, which sources this
# What a run prints, by obj/tests/train/progress: a program that reads its steps
# from stdin.

# write_steps COUNT: steps of 2 s, the first of 3 s. The mean rank computes
# 1.6 s; the slowest is by turns rank 1 on n1, 2.08 s, and rank 0 on n2, 1.8 s.
# 0.4 s of a step are exposed, 0.2 s on average over the ranks.
write_steps()
{
	awk -v count="$1" 'BEGIN {
		for (i = 1; i <= count; i++)
			printf "step %d %.17g %.17g 1.5 0 %d .4 .2 1.6 %s\n",
				i, 5.5 + 1 / (3 * i), 1e-3 / 7,
				i == 1 ? 3 : 2, i % 2 ? "2.08 1 n1" : "1.8 0 n2"
	}'
}

# reports ARGUMENT...: the output for the steps in the file steps
reports()
{
	: >why
	timeout 60 "$program" "$@" <steps >out 2>err
	status=$?
}

test_progress_lines()
{
	write_steps 40 >steps
	reports - 40 16 4096 2
	equal 'lines for the first step, every tenth of them and the last' \
		'1 4 8 12 16 20 24 28 32 36 40' \
		"$(sed -n 's,^ *\([0-9]*\)/40 .*,\1,p' out | xargs)"
	# 4096 tokens in 3 s; 39 steps like this one; .4 of 3 s; 2.08 to 1.6.
	# Steps 5 to 8 lost 2 x .48 s to rank 1 and 2 x .2 s to rank 0, of
	# 4 x 1.6. 32 steps of 2 s are left: the first step does not count.
	cat >wanted <<-END
	step     loss       lr tokens/s exposed   left slowest rank, node
	 1/40  5.8333 1.43e-04     1365   13.3%  1m57s 1 n1 +30%
	 8/40  5.5417 1.43e-04     2048   20.0%  1m04s 1 n1 +15%
	40/40  5.5083 1.43e-04     2048   20.0%     0s 1 n1 +15%
	163840 tokens in 81.00 s; after the first step 2048 tokens/s, exposed 20.0%, parallel efficiency 90.0%
	END
	equal 'the rows of a log say who is slow' "$(cat wanted)" \
		"$(sed -n '1,2p;4p;12,13p' out)"
	# Of 16 ranks on two nodes, whose names are as long as is usual
	for i in 1 60000 600000; do
		echo "step $i 10.9 6e-4 1 0 5 2 1 3 3.3 15 ip-10-100-12-34"
	done >steps
	reports - 600000 512 99999999 16
	equal 'a large run fits 80 columns' \
		' 60000/600000 10.9000 6.00e-04 20000000   40.0% 31d06h 15 ip-10-100-12-34 +10%' \
		"$(sed -n 3p out)"
	check 'no line of the table has more than 79 columns' sh -c \
		'! sed "\$d" out | grep -v "^.\{20,79\}\$"'
	write_steps 2 | sed 's/[01] n[12]$/0 n1/' >steps
	reports - 2 10 0 1
	cat >wanted <<-END
	step    loss       lr samples/s exposed   left
	 1/2  5.8333 1.43e-04         3   13.3%     3s
	 2/2  5.6667 1.43e-04         5   20.0%     0s
	20 samples in 5.00 s: 4 samples/s, exposed 16.0%, parallel efficiency 92.0%
	END
	equal 'a lone rank, without tokens' "$(cat wanted)" "$(cat out)"
	# Two steps of 2 s, after two that another run did in 5 s
	write_steps 4 | sed 1,2d >steps
	reports - 4 10 0 1 0 0 0 2 5
	equal 'a run that goes on counts only its own steps and time' \
		'20 samples in 4.00 s: 5 samples/s, exposed 20.0%, parallel efficiency 90.0%' \
		"$(sed -n '$p' out)"
	# 40 FLOP in 2 s by what can do 50 a second; 2 s are not 1.6.
	write_steps 4 >steps
	reports log 4 10 64 2 40 50 1.6
	equal 'what GPUs that are known could have done' \
		'32 tokens/s, exposed 20.0%, parallel efficiency 90.0%, MFU 40.0%, 1.25 of the predicted time' \
		"$(sed -n 's/.*first step //p' out)"
	# 40 of 50 x 3, and of 50 x 2; 3 and 2 of 1.6
	equal 'the log has what known GPUs could have done' \
		'0.266666667,1.875 0.4,1.25 0.4,1.25 0.4,1.25' \
		"$(sed 's/.*"mfu"://; s/"over_predicted"://; s/}$//' log | xargs)"
	for wanted in 0.4:0s 59.4:59s 59.6:1m00s 3599.4:59m59s 3600:1h00m \
		86399:23h59m 90000:1d01h 1e30:11574074d01h; do
		echo "step 1 5 1 1 0 ${wanted%:*} 0 0 0 0 0 n1"
	done >durations
	while read -r steps; do
		echo "$steps" >steps
		reports - 2 1 0 1
		sed -n 's/^ 1.*% *\([0-9dhms]*\)$/\1/p' out
	done <durations >had
	equal 'units of the time left' \
		'0s 59s 1m00s 59m59s 1h00m 23h59m 1d01h 11574074d01h' \
		"$(xargs <had)"
}

test_progress_log()
{
	{
		write_steps 2
		echo eval 2 4.1
		echo step 3 nan 1e-3 inf 1 2 .4 .2 1.6 2 1 'n"\'
	} >steps
	reports log 100 16 4096 2
	equal 'a skipped step and an evaluation have lines of their own' \
		'step 2  eval loss 4.1000;step 3  skipped, loss nan' \
		"$(grep 'skipped\|eval' out | paste -sd ';')"
	cat >log.py <<-END
	import json
	def fail(name):
	    raise ValueError(name)
	rows = [json.loads(line, parse_constant=fail) for line in open("log")]
	assert len(rows) == 4, rows
	names = ["step", "loss", "lr", "norm", "skipped", "samples", "tokens",
	         "seconds", "exposed", "waited", "busy", "slowest_busy",
	         "slowest", "host"]
	assert [list(rows[i]) == names for i in (0, 1, 3)] == [True] * 3, rows
	assert rows[1] == dict(zip(names, [
	    2, 5.5 + 1 / 6, 1e-3 / 7, 1.5, False, 32, 8192, 5, .4, .2, 1.6, 1.8,
	    0, "n2"])), rows[1]
	assert rows[2] == {"step": 2, "eval_loss": 4.1}, rows[2]
	assert rows[3]["loss"] is None and rows[3]["norm"] is None, rows[3]
	assert rows[3]["host"] == 'n"\\\\', rows[3]
	assert rows[3]["skipped"] is True and rows[3]["samples"] == 48, rows[3]
	END
	if test -x "$python"; then
		check 'the log is JSON with the documented names, exact' \
			"$python" log.py
	else
		skip 'the log is JSON' "no $python"
	fi
}

# fails WORDS LOG: with one sentence
fails()
{
	reports "$2" 40 16 4096 2
	test "$status" -eq 1 && test "$(wc -l <err)" -eq 1 &&
		grep -qF "$1" err
	result $? "an error: $1"
}

test_progress_errors()
{
	write_steps 3 >steps
	fails 'cannot write --log .: Is a directory; name a file' .
	fails 'cannot write --log /dev/full: No space' /dev/full
	timeout 60 "$program" - 40 16 4096 2 <steps \
		>/dev/full 2>err
	test $? -eq 1 && test "$(wc -l <err)" -eq 1 &&
		grep -q '^cannot write the standard output: No space' err
	result $? 'an error: the output on a full disk'
}

# A terminal of 50 columns for a command whose input is the file steps. It shows
# each line as it was drawn, too.
cat >terminal.py <<'END'
import fcntl, os, pty, re, struct, sys, termios, time
pid, fd = pty.fork()
if pid == 0:
    while os.stat("go").st_size == 0:
        time.sleep(.01)
    os.dup2(os.open("steps", os.O_RDONLY), 0)
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
with open("go", "w") as file:
    file.write("go")
data = b""
try:
    while chunk := os.read(fd, 65536):
        data += chunk
except OSError:
    pass
print("status", os.waitpid(pid, 0)[1])
for row in data.decode().split("\n"):
    screen = ""
    for text in row.split("\r"):
        if text:
            assert len(text) < 50 or not re.match("step |[ 0-9]+/", text)
            screen = text + screen[len(text):]
            print("drawn", text.rstrip())
    print("screen", screen.rstrip())
END

# on_terminal COMMAND...: what a user sees of it
on_terminal()
{
	: >go
	call timeout 60 "$python" terminal.py "$@"
}

# A message begins on a line of its own, after the line of the progress.
test_error_on_terminal()
{
	: >steps
	on_terminal "$train" --data "$text" --lr 1e30 --clip 0 --batch 1
	grep -q '^screen *1/100 ' out &&
		grep -q '^screen ddp-train: the loss is no longer' out
	result $? 'an error on a terminal has a line of its own'
}

test_progress_terminal()
{
	if ! test -x "$python"; then
		skip 'a line that is rewritten' "no $python"
		return
	fi
	write_steps 40 >steps
	on_terminal "$program" - 40 16 4096 2
	cat >wanted <<-END
	status 0
	drawn step     loss       lr tokens/s exposed   left sl
	screen step     loss       lr tokens/s exposed   left sl
	drawn  1/40  5.8333 1.43e-04     1365   13.3%  1m57s 1
	END
	equal 'a terminal: one row, cut to its width' \
		"$(cat wanted; echo screen 40/40)" \
		"$(sed -n '1,4p; s/^\(screen 40.40\) .*/\1/p' out)"
	# 40 steps at once, or in a few tenths of a second on a busy machine
	check 'the row of a terminal is seldom rewritten' \
		test "$(grep -c ^drawn out)" -lt 20
	# Each comes after a tenth of a second; the last line is shorter.
	{
		write_steps 3 | sed 's/$/\nsleep 120/'
		echo eval 3 4.4
		echo 'step 4 5 .1 1 0 9 0 0 1 1 0 n1'
		echo 'step 40 5 .1 1 0 900 0 0 1 1 0 n1'
	} >steps
	on_terminal "$program" - 40 16 4096 2
	equal 'a terminal shows each slow step, and an evaluation stays' \
		'1 2 3 4 40' "$(sed -n 's,^drawn *\([0-9]*\)/.*,\1,p' out |
			xargs)"
	cat >wanted <<-END
	screen  3/40  5.6111 1.43e-04     2048   20.0%  1m14s 1
	screen step 3  eval loss 4.4000
	screen 40/40  5.0000 1.00e-01        5    0.0%     0s
	END
	equal 'nothing is left of what was written over' "$(cat wanted)" \
		"$(grep ^screen out | sed 1d | sed 3q)"
	# An evaluation ends a row.
	write_steps 21 | sed 's/$/\nsleep 120\neval 1 4/' >steps
	on_terminal "$program" - 40 16 4096 2
	equal 'the names of the columns come again after 20 rows' '1 21' \
		"$(awk '/^screen step  / { at = at sep rows + 1; sep = " " }
			/^screen *[0-9]*\// { rows++ }
			END { print at }' out)"
	test_error_on_terminal
}

test_progress()
{
	program progress
	test_progress_lines
	test_progress_log
	test_progress_errors
	test_progress_terminal
}
