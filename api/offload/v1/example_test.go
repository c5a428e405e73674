package offloadv1_test

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	offloadv1 "github.com/tributary-fabric/tributary/api/offload/v1"
)

// A group for sums of floats over four hosts. What crosses the wire are the
// bytes that Marshal gives.
func ExampleCreateGroupRequest() {
	request := &offloadv1.CreateGroupRequest{
		Name:       "training",
		Members:    []string{"h0", "h1", "h2", "h3"}, // rank 0 first
		ChunkBytes: 1424,
		Window:     64,
		Functions:  []offloadv1.Function{offloadv1.Function_FUNCTION_SUM},
		Types:      []offloadv1.ElementType{offloadv1.ElementType_ELEMENT_TYPE_FLOAT32},
	}
	wire, err := proto.Marshal(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	var received offloadv1.CreateGroupRequest
	if err := proto.Unmarshal(wire, &received); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(received.GetName(), received.GetMembers(), received.GetFunctions()[0])
	// Output: training [h0 h1 h2 h3] FUNCTION_SUM
}
