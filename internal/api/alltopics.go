package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
)

// allTopics remembers the encoded answers to Metadata requests for all topics.
// Many clients ask for that again and again, and between two images it is the same;
// after a change the first of them has it made, and the others wait for that.
type allTopics struct {
	mu         sync.Mutex
	img        *image.Image
	controller model.BrokerID
	bodies     map[allTopicsKey][]byte // for img and controller
}

// allTopicsKey is what else an answer depends on.
type allTopicsKey struct {
	version              int16
	listener             string
	clusterOps, topicOps bool
}

// answer returns what is remembered, or remembers what make makes.
func (c *allTopics) answer(img *image.Image, controller model.BrokerID, key allTopicsKey, make func() *kmsg.MetadataResponse) kmsg.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.img != img || c.controller != controller {
		c.img, c.controller, c.bodies = img, controller, map[allTopicsKey][]byte{}
	}
	body, ok := c.bodies[key]
	if !ok {
		resp := make()
		resp.Version = key.version
		body = resp.AppendTo(nil)
		c.bodies[key] = body
	}
	return encodedMetadata{kmsg.NewPtrMetadataResponse(), body}
}

// encodedMetadata is an answer that is encoded already, for one version.
type encodedMetadata struct {
	*kmsg.MetadataResponse
	body []byte
}

// AppendTo appends the body.
func (e encodedMetadata) AppendTo(dst []byte) []byte { return append(dst, e.body...) }
