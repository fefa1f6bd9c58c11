package workload

import (
	"strconv"
	"strings"
)

// names makes values that nobody else makes: the name of the workload and a
// number, and now and then something behind it, so that segments fill at
// different times.
type names struct {
	env  *Env
	made int
}

func (n *names) next() string {
	n.made++
	v := numbered(n.env.name, n.made)
	if n.env.chance(3) {
		v += strings.Repeat(".", n.env.Rand.IntN(400))
	}
	return v
}

// numbered is a name with a number.
func numbered(name string, n int) string { return name + "-" + strconv.Itoa(n) }
