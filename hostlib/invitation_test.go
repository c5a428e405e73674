package hostlib

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestInvitedOptions: a spare has the options of the members, whichever there are.
func TestInvitedOptions(t *testing.T) {
	for _, options := range [][]GroupOption{
		nil, {OnHosts(Ring, Binomial)}, {OnTree(), OnlyTypes(reduce.Int64), OnlyFunctions(reduce.Max)}, {OnTreeOfHosts(), BlockFloat()},
		{Stripes(2), Expect(pathsel.Allreduce, 1<<20)}, {Roots(3), ChooseByWeights(pathsel.Weights{1, 2})},
	} {
		want := optionsOf(options)
		text, err := json.Marshal(invitation{Options: want.sent()})
		if err != nil {
			t.Fatal(err)
		}
		var in invitation
		if err := json.Unmarshal(text, &in); err != nil {
			t.Fatal(err)
		}
		if got := optionsOf([]GroupOption{in.Options.option()}); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// TestMalformedInvitations: what an inviter must not say is an error there, and the spare goes on waiting.
func TestMalformedInvitations(t *testing.T) {
	hosts, members := joinAs(t, names(3), patient)
	ctx := within(t)
	joined := await(t, hosts[1])
	of := func(in invitation) string {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for what, text := range map[string]string{
		"no JSON": "{", "a kind that is none": of(invitation{Kind: 9}),
		"other members":       of(invitation{Kind: joins, Name: "x", Members: []Member{members[0], members[2]}}),
		"no name":             of(invitation{Kind: joins, Members: members[:2], Options: optionsOf(nil).sent()}),
		"impossible options":  of(invitation{Kind: joins, Name: "x", Members: members[:2], Options: sentOptions{Roots: -1}}),
		"the name of a pair":  of(invitation{Kind: joins, Name: pairPrefix, Members: members[:2], Options: optionsOf(nil).sent()}),
		"nothing but a space": " ",
	} {
		pair, err := hosts[0].invite(ctx, members[0], members[1], []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		<-pair.done
		wantMember(t, pair.Err(), ofSpare, "")
	}
	comms := form(t, "test", hosts[:1], members[:1])
	larger, errs := growAll(ctx, comms, members[1:2])
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	larger = append(larger, joined()...)
	sum(t, larger, 10)
	leave(t, larger)
}

// TestInvitationBetweenSettings: a spare whose members would not agree with it refuses.
func TestInvitationBetweenSettings(t *testing.T) {
	hosts := []*Host{joinOne(t, "h0", patient), joinOne(t, "h1", patient, func(c *Config) { c.Window = 16 })}
	members := []Member{hosts[0].Member(), hosts[1].Member()}
	ended := make(chan error)
	go func() {
		_, err := hosts[1].AwaitInvitation(t.Context())
		ended <- err
	}()
	comms := form(t, "test", hosts[:1], members[:1])
	if _, err := comms[0].Grow(within(t), members[1:]); !errors.Is(err, ErrFormation) {
		t.Errorf("got %v", err)
	}
	if err := hosts[1].Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestUninvited: callers that are no inviters of this host's are not taken for such.
func TestUninvited(t *testing.T) {
	hosts, members := joinAs(t, names(2), patient)
	if _, err := hosts[0].Communicator(t.Context(), pairPrefix+"h1//", members[:1]); !errors.Is(err, ErrArgument) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	all := []string{"test", pairPrefix + "h2/a/b", pairPrefix + "h1", pairPrefix + "h1/a"}
	for _, name := range all {
		wg.Go(func() {
			_, _ = hosts[0].single(ctx, name, []Member{members[1], members[0]}, pairOptions, subcommunicator{onHosts: true})
		})
	}
	defer wg.Wait()
	defer cancel()
	parkedCallers(t, hosts[1], len(all))
	if k, _ := hosts[1].parkedInvitation(); k != nil {
		t.Errorf("%+v is one", k)
	}
}
