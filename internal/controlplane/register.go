package controlplane

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/task"
)

// levelControllers is the metadata.version from which controllers register.
const levelControllers = 15

// registerTimeout bounds one try to register.
const registerTimeout = 5 * time.Second

// register makes this controller's address and features known to the cluster,
// as Kafka's controllers do from 3.7 on. It ends with the controller.
func (c *Controller) register() {
	var incarnation model.UUID
	rand.Read(incarnation[:])
	for !c.done.Closed() {
		changed := c.pub.wait()
		img, lead := c.pub.img.Load(), c.pub.lead.Load()
		if lead.leader != model.NoBroker && img.Feature(featureMetadata) >= levelControllers && !registered(img, c.o.NodeID, incarnation) {
			ctx, cancel := c.rt.WithTimeout(context.Background(), registerTimeout)
			_, err := c.Forward(ctx, c.registration(incarnation))
			cancel()
			if err != nil {
				c.o.Log.Debug("controller registration failed", "err", err)
			}
		}
		c.rt.Wait(nil, task.Forever, changed, c.done)
	}
}

func registered(img *image.Image, id model.BrokerID, incarnation model.UUID) bool {
	r := img.Controller(id)
	return r != nil && r.Incarnation == incarnation
}

func (c *Controller) registration(incarnation model.UUID) *kmsg.ControllerRegistrationRequest {
	req := kmsg.NewPtrControllerRegistrationRequest()
	req.ControllerID, req.IncarnationID = int32(c.o.NodeID), incarnation
	l := kmsg.NewControllerRegistrationRequestListener()
	l.Name, l.Host, l.Port = c.o.ListenerName, c.o.Host, c.o.Port
	req.Listeners = append(req.Listeners, l)
	for _, name := range sortedKeys(c.o.Core.Features) {
		f := kmsg.NewControllerRegistrationRequestFeature()
		f.Name, f.MinSupportedVersion, f.MaxSupportedVersion = name, c.o.Core.Features[name].Min, c.o.Core.Features[name].Max
		req.Features = append(req.Features, f)
	}
	return req
}
