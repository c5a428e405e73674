# What p4c could have left out of a program for bmv2, which computes just what it
# is told: each assignment is written out into bytes, each mask is a step. What
# the program does stays the same.

# Whether a mask has all bits of a wide word: it changes nothing in what is
# shifted right, or has zeros where it is shifted to.
def all_bits: .type? == "hexstr" and (.value | test("^0x[f]{128,}$"));

def inner: if .type? == "expression" then .value else . end;

def digits: (.value | explode | reduce (.[2:][]) as $c (0; . * 16 +
    (if $c >= 97 then $c - 87 else $c - 48 end))) / 4;

def idle($mask):
    .op? == ">>" or
    .op? == "<<" and .right.type == "hexstr" and (.left | inner | .op? == "&" and .right.type? == "hexstr" and
        (.right.value | length) == ($mask | length)) and
        ((.right | digits) as $n | .left | inner | .right.value[2:] | .[:$n | ceil] | test("^0*$"));

def unmask: walk(if type == "object" and .op? == "&" and (.right | all_bits) and
    (.right.value as $mask | .left | inner | idle($mask)) then .left | inner else . end);

def uses($f): [.. | objects | select(.type? == "field" and .value == $f)] | length;

def put($f; $what): walk(if type == "object" and .type? == "field" and .value == $f then $what else . end);

def temporary: .type? == "field" and .value[0] == "scalars" and (.value[1] | test("^tmp(_[0-9]+)?$"));

# A temporary that only the next step uses, and a register's value that is read
# into scratch for it, stand in that step themselves.
def fuse($total):
    reduce .[] as $step ([];
        (.[-1] // {}) as $last | ($last.parameters[0]? // {}) as $to |
        if $last.op? == "assign" and ($to | temporary) and $total[$to.value[1]] == 2 and
            ($step.op != "assign") and any($step.parameters[1:][]; . == $to)
        then .[:-1] + [$step | .parameters |= map(if . == $to then $last.parameters[1] else . end)]
        else . + [$step] end);

def inline:
    . as $steps | reduce range(length) as $i ([];
        $steps[$i] as $step | (.[-1] // {}) as $last | ($last.parameters[0]? // {}) as $to |
        if $last.op? == "register_read" and $to.value[0] == "scratch" and $step.op != "register_read" and
            ([$step.parameters[1:][] | uses($to.value)] | add // 0) > 0 and
            (first($steps[$i + 1:][] | select(uses($to.value) > 0)) // {op: "register_read"}
                | .op == "register_read")
        then .[:-1] + [$step | .parameters |= .[:1] +
            (.[1:] | map(put($to.value; {type: "register", value: [$last.parameters[1].value, $last.parameters[2]]})))]
        else . + [$step] end);

def scalars: [.. | arrays | select(length == 2 and .[0] == "scalars") | .[1]];

def strip:
    (scalars | map({(.): true}) | add) as $used |
    .header_types |= map(if .name | startswith("scalars") then
        .fields |= (map(select((.[0] | test("^(tmp(_[0-9]+)?|_padding_.*)$") | not) or $used[.[0]])) |
            (map(.[1]) | add % 8) as $over | if $over == 0 then . else . + [["_padding_0", 8 - $over, false]] end)
        else . end);

# Where in the sources something stands is of no use to a switch, and four fifths
# of the file.
walk(if type == "object" then del(.source_info) else . end) | unmask |
(reduce scalars[] as $name ({}; .[$name] += 1)) as $total |
(.actions[].primitives) |= (fuse($total) | inline) |
strip
