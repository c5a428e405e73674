package membership_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/membership"
)

// Three nodes of one zone find each other. One publishes an attribute, and leaves with
// an exit code.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	monitor, err := membership.Join(ctx, membership.Config{Name: "monitor", Monitor: true})
	if err != nil {
		panic(err)
	}
	defer monitor.Close(ctx)
	seeds := []string{monitor.Addr().String()}
	h1, err := membership.Join(ctx, membership.Config{Name: "h1", Bootstrap: seeds})
	if err != nil {
		panic(err)
	}
	defer h1.Close(ctx)
	h2, err := membership.Join(ctx, membership.Config{Name: "h2", Bootstrap: seeds})
	if err != nil {
		panic(err)
	}
	defer h2.Close(ctx)

	if err := h2.Set(ctx, "port", []byte("8080")); err != nil {
		panic(err)
	}
	attributes := monitor.AttributeWatcher()
	defer attributes.Close()
	changes, err := attributes.Next(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s is %s\n", changes[0].Node, changes[0].Key, changes[0].Value)

	there := 0
	for notice := range monitor.Notices(ctx) {
		if notice.Kind == membership.Left {
			fmt.Println(notice)
			break
		}
		if there++; there == 3 {
			fmt.Println("all are there")
			if err := h2.Leave(ctx, 7); err != nil {
				panic(err)
			}
		}
	}
	// Output:
	// h2: port is 8080
	// all are there
	// h2 left (departed, exit code 7)
}
