// Package elastic runs a job that outlives deaths of its members: the survivors go on from what they
// have, and spares take the places of the dead.
//
// Each process calls [Run] with the same Config and a function that does the work on a communicator.
// Run calls it again, on a new communicator, whenever the one before has ended by a death or a
// revocation:
//
//	err := elastic.Run(ctx, host, elastic.Config{Name: "job-17", Members: members, Spares: spares},
//		func(ctx context.Context, comm *hostlib.Communicator) error {
//			newest, err := elastic.Newest(ctx, comm, int64(step))
//			if err != nil {
//				return err
//			}
//			if _, err := hostlib.Broadcast(ctx, comm, newest.Rank, model); err != nil {
//				return err
//			}
//			for step = int(newest.Step); step < steps; step++ {
//				if err := advance(ctx, comm, model, step); err != nil {
//					return err
//				}
//			}
//			return nil
//		})
//
// # The work
//
// It begins by agreeing on where to go on from, since members may have been interrupted at different
// steps, and spares have nothing: [Newest] says which member has come furthest, and that one
// broadcasts its state; or all read the checkpoint of that step. It returns errors of operations as
// they are. After an interruption it may be called though it had returned nil: when all members of
// the last operation but one have had its result, say, and that one has to repeat it. It then finds
// itself at the last step, and helps the others there.
//
// # How it ends
//
// When work has returned, the members agree on what came of it, also when their communicator has
// ended (Communicator.Agree): they all end if it has returned nil at all that live, and otherwise all
// go round again. So none ends alone because it did not notice a death. If work fails at a member by an
// error that is not the end of the communicator, all end, with that error there and [ErrWork] at the
// others. A member whose ctx ends, or whose host is closed, counts as dead.
//
// # What happens after an interruption
//
//  1. The member that has got an error has all others return from work: it revokes the communicator, or
//     leaves it to the death that has ended it for 100 ms.
//  2. All agree that they go on, and shrink the communicator.
//  3. The lowest rank asks which of the spares await an invitation, as many as members are missing,
//     and the communicator grows by those that answer within Config.SpareWait.
//  4. If fewer than Config.MinMembers are left, all end with [ErrTooFew]. Otherwise they call work.
//
// When all is done the lowest rank dismisses the spares that were not needed. Run returns nil there.
package elastic
