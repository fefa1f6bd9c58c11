package workload

// Voters will be an administrator who adds controllers to the quorum and removes
// them at run time. What joins here: AddRaftVoter, RemoveRaftVoter,
// UpdateRaftVoter and DescribeQuorum, never beyond what leaves a majority of
// machines that run.
type Voters struct{}
