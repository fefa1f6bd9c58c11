package model

import "strconv"

// Error is one code of Kafka's error table. Cores return it as it is; it is never
// wrapped. The zero value means success.
type Error int16

// Kafka's error codes, named as in the protocol.
const (
	None                                      Error = 0
	ErrUnknownServerError                     Error = -1
	ErrOffsetOutOfRange                       Error = 1
	ErrCorruptMessage                         Error = 2
	ErrUnknownTopicOrPartition                Error = 3
	ErrInvalidFetchSize                       Error = 4
	ErrLeaderNotAvailable                     Error = 5
	ErrNotLeaderOrFollower                    Error = 6
	ErrRequestTimedOut                        Error = 7
	ErrBrokerNotAvailable                     Error = 8
	ErrReplicaNotAvailable                    Error = 9
	ErrMessageTooLarge                        Error = 10
	ErrStaleControllerEpoch                   Error = 11
	ErrOffsetMetadataTooLarge                 Error = 12
	ErrNetworkException                       Error = 13
	ErrCoordinatorLoadInProgress              Error = 14
	ErrCoordinatorNotAvailable                Error = 15
	ErrNotCoordinator                         Error = 16
	ErrInvalidTopicException                  Error = 17
	ErrRecordListTooLarge                     Error = 18
	ErrNotEnoughReplicas                      Error = 19
	ErrNotEnoughReplicasAfterAppend           Error = 20
	ErrInvalidRequiredAcks                    Error = 21
	ErrIllegalGeneration                      Error = 22
	ErrInconsistentGroupProtocol              Error = 23
	ErrInvalidGroupID                         Error = 24
	ErrUnknownMemberID                        Error = 25
	ErrInvalidSessionTimeout                  Error = 26
	ErrRebalanceInProgress                    Error = 27
	ErrInvalidCommitOffsetSize                Error = 28
	ErrTopicAuthorizationFailed               Error = 29
	ErrGroupAuthorizationFailed               Error = 30
	ErrClusterAuthorizationFailed             Error = 31
	ErrInvalidTimestamp                       Error = 32
	ErrUnsupportedSASLMechanism               Error = 33
	ErrIllegalSASLState                       Error = 34
	ErrUnsupportedVersion                     Error = 35
	ErrTopicAlreadyExists                     Error = 36
	ErrInvalidPartitions                      Error = 37
	ErrInvalidReplicationFactor               Error = 38
	ErrInvalidReplicaAssignment               Error = 39
	ErrInvalidConfig                          Error = 40
	ErrNotController                          Error = 41
	ErrInvalidRequest                         Error = 42
	ErrUnsupportedForMessageFormat            Error = 43
	ErrPolicyViolation                        Error = 44
	ErrOutOfOrderSequenceNumber               Error = 45
	ErrDuplicateSequenceNumber                Error = 46
	ErrInvalidProducerEpoch                   Error = 47
	ErrInvalidTxnState                        Error = 48
	ErrInvalidProducerIDMapping               Error = 49
	ErrInvalidTransactionTimeout              Error = 50
	ErrConcurrentTransactions                 Error = 51
	ErrTransactionCoordinatorFenced           Error = 52
	ErrTransactionalIDAuthorizationFailed     Error = 53
	ErrSecurityDisabled                       Error = 54
	ErrOperationNotAttempted                  Error = 55
	ErrKafkaStorageError                      Error = 56
	ErrLogDirNotFound                         Error = 57
	ErrSASLAuthenticationFailed               Error = 58
	ErrUnknownProducerID                      Error = 59
	ErrReassignmentInProgress                 Error = 60
	ErrDelegationTokenAuthDisabled            Error = 61
	ErrDelegationTokenNotFound                Error = 62
	ErrDelegationTokenOwnerMismatch           Error = 63
	ErrDelegationTokenRequestNotAllowed       Error = 64
	ErrDelegationTokenAuthorizationFailed     Error = 65
	ErrDelegationTokenExpired                 Error = 66
	ErrInvalidPrincipalType                   Error = 67
	ErrNonEmptyGroup                          Error = 68
	ErrGroupIDNotFound                        Error = 69
	ErrFetchSessionIDNotFound                 Error = 70
	ErrInvalidFetchSessionEpoch               Error = 71
	ErrListenerNotFound                       Error = 72
	ErrTopicDeletionDisabled                  Error = 73
	ErrFencedLeaderEpoch                      Error = 74
	ErrUnknownLeaderEpoch                     Error = 75
	ErrUnsupportedCompressionType             Error = 76
	ErrStaleBrokerEpoch                       Error = 77
	ErrOffsetNotAvailable                     Error = 78
	ErrMemberIDRequired                       Error = 79
	ErrPreferredLeaderNotAvailable            Error = 80
	ErrGroupMaxSizeReached                    Error = 81
	ErrFencedInstanceID                       Error = 82
	ErrEligibleLeadersNotAvailable            Error = 83
	ErrElectionNotNeeded                      Error = 84
	ErrNoReassignmentInProgress               Error = 85
	ErrGroupSubscribedToTopic                 Error = 86
	ErrInvalidRecord                          Error = 87
	ErrUnstableOffsetCommit                   Error = 88
	ErrThrottlingQuotaExceeded                Error = 89
	ErrProducerFenced                         Error = 90
	ErrResourceNotFound                       Error = 91
	ErrDuplicateResource                      Error = 92
	ErrUnacceptableCredential                 Error = 93
	ErrInconsistentVoterSet                   Error = 94
	ErrInvalidUpdateVersion                   Error = 95
	ErrFeatureUpdateFailed                    Error = 96
	ErrPrincipalDeserializationFailure        Error = 97
	ErrSnapshotNotFound                       Error = 98
	ErrPositionOutOfRange                     Error = 99
	ErrUnknownTopicID                         Error = 100
	ErrDuplicateBrokerRegistration            Error = 101
	ErrBrokerIDNotRegistered                  Error = 102
	ErrInconsistentTopicID                    Error = 103
	ErrInconsistentClusterID                  Error = 104
	ErrTransactionalIDNotFound                Error = 105
	ErrFetchSessionTopicIDError               Error = 106
	ErrIneligibleReplica                      Error = 107
	ErrNewLeaderElected                       Error = 108
	ErrOffsetMovedToTieredStorage             Error = 109
	ErrFencedMemberEpoch                      Error = 110
	ErrUnreleasedInstanceID                   Error = 111
	ErrUnsupportedAssignor                    Error = 112
	ErrStaleMemberEpoch                       Error = 113
	ErrMismatchedEndpointType                 Error = 114
	ErrUnsupportedEndpointType                Error = 115
	ErrUnknownControllerID                    Error = 116
	ErrUnknownSubscriptionID                  Error = 117
	ErrTelemetryTooLarge                      Error = 118
	ErrInvalidRegistration                    Error = 119
	ErrTransactionAbortable                   Error = 120
	ErrInvalidRecordState                     Error = 121
	ErrShareSessionNotFound                   Error = 122
	ErrInvalidShareSessionEpoch               Error = 123
	ErrFencedStateEpoch                       Error = 124
	ErrInvalidVoterKey                        Error = 125
	ErrDuplicateVoter                         Error = 126
	ErrVoterNotFound                          Error = 127
	ErrInvalidRegularExpression               Error = 128
	ErrRebootstrapRequired                    Error = 129
	ErrStreamsInvalidTopology                 Error = 130
	ErrStreamsInvalidTopologyEpoch            Error = 131
	ErrStreamsTopologyFenced                  Error = 132
	ErrShareSessionLimitReached               Error = 133
	ErrGroupDeletionFailed                    Error = 134
	ErrStreamsTopologyDescriptionUpdateFailed Error = 135
	ErrControllerIDNotRegistered              Error = 136
)

