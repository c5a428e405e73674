package bulk_test

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/scoll/bulk"
)

// One node exposes two pieces of memory as one, another pulls them into one
// buffer. hostlib/scoll brings key and length to the puller in a request.
func Example() {
	owner := bulk.New(bulk.Config{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if conn, err := listener.Accept(); err == nil {
			owner.Serve(context.Background(), conn)
		}
	})

	const key = 0x1f2e3d4c5b6a7988 // drawn at random
	if err := owner.Expose(key, [][]byte{[]byte("a capability "), []byte("for all")}); err != nil {
		fmt.Println(err)
	}

	puller := bulk.New(bulk.Config{Dial: func(ctx context.Context, node string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", node)
	}})
	into := make([]byte, 20)
	if err := puller.Pull(context.Background(), listener.Addr().String(), key, 20, [][]byte{into}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(string(into))

	owner.Revoke(key) // the memory is the owner's alone again
	puller.Close()
	serving.Wait()
	owner.Close()
	listener.Close()
	// Output:
	// a capability for all
}
