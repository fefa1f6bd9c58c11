// Package sim runs whole clusters from one seed: the nodes that ship, on machines,
// clocks, networks and disks that are simulated.
//
// A Plan says what the cluster is, who uses it and what goes wrong when; it is
// drawn from a seed, or read from a script. A run carries it out on a stage, one
// task at a time, and looks at every invariant after each step. The same plan with
// the same seed goes the same way every time, so a failure can be shrunk to a few
// lines and kept.
package sim
