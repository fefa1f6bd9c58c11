package check

// Name is LogMarks.
func (LogMarks) Name() string { return "LogMarks" }

// Name is KeptOnDisk.
func (KeptOnDisk) Name() string { return "KeptOnDisk" }

// Name is LogOrder.
func (LogOrder) Name() string { return "LogOrder" }

// Name is EpochCache.
func (EpochCache) Name() string { return "EpochCache" }

// Name is EpochOnDisk.
func (EpochOnDisk) Name() string { return "EpochOnDisk" }

// Name is SequenceContiguous.
func (SequenceContiguous) Name() string { return "SequenceContiguous" }

// Name is ProducerKept.
func (ProducerKept) Name() string { return "ProducerKept" }

// Name is HWStep.
func (HWStep) Name() string { return "HWStep" }

// Name is RoleState.
func (RoleState) Name() string { return "RoleState" }

// Name is ResponseCut.
func (ResponseCut) Name() string { return "ResponseCut" }

// Name is QuorumSuperset.
func (QuorumSuperset) Name() string { return "QuorumSuperset" }

// Name is KnowledgeSoundness.
func (KnowledgeSoundness) Name() string { return "KnowledgeSoundness" }

// Name is HeardInEpoch.
func (HeardInEpoch) Name() string { return "HeardInEpoch" }

// Name is KnownByFetch.
func (KnownByFetch) Name() string { return "KnownByFetch" }

// Name is JoinedByFetch.
func (JoinedByFetch) Name() string { return "JoinedByFetch" }

// Name is LeavesByLag.
func (LeavesByLag) Name() string { return "LeavesByLag" }

// Name is LaggardsLeave.
func (LaggardsLeave) Name() string { return "LaggardsLeave" }

// Name is UnfencedInformed.
func (UnfencedInformed) Name() string { return "UnfencedInformed" }

// Name is MovedWhole.
func (MovedWhole) Name() string { return "MovedWhole" }

// Name is ControllerState.
func (ControllerState) Name() string { return "ControllerState" }

// Name is ChangeSteps.
func (ChangeSteps) Name() string { return "ChangeSteps" }

// Name is BrokerEpochs.
func (BrokerEpochs) Name() string { return "BrokerEpochs" }

// Name is OneControllerPerEpoch.
func (OneControllerPerEpoch) Name() string { return "OneControllerPerEpoch" }

// Name is MetadataViews.
func (MetadataViews) Name() string { return "MetadataViews" }

// Name is OneWriterPerEpoch.
func (OneWriterPerEpoch) Name() string { return "OneWriterPerEpoch" }

// Name is LogMatching.
func (LogMatching) Name() string { return "LogMatching" }

// Name is StablePrefix.
func (StablePrefix) Name() string { return "StablePrefix" }

// Name is StrongISR.
func (StrongISR) Name() string { return "StrongISR" }

// Name is LeaderCompleteness.
func (LeaderCompleteness) Name() string { return "LeaderCompleteness" }

// Name is CandidateCompleteness.
func (CandidateCompleteness) Name() string { return "CandidateCompleteness" }

// Name is UncleanExclusion.
func (UncleanExclusion) Name() string { return "UncleanExclusion" }

// Name is NoGlobalLoss.
func (NoGlobalLoss) Name() string { return "NoGlobalLoss" }

// Name is AckedCommitted.
func (AckedCommitted) Name() string { return "AckedCommitted" }

// Name is RepeatableRead.
func (RepeatableRead) Name() string { return "RepeatableRead" }

// Name is DeliveredOnce.
func (DeliveredOnce) Name() string { return "DeliveredOnce" }

// Name is GroupOffsets.
func (GroupOffsets) Name() string { return "GroupOffsets" }

// Name is LatestMonotone.
func (LatestMonotone) Name() string { return "LatestMonotone" }

// Name is LinearizableLog.
func (LinearizableLog) Name() string { return "LinearizableLog" }

// Name is NoLostWakeup.
func (NoLostWakeup) Name() string { return "NoLostWakeup" }

// Name is Unfenced.
func (Unfenced) Name() string { return "Unfenced" }

// Name is ISRFull.
func (ISRFull) Name() string { return "ISRFull" }

// Name is HWReachesLEO.
func (HWReachesLEO) Name() string { return "HWReachesLEO" }

// Name is Answered.
func (Answered) Name() string { return "Answered" }

// Name is ISRSettled.
func (ISRSettled) Name() string { return "ISRSettled" }

// Name is MetadataConverged.
func (MetadataConverged) Name() string { return "MetadataConverged" }

// Name is ReassignmentDone.
func (ReassignmentDone) Name() string { return "ReassignmentDone" }

// Name is ConfigsObeyed.
func (ConfigsObeyed) Name() string { return "ConfigsObeyed" }

// Name is DivergenceEnds.
func (DivergenceEnds) Name() string { return "DivergenceEnds" }

// Name is AckedKept.
func (AckedKept) Name() string { return "AckedKept" }

// Name is NoDuplicates.
func (NoDuplicates) Name() string { return "NoDuplicates" }

// Name is ProducerOrder.
func (ProducerOrder) Name() string { return "ProducerOrder" }
