package api

import (
	"fmt"
	"regexp"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tidemark-log/tidemark/internal/core/model"
	"github.com/tidemark-log/tidemark/internal/transport"
	"github.com/tidemark-log/tidemark/internal/wire"
)

// softwareName is what a client may call itself and its version (KIP-511).
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// apiVersions serves key 18, versions 0 to 5, and answers any higher one with
// version 0, UNSUPPORTED_VERSION and our own range of this key, so that a newer
// client can ask again (KIP-511, case B1).
func (a *API) apiVersions(r *transport.Request) {
	own, _ := a.Versions.Range(r.Header.Key)
	resp := kmsg.NewPtrApiVersionsResponse()
	if r.Header.Version > own.Max {
		resp.ErrorCode = model.ErrUnsupportedVersion.Code()
		resp.ApiKeys = append(resp.ApiKeys, apiKey(own))
		r.Reply(transport.Message(resp))
		return
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, resp.Version = r.Header.Version, r.Header.Version
	if err := req.ReadFrom(r.Body); err != nil {
		r.CloseConn(fmt.Errorf("decode ApiVersions version %d: %w", r.Header.Version, err))
		return
	}
	if err := a.admitClient(req); err != model.None {
		resp.ErrorCode = err.Code()
		r.Reply(transport.Message(resp))
		return
	}
	if req.Version >= 3 {
		r.Conn.SetClient(transport.ClientSoftware{Name: req.ClientSoftwareName, Version: req.ClientSoftwareVersion})
	}
	for _, v := range a.Versions.Advertised() {
		resp.ApiKeys = append(resp.ApiKeys, apiKey(v))
	}
	a.features(resp)
	r.Reply(transport.Message(resp))
}

// admitClient checks what a client says of itself (case B4), and whom it thinks
// it is talking to: v5 clients name both cluster and node once they know them
// (KIP-1242).
func (a *API) admitClient(req *kmsg.ApiVersionsRequest) model.Error {
	if req.Version < 3 {
		return model.None
	}
	if !softwareName.MatchString(req.ClientSoftwareName) || !softwareName.MatchString(req.ClientSoftwareVersion) {
		return model.ErrInvalidRequest
	}
	named := req.NodeID != int32(model.NoBroker)
	switch {
	case req.Version < 5 || req.ClusterID == nil && !named:
		return model.None
	case req.ClusterID == nil || !named:
		return model.ErrInvalidRequest
	case *req.ClusterID != a.ClusterID || model.BrokerID(req.NodeID) != a.ID:
		return model.ErrRebootstrapRequired
	}
	return model.None
}

func apiKey(r wire.Range) kmsg.ApiVersionsResponseApiKey {
	k := kmsg.NewApiVersionsResponseApiKey()
	k.ApiKey, k.MinVersion, k.MaxVersion = r.Key, r.Min, r.Max
	return k
}

// features tells what this broker supports and what the cluster finalized, in
// tags (KIP-584). Old clients choke on a supported minimum of 0, so requests
// below v4 do not see such features (KIP-1022).
func (a *API) features(resp *kmsg.ApiVersionsResponse) {
	for _, f := range a.Features {
		if f.Min == 0 && resp.Version < 4 {
			continue
		}
		s := kmsg.NewApiVersionsResponseSupportedFeature()
		s.Name, s.MinVersion, s.MaxVersion = f.Name, f.Min, f.Max
		resp.SupportedFeatures = append(resp.SupportedFeatures, s)
	}
	img := a.Images.Image()
	resp.FinalizedFeaturesEpoch = int64(img.End()) - 1
	for _, f := range img.Features() {
		if f.Level > 0 {
			resp.FinalizedFeatures = append(resp.FinalizedFeatures, finalized(f.Name, f.Level))
		}
	}
	if level := img.KRaftVersion(); level > 0 {
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, finalized("kraft.version", level))
	}
}

func finalized(name string, level int16) kmsg.ApiVersionsResponseFinalizedFeature {
	f := kmsg.NewApiVersionsResponseFinalizedFeature()
	f.Name, f.MinVersionLevel, f.MaxVersionLevel = name, level, level
	return f
}
