#!/bin/sh
# Compiles the programs. The same compiler makes the same bytes: Debian 12's clang 14.
set -eu
cd "$(dirname "$0")"
clang -O2 -g -target bpf -mcpu=v3 -Wall -Werror -fdebug-compilation-dir=. \
	-I"/usr/include/$(uname -m)-linux-gnu" -c reduce.c -o reduce.o
llvm-strip -g reduce.o
