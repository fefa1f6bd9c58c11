package load

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
)

// committers is how many groups are made at the same time.
const committers = 16

// CommitIdle makes groups from number from on, up to number to, without it: each
// commits an offset of the topic's first partition and has no members. Brokers that
// have yet to find a coordinator are asked again, as by Create.
func CommitIdle(ctx context.Context, brokers []string, topic string, from, to int) error {
	one := kadm.Offsets{}
	one.AddOffset(topic, 0, 0, -1)
	work := make([]error, committers)
	var wg sync.WaitGroup
	for i := range committers {
		wg.Go(func() {
			n := from + i // it stays when the client asks again
			work[i] = admin(ctx, brokers, func(adm *kadm.Client) error {
				for ; n < to; n += committers {
					if err := adm.CommitAllOffsets(ctx, fmt.Sprintf("idle-%d", n), one); err != nil {
						return fmt.Errorf("commit for group %d: %w", n, err)
					}
				}
				return nil
			})
		})
	}
	wg.Wait()
	return errors.Join(work...)
}