// Error returns Kafka's name of the code, such as NOT_LEADER_OR_FOLLOWER.
func (e Error) Error() string {
	if e == None {
		return "NONE"
	}
	if row, ok := errorTable[e]; ok {
		return row.name
	}
	return "ERROR_" + strconv.Itoa(int(e))
}

// Code returns the number that travels on the wire.
func (e Error) Code() int16 { return int16(e) }

// Retriable reports whether Kafka's clients try again after the code.
func (e Error) Retriable() bool { return errorTable[e].retriable }

type errorRow struct {
	name      string
	retriable bool
}

var errorTable = map[Error]errorRow{
	ErrUnknownServerError:                     {"UNKNOWN_SERVER_ERROR", false},
	ErrOffsetOutOfRange:                       {"OFFSET_OUT_OF_RANGE", false},
	ErrCorruptMessage:                         {"CORRUPT_MESSAGE", true},
	ErrUnknownTopicOrPartition:                {"UNKNOWN_TOPIC_OR_PARTITION", true},
	ErrInvalidFetchSize:                       {"INVALID_FETCH_SIZE", false},
	ErrLeaderNotAvailable:                     {"LEADER_NOT_AVAILABLE", true},
	ErrNotLeaderOrFollower:                    {"NOT_LEADER_OR_FOLLOWER", true},
	ErrRequestTimedOut:                        {"REQUEST_TIMED_OUT", true},
	ErrBrokerNotAvailable:                     {"BROKER_NOT_AVAILABLE", true},
	ErrReplicaNotAvailable:                    {"REPLICA_NOT_AVAILABLE", true},
	ErrMessageTooLarge:                        {"MESSAGE_TOO_LARGE", false},
	ErrStaleControllerEpoch:                   {"STALE_CONTROLLER_EPOCH", false},
	ErrOffsetMetadataTooLarge:                 {"OFFSET_METADATA_TOO_LARGE", false},
	ErrNetworkException:                       {"NETWORK_EXCEPTION", true},
	ErrCoordinatorLoadInProgress:              {"COORDINATOR_LOAD_IN_PROGRESS", true},
	ErrCoordinatorNotAvailable:                {"COORDINATOR_NOT_AVAILABLE", true},
	ErrNotCoordinator:                         {"NOT_COORDINATOR", true},
	ErrInvalidTopicException:                  {"INVALID_TOPIC_EXCEPTION", false},
	ErrRecordListTooLarge:                     {"RECORD_LIST_TOO_LARGE", false},
	ErrNotEnoughReplicas:                      {"NOT_ENOUGH_REPLICAS", true},
	ErrNotEnoughReplicasAfterAppend:           {"NOT_ENOUGH_REPLICAS_AFTER_APPEND", true},
	ErrInvalidRequiredAcks:                    {"INVALID_REQUIRED_ACKS", false},
	ErrIllegalGeneration:                      {"ILLEGAL_GENERATION", false},
	ErrInconsistentGroupProtocol:              {"INCONSISTENT_GROUP_PROTOCOL", false},
	ErrInvalidGroupID:                         {"INVALID_GROUP_ID", false},
	ErrUnknownMemberID:                        {"UNKNOWN_MEMBER_ID", false},
	ErrInvalidSessionTimeout:                  {"INVALID_SESSION_TIMEOUT", false},
	ErrRebalanceInProgress:                    {"REBALANCE_IN_PROGRESS", false},
	ErrInvalidCommitOffsetSize:                {"INVALID_COMMIT_OFFSET_SIZE", false},
	ErrTopicAuthorizationFailed:               {"TOPIC_AUTHORIZATION_FAILED", false},
	ErrGroupAuthorizationFailed:               {"GROUP_AUTHORIZATION_FAILED", false},
	ErrClusterAuthorizationFailed:             {"CLUSTER_AUTHORIZATION_FAILED", false},
	ErrInvalidTimestamp:                       {"INVALID_TIMESTAMP", false},
	ErrUnsupportedSASLMechanism:               {"UNSUPPORTED_SASL_MECHANISM", false},
	ErrIllegalSASLState:                       {"ILLEGAL_SASL_STATE", false},
	ErrUnsupportedVersion:                     {"UNSUPPORTED_VERSION", false},
	ErrTopicAlreadyExists:                     {"TOPIC_ALREADY_EXISTS", false},
	ErrInvalidPartitions:                      {"INVALID_PARTITIONS", false},
	ErrInvalidReplicationFactor:               {"INVALID_REPLICATION_FACTOR", false},
	ErrInvalidReplicaAssignment:               {"INVALID_REPLICA_ASSIGNMENT", false},
	ErrInvalidConfig:                          {"INVALID_CONFIG", false},
	ErrNotController:                          {"NOT_CONTROLLER", true},
	ErrInvalidRequest:                         {"INVALID_REQUEST", false},
	ErrUnsupportedForMessageFormat:            {"UNSUPPORTED_FOR_MESSAGE_FORMAT", false},
	ErrPolicyViolation:                        {"POLICY_VIOLATION", false},
	ErrOutOfOrderSequenceNumber:               {"OUT_OF_ORDER_SEQUENCE_NUMBER", false},
	ErrDuplicateSequenceNumber:                {"DUPLICATE_SEQUENCE_NUMBER", false},
	ErrInvalidProducerEpoch:                   {"INVALID_PRODUCER_EPOCH", false},
	ErrInvalidTxnState:                        {"INVALID_TXN_STATE", false},
	ErrInvalidProducerIDMapping:               {"INVALID_PRODUCER_ID_MAPPING", false},
	ErrInvalidTransactionTimeout:              {"INVALID_TRANSACTION_TIMEOUT", false},
	ErrConcurrentTransactions:                 {"CONCURRENT_TRANSACTIONS", false},
	ErrTransactionCoordinatorFenced:           {"TRANSACTION_COORDINATOR_FENCED", false},
	ErrTransactionalIDAuthorizationFailed:     {"TRANSACTIONAL_ID_AUTHORIZATION_FAILED", false},
	ErrSecurityDisabled:                       {"SECURITY_DISABLED", false},
	ErrOperationNotAttempted:                  {"OPERATION_NOT_ATTEMPTED", false},
	ErrKafkaStorageError:                      {"KAFKA_STORAGE_ERROR", true},
	ErrLogDirNotFound:                         {"LOG_DIR_NOT_FOUND", false},
	ErrSASLAuthenticationFailed:               {"SASL_AUTHENTICATION_FAILED", false},
	ErrUnknownProducerID:                      {"UNKNOWN_PRODUCER_ID", false},
	ErrReassignmentInProgress:                 {"REASSIGNMENT_IN_PROGRESS", false},
	ErrDelegationTokenAuthDisabled:            {"DELEGATION_TOKEN_AUTH_DISABLED", false},
	ErrDelegationTokenNotFound:                {"DELEGATION_TOKEN_NOT_FOUND", false},
	ErrDelegationTokenOwnerMismatch:           {"DELEGATION_TOKEN_OWNER_MISMATCH", false},
	ErrDelegationTokenRequestNotAllowed:       {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", false},
	ErrDelegationTokenAuthorizationFailed:     {"DELEGATION_TOKEN_AUTHORIZATION_FAILED", false},
	ErrDelegationTokenExpired:                 {"DELEGATION_TOKEN_EXPIRED", false},
	ErrInvalidPrincipalType:                   {"INVALID_PRINCIPAL_TYPE", false},
	ErrNonEmptyGroup:                          {"NON_EMPTY_GROUP", false},
	ErrGroupIDNotFound:                        {"GROUP_ID_NOT_FOUND", false},
	ErrFetchSessionIDNotFound:                 {"FETCH_SESSION_ID_NOT_FOUND", true},
	ErrInvalidFetchSessionEpoch:               {"INVALID_FETCH_SESSION_EPOCH", true},
	ErrListenerNotFound:                       {"LISTENER_NOT_FOUND", true},
	ErrTopicDeletionDisabled:                  {"TOPIC_DELETION_DISABLED", false},
	ErrFencedLeaderEpoch:                      {"FENCED_LEADER_EPOCH", true},
	ErrUnknownLeaderEpoch:                     {"UNKNOWN_LEADER_EPOCH", true},
	ErrUnsupportedCompressionType:             {"UNSUPPORTED_COMPRESSION_TYPE", false},
	ErrStaleBrokerEpoch:                       {"STALE_BROKER_EPOCH", false},
	ErrOffsetNotAvailable:                     {"OFFSET_NOT_AVAILABLE", true},
	ErrMemberIDRequired:                       {"MEMBER_ID_REQUIRED", false},
	ErrPreferredLeaderNotAvailable:            {"PREFERRED_LEADER_NOT_AVAILABLE", true},
	ErrGroupMaxSizeReached:                    {"GROUP_MAX_SIZE_REACHED", false},
	ErrFencedInstanceID:                       {"FENCED_INSTANCE_ID", false},
	ErrEligibleLeadersNotAvailable:            {"ELIGIBLE_LEADERS_NOT_AVAILABLE", true},
	ErrElectionNotNeeded:                      {"ELECTION_NOT_NEEDED", true},
	ErrNoReassignmentInProgress:               {"NO_REASSIGNMENT_IN_PROGRESS", false},
	ErrGroupSubscribedToTopic:                 {"GROUP_SUBSCRIBED_TO_TOPIC", false},
	ErrInvalidRecord:                          {"INVALID_RECORD", false},
	ErrUnstableOffsetCommit:                   {"UNSTABLE_OFFSET_COMMIT", true},
	ErrThrottlingQuotaExceeded:                {"THROTTLING_QUOTA_EXCEEDED", true},
	ErrProducerFenced:                         {"PRODUCER_FENCED", false},
	ErrResourceNotFound:                       {"RESOURCE_NOT_FOUND", false},
	ErrDuplicateResource:                      {"DUPLICATE_RESOURCE", false},
	ErrUnacceptableCredential:                 {"UNACCEPTABLE_CREDENTIAL", false},
	ErrInconsistentVoterSet:                   {"INCONSISTENT_VOTER_SET", false},
	ErrInvalidUpdateVersion:                   {"INVALID_UPDATE_VERSION", false},
	ErrFeatureUpdateFailed:                    {"FEATURE_UPDATE_FAILED", false},
	ErrPrincipalDeserializationFailure:        {"PRINCIPAL_DESERIALIZATION_FAILURE", false},
	ErrSnapshotNotFound:                       {"SNAPSHOT_NOT_FOUND", false},
	ErrPositionOutOfRange:                     {"POSITION_OUT_OF_RANGE", false},
	ErrUnknownTopicID:                         {"UNKNOWN_TOPIC_ID", true},
	ErrDuplicateBrokerRegistration:            {"DUPLICATE_BROKER_REGISTRATION", false},
	ErrBrokerIDNotRegistered:                  {"BROKER_ID_NOT_REGISTERED", false},
	ErrInconsistentTopicID:                    {"INCONSISTENT_TOPIC_ID", true},
	ErrInconsistentClusterID:                  {"INCONSISTENT_CLUSTER_ID", false},
	ErrTransactionalIDNotFound:                {"TRANSACTIONAL_ID_NOT_FOUND", false},
	ErrFetchSessionTopicIDError:               {"FETCH_SESSION_TOPIC_ID_ERROR", true},
	ErrIneligibleReplica:                      {"INELIGIBLE_REPLICA", false},
	ErrNewLeaderElected:                       {"NEW_LEADER_ELECTED", false},
	ErrOffsetMovedToTieredStorage:             {"OFFSET_MOVED_TO_TIERED_STORAGE", false},
	ErrFencedMemberEpoch:                      {"FENCED_MEMBER_EPOCH", false},
	ErrUnreleasedInstanceID:                   {"UNRELEASED_INSTANCE_ID", false},
	ErrUnsupportedAssignor:                    {"UNSUPPORTED_ASSIGNOR", false},
	ErrStaleMemberEpoch:                       {"STALE_MEMBER_EPOCH", false},
	ErrMismatchedEndpointType:                 {"MISMATCHED_ENDPOINT_TYPE", false},
	ErrUnsupportedEndpointType:                {"UNSUPPORTED_ENDPOINT_TYPE", false},
	ErrUnknownControllerID:                    {"UNKNOWN_CONTROLLER_ID", false},
	ErrUnknownSubscriptionID:                  {"UNKNOWN_SUBSCRIPTION_ID", false},
	ErrTelemetryTooLarge:                      {"TELEMETRY_TOO_LARGE", false},
	ErrInvalidRegistration:                    {"INVALID_REGISTRATION", false},
	ErrTransactionAbortable:                   {"TRANSACTION_ABORTABLE", false},
	ErrInvalidRecordState:                     {"INVALID_RECORD_STATE", false},
	ErrShareSessionNotFound:                   {"SHARE_SESSION_NOT_FOUND", false},
	ErrInvalidShareSessionEpoch:               {"INVALID_SHARE_SESSION_EPOCH", false},
	ErrFencedStateEpoch:                       {"FENCED_STATE_EPOCH", false},
	ErrInvalidVoterKey:                        {"INVALID_VOTER_KEY", false},
	ErrDuplicateVoter:                         {"DUPLICATE_VOTER", false},
	ErrVoterNotFound:                          {"VOTER_NOT_FOUND", false},
	ErrInvalidRegularExpression:               {"INVALID_REGULAR_EXPRESSION", false},
	ErrRebootstrapRequired:                    {"REBOOTSTRAP_REQUIRED", false},
	ErrStreamsInvalidTopology:                 {"STREAMS_INVALID_TOPOLOGY", false},
	ErrStreamsInvalidTopologyEpoch:            {"STREAMS_INVALID_TOPOLOGY_EPOCH", false},
	ErrStreamsTopologyFenced:                  {"STREAMS_TOPOLOGY_FENCED", false},
	ErrShareSessionLimitReached:               {"SHARE_SESSION_LIMIT_REACHED", true},
	ErrGroupDeletionFailed:                    {"GROUP_DELETION_FAILED", false},
	ErrStreamsTopologyDescriptionUpdateFailed: {"STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", false},
	ErrControllerIDNotRegistered:              {"CONTROLLER_ID_NOT_REGISTERED", false},
}
