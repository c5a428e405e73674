package rail_test

import (
	"context"
	"fmt"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/rail"
)

// two returns the nodes of two hosts. In production each is a process, and Config.Resolve,
// or Config.Membership, has the addresses of the others.
func two(ctx context.Context) (a, b *rail.Node, end func()) {
	addresses := map[string]string{}
	resolve := func(_ context.Context, host string) (string, error) { return addresses[host], nil }
	var nodes [2]*rail.Node
	var hosts [2]*hostlib.Host
	for i, name := range []string{"oss0", "oss1"} {
		host, err := hostlib.Join(ctx, hostlib.Config{Name: name, Resolve: resolve})
		if err != nil {
			panic(err)
		}
		addresses[name], hosts[i] = host.Addr(), host
		if nodes[i], err = rail.On(host, rail.Config{}); err != nil {
			panic(err)
		}
	}
	return nodes[0], nodes[1], func() {
		for _, h := range hosts {
			_ = h.Close(ctx) // and the node before it
		}
	}
}

func ExampleOn() {
	ctx := context.Background()
	a, b, end := two(ctx)
	defer end()
	const tag = 7
	to, _ := a.Peer("oss1")
	sent := to.StartSend(tag, []byte("any size"))

	from, _ := b.Peer("oss0")
	buffer := make([]byte, 64)
	status, err := from.Recv(ctx, tag, buffer)
	fmt.Printf("%s, %v\n", buffer[:status.Size], err)
	_, err = sent.Wait(ctx)
	fmt.Println(err)
	// Output:
	// any size, <nil>
	// <nil>
}

func ExampleNode_Register() {
	ctx := context.Background()
	a, b, end := two(ctx)
	defer end()
	memory := []byte("what others may read")
	registered, err := a.Register(rail.Read, memory)
	if err != nil {
		panic(err)
	}
	defer registered.Release()

	from, _ := b.Peer("oss0")
	into := make([]byte, 6)
	err = from.Get(ctx, registered.Key(), 12, into) // the key has come in a message, say
	fmt.Printf("%q, %v\n", into, err)
	// Output:
	// "may re", <nil>
}
