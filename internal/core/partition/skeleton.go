package partition

import "github.com/tidemark-log/tidemark/internal/core/model"

type leaderState struct {
	start      model.Offset
	persisting bool
	isr        []model.BrokerID
	maximal    []model.BrokerID
}

type followerState struct{ asking, fenced bool }

type scratch struct{ Ready }

func (s *scratch) reset() { s.Ready = Ready{} }

func (p *Partition) assign(*Assign)                 {}
func (p *Partition) configure(*Configure)           {}
func (p *Partition) produce(*Produce)               {}
func (p *Partition) appended(*Appended)             {}
func (p *Partition) epochPersisted(*EpochPersisted) {}
func (p *Partition) truncated(*Truncated)           {}
func (p *Partition) logStartMoved(*LogStartMoved)   {}
func (p *Partition) fetch(*FetchRequest)            {}
func (p *Partition) fetched(*FetchResponse)         {}
func (p *Partition) leaderOffsets(*LeaderOffsets)   {}
func (p *Partition) isrAnswer(*ISRAnswer)           {}
func (p *Partition) deleteRecords(*DeleteRecords)   {}
func (p *Partition) tick(model.Millis)              {}
func (p *Partition) stop(*Stop)                     {}
func (p *Partition) check(Marks, model.Epoch)       {}

// LowWatermark is the smallest log start of this leader and its alive followers
// (R3.27).
func (p *Partition) LowWatermark() model.Offset { return p.logStart }

// View is a snapshot for people.
func (p *Partition) View() View { return View{} }
