// Package task is what the loops of a node run on: they wait and read the time here.
//
// In production a task is a goroutine, a Signal is a channel and the time is that
// of the machine: a nil *Runtime is all it takes. In a simulation the same code
// runs on a Scheduler: one task at a time, each up to the point where it waits, on
// a clock that the scheduler turns. So everything that a shell waits for goes
// through this room: no go statement, no select, no timer elsewhere.
//
// Every method may be called from any task. Where a Runtime is a receiver, nil is
// production.
package task
