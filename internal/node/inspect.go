package node

import (
	"github.com/tidemark-log/tidemark/internal/controlplane"
	"github.com/tidemark-log/tidemark/internal/core/image"
	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/replicas"
)

// The door for those who check a node from outside, between two steps of a
// simulation: what it returns may be read only while no task of the node runs.

// Replicas is the loop that owns the partitions hosted here; nil without a broker.
func (n *Node) Replicas() *replicas.Loop {
	if n.broker == nil {
		return nil
	}
	return n.broker.replicas
}

// Applied is the image that the broker's cache holds, which may be older than
// Image; nil without a broker.
func (n *Node) Applied() *image.Image {
	if n.broker == nil {
		return nil
	}
	return n.broker.applier.Image()
}

// BrokerEpoch is the broker epoch of this process's registration;
// UnknownBrokerEpoch before it, and without a broker.
func (n *Node) BrokerEpoch() model.BrokerEpoch {
	if n.broker == nil {
		return model.UnknownBrokerEpoch
	}
	return n.broker.lifecycle.Epoch()
}

// Source is where the metadata of this node comes from: its controller, or an
// observer of the others.
func (n *Node) Source() controlplane.Source { return n.source }
