package metalog

import (
	"encoding/binary"
	"fmt"

	"github.com/tidemark-log/tidemark/internal/core/model"
)

// Control is one record of a control batch. Every implementation is a pointer to
// a struct of this package.
type Control interface {
	// ControlType is the number in the record's key.
	ControlType() int16
	walk(w walker, v int16)
	version() int16
}

// The types of control records.
const (
	controlLeaderChange   int16 = 2
	controlSnapshotHeader int16 = 3
	controlSnapshotFooter int16 = 4
	controlKRaftVersion   int16 = 5
	controlKRaftVoters    int16 = 6
)

// LeaderChange is the first record of every leader's epoch. It is written in
// version 0 unless directory ids are given for all voters.
type LeaderChange struct {
	Leader       model.BrokerID
	Voters       []model.BrokerID
	Granting     []model.BrokerID // the voters whose votes elected the leader
	VoterDirs    []model.UUID     // nil, or one for each of Voters
	GrantingDirs []model.UUID     // nil, or one for each of Granting
}

// SnapshotHeader is the first record of a snapshot.
type SnapshotHeader struct {
	LastContainedTimestamp model.Millis // append time of the last batch before the snapshot's end
}

// SnapshotFooter is the last record of a snapshot.
type SnapshotFooter struct{}

// KRaftVersion states the level of kraft.version.
type KRaftVersion struct {
	Level int16 // 0: static voters, 1: voters in the log (KIP-853)
}

// Voter is one voter of the metadata quorum.
type Voter struct {
	ID          model.BrokerID
	DirectoryID model.UUID
	Endpoints   []VoterEndpoint
	MinKRaft    int16 // the range of kraft.version that the voter supports
	MaxKRaft    int16
}

// VoterEndpoint is one listener of a voter. Brokers look for their own first
// controller listener by its name.
type VoterEndpoint struct {
	Name string
	Host string
	Port uint16
}

// KRaftVoters states the whole voter set.
type KRaftVoters struct {
	Voters []Voter
}

// ControlType implements Control.
func (*LeaderChange) ControlType() int16 { return controlLeaderChange }

// ControlType implements Control.
func (*SnapshotHeader) ControlType() int16 { return controlSnapshotHeader }

// ControlType implements Control.
func (*SnapshotFooter) ControlType() int16 { return controlSnapshotFooter }

// ControlType implements Control.
func (*KRaftVersion) ControlType() int16 { return controlKRaftVersion }

// ControlType implements Control.
func (*KRaftVoters) ControlType() int16 { return controlKRaftVoters }

func (r *LeaderChange) version() int16 {
	if r.VoterDirs != nil {
		return 1
	}
	return 0
}

func (*SnapshotHeader) version() int16 { return 0 }
func (*SnapshotFooter) version() int16 { return 0 }
func (*KRaftVersion) version() int16   { return 0 }
func (*KRaftVoters) version() int16    { return 0 }

func (r *LeaderChange) walk(w walker, v int16) {
	w.int32("leaderId", (*int32)(&r.Leader))
	walkVoters(w, v, "voters", &r.Voters, &r.VoterDirs)
	walkVoters(w, v, "grantingVoters", &r.Granting, &r.GrantingDirs)
}

func walkVoters(w walker, v int16, name string, ids *[]model.BrokerID, dirs *[]model.UUID) {
	n := w.begin(name, len(*ids), 5)
	if n != len(*ids) {
		*ids = make([]model.BrokerID, n)
	}
	if v >= 1 && len(*dirs) != n {
		*dirs = make([]model.UUID, n)
	}
	for i := range *ids {
		w.open("")
		w.int32("voterId", (*int32)(&(*ids)[i]))
		if v >= 1 {
			w.uuid("voterDirectoryId", &(*dirs)[i])
		}
		w.shut()
	}
	w.end()
}

func (r *SnapshotHeader) walk(w walker, _ int16) {
	w.int64("lastContainedLogTimestamp", (*int64)(&r.LastContainedTimestamp))
}

func (*SnapshotFooter) walk(walker, int16) {}

func (r *KRaftVersion) walk(w walker, _ int16) { w.int16("kRaftVersion", &r.Level) }

func (r *KRaftVoters) walk(w walker, _ int16) {
	structs(w, "voters", &r.Voters, 27, func(w walker, p *Voter) {
		w.int32("voterId", (*int32)(&p.ID))
		w.uuid("voterDirectoryId", &p.DirectoryID)
		structs(w, "endpoints", &p.Endpoints, 5, func(w walker, e *VoterEndpoint) {
			w.string("name", &e.Name)
			w.string("host", &e.Host)
			w.uint16("port", &e.Port)
		})
		w.open("kRaftVersionFeature")
		w.int16("minSupportedVersion", &p.MinKRaft)
		w.int16("maxSupportedVersion", &p.MaxKRaft)
		w.shut()
	})
}

// appendControl appends the value of a control record: its version, then its
// fields.
func (w *writer) appendControl(dst []byte, rec Control) []byte {
	w.reset(dst)
	v := rec.version()
	w.int16("version", &v)
	rec.walk(w, v)
	w.finish()
	return w.b
}

// decodeControl reads the key and the value of one record of a control batch,
// and its version; it keeps no reference to them.
func decodeControl(key, value []byte) (Control, int16, error) {
	if len(key) < 4 {
		return nil, 0, fmt.Errorf("a control record's key has %d bytes, not 4", len(key))
	}
	rec, top := freshControl(int16(binary.BigEndian.Uint16(key[2:])))
	if rec == nil {
		return nil, 0, fmt.Errorf("control record type %d is unknown", binary.BigEndian.Uint16(key[2:]))
	}
	var r reader
	r.reset(value)
	var v int16
	r.int16("version", &v)
	if r.err == nil && (v < 0 || v > top) {
		return nil, 0, fmt.Errorf("control record type %d has no version %d", rec.ControlType(), v)
	}
	rec.walk(&r, v)
	if err := r.finish(); err != nil {
		return nil, 0, fmt.Errorf("read control record type %d: %w", rec.ControlType(), err)
	}
	return rec, v, nil
}

// freshControl returns an empty record of the type with its highest version.
func freshControl(t int16) (Control, int16) {
	switch t {
	case controlLeaderChange:
		return new(LeaderChange), 1
	case controlSnapshotHeader:
		return new(SnapshotHeader), 0
	case controlSnapshotFooter:
		return new(SnapshotFooter), 0
	case controlKRaftVersion:
		return new(KRaftVersion), 0
	case controlKRaftVoters:
		return new(KRaftVoters), 0
	}
	return nil, 0
}
