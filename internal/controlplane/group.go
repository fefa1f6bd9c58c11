package controlplane

import "sync"

// ready is a channel that is closed once.
type ready struct {
	once sync.Once
	ch   chan struct{}
}

func newReady() *ready { return &ready{ch: make(chan struct{})} }

func (r *ready) set() { r.once.Do(func() { close(r.ch) }) }
