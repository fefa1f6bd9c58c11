package vfs

// Choices goes through all the answers that a CrashOptions.Choose can be asked
// for, one run after the other. The zero value begins with the least.
type Choices struct {
	taken, ways []int
	at          int
}

// Choose is for CrashOptions.
func (c *Choices) Choose(n int) int {
	if c.at == len(c.taken) {
		c.taken, c.ways = append(c.taken, 0), append(c.ways, n)
	}
	c.at++
	return c.taken[c.at-1]
}

// Next moves on to the next run; false says that there is none.
func (c *Choices) Next() bool {
	n := c.at
	for n > 0 && c.taken[n-1]+1 == c.ways[n-1] {
		n--
	}
	c.taken, c.ways, c.at = c.taken[:n], c.ways[:n], 0
	if n == 0 {
		return false
	}
	c.taken[n-1]++
	return true
}
