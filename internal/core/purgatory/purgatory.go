// Package purgatory keeps requests that cannot be answered yet, each under the
// keys whose change may complete it and under its deadline (R7).
package purgatory

import "github.com/tidemark-log/tidemark/internal/core/model"

// Op is a parked request. TryComplete reports whether it can be answered now;
// it is cheap and changes nothing outside the Op. Complete answers it and runs
// exactly once, after TryComplete said true or after Expire. Expire runs only
// when the deadline passed first.
type Op interface {
	TryComplete() bool
	Complete()
	Expire()
}

// Purgatory has one owner. Its methods may be called from Op.Complete: keys
// woken there wait their turn, so that causes are handled in order.
type Purgatory[K comparable] struct {
	now model.Time
}

// New returns an empty purgatory whose timer starts at now.
func New[K comparable](now model.Time) *Purgatory[K] { return &Purgatory[K]{now: now} }

// Park completes op at once if it can be or if its deadline is not after now,
// and returns true. Otherwise op waits under keys until deadline.
func (p *Purgatory[K]) Park(now model.Time, op Op, deadline model.Time, keys ...K) bool {
	return false
}

// Wake tries the operations parked under key, oldest first.
func (p *Purgatory[K]) Wake(key K) {}

// Advance expires what has its deadline at or before now.
func (p *Purgatory[K]) Advance(now model.Time) {}

// NextDeadline returns when Advance must be called next; it may be earlier than
// the earliest deadline. False means that nothing is parked.
func (p *Purgatory[K]) NextDeadline() (model.Time, bool) { return 0, false }

// Len is the number of parked operations, Watched the sum of their keys.
func (p *Purgatory[K]) Len() int { return 0 }

// Watched is the number of (key, operation) pairs.
func (p *Purgatory[K]) Watched() int { return 0 }
