package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
	"github.com/tidemark-log/tidemark/internal/transport"
)

// initProducerID serves key 22, versions 0 to 5, for idempotent producers: an id
// that nobody had before, with epoch 0 (KIP-98, case B71). Errors:
// COORDINATOR_LOAD_IN_PROGRESS, which clients try again, when no block of ids
// can be had; UNSUPPORTED_VERSION with a transactional id; INVALID_REQUEST for an
// empty one, or an id without its epoch.
func (a *API) initProducerID(ctx context.Context, _ *transport.Request, req *kmsg.InitProducerIDRequest) kmsg.Response {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	err := checkProducer(req)
	if err == model.None {
		id, why := a.ids.next(ctx, a.allocateIDs)
		if why == nil {
			resp.ProducerID, resp.ProducerEpoch = int64(id), 0
			return resp
		}
		a.Log.Warn("no producer ids", "err", why)
		err = model.ErrCoordinatorLoadInProgress
	}
	resp.ErrorCode = err.Code()
	return resp
}

func checkProducer(req *kmsg.InitProducerIDRequest) model.Error {
	switch {
	case (req.ProducerID < 0) != (req.ProducerEpoch < 0):
		return model.ErrInvalidRequest
	case req.TransactionalID == nil:
		return model.None
	case *req.TransactionalID == "":
		return model.ErrInvalidRequest
	}
	return model.ErrUnsupportedVersion
}

// allocateTimeout bounds the wait for a block of ids.
const allocateTimeout = 5 * time.Second

// allocateIDs asks the controller for a block of producer ids.
func (a *API) allocateIDs(ctx context.Context) (idBlock, error) {
	ctx, cancel := a.Runtime.WithTimeout(ctx, allocateTimeout)
	defer cancel()
	req := kmsg.NewPtrAllocateProducerIDsRequest()
	req.BrokerID, req.BrokerEpoch = int32(a.ID), int64(a.Epoch())
	answer, err := a.Controller.Forward(ctx, req)
	if err != nil {
		return idBlock{}, fmt.Errorf("allocate producer ids: %w", err)
	}
	resp, ok := answer.(*kmsg.AllocateProducerIDsResponse)
	switch {
	case !ok:
		return idBlock{}, fmt.Errorf("allocate producer ids: an answer of another kind, %T", answer)
	case resp.ErrorCode != 0:
		return idBlock{}, fmt.Errorf("allocate producer ids: %w", model.Error(resp.ErrorCode))
	case resp.ProducerIDLen <= 0 || resp.ProducerIDStart < 0:
		return idBlock{}, errors.New("allocate producer ids: an empty block")
	}
	start := model.ProducerID(resp.ProducerIDStart)
	return idBlock{start, start + model.ProducerID(resp.ProducerIDLen)}, nil
}

// idBlock is [next, end) of the ids that the controller gave to this broker.
type idBlock struct{ next, end model.ProducerID }

// idBlocks hands out ids of one block after the other. free is raised while
// nobody uses the current block: who took it owns the block.
type idBlocks struct {
	rt      *task.Runtime
	free    *task.Signal
	current idBlock
}

func (b *idBlocks) init(rt *task.Runtime) {
	b.rt, b.free = rt, rt.NewSignal()
	b.free.Raise()
}

// next returns a fresh id; more gets a block when the current one is used up.
func (b *idBlocks) next(ctx context.Context, more func(context.Context) (idBlock, error)) (model.ProducerID, error) {
	if b.rt.Wait(ctx, task.Forever, b.free) == task.Ended {
		return model.NoProducerID, ctx.Err()
	}
	defer b.free.Raise()
	if b.current.next == b.current.end {
		fresh, err := more(ctx)
		if err != nil {
			return model.NoProducerID, err
		}
		b.current = fresh
	}
	id := b.current.next
	b.current.next++
	return id, nil
}
