package workload

import "context"

// ReadBeyond has a reader of orders-0 whose position is beyond the end of an epoch
// read once. It returns where the reader stands then.
func ReadBeyond(ctx context.Context, env *Env, offset int64, epoch int32) (at int64, of, checked int32, ok bool) {
	own := *env
	own.defaults()
	own.name, own.tell = "reader", newTeller(env)
	c := newClient(&own)
	defer c.close()
	p := newPosition(c.whole(ctx, "orders"), 0)
	p.offset, p.epoch = offset, epoch
	r := &reader{c: c, positions: []*position{p}}
	ok = r.read(ctx)
	return p.offset, p.epoch, p.checked, ok
}
