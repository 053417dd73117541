# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2317 # variables and functions of run
# contrib/tokens: the token files that it makes.

tokens=$top/contrib/tokens/ddp-tokens

# numbers FILE: the tokens of a token file
numbers()
{
	tail -c +1025 "$1" | od -An -v -tu2 -w2 | tr -d ' ' | paste -sd' '
}

# declines NAME WORDS ARGUMENT...: with one sentence, and nothing is written
declines()
{
	declines_name=$1 declines_words=$2
	shift 2
	find made | sort >before
	call timeout 60 "$python" "$tokens" "$@"
	test "$status" -ne 0 && ! test -s out && test "$(wc -l <err)" -eq 1 &&
		grep -qF -- "$declines_words" err && find made | sort | cmp -s - before
	result $? "$declines_name"
}

test_tokens()
{
	size=$(wc -c <"$text")
	iconv -f ISO-8859-1 -t UTF-16LE "$text" >body
	{ header 20240520 1 "$size"; cat body; } >wanted
	head -c 1000 "$text" >first
	tail -c +1001 "$text" >rest
	mkdir made
	: >empty
	call "$python" "$tokens" made/tokens first rest
	equal 'makes a token file of bytes' \
		"0 $size tokens; ddp-train --tokens made/tokens --vocab 256" \
		"$status $(cat out)"
	check 'the token file has a header and 16 bits a byte' \
		cmp wanted made/tokens
	call timeout 60 "$train" --tokens made/tokens --vocab 256 --steps 1
	equal 'ddp-train learns the token file' 0 "$status"
	declines 'tokens of no file' 'cannot read none: No such file' \
		made/none none
	declines 'tokens of a folder' 'cannot read made: Is a dir' made/x made
	declines 'tokens of nothing' 'there are no tokens' made/x empty empty
	declines 'tokens into no folder' 'No such file' none/x first
	declines 'tokens into a folder' 'made is not a regular file' made first
	cp first made/first
	declines 'tokens into what is to be read' 'made/first is there, and is no' \
		made/first rest
	check 'leaves that' cmp first made/first
	call "$python" "$tokens" made/tokens rest
	equal 'replaces a token file' 0 "$status"
	mkfifo made/pipe
	declines 'tokens into a pipe' 'is not a regular file' made/pipe first
	check 'leaves the pipe' test -p made/pipe
	# With the package, tests/frameworks runs test_bpe as well.
	if "$python" -c 'import tokenizers' 2>err; then
		test_bpe
	else
		declines 'says what --bpe needs' 'pip install tokenizers' \
			--bpe first first made/x first
	fi
}

# GPT-2's numbers of bytes: 33 to 126, 161 to 172 and 174 to 255 come first and
# stand for themselves; the others follow as the characters from 256 on.
write_vocabulary()
{
	"$python" - <<-'END'
	import json
	alone = [*range(33, 127), *range(161, 173), *range(174, 256)]
	symbols = [*map(chr, alone), *(chr(256 + i) for i in range(68))]
	vocab = {symbol: i for i, symbol in enumerate(symbols)}
	merges = ["h e", "l l", "he ll", "hell o", "\u0120 w"]
	for merge in merges + ["<|endoftext|>"]:
	    vocab[merge.replace(" ", "")] = len(vocab)
	with open("vocab.json", "w") as file:
	    json.dump(vocab, file)
	with open("merges.txt", "w", encoding="utf-8") as file:
	    print("#version: 0.2", *merges, sep="\n", file=file)
	vocab.pop("<|endoftext|>")
	with open("endless.json", "w") as file:
	    json.dump(vocab, file)
	with open("large.json", "w") as file:
	    json.dump(dict(vocab, x=65536), file)
	vocab.pop("a")
	with open("lacking.json", "w") as file:
	    json.dump(vocab, file)
	END
}

# he 256, ll 257, hell 258, hello 259, " w" 260, the end of a text 261. A blank
# is byte 32, the 33rd of those that follow the first 188: 220; a line break is
# 198. c3 is 94 + 12 + 0xc3 - 174 = 127, a9 is 94 + 0xa9 - 161 = 102.
test_bpe()
{
	write_vocabulary
	printf 'hello hell world\n\303\251' >words
	printf '<|endoftext|>' >ends
	printf 'a\377' >latin
	set -- --bpe vocab.json merges.txt
	call "$python" "$tokens" "$@" made/bpe words ends
	equal "makes tokens by GPT-2's byte pairs" \
		'0 26 tokens; ddp-train --tokens made/bpe --vocab 262' \
		"$status $(cat out)"
	equal 'each file begins with the end of a text, which is no word' \
		"261 259 220 258 260 78 81 75 67 198 127 102 $(
		)261 27 91 68 77 67 78 69 83 68 87 83 91 29" \
		"$(numbers made/bpe)"
	call "$python" "$tokens" --bpe endless.json merges.txt made/bpe words
	equal 'a file without an end of a text begins with its words' \
		'259 220 258 260 78 81 75 67 198 127 102' \
		"$(numbers made/bpe)"
	grep -q 'endless.json has no <|endoftext|>' err
	result $? 'a vocabulary without an end of a text is told'
	declines 'text that is not UTF-8' 'latin: byte 1, counted from 0' \
		"$@" made/x words latin
	declines 'no vocabulary' 'cannot read none' --bpe none merges.txt \
		made/x words
	declines 'a vocabulary that is none' 'words is no vocabulary' \
		--bpe words merges.txt made/x words
	declines 'a vocabulary that is too large' 'numbers below 65536' \
		--bpe large.json merges.txt made/x words
	declines 'a vocabulary without all bytes' 'for 1 of the 256 bytes' \
		--bpe lacking.json merges.txt made/x words
	declines 'other merges' 'words does not go with vocab.json' \
		--bpe vocab.json words made/x words
}
