package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// beMain makes this binary the command, as which fabrics run their processes.
const beMain = "COLLBENCH_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(beMain) != "" {
		main()
		return
	}
	if err := os.Setenv(beMain, "1"); err != nil { // for the processes that tests start
		panic(err)
	}
	os.Exit(m.Run())
}

// patience bounds every test that runs a fabric.
const patience = time.Minute

// command runs the command in this process, and returns what it wrote.
func command(t *testing.T, args ...string) (rows [][]string, log string, err error) {
	t.Helper()
	out, log, err := commandText(t, args...)
	return table(t, out), log, err
}

// commandText runs the command in this process, and returns what it wrote as it
// is.
func commandText(t *testing.T, args ...string) (out, log string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var said, errs bytes.Buffer
	root := newRoot()
	root.SetOut(&said)
	root.SetErr(&errs)
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	return said.String(), errs.String(), err
}

// table returns the rows of CSV beneath its header.
func table(t *testing.T, out string) (rows [][]string) {
	t.Helper()
	head, rest, _ := strings.Cut(out, "\n")
	if out == "" {
		return nil
	}
	if !strings.HasPrefix(head, timing.Header) {
		t.Errorf("the header is %q", head)
	}
	for line := range strings.Lines(rest) {
		row := strings.Split(strings.TrimSpace(line), ",")
		if len(row) != len(strings.Split(head, ",")) {
			t.Fatalf("a row with %d columns: %q", len(row), line)
		}
		rows = append(rows, row)
	}
	return rows
}

// Columns of a row.
const (
	colTransport = 9
	colResult    = 10
)

func TestEmbedded(t *testing.T) {
	for name, test := range map[string]struct {
		args      []string
		transport string
		rows      int
	}{
		"offload":           {[]string{"--bytes", "8,0,100KiB", "--rate", "1gbit", "--transport", "offload"}, "offload", 3},
		"host":              {[]string{"--bytes", "64KiB", "--type", "int64", "--reduction", "bxor", "--transport", "host"}, "host-tree", 1},
		"steady":            {[]string{"--bytes", "8,100KiB", "--pace", "steady"}, "offload", 2},
		"stream":            {[]string{"--bytes", "8,100KiB", "--pace", "stream"}, "offload", 2},
		"reduce":            {[]string{"--bytes", "64KiB", "--function", "reduce", "--type", "bfloat16", "--reduction", "product"}, "offload", 1},
		"blocks":            {[]string{"--bytes", "8,1MiB", "--type", "block32", "--transport", "offload"}, "offload", 2},
		"blocks over hosts": {[]string{"--bytes", "64KiB", "--function", "reduce", "--type", "block32", "--transport", "host"}, "host-tree", 1},
		"broadcast":         {[]string{"--bytes", "64KiB", "--function", "broadcast", "--type", "uint32"}, "offload", 1},
		"barrier":           {[]string{"--bytes", "0", "--function", "barrier", "--type", "float16"}, "offload", 1},
	} {
		t.Run(name, func(t *testing.T) {
			rows, log, err := command(t, append([]string{"embedded", "--fabric", "leaf-spine:2,2,1", "--iterations", "3"}, test.args...)...)
			if err != nil || len(rows) != test.rows {
				t.Fatalf("%v, %q; %s", err, rows, log)
			}
			for _, row := range rows {
				if row[colTransport] != test.transport || row[colResult] != "right" {
					t.Errorf("%q", row)
				}
			}
		})
	}
}

