# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of run, which sources this
# What contrib/plot draws of a log.

plot=$top/contrib/plot/ddp-plot

# entry STEP LOSS TOKENS SECONDS EXPOSED: a line of a log, of what plot reads
entry()
{
	printf '{"step":%d,"loss":%s,"samples":%d,"tokens":%d,' "$1" "$2" \
		$(($1 * 10)) "$3"
	printf '"seconds":%s,"exposed":%s}\n' "$4" "$5"
}

# 100 tokens a step, which takes 2, 1, 1 and 0.5 s: 50, 100, 100 and 200
# tokens/s; a half, a tenth, a fifth and a half of it is exposed.
write_log()
{
	entry 1 4 100 2 1
	entry 2 3 200 3 .1
	entry 3 2 300 4 .2
	entry 4 1 400 4.5 .25
}

# plots ARGUMENT...: on no terminal
plots()
{
	call env PYTHONIOENCODING=utf-8 timeout 60 "$python" "$plot" "$@"
}

# Two columns a step, four lines of eight levels each: a loss of 3 is at 2/3 of
# 32 levels, 21 = 8 + 8 + 5; one of 2 at 1/3, 11 = 8 + 3; the least has one. Of
# what is exposed, a half is at 32, a tenth at 6, a fifth at 13.
test_plot_text()
{
	write_log | sed 's/\([:,]\)\./\10./g' >log
	COLUMNS=27 plots log
	cat >wanted <<-END
	                   log
	loss             4 ██
	                   ██▅▅
	                   ████▃▃
	                 1 ██████▁▁
	tokens/s       200       ██
	                         ██
	                     ██████
	                 0 ████████
	exposed %       50 ██    ██
	                   ██    ██
	                   ██  ▅▅██
	                 0 ██▆▆████
	                   1      4
	log: 4 steps, loss 4.0000 to 1.0000; after the first step 120 tokens/s, exposed 22.0%
	END
	check 'a log as text' diff wanted out
	equal 'a log as text says nothing on stderr' '' "$(cat err)"
	sed 's/"tokens":[0-9]*/"tokens":0/; 2q' log |
		sed '2s/"loss":3/"loss":null/' >toy
	COLUMNS=37 plots log toy
	cat >wanted <<-END
	                   log       toy
	loss             4 ██        ██
	                   ██▅▅      ██
	                   ████▃▃    ██
	                 1 ██████▁▁  ██
	samples/s       20       ██
	                         ██
	                     ██████    ██
	                 0 ████████  ████
	END
	sed 9q out >had
	check 'two on one scale: a short one, without tokens, and a gap' \
		diff wanted had
	equal 'a gap is explained' "ddp-plot: toy: the loss is not a number in \
1 of 2 steps, which are left out; choose a smaller --lr" "$(cat err)"
	call env COLUMNS=27 PYTHONIOENCODING=ascii "$python" "$plot" log
	equal 'where there are no blocks, other characters do' '1 ######..' \
		"$(sed -n 's/^ *1 #/1 #/p' out)"
	: >steps
	on_terminal /usr/bin/env -u COLUMNS PYTHONIOENCODING=utf-8 "$python" \
		"$plot" log
	equal 'a terminal is filled, without colours' '50 0' \
		"$(sed -n 's/^screen \( *1  *4\)$/\1/p' out |
			awk '{ print length }') $(tr -cd '\033' <out | wc -c)"
}

# plot_says STATUS WORDS ARGUMENT...: one sentence with WORDS
plot_says()
{
	wanted=$1 words=$2
	shift 2
	plots "$@"
	test "$status" -eq "$wanted" && test "$(wc -l <err)" -eq 1 &&
		grep '^ddp-plot: ' err | grep -qF -- "$words"
	result $? "status $wanted: $words"
}

test_plot_errors()
{
	: >empty
	echo '{"step":1,"eval_loss":3}' >tested
	echo 'step 1 loss 3' >words
	sed 3d log >hole
	echo '{"step":1,"loss":NaN,"samples":1,"tokens":1,"seconds":"x"}' >text
	sed '3,$d' log >torn
	sed -n 3p log | head -c 40 >>torn
	head -c 40 log >first
	plot_says 1 'cannot read none: No such file' none
	plot_says 1 'cannot read .: Is a directory; name the file' .
	plot_says 1 'empty has no step: name the file' empty
	plot_says 1 'tested has no step: name the file' tested
	plot_says 1 'words: line 1 is not what ddp-train writes' words
	plot_says 1 'hole: line 3 is not what ddp-train writes' hole
	plot_says 1 'text: line 1 is not what ddp-train writes' text
	plot_says 1 'sh: line 1 is not what ddp-train writes' /bin/sh
	plot_says 0 'torn: line 3 is cut off and left out' torn
	equal 'the rest of a log that was cut off is drawn' \
		'torn: 2 steps, loss 4.0000 to 3.0000' \
		"$(sed -n 's/^\(torn: .*\);.*/\1/p' out)"
	plots first
	equal 'a log without a whole line has no step' 1 \
		"$(grep -c 'has no step' err)"
	COLUMNS=37 plot_says 1 '3 logs do not fit side by side in 37 columns' \
		log log log
	mkdir fake
	echo 'raise ImportError("a fake: matplotlib is not there")' \
		>fake/matplotlib.py
	PYTHONPATH=fake plot_says 1 'install python3-matplotlib' log --png a.png
}

# Matplotlib's first colour in each third of the picture
cat >blue.py <<'END'
import matplotlib.image
picture = matplotlib.image.imread("a.png")
blue = abs(picture[:, :, :3] - (0.12, 0.47, 0.71)).max(axis=2) < 0.02
third = len(blue) // 3
for part in range(3):
    assert blue[part * third:(part + 1) * third].sum() > 50, part
END

test_plot_png()
{
	if ! "$python" -c 'import matplotlib' 2>/dev/null; then
		skip 'a log as a picture' "no matplotlib for $python"
		return
	fi
	export MPLCONFIGDIR="$scratch"
	plots log --png a.png
	equal 'a log as a picture' '0 ' "$status $(cat out err)"
	check 'the picture of a log has three curves' "$python" blue.py
	plot_says 1 'cannot write --png none/a.png: No such file' \
		log --png none/a.png
}

test_plot()
{
	if ! test -x "$python"; then
		skip 'what a log looks like' "no $python"
		return
	fi
	test_plot_text
	test_plot_errors
	test_plot_png
	call timeout 60 "$train" --data "$text" --steps 9 --eval-every 5 --log log
	said=$(sed -n 's/.*; after/after/; s/, parallel.*//p' out)
	plots log
	equal 'a plot agrees with what ddp-train says at the end' "$said" \
		"$(sed -n 's/.*; after/after/p' out)"
}
