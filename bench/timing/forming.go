package timing

import (
	"context"
	"errors"

	"github.com/tributary-fabric/tributary/hostlib"
)

// forming is the task of Form.
type forming struct {
	cfg Config
	now Forming
	err error
}

func (f *forming) prepare(number int) {
	f.now = f.cfg.Forming(number)
	f.err = f.now.Join(context.Background())
}

func (f *forming) run(ctx context.Context) (o hostlib.Outcome, err error) {
	if f.err != nil {
		return o, f.err
	}
	comm, err := f.now.Communicator(ctx)
	if err != nil {
		return o, errors.Join(err, f.now.Close(ctx))
	}
	o.Transport, o.Reason = comm.Transport()
	return o, nil
}

func (f *forming) right() bool {
	f.err = f.now.Close(context.Background())
	return f.err == nil
}