func TestBadFlags(t *testing.T) {
	members := filepath.Join(t.TempDir(), "members")
	valid := members + "-valid"
	if err := errors.Join(os.WriteFile(members, []byte("# a list\nh0 1.2.3.4:5 6\n"), 0o600), os.WriteFile(valid, []byte("h0 1.2.3.4:5\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) []string {
		return append([]string{"run", "--host", "h0", "--listen", "127.0.0.1:0", "--members", members}, args...)
	}
	for name, test := range map[string]struct {
		args []string
		want error
		text string
	}{
		"bytes":         {[]string{"embedded", "--bytes", "1MB"}, errUsage, `"1MB" is no number of bytes`},
		"many elements": {[]string{"embedded", "--bytes", "16GiB"}, timing.ErrConfig, "at most 4294967295 elements, which of float32 are 17179869180 bytes"},
		"memory":        {[]string{"embedded", "--topology", "fat-tree:32", "--bytes", "16GiB", "--type", "float64"}, process.ErrMemory, "8192 members with 2 vectors"},
		"much memory":   {[]string{"groups", "--groups", "65536", "--topology", "fat-tree:32", "--bytes", "16GiB"}, process.ErrMemory, "take shorter vectors"},
		"no bytes":      {[]string{"embedded", "--bytes", ""}, timing.ErrConfig, "no size of vectors"},
		"window":        {[]string{"embedded", "--window", "3"}, errUsage, "--window 3: a window is a power of two up to 4096"},
		"wide window":   {[]string{"groups", "--window", "8192"}, errUsage, "--window 8192: a window is a power of two up to 4096"},
		"many stripes":  {[]string{"embedded", "--stripes", "1000000"}, errUsage, "want 64 at most"},
		"no rows":       {[]string{"membership", "--rows", ""}, errUsage, "--rows: none; possible are"},
		"time is up":    {[]string{"embedded", "--timeout", "1ns"}, context.DeadlineExceeded, "(--timeout)"},
		"part element":  {[]string{"embedded", "--bytes", "10"}, timing.ErrConfig, "multiple of the 4"},
		"type":          {[]string{"embedded", "--type", "int8"}, errUsage, "--type"},
		"reduction":     {[]string{"embedded", "--reduction", "mean"}, errUsage, "--reduction"},
		"undefined":     {[]string{"embedded", "--reduction", "bxor"}, timing.ErrConfig, "bxor of float32"},
		"blocks":        {[]string{"embedded", "--type", "block32", "--function", "broadcast"}, timing.ErrConfig, "broadcast of block32"},
		"located":       {[]string{"embedded", "--reduction", "minloc"}, timing.ErrConfig, "minloc"},
		"collective":    {[]string{"embedded", "--function", "sum"}, timing.ErrConfig, "allreduce, reduce"},
		"transport":     {[]string{"embedded", "--transport", "air"}, timing.ErrConfig, "auto, offload, host"},
		"rate":          {[]string{"embedded", "--rate", "fast"}, errUsage, "--rate"},
		"iterations":    {[]string{"embedded", "--iterations", "1,2"}, timing.ErrConfig, "2 numbers of iterations"},
		"no iterations": {[]string{"embedded", "--iterations", "0"}, timing.ErrConfig, "0 iterations"},
		"timeout":       {[]string{"embedded", "--timeout", "0s"}, errUsage, "--timeout"},
		"fabric":        {[]string{"embedded", "--fabric", "moebius:3"}, os.ErrNotExist, "moebius"},
		"loss":          {[]string{"fabric", "--loss", "1"}, errUsage, "--loss"},
		"trunk rate":    {[]string{"fabric", "--trunk-rate", "fast"}, errUsage, "--trunk-rate"},
		"stripes":       {[]string{"embedded", "--stripes", "-2"}, timing.ErrConfig, "-2 stripes"},
		"two kinds":     {[]string{"embedded", "--stripes", "2", "--roots", "2", "--transport", "host"}, hostlib.ErrArgument, "cannot be combined"},
		"prefix":        {[]string{"fabric", "--prefix", "a/b"}, netlab.ErrConfig, "a/b"},
		"pace":          {[]string{"embedded", "--pace", "slow"}, timing.ErrConfig, "checked, steady, stream"},
		"format":        {[]string{"fabric", "--format", "xml"}, errUsage, "possible are csv, json"},
		"groups":        {[]string{"fabric", "--groups", "9", "--rate", "1gbit"}, errUsage, "1 to 8"},
		"form's pace":   {[]string{"fabric", "--function", "form", "--bytes", "0", "--pace", "steady"}, timing.ErrConfig, "pace checked"},
		"form's sizes":  {[]string{"fabric", "--function", "form"}, timing.ErrConfig, "one size"},
		"form embedded": {[]string{"embedded", "--function", "form", "--bytes", "0"}, timing.ErrConfig, "hosts of their own"},
		"TLS":           {[]string{"fabric", "--tls"}, errUsage, "--transport host"},
		"no link":       {[]string{"fabric", "--groups", "2"}, errUsage, "without a --rate"},
		"no shares":     {[]string{"fabric", "--beside-tcp", "--rate", "1gbit", "--pace", "steady"}, errUsage, "--pace stream"},
		"no records":    {[]string{"report", "/nowhere/x.json"}, os.ErrNotExist, "x.json"},
		"apart":         {[]string{"fabric", "--spines", "0"}, netlab.ErrConfig, "without a spine"},
		"members":       {run(), field.ErrMembers, "members:2: 3 words"},
		"no manager":    {run("--transport", "offload"), errUsage, "--manager"},
		"half TLS":      {run("--certificate", "c.pem"), errUsage, "go together"},
		"no certificate": {
			[]string{"run", "--host", "h0", "--listen", "127.0.0.1:0", "--members", valid, "--manager", "127.0.0.1:1", "--certificate", "absent", "--key", "k", "--authority", "a"},
			os.ErrNotExist, "absent",
		},
		"data":         {run("--data", "h0"), errUsage, "--data"},
		"offer wait":   {run("--offer-wait", "-1s"), errUsage, "--offer-wait -1s"},
		"no such file": {run("--members", members+"x"), os.ErrNotExist, "membersx"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := command(t, test.args...)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v", err)
			}
		})
	}
}
