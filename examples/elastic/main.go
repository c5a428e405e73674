// Command elastic fits a small model by several processes, kills some of them, and goes on.
//
//	go run ./examples/elastic
//
// It starts four members and two spares as processes of its own, twice. The second time it kills
// two members without notice, rank 0 and a random one, at random steps. Spares take their places,
// and the model comes out the same, bit for bit.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/elastic"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/reduce"
)

const (
	steps    = 300
	features = 40
	shards   = 12  // into which each batch is cut, however many members there are
	samples  = 500 // of a shard
)

func main() {
	name := flag.String("name", "", "run as this member or spare; empty: start all as processes")
	members := flag.String("members", "h0=127.0.0.1:7500,h1=127.0.0.1:7501,h2=127.0.0.1:7502,h3=127.0.0.1:7503", "host=address of every member")
	spares := flag.String("spares", "s0=127.0.0.1:7504,s1=127.0.0.1:7505", "host=address of every spare")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of who is killed, and when")
	flag.Parse()
	err := error(nil)
	if *name == "" {
		err = compare(*members, *spares, rand.New(rand.NewPCG(*seed, 0)))
	} else {
		err = join(*name, elastic.Config{Name: "training", Members: list(*members), Spares: list(*spares)})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func names(members []hostlib.Member) string {
	all := []string{}
	for _, m := range members {
		all = append(all, m.Host)
	}
	return strings.Join(all, ", ")
}

func list(names string) (all []hostlib.Member) {
	for entry := range strings.SplitSeq(names, ",") {
		host, address, _ := strings.Cut(entry, "=")
		all = append(all, hostlib.Member{Host: host, Addr: address})
	}
	return all
}

// join is a member or a spare: it runs the job to its end.
func join(name string, config elastic.Config) error {
	ctx := context.Background()
	zone := &membership.Config{} // which finds who dies
	c := hostlib.Config{Name: name, Membership: zone, DeadAfter: 2 * time.Second}
	for _, m := range append(config.Members, config.Spares...) {
		zone.Bootstrap = append(zone.Bootstrap, m.Addr)
		if m.Host == name {
			c.Listen = m.Addr
		}
	}
	host, err := hostlib.Join(ctx, c)
	if err != nil {
		return err
	}
	defer host.Close(ctx)
	parent := bufio.NewReader(os.Stdin)
	step, weights, stepped := int64(0), make([]float64, features), time.Now() // all that live have them: the checkpoint
	config.Changed = func(x elastic.Change) {
		fmt.Printf("%s died, %s joined; the others were interrupted for %v, %v of it after they knew\n",
			names(x.Lost), names(x.Joined), time.Since(stepped).Round(time.Millisecond), x.Took.Round(time.Millisecond))
	}
	err = elastic.Run(ctx, host, config, func(ctx context.Context, comm *hostlib.Communicator) error {
		newest, err := elastic.Newest(ctx, comm, step) // some may be a step ahead, and spares have nothing
		if err != nil {
			return err
		}
		restored := append([]float64(nil), weights...)
		if _, err := hostlib.Broadcast(ctx, comm, newest.Rank, restored); err != nil {
			return err
		}
		for step, weights = newest.Step, restored; step < steps; step++ {
			if comm.Rank() == comm.Size()-1 {
				fmt.Println("step", step)
				parent.ReadString('\n') // it may kill somebody first
			}
			gradients := make([]float64, shards*features) // each shard has one member, and the others add 0
			for shard := comm.Rank(); shard < shards; shard += comm.Size() {
				gradient(gradients[shard*features:][:features], weights, shard)
			}
			if _, err := hostlib.Allreduce(ctx, comm, reduce.Sum, gradients, gradients); err != nil {
				return err
			}
			for i := range gradients { // so each sum has the same order, whoever gave what
				weights[i%features] -= gradients[i] / (shards * samples)
			}
			stepped = time.Now()
		}
		return nil
	})
	if err == nil && step == steps {
		fmt.Println("loss", loss(weights))
	}
	return err
}

// data are all samples by shard, and to which of two classes each belongs. They are the same in every
// process.
var data, classes = func() (x [shards]*mat.Dense, class [shards]*mat.VecDense) {
	random := rand.New(rand.NewPCG(1, 2))
	for s := range shards {
		x[s], class[s] = mat.NewDense(samples, features, nil), mat.NewVecDense(samples, nil)
		for i := range samples {
			sum := random.NormFloat64()
			for k := range features {
				v := random.NormFloat64()
				x[s].Set(i, k, v)
				sum += v * math.Sin(float64(k))
			}
			if sum > 0 {
				class[s].SetVec(i, 1)
			}
		}
	}
	return x, class
}()

// errorsOf returns by how much the logistic regression misses the class of each sample of a shard.
func errorsOf(weights []float64, shard int) *mat.VecDense {
	e := mat.NewVecDense(samples, nil)
	e.MulVec(data[shard], mat.NewVecDense(features, weights))
	for i := range samples {
		e.SetVec(i, 1/(1+math.Exp(-e.AtVec(i)))-classes[shard].AtVec(i))
	}
	return e
}

func gradient(into, weights []float64, shard int) {
	mat.NewVecDense(features, into).MulVec(data[shard].T(), errorsOf(weights, shard))
}

func loss(weights []float64) (sum float64) {
	for shard := range shards {
		for _, e := range errorsOf(weights, shard).RawVector().Data {
			sum -= math.Log(1-math.Abs(e)) / (shards * samples)
		}
	}
	return sum
}

// compare runs the job without deaths, and with two.
func compare(members, spares string, random *rand.Rand) error {
	victims := list(members)
	early, late := random.IntN(steps/2), steps/2+random.IntN(steps/2)
	kills := map[int]string{early: victims[0].Host, late: victims[1+random.IntN(len(victims)-1)].Host}
	undisturbed, err := run(members, spares, nil)
	if err != nil {
		return err
	}
	fmt.Println("undisturbed: loss", undisturbed)
	disturbed, err := run(members, spares, kills)
	if err != nil {
		return err
	}
	fmt.Println("with two deaths: loss", disturbed)
	if disturbed != undisturbed {
		return errors.New("the losses differ")
	}
	fmt.Println("the losses are the same, bit for bit")
	return nil
}

// run runs the job, kills processes at steps, and returns the loss that all others have.
func run(members, spares string, kills map[int]string) (result string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	type process struct {
		*exec.Cmd
		in io.Writer
	}
	type line struct{ from, text string }
	lines, all, killed := make(chan line), map[string]process{}, map[string]bool{}
	var reading sync.WaitGroup
	for _, m := range list(members + "," + spares) {
		p := exec.Command(self, "-name", m.Host, "-members", members, "-spares", spares)
		p.Stderr = os.Stderr
		in, _ := p.StdinPipe()
		out, _ := p.StdoutPipe()
		if err := p.Start(); err != nil {
			return "", err
		}
		defer p.Process.Kill()
		all[m.Host] = process{p, in}
		reading.Go(func() {
			for scan := bufio.NewScanner(out); scan.Scan(); {
				lines <- line{m.Host, scan.Text()}
			}
		})
	}
	go func() { reading.Wait(); close(lines) }()
	said := map[string]bool{}
	for l := range lines {
		what, rest, _ := strings.Cut(l.text, " ")
		switch news, _, _ := strings.Cut(l.text, ";"); {
		case what == "step":
			at, _ := strconv.Atoi(rest)
			if victim := kills[at]; victim != "" && !killed[victim] {
				fmt.Printf("%s is killed at step %d\n", victim, at)
				killed[victim] = true
				all[victim].Process.Kill()
			}
			fmt.Fprintln(all[l.from].in)
		case what == "loss" && result != "" && result != rest:
			return "", fmt.Errorf("%s has the loss %s, others %s", l.from, rest, result)
		case what == "loss":
			result = rest
		case !said[news]: // by all that live
			said[news] = true
			fmt.Println(l.text)
		}
	}
	for name, p := range all {
		if err := p.Wait(); err != nil && !killed[name] {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	return result, nil
}
