package workload

import "slices"

// All is every workload there is, in the order in which a seed draws from them.
func All() []Workload {
	return []Workload{
		Producer{Acks: 0},
		Producer{Acks: 1},
		Producer{Acks: -1},
		IdempotentProducer{},
		Consumer{},
		Consumer{Committed: true},
		Consumer{Sessions: true},
		Consumer{Followers: true},
		Consumer{Committed: true, Sessions: true, Followers: true},
		Watcher{},
		Member{Group: "a"},
		Member{Group: "b"},
		Churn{},
		Grower{},
		Mover{},
		Elector{},
		Trimmer{},
		Tuner{},
	}
}

// Aimed are the workloads that only the plans of some families of faults use.
func Aimed() []Workload {
	return []Workload{Bouncer{}, IdempotentProducer{Again: true}, Trimmer{Kept: true}, Consumer{Patient: true}}
}

// Named returns the workload with this name, nil if there is none.
func Named(name string) Workload {
	for _, w := range slices.Concat(All(), Aimed()) {
		if w.Name() == name {
			return w
		}
	}
	return nil
}
